"""ord.net's offers for a collection, for traits and for one item; and evil drafts."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import pytest
from embit.ec import PublicKey
from embit.script import Script

from simulator.poison import POISONS
from simulator.venue_scripts import ENCLAVE, GATE, MARKET
from tests.shapes import replace
from tests.simulator.desk import ANN, BOB, PUPPETS, Desk
from tests.simulator.ordnet_trader import LISTINGS, OFFERS, Client, pay, tagged
from tests.simulator.seller import PUPPET, hold
from wallet.psbt.decode import Psbt, decode, encode
from wallet.psbt.script import own_script
from wallet.psbt.sign import sign_input
from wallet.psbt.transaction import TxOutput, compact, decode_output

pytestmark = pytest.mark.gen_test

TRAIT = {"kind": "traits", "traits": [{"type": "Hat", "values": ["Red"]}]}


async def opened(desk: Desk) -> Client:
    await desk.list_puppets(900_000, 950_000)
    return await Client(desk).sign_in()


async def test_a_funding_parent_pays_the_offer_and_gives_the_rest_back(desk: Desk) -> None:
    client = await opened(desk)
    (coin,) = await client.coins()

    found = await client.good("POST", f"{OFFERS}/preflight", await client.offer(50_000))

    (offer,) = found["offers"]
    read = decode(b64decode(offer["fundingParentStep"]["psbtBase64"])).transaction
    assert (read.version, [str(source.outpoint) for source in read.inputs]) == (3, [f"{coin['txid']}:{coin['vout']}"])
    paid, told, change = read.outputs
    assert change == TxOutput(100_000_000 - 50_000, own_script("p2wpkh", ANN.key.get_public_key().sec()))
    assert (paid.value, Script(paid.script).address()) == (50_000, offer["offerAddress"])
    leaf = bytes.fromhex(offer["offerScriptHex"])
    root = tagged("TapLeaf", b"\xc0\xfd" + len(leaf).to_bytes(2, "little") + leaf)
    internal = bytes.fromhex(ANN.pubkey[2:])
    assert paid.script == b"\x51\x20" + PublicKey.from_xonly(internal).taproot_tweak(root).xonly()
    assert told == TxOutput(0, b"\x6a\x40" + internal + root)
    assert read.txid()[::-1].hex() == offer["expectedFundingParentTxid"]
    assert offer["selectedPaymentUtxos"] == [coin]
    assert offer["fundingParentStep"]["inputsToSign"] == [{"address": ANN.payment, "signingIndexes": [0]}]
    assert (await client.own(), await desk.events()) == ({}, [])


async def test_the_leaf_commits_to_the_offer(desk: Desk) -> None:
    client = await opened(desk)

    found = await client.good("POST", f"{OFFERS}/preflight", await client.offer(50_000, validityHours=6))

    (offer,) = found["offers"]
    receive = bytes.fromhex(found["buyerReceiveScriptHex"])
    assert receive == own_script("p2tr", ANN.key.get_public_key().sec())
    assert found["offerCriteriaHash"] == hashlib.sha256(found["criteriaCanonicalJson"].encode()).hexdigest()
    ends_s = desk.clock.now_ms // 1000 + 6 * 3600
    pushed = [
        b"ordnet-offer/v2",
        (50_000).to_bytes(8, "little"),
        ends_s.to_bytes(8, "little"),
        receive,
        bytes.fromhex(found["eligibleRoot"]),
        bytes.fromhex(found["offerCriteriaHash"]),
    ]
    market, gate, enclave = (key.get_public_key().xonly() for key in (MARKET, GATE, ENCLAVE))
    assert bytes.fromhex(offer["offerScriptHex"]) == (
        b"\x00\x63"
        + b"".join(map(_push, pushed))
        + (b"\x68\xa8" + _push(bytes.fromhex(offer["offerAuthSecretHash"])) + b"\x88")
        + (_push(bytes.fromhex(ANN.pubkey[2:])) + b"\xac" + _push(market) + b"\xba\x51\x9d")
        + (_push(gate) + b"\xad" + _push(enclave) + b"\xac")
    )


async def test_a_signed_offer_stands_in_this_book_alone(desk: Desk) -> None:
    client = await opened(desk)

    (offer,) = await client.placed(50_000)

    assert await client.own() == {offer: 50_000}
    book = await client.good("GET", OFFERS)
    assert (book["totalCount"], book["collectionOfferCount"], book["traitOfferCount"]) == (1, 1, 0)
    assert book["rows"] == [
        {
            "id": offer,
            "target": {"kind": "all"},
            "scopeLabel": "Collection",
            "priceSats": 50_000,
            "eligibleCount": 2,
            "makerAddress": ANN.payment,
            "expiresAt": "2025-10-10T08:53:20.000Z",
            "createdAt": "2025-10-09T08:53:20.000Z",
            "totalSats": 50_000,
            "status": "active",
            "sampleInscription": None,
        }
    ]
    assert (await desk.data("activity/bids", collectionSlug=PUPPETS))["items"] == []
    assert await desk.own_bids() == []
    (event,) = await desk.events()
    assert (event["event"], event["venue"], event["orderId"], event["price"]) == ("accepted", "ordnet", offer, 50_000)
    assert event["signature"].endswith("01")
    requests = await desk.sim("GET", "requests")
    assert (requests["place"], requests["own_bids"]) == ({PUPPETS: 2}, {ANN.payment: 2})


async def test_bids_of_scripts_stand_here_too_and_those_of_satflow_do_not(desk: Desk) -> None:
    client = await opened(desk)
    await desk.list_puppets(900_000, bids=[{"price": 70_000}, {"price": 60_000, "trait": {"Hat": "Red"}}])
    await desk.placed(BOB, price=80_000)

    book = await client.good("GET", OFFERS)

    assert [(row["priceSats"], row["scopeLabel"]) for row in book["rows"]] == [
        (70_000, "Collection"),
        (60_000, "Hat: Red"),
    ]
    assert book["rows"][1]["target"] == TRAIT
    assert (book["collectionOfferCount"], book["traitOfferCount"]) == (1, 1)


async def test_an_offer_on_traits(desk: Desk) -> None:
    await desk.sim(
        "PUT",
        f"collections/{PUPPETS}",
        {"asks": [{"price": 900_000, "traits": {"Hat": "Red"}}, {"price": 800_000, "traits": {"Hat": "Blue"}}]},
    )
    client = await Client(desk).sign_in()

    preview = await client.good("POST", f"{OFFERS}/target-preview", {"target": TRAIT})
    await client.placed(50_000, target=TRAIT)

    assert (preview["eligibleCount"], preview["floorSats"], preview["collectionFloorSats"]) == (1, 900_000, 800_000)
    (row,) = (await client.good("GET", OFFERS))["rows"]
    assert (row["target"], row["scopeLabel"], row["eligibleCount"]) == (TRAIT, "Hat: Red", 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"priceSats": 9_000},
        {"priceSats": 51_000},
        {"priceSats": 5_000},
        {"priceSats": "50000"},
        {"validityHours": 1},
        {"validityHours": 25},
        {"validityHours": "24"},
        {"offerCount": 11},
        {"offerCount": 3, "ladderStepSats": 1_000},
        {"offerCount": 3, "ladderStepSats": 25_000},
        {"target": {"kind": "some"}},
        {"target": {"kind": "traits", "traits": []}},
        {"ordinalsPublicKey": BOB.pubkey[2:]},
        {"paymentPublicKey": BOB.pubkey},
        {"spendableUtxos": []},
        {"spendableUtxos": [{"txid": "ab" * 32, "vout": 0, "valueSats": 100_000}]},
    ],
)
async def test_what_no_preflight_takes(desk: Desk, changes: dict[str, Any]) -> None:
    client = await opened(desk)

    status, answer = await client.ask("POST", f"{OFFERS}/preflight", await client.offer(**changes))

    assert status == 400
    assert list(answer) == ["error"]


async def test_a_coin_must_have_the_value_that_is_told_and_be_the_payers(desk: Desk) -> None:
    client = await opened(desk)
    (coin,) = await client.coins()
    (other,) = await Client(desk, BOB).coins()

    for named in (coin | {"valueSats": coin["valueSats"] + 1}, other):
        assert (await client.place(spendableUtxos=[named]))[0] == 400
    assert (await client.place(priceSats=100_000_000 - 5_000 + 10_000))[0] == 400
    assert (await client.place(walletBindingId="55555555-5555-5555-5555-555555555555"))[0] == 403


def _signed_otherwise(body: dict[str, Any]) -> None:
    step = body["offers"][0]["signedFundingParentStep"]
    step["psbtBase64"] = pay(step["psbtBase64"], ANN, 0x83)


def _wrongly_signed(body: dict[str, Any]) -> None:
    step = body["offers"][0]["signedFundingParentStep"]
    raw = bytearray(b64decode(step["psbtBase64"]))
    at = raw.index(bytes.fromhex(ANN.pubkey)) + 33 + 1 + 10
    raw[at] ^= 1
    step["psbtBase64"] = b64encode(raw).decode()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (_signed_otherwise, 400),
        (_wrongly_signed, 400),
        (lambda body: body["offers"][0]["signedFundingParentStep"].update(psbtBase64="AAAA"), 400),
        (lambda body: body.update(priceSats=55_000), 400),
        (lambda body: body.update(validityHours=12), 400),
        (lambda body: body["offers"][0].update(fundingParentVout=1), 400),
        (lambda body: body["offers"][0].update(preflightToken="x"), 409),
        (lambda body: body.update(offers=[]), 400),
    ],
)
async def test_what_no_submit_takes(desk: Desk, change: Callable[[dict[str, Any]], None], status: int) -> None:
    client = await opened(desk)

    assert (await client.place(50_000, change))[0] == status

    assert await client.own() == {}


async def test_a_preflight_is_used_once_and_ends(desk: Desk) -> None:
    client = await opened(desk)
    body = await client.offer()
    preflight = await client.good("POST", f"{OFFERS}/preflight", body)
    submit = client.signed_offers(body, preflight)
    assert [(await client.ask("POST", f"{OFFERS}/submit", submit))[0] for _ in range(2)] == [200, 409]

    later = client.signed_offers(body, await client.good("POST", f"{OFFERS}/preflight", body))
    desk.clock.advance(600)
    assert (await client.ask("POST", f"{OFFERS}/submit", later))[0] == 409


async def test_a_ladder_is_several_offers_on_the_same_coins(desk: Desk) -> None:
    client = await opened(desk)

    offers = await client.placed(60_000, offerCount=3, ladderStepSats=5_000)

    assert await client.own() == dict(zip(offers, [60_000, 55_000, 50_000], strict=True))


async def test_a_newer_offer_of_the_same_scope_replaces_those_on_its_coins(desk: Desk) -> None:
    client = await opened(desk)
    await desk.sim("PUT", f"wallets/{ANN.payment}", {"balance": 0})
    await desk.sim("PUT", f"coins/{ANN.payment}", {"values": [700_000, 600_000]})
    first, second = sorted(await client.coins(), key=lambda coin: -coin["valueSats"])
    (one,) = await client.placed(50_000, spendableUtxos=[first])
    (trait,) = await client.placed(50_000, spendableUtxos=[first], target=TRAIT)

    (two,) = await client.placed(55_000, spendableUtxos=[second])
    assert set(await client.own()) == {one, trait, two}
    asked = {name: (await client.offer(60_000))[name] for name in ("walletBindingId", "target", "priceSats")}
    warning = await client.good("POST", f"{OFFERS}/replacement-warning", asked | {"spendableUtxos": [first]})
    assert warning == {"replacementWarning": {"activeOfferCount": 1}}
    desk.clock.advance(60)
    (three,) = await client.placed(60_000, spendableUtxos=[first])

    assert set(await client.own()) == {three, trait, two}
    (event,) = await desk.events("cancelled")
    assert (event["orderId"], event["reason"]) == (one, "replaced by a newer offer on the same coins")


async def test_cancelling_needs_no_signature(desk: Desk) -> None:
    client = await opened(desk)
    (offer,) = await client.placed()
    bob = await Client(desk, BOB).sign_in()

    assert (await bob.cancel(offer))[0] == 403
    assert await client.cancel(offer) == (200, {"offerId": offer, "status": "cancelled"})
    assert (await client.cancel(offer))[0] == 409
    assert (await client.cancel("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"))[0] == 404
    assert await client.own() == {}
    assert (await desk.sim("GET", "requests"))["cancel"] == {ANN.payment: 3, BOB.payment: 1}


async def test_an_offer_ends_with_its_hours(desk: Desk) -> None:
    client = await opened(desk)
    await client.placed(validityHours=6)
    desk.clock.advance(6 * 3600 - 1)
    assert len(await client.sign_in_again_and_own()) == 1

    desk.clock.advance(1)

    assert await client.sign_in_again_and_own() == {}
    assert [event["event"] for event in await desk.events()] == ["accepted", "expired"]


async def test_eight_writes_a_minute(desk: Desk) -> None:
    client = await opened(desk)
    desk.clock.now_ms += 60_000 - desk.clock.now_ms % 60_000

    answers = [await client.cancel("aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa") for _ in range(9)]

    assert [status for status, _ in answers] == [404] * 8 + [429]


def _push(data: bytes) -> bytes:
    return bytes([len(data)]) + data


ITEM_OFFERS = f"collection/{PUPPETS}/offers"


async def bidder(desk: Desk) -> Client:
    """Bob, who bids for what Ann has."""
    await desk.list_puppets(900_000)
    await hold(desk)
    return await Client(desk, BOB).sign_in()


async def _body(client: Client, price: int = 50_000, **changes: Any) -> dict[str, Any]:
    body = {
        "walletBindingId": client.binding,
        "paymentPublicKey": client.trader.pubkey,
        "inscriptionIds": [PUPPET],
        "priceSats": price,
        "validityHours": 24,
        "spendableUtxos": await client.coins(),
    }
    return body | changes


def _signed(psbt: str) -> str:
    read = decode(b64decode(psbt))
    spent = [decode_output(fields[compact(0x01)]) for fields in read.inputs]
    signature = sign_input(read.transaction, 1, spent, 0x01, "p2wpkh", BOB.key)
    own = {**read.inputs[1], compact(0x02) + bytes.fromhex(BOB.pubkey): signature}
    return b64encode(encode(replace(read, inputs=(read.inputs[0], own)))).decode()


async def _place(client: Client, price: int = 50_000, *, sign: bool = True, **changes: Any) -> tuple[int, Any]:
    body = await _body(client, price, **changes)
    status, found = await client.ask("POST", f"{ITEM_OFFERS}/preflight", body)
    if status != 200:
        return status, found
    rows = []
    for item in found["items"]:
        (step,) = item["steps"]
        signed = step | ({"psbtBase64": _signed(step["psbtBase64"])} if sign else {})
        kept = {name: item[name] for name in ("inscriptionId", "expectedSettlementTxid")}
        rows.append(kept | {"signedSteps": [signed]})
    del body["spendableUtxos"]
    more = {"selectedPaymentUtxos": found["selectedPaymentUtxos"], "signedItems": rows}
    return await client.ask("POST", f"{ITEM_OFFERS}/submit", body | more)


async def test_a_signed_offer_is_shown_to_both_sides(desk: Desk) -> None:
    bob = await bidder(desk)

    status, answer = await _place(bob)

    assert (status, answer["status"]) == (200, "active")
    (placed,) = answer["items"]
    offer = placed["offerId"]
    assert placed == {"inscriptionId": PUPPET, "offerId": offer, "status": "active"}
    found = await bob.good("GET", f"inscriptions/{PUPPET}/offers")
    assert (found["ownerAddress"], found["topOfferSats"], found["liveOfferCount"]) == (ANN.ordinals, 50_000, 1)
    (row,) = found["offers"]
    assert (row["id"], row["sellerReceiveSats"], row["buyerPayTotalSats"]) == (offer, 49_500, 50_500)
    (sent,) = (await bob.good("GET", "me/offers", view="sent"))["rows"]
    assert (sent["id"], sent["side"], sent["sellerAddress"]) == (offer, "sent", ANN.ordinals)
    ann = await Client(desk).sign_in()
    (group,) = (await ann.good("GET", "me/offers"))["groups"]
    assert (group["inscriptionId"], group["topOfferSats"], len(group["offers"])) == (PUPPET, 50_000, 1)
    # It is none of the collection's.
    assert (await bob.good("GET", f"collection/{PUPPETS}/collection-offers"))["rows"] == []
    assert (await bob.own(), (await bob.good("GET", "me/offers", view="owned"))["groups"]) == ({}, [])


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"priceSats": 9_000}, 400),
        ({"priceSats": 50_500}, 400),
        ({"validityHours": 48}, 400),
        ({"inscriptionIds": []}, 400),
        ({"inscriptionIds": [PUPPET, PUPPET]}, 400),
        ({"inscriptionIds": ["f" * 64 + "i0"]}, 404),
        ({"paymentPublicKey": ANN.pubkey}, 400),
        ({"sign": False}, 400),
    ],
)
async def test_what_is_not_taken(desk: Desk, changes: dict[str, Any], status: int) -> None:
    assert (await _place(await bidder(desk), **changes))[0] == status


async def test_an_offer_is_filled_by_the_transaction_that_was_signed(desk: Desk) -> None:
    bob = await bidder(desk)
    _, answer = await _place(bob)

    sold = await desk.sim("POST", "sell", {"slug": PUPPETS, "bidId": answer["items"][0]["offerId"]})

    assert (sold["inscriptionId"], sold["sold"]["price"]) == (PUPPET, 50_000)
    item = await desk.data("item", inscriptionId=PUPPET)
    assert item["owner"] == BOB.ordinals
    assert [row["valueSats"] for row in await bob.coins()] == [100_000_000 - 50_500]


async def test_an_offer_falls_when_the_inscription_moves(desk: Desk) -> None:
    bob = await bidder(desk)
    await _place(bob)

    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.payment})

    assert (await bob.good("GET", f"inscriptions/{PUPPET}/offers"))["offers"] == []
    (event,) = await desk.events("cancelled")
    assert event["reason"] == "invalidated: a coin behind it is spent"


async def test_an_offer_is_cancelled(desk: Desk) -> None:
    bob = await bidder(desk)
    _, answer = await _place(bob)
    path = f"inscriptions/{PUPPET}/offers/{answer['items'][0]['offerId']}/cancel"

    assert (await bob.ask("POST", path, {"walletBindingId": "x"}))[0] == 403
    assert (await bob.good("POST", path, {"walletBindingId": bob.binding}))["status"] == "cancelled"
    assert (await bob.ask("POST", path, {"walletBindingId": bob.binding}))[0] == 409


OWN = own_script("p2wpkh", ANN.key.get_public_key().sec())
VAULT = own_script("p2tr", ANN.key.get_public_key().sec())


def _strange(outputs: list[TxOutput]) -> list[TxOutput]:
    return [output for output in outputs if output.script not in (OWN, VAULT)]


OFFER_EVILS: dict[str, Callable[[Psbt, Psbt], bool]] = {
    "wrong_payout": lambda good, bad: bad.transaction.outputs[2].script != OWN,
    "low_payout": lambda good, bad: bad.transaction.outputs[2].value == good.transaction.outputs[2].value - 1,
    "other_outpoint": lambda good, bad: bad.transaction.inputs[0].outpoint != good.transaction.inputs[0].outpoint,
    "extra_input": lambda good, bad: len(bad.transaction.inputs) == 2,
    "sighash_none": lambda good, bad: bad.inputs[0][compact(0x03)] == b"\x82\0\0\0",
    "extra_output": lambda good, bad: len(_strange(list(bad.transaction.outputs))) == 3,
    "two_inputs": lambda good, bad: len(bad.transaction.inputs) == 2,
}


@pytest.mark.parametrize("mode", sorted(OFFER_EVILS))
async def test_an_evil_funding_parent(desk: Desk, mode: str) -> None:
    client = await opened(desk)
    body = await client.offer()
    (good,) = (await client.good("POST", f"{OFFERS}/preflight", body))["offers"]
    await desk.sim("PUT", "poison", {"mode": mode})

    preflight = await client.good("POST", f"{OFFERS}/preflight", body)

    (bad,) = preflight["offers"]
    good_psbt, bad_psbt = (decode(b64decode(row["fundingParentStep"]["psbtBase64"])) for row in (good, bad))
    assert OFFER_EVILS[mode](good_psbt, bad_psbt)
    (asked,) = bad["fundingParentStep"]["inputsToSign"]
    assert asked["signingIndexes"] == ([0, 1] if mode == "two_inputs" else [0])
    await desk.sim("PUT", "poison", {"mode": None})
    (again,) = (await client.good("POST", f"{OFFERS}/preflight", body))["offers"]
    step = again["fundingParentStep"]
    assert decode(b64decode(pay(step["psbtBase64"], ANN))).transaction.inputs == good_psbt.transaction.inputs


LISTING_EVILS: dict[str, tuple[int, Callable[[Psbt, Psbt], bool]]] = {
    "wrong_payout": (1, lambda good, bad: bad.transaction.outputs[0].script != OWN),
    "low_payout": (1, lambda good, bad: bad.transaction.outputs[0].value == good.transaction.outputs[0].value - 1),
    "other_outpoint": (0, lambda good, bad: bad.transaction.inputs[0].outpoint != good.transaction.inputs[0].outpoint),
    "extra_input": (1, lambda good, bad: len(bad.transaction.inputs) == 2),
    "sighash_none": (1, lambda good, bad: bad.inputs[0][compact(0x03)] == b"\x82\0\0\0"),
    "extra_output": (0, lambda good, bad: len(bad.transaction.outputs) == 3),
    "two_inputs": (0, lambda good, bad: len(bad.transaction.inputs) == 3),
    "escrow_theirs": (0, lambda good, bad: bad.transaction.outputs[0].script != good.transaction.outputs[0].script),
    "escrow_short": (0, lambda good, bad: bad.transaction.outputs[0].value == good.transaction.outputs[0].value - 1),
    "sale_by_key": (1, lambda good, bad: len(bad.inputs[0]) == len(good.inputs[0]) - 1),
    "recovery_theirs": (2, lambda good, bad: VAULT not in {output.script for output in bad.transaction.outputs}),
}


def _steps(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [*found["listings"][0]["psbts"], found["recoveryPsbt"]]


@pytest.mark.parametrize("mode", sorted(POISONS))
async def test_an_evil_listing(desk: Desk, mode: str) -> None:
    client = await opened(desk)
    await hold(desk)
    at, is_evil = LISTING_EVILS[mode]
    _, found = await client.draft((PUPPET, 900_000))
    good = decode(b64decode(_steps(found)[at]["psbtBase64"]))
    await desk.sim("PUT", "poison", {"mode": mode})

    body, found = await client.draft((PUPPET, 900_000))

    assert is_evil(good, decode(b64decode(_steps(found)[at]["psbtBase64"])))
    if mode in ("wrong_payout", "low_payout", "extra_output", "other_outpoint", "escrow_theirs", "escrow_short"):
        # Who signs it all the same is not served: the venue keeps what it should have drafted.
        submit = client.signed_listing(body, found)
        assert (await client.ask("POST", f"{LISTINGS}/submit", submit))[0] == 400
