"""Faults that a test puts into ord.net's dialect."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from tornado.httpclient import HTTPError
from tornado.simple_httpclient import HTTPStreamClosedError

from simulator.calls import MODES
from tests.simulator.desk import ANN, PUPPETS, Desk
from tests.simulator.ordnet_trader import LISTINGS, OFFERS, Client
from tests.simulator.seller import PUPPET, hold

pytestmark = pytest.mark.gen_test

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
