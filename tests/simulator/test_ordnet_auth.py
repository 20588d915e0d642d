"""ord.net's sign-in, limits and faults."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from tornado.httpclient import HTTPError
from tornado.simple_httpclient import HTTPStreamClosedError

from simulator.calls import MODES
from tests.simulator.desk import ANN, BOB, PUPPETS, Desk
from tests.simulator.ordnet_trader import LISTINGS, OFFERS, Client
from tests.simulator.seller import PUPPET, hold

pytestmark = pytest.mark.gen_test

MINUTES_MS = 60_000


async def test_a_challenge_asks_both_addresses(desk: Desk) -> None:
    found = await Client(desk).challenge()

    assert [(row["role"], row["address"]) for row in found["challenges"]] == [
        ("ordinals", ANN.ordinals),
        ("payment", ANN.payment),
    ]
    for row in found["challenges"]:
        assert re.fullmatch(r"Sign in to ord\.net at 2025-10-09T08:53:20Z \(nonce: [0-9a-f]{32}\)", row["message"])
    assert len({row["message"] for row in found["challenges"]}) == 2
    assert (await desk.sim("GET", "requests"))["challenge"] == {ANN.payment: 1}


async def test_right_answers_give_a_token_for_an_hour(desk: Desk) -> None:
    client = Client(desk)
    assert (await client.ask("GET", "me")) == (401, {"error": "Bearer session token required"})

    found = await client.good("POST", "auth/verify", client.answers(await client.challenge()))

    (binding,) = found["walletBindings"]
    assert (binding["ordinalsAddress"], binding["paymentAddress"]) == (ANN.ordinals, ANN.payment)
    assert found["expiresAt"] == "2025-10-09T09:53:20.000Z"
    assert (await desk.sim("GET", "requests"))["challenge"] == {"(nobody)": 1, ANN.payment: 2}
    client.token = found["sessionToken"]
    assert await client.good("GET", "me") == {name: found[name] for name in ("profile", "walletBindings")}
    desk.clock.advance(3599)
    assert (await client.ask("GET", "me"))[0] == 200
    desk.clock.advance(1)
    assert await client.ask("GET", "me") == (401, {"error": "Invalid or expired bearer session token"})
    again = await Client(desk).sign_in()
    assert again.binding == binding["walletBindingId"]


async def test_a_signature_of_another_text_is_refused(desk: Desk) -> None:
    client = Client(desk)
    first, second = await client.challenge(), await client.challenge()
    own, others = client.answers(first), client.answers(second)

    for row, other in zip(own["verifications"], others["verifications"], strict=True):
        kept, row["signature"] = row["signature"], other["signature"]
        assert (await client.ask("POST", "auth/verify", own))[0] == 401
        row["signature"] = kept
    assert (await client.ask("POST", "auth/verify", own))[0] == 200


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"authRequestId": "11111111-1111-1111-1111-111111111111"}, 404),
        ({"verifications": []}, 400),
        ({"only": 1}, 400),
        ({"challengeId": "22222222-2222-2222-2222-222222222222"}, 404),
        ({"address": BOB.payment}, 409),
        ({"signature": "no hex"}, 400),
        ({"signature": "00"}, 401),
    ],
)
async def test_malformed_answers(desk: Desk, change: dict[str, Any], status: int) -> None:
    client = Client(desk)
    body = client.answers(await client.challenge())
    for name, value in change.items():
        if name == "only":
            body["verifications"] = body["verifications"][:value]
        elif name in body:
            body[name] = value
        else:
            body["verifications"][0][name] = value

    assert (await client.ask("POST", "auth/verify", body))[0] == status


async def test_a_challenge_ends_and_is_answered_once(desk: Desk) -> None:
    client = Client(desk)
    late = client.answers(await client.challenge())
    desk.clock.advance(600)
    assert (await client.ask("POST", "auth/verify", late))[0] == 410

    body = client.answers(await client.challenge())
    assert [(await client.ask("POST", "auth/verify", body))[0] for _ in range(2)] == [200, 404]


@pytest.mark.parametrize(("sats", "status"), [(999_999, 403), (1_000_000, 200)])
async def test_the_payment_address_must_be_funded(desk: Desk, sats: int, status: int) -> None:
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": sats})
    client = Client(desk)

    assert (await client.ask("POST", "auth/verify", client.answers(await client.challenge())))[0] == status


async def test_five_sign_ins_of_an_address_a_minute(desk: Desk) -> None:
    pair = {"ordinalsAddress": ANN.ordinals, "paymentAddress": ANN.payment}
    desk.clock.now_ms -= desk.clock.now_ms % MINUTES_MS

    answers = [await Client(desk).ask("POST", "auth/challenge", pair) for _ in range(6)]

    assert [status for status, _ in answers] == [200] * 5 + [429]
    assert set(answers[-1][1]) == {"error"}
    other = {"ordinalsAddress": BOB.ordinals, "paymentAddress": BOB.payment}
    assert (await Client(desk).ask("POST", "auth/challenge", other))[0] == 200
    desk.clock.advance(60)
    assert (await Client(desk).ask("POST", "auth/challenge", pair))[0] == 200


async def test_reads_of_a_profile_and_of_an_ip_are_counted(desk: Desk) -> None:
    desk.clock.now_ms -= desk.clock.now_ms % MINUTES_MS
    ann, bob = await Client(desk).sign_in(), await Client(desk, BOB).sign_in()

    assert [(await ann.ask("GET", "me"))[0] for _ in range(31)] == [200] * 30 + [429]
    assert [(await bob.ask("GET", "me"))[0] for _ in range(30)] == [200] * 29 + [429]
    desk.clock.advance(59)
    assert (await ann.ask("GET", "me"))[0] == 429
    desk.clock.advance(1)
    assert (await ann.ask("GET", "me"))[0] == 200


GONE = (HTTPError, HTTPStreamClosedError, ConnectionError)
# An answer that is no JSON is not even said to be JSON.
UNREADABLE = (*GONE, AssertionError)


async def opened(desk: Desk) -> Client:
    await desk.list_puppets(900_000)
    return await Client(desk).sign_in()


@pytest.mark.parametrize("mode", sorted(MODES))
async def test_every_mode_strikes_every_operation_once(desk: Desk, mode: str) -> None:
    client = await opened(desk)
    binding = {"walletBindingId": client.binding}
    requests = {
        "challenge": ("GET", "me", None),
        "floors": ("GET", f"collection-stats/floors?slugs={PUPPETS}", None),
        "book": ("GET", "listings", None),
        "own_bids": ("GET", f"collection/{PUPPETS}/my/sent-collection-offers", None),
        "balance": ("POST", f"{OFFERS}/replacement-warning", binding),
        "place": ("POST", f"{OFFERS}/submit", binding),
        "cancel": ("POST", f"{OFFERS}/x/cancel", binding),
        "list": ("POST", f"{LISTINGS}/submit", binding),
        "sales": ("GET", "sales", None),
        "collection": ("GET", f"collection/{PUPPETS}/inscriptions", None),
    }
    rules = [{"operation": name, "mode": mode, "count": 1, "delaySeconds": 0.01} for name in requests]
    await desk.sim("PUT", "faults", rules)

    for method, path, body in requests.values():
        with suppress(*UNREADABLE):
            await client.ask(method, path, body)

    assert [rule["count"] for rule in await desk.sim("GET", "faults")] == [0] * len(requests)


@pytest.mark.parametrize("mode", ["accept_then_500", "accept_then_timeout", "bad_json", "accept_twice", "late", "slow"])
async def test_what_follows_the_deed_spares_the_preflight(desk: Desk, mode: str) -> None:
    client = await opened(desk)
    await desk.fault("place", mode, count=1, delaySeconds=0.05)

    with suppress(*UNREADABLE):
        await client.place(50_000)

    desk.clock.advance(1)
    assert list((await client.own()).values()) == [50_000] * (2 if mode == "accept_twice" else 1)


@pytest.mark.parametrize("mode", ["timeout", "cut", "error_500", "rate_429", "refuse_400", "auth_401"])
async def test_what_forbids_the_deed(desk: Desk, mode: str) -> None:
    client = await opened(desk)
    body = await client.offer()
    submit = client.signed_offers(body, await client.good("POST", f"{OFFERS}/preflight", body))
    await desk.fault("place", mode, count=1, delaySeconds=0.05)

    with suppress(*GONE):
        status, answer = await client.ask("POST", f"{OFFERS}/submit", submit)
        assert status == int(mode[-3:])
        assert list(answer) == ["error"]

    assert await client.own() == {}
    assert (await client.ask("POST", f"{OFFERS}/submit", submit))[0] == 200


async def test_a_cancel_may_lie_or_come_late(desk: Desk) -> None:
    client = await opened(desk)
    (offer,) = await client.placed()
    await desk.fault("cancel", "cancel_lie", count=1)
    assert (await client.cancel(offer))[0] == 200
    assert list(await client.own()) == [offer]

    await desk.fault("cancel", "late", count=1, delaySeconds=5)
    assert (await client.cancel(offer))[0] == 200
    assert list(await client.own()) == [offer]
    desk.clock.advance(5)
    assert await client.own() == {}


async def test_a_stale_read_does_not_see_a_new_offer(desk: Desk) -> None:
    client = await opened(desk)
    await desk.fault("own_bids", "stale", count=1)
    await client.placed()

    assert await client.own() == {}
    assert len(await client.own()) == 1


async def test_a_late_listing_and_one_that_is_taken_down_by_the_venue(desk: Desk) -> None:
    client = await opened(desk)
    await hold(desk)
    await desk.fault("list", "late", count=1, delaySeconds=5)
    await client.listed(PUPPET)
    query = {"sellerAddress": ANN.ordinals}
    assert (await client.good("GET", "listings", **query))["listings"] == []

    desk.clock.advance(5)
    assert len((await client.good("GET", "listings", **query))["listings"]) == 1
    await desk.sim("POST", "delist", {"inscriptionId": PUPPET})
    assert (await client.good("GET", "listings", **query))["listings"] == []


async def test_windows_may_be_shorter(desk: Desk) -> None:
    client = await opened(desk)
    await desk.sim("PUT", "windows", {"seconds": 2})
    desk.clock.now_ms -= desk.clock.now_ms % 2_000

    answers = [(await client.ask("GET", "me"))[0] for _ in range(31)]
    assert answers[-1] == 429
    desk.clock.advance(2)
    assert (await client.ask("GET", "me"))[0] == 200


async def test_orders_and_coins_survive_a_restart(desk: Desk) -> None:
    client = await opened(desk)
    await hold(desk)
    (offer,) = await client.placed()
    listing = await client.listed(PUPPET)
    kept = json.loads(json.dumps(desk.world.dump()))
    await desk.sim("POST", "reset", {})
    desk.world.load(kept)

    assert (await client.ask("GET", "me"))[0] == 401
    await client.sign_in()
    assert list(await client.own()) == [offer]
    assert await client.delist((PUPPET, listing)) == (
        200,
        {"listings": [{"inscriptionId": PUPPET, "listingId": listing}]},
    )
    await desk.sim("POST", "sell", {"slug": PUPPETS, "bidId": offer})
    assert [row["valueSats"] for row in await client.coins()] == [99_950_000]
