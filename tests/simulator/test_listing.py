"""Listings in Satflow's dialect, and the faults that strike them."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from tests.simulator.desk import ANN, BOB, PUPPETS, SATFLOW, Desk
from tests.simulator.seller import (
    OTHER,
    PUPPET,
    SECURE,
    ask,
    changed,
    delist,
    drafted,
    finalized,
    hold,
    list_item,
    listed,
    outpoint_of,
    own_listings,
    signed,
    submit,
)
from wallet.psbt.decode import decode
from wallet.psbt.script import own_script
from wallet.psbt.transaction import TxOutput, compact, decode_output

pytestmark = pytest.mark.gen_test


@pytest.mark.parametrize(("form", "sighash"), [("plain", 0x83), ("secure", 0x81)])
async def test_a_draft_spends_the_inscription_and_pays_price_and_postage(desk: Desk, form: str, sighash: int) -> None:
    await hold(desk)

    draft = await drafted(desk)

    psbt, item = decode(b64decode(draft[form])), await desk.data("item", inscriptionId=PUPPET)
    (source,), (payout,), (fields,) = psbt.transaction.inputs, psbt.transaction.outputs, psbt.inputs
    assert f"{source.outpoint.txid[::-1].hex()}:{source.outpoint.vout}" == item["output"]
    paid = own_script("p2wpkh", ANN.key.get_public_key().sec())
    assert payout == TxOutput(900_000 + item["outputValue"], paid)
    own = TxOutput(item["outputValue"], own_script("p2tr", ANN.key.get_public_key().sec()))
    assert decode_output(fields[compact(0x01)]) == own
    assert fields[compact(0x03)] == sighash.to_bytes(4, "little")
    assert fields[compact(0x17)].hex() == ANN.pubkey[2:]
    assert draft["indices"] == [0]
    assert 546 <= item["outputValue"] <= 10_000
    assert (await own_listings(desk), await desk.events()) == ({}, [])


async def test_a_seller_is_paid_less_what_the_market_keeps(desk: Desk) -> None:
    desk.world.engine.seller_fee_ppm = 20_000
    await hold(desk)
    draft, item = await drafted(desk), await desk.data("item", inscriptionId=PUPPET)
    (payout,) = decode(b64decode(draft["plain"])).transaction.outputs
    assert payout.value == 900_000 - 18_000 + item["outputValue"]
    assert (await list_item(desk))[0] == 200


async def test_a_signed_listing_is_shown_everywhere(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)

    status, answer = await list_item(desk)

    assert status == 200
    (row,) = answer["data"]["listings"]
    assert row == {"_id": row["_id"], "price": 900_000, "inscriptionId": PUPPET, "status": "active"}
    assert await own_listings(desk) == {PUPPET: 900_000}
    everything = await desk.data("address/wallet-contents", address=ANN.ordinals)
    assert len(everything["results"]["ordinals"]) == 2
    (book,) = (await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]
    assert (book["_id"], book["price"], book["sellerOrdAddress"]) == (row["_id"], 900_000, ANN.ordinals)
    assert book["attributes"] == [{"trait_type": "Hat", "value": "Red"}]
    item = await desk.data("item", inscriptionId=PUPPET)
    assert item["listing"] == {"price": 900_000, "sellerAddress": ANN.ordinals}
    assert (await desk.sim("GET", "state"))["collections"][PUPPETS]["floor"] == 900_000
    assert (await desk.sim("GET", "requests"))["list"] == {PUPPET: 2}


async def test_the_history_tells_who_signed_what(desk: Desk) -> None:
    await hold(desk)

    order = await listed(desk)

    (event,) = await desk.events()
    assert event["event"] == "accepted"
    told = {name: event[name] for name in ("kind", "orderId", "slug", "maker", "price", "quantity", "message")}
    assert told == {
        "kind": "ask",
        "orderId": order,
        "slug": PUPPETS,
        "maker": ANN.ordinals,
        "price": 900_000,
        "quantity": 1,
        "message": "",
    }
    assert (len(event["signature"]), event["signature"][-2:]) == (130, "83")


async def test_the_secure_form_need_not_be_signed(desk: Desk) -> None:
    await hold(desk)
    plain = signed((await drafted(desk))["plain"])
    body = {"listings": [ask()], "signedListingPSBT": plain, "signedSecureListingPSBTs": []}
    assert (await desk.ask("POST", f"{SATFLOW}/list", body))[0] == 200
    assert await own_listings(desk) == {PUPPET: 900_000}


async def test_listing_again_replaces(desk: Desk) -> None:
    await hold(desk)
    first = await listed(desk)
    second = await listed(desk, price=950_000)

    assert first != second
    assert await own_listings(desk) == {PUPPET: 950_000}
    assert len((await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]) == 1
    assert [(e["event"], e["price"]) for e in await desk.events()] == [
        ("accepted", 900_000),
        ("cancelled", 900_000),
        ("accepted", 950_000),
    ]


async def test_a_listing_outlives_a_script_that_sets_the_book(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)

    await desk.list_puppets(1_000_000)

    rows = (await desk.data("activity/listings", collectionSlug=PUPPETS))["items"]
    assert [row["price"] for row in rows] == [900_000, 1_000_000]


async def _wrong(desk: Desk, what: str) -> tuple[int, Any]:
    """Submits a listing with one thing wrong about it."""
    draft = await drafted(desk)
    plain, secure = draft["plain"], draft["secure"]
    good, good_secure = signed(plain), signed(secure, sighash=SECURE)
    value = decode(b64decode(plain)).transaction.outputs[0].value
    own = decode_output(decode(b64decode(plain)).inputs[0][compact(0x01)])
    match what:
        case "unsigned":
            return await submit(desk, plain, good_secure)
        case "two secure ones":
            body = {"listings": [ask()], "signedListingPSBT": good, "signedSecureListingPSBTs": [good_secure] * 2}
            return await desk.ask("POST", f"{SATFLOW}/list", body)
        case "secure unsigned":
            return await submit(desk, good, secure)
        case "swapped":
            return await submit(desk, good_secure, good)
        case "another price":
            return await submit(desk, good, good_secure, price=900_001)
        case "another payout":
            return await submit(desk, good, good_secure, sellerReceiveAddress=BOB.payment)
        case "altered after signing":
            return await submit(desk, changed(good, value=value + 1), good_secure, price=900_001)
        case "a sat less":
            return await submit(desk, signed(changed(plain, value=value - 1)), good_secure)
        case "a sat more":
            return await submit(desk, signed(changed(plain, value=value + 1)), good_secure)
        case "finalized":
            return await submit(desk, finalized(good), good_secure)
        case "another outpoint":
            return await submit(desk, signed(changed(plain, txid="11" * 32)), good_secure)
        case "another value signed":
            return await submit(desk, signed(plain, spent=own._replace(value=own.value + 1)), good_secure)
        case "sighash ALL":
            return await submit(desk, signed(plain, sighash=0x01), good_secure)
        case "not the one unsigned":
            other = changed(plain, value=value + 1)
            body = {"listings": [ask()], "signedListingPSBT": good, "signedSecureListingPSBTs": [good_secure]}
            return await desk.ask("POST", f"{SATFLOW}/list", body | {"unsignedListingPSBT": other})
        case _:
            return await submit(desk, what, good_secure)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("unsigned", "not signed"),
        ("two secure ones", "must have one PSBT at most"),
        ("secure unsigned", "not signed"),
        ("swapped", "sighash"),
        ("another price", "pays"),
        ("another payout", "does not pay"),
        ("altered after signing", "invalid signature"),
        ("a sat less", "pays"),
        ("a sat more", "pays"),
        ("finalized", "finalized"),
        ("another outpoint", "does not spend"),
        ("another value signed", "invalid signature"),
        ("sighash ALL", "sighash"),
        ("not the one unsigned", "unsignedListingPSBT"),
        ("nonsense", "not a PSBT"),
        ("cHNidP8BAAA=", "not a PSBT"),
    ],
)
async def test_a_wrong_listing_is_refused_with_its_reason(desk: Desk, what: str, reason: str) -> None:
    await hold(desk)

    status, answer = await _wrong(desk, what)

    assert (status, answer["code"]) == (400, "BAD_REQUEST")
    assert reason in answer["error"]
    assert await own_listings(desk) == {}
    (event,) = await desk.events()
    assert (event["event"], event["kind"], event["orderId"], event["reason"]) == (
        "refused",
        "ask",
        None,
        answer["error"],
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"inscriptionId": OTHER}, "not found"),
        ({"sellerOrdAddress": BOB.ordinals}, "does not hold"),
        ({"sellerOrdAddress": ANN.payment}, "does not hold"),
        ({"tapInternalKey": BOB.pubkey[2:]}, "tapInternalKey"),
        ({"tapInternalKey": "ff" * 32}, "tapInternalKey"),
        ({"tapInternalKey": "ab"}, "tapInternalKey"),
        ({"price": 0}, "price"),
        ({"price": "900000"}, "price"),
        ({"sellerReceiveAddress": "nowhere"}, "sellerReceiveAddress"),
    ],
)
async def test_no_draft_for_what_cannot_be_listed(desk: Desk, changes: dict[str, Any], reason: str) -> None:
    await hold(desk)

    status, answer = await desk.ask("POST", f"{SATFLOW}/intent/sell", ask(**changes))

    assert status == 400
    assert reason in answer["error"]


async def test_an_output_that_holds_more_is_not_listed(desk: Desk) -> None:
    await hold(desk)
    outpoint = await outpoint_of(desk)
    await desk.sim("PUT", f"outputs/{outpoint}", {"runes": {"AAA•BBB": {"amount": 5}}})

    status, answer = await desk.ask("POST", f"{SATFLOW}/intent/sell", ask())

    assert (status, "something else" in answer["error"]) == (400, True)


async def test_a_paying_pair_must_belong_together(desk: Desk) -> None:
    await hold(desk)
    pair = {"sellerPaymentAddress": ANN.payment, "sellerPaymentPublicKey": ANN.pubkey}

    status, answer = await list_item(desk, **(pair | {"sellerPaymentPublicKey": BOB.pubkey}))
    assert (status, "sellerPaymentPublicKey" in answer["error"]) == (400, True)
    await listed(desk, **pair)


@pytest.mark.parametrize("by", ["inscriptionId", "output", "runesOutput", "_id", "_ids"])
async def test_a_listing_is_cancelled_by_any_name(desk: Desk, by: str) -> None:
    await hold(desk)
    order = await listed(desk)
    held = await outpoint_of(desk)
    names = {"inscriptionId": PUPPET, "output": held, "runesOutput": held, "_id": order, "_ids": [order]}

    status, answer = await delist(desk, **{by: names[by]})

    assert (status, answer["data"]["summary"]) == (200, {"id": order, "success": True})
    assert await own_listings(desk) == {}
    assert [e["kind"] for e in await desk.events("cancelled")] == ["ask"]


@pytest.mark.parametrize("which", [{"inscriptionId": OTHER}, {"output": f"{'0' * 64}:0"}, {"_id": "0" * 24}])
async def test_what_is_not_listed_is_not_cancelled(desk: Desk, which: dict[str, Any]) -> None:
    await hold(desk)
    await listed(desk)

    status, answer = await delist(desk, **which)

    assert status == 200
    assert (answer["data"]["successCount"], answer["data"]["failedCount"]) == (0, 1)
    assert await own_listings(desk) == {PUPPET: 900_000}


async def test_nobody_else_cancels_a_listing(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)

    status, answer = await delist(desk, BOB, inscriptionId=PUPPET)
    assert (status, answer["data"]["failedCount"]) == (200, 1)
    assert (await delist(desk, BOB, makerAddress=ANN.ordinals, inscriptionId=PUPPET))[0] == 403
    assert (await delist(desk))[0] == 400
    assert await own_listings(desk) == {PUPPET: 900_000}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("intent/sell", {"runesOutput": f"{'0' * 64}:0"}),
        ("list", {"listings": [{}, {}]}),
        ("list", {"listings": [{"runesOutput": f"{'0' * 64}:0"}]}),
        ("intent/bulk-sell", {}),
    ],
)
async def test_what_is_not_implemented_says_so(desk: Desk, path: str, body: dict[str, Any]) -> None:
    status, answer = await desk.ask("POST", f"{SATFLOW}/{path}", body)

    assert (status, answer["code"]) == (501, "NOT_IMPLEMENTED")


NO_ANSWER = (HTTPClientError, OSError)


@pytest.mark.parametrize("mode", ["accept_then_timeout", "accept_then_500", "bad_json"])
async def test_a_listing_is_taken_and_the_answer_lost(desk: Desk, mode: str) -> None:
    await hold(desk)
    await desk.fault("list", mode, count=1, delaySeconds=0.05)

    draft = await drafted(desk)
    body = {
        "listings": [ask()],
        "signedListingPSBT": signed(draft["plain"]),
        "signedSecureListingPSBTs": [signed(draft["secure"], sighash=SECURE)],
    }
    try:
        answer = await desk.fetch("POST", f"{SATFLOW}/list", body)
        assert (answer.code, answer.body) in ((500, answer.body), (200, b'{"success": tru'), (599, answer.body))
    except NO_ANSWER:
        assert mode == "accept_then_timeout"

    assert await own_listings(desk) == {PUPPET: 900_000}
    assert [e["event"] for e in await desk.events()] == ["accepted"]


@pytest.mark.parametrize(("mode", "status"), [("error_500", 500), ("rate_429", 429), ("refuse_400", 400)])
async def test_faults_without_a_deed_strike_whichever_step_comes_first(desk: Desk, mode: str, status: int) -> None:
    await hold(desk)
    draft = await drafted(desk)
    await desk.fault("list", mode, count=2)

    assert (await desk.ask("POST", f"{SATFLOW}/intent/sell", ask()))[0] == status
    secure = signed(draft["secure"], sighash=SECURE)
    assert (await submit(desk, signed(draft["plain"]), secure))[0] == status
    assert await own_listings(desk) == {}
    await listed(desk)


async def test_faults_of_drafts_strike_drafts_alone(desk: Desk) -> None:
    await hold(desk)
    await desk.fault("draft", "bad_json", count=1)

    answer = await desk.fetch("POST", f"{SATFLOW}/intent/sell", ask())

    assert answer.body == b'{"success": tru'
    await listed(desk)


async def test_a_late_listing_shows_after_its_delay(desk: Desk) -> None:
    await hold(desk)
    await desk.fault("list", "late", count=1, delaySeconds=5)

    await listed(desk)

    assert await own_listings(desk) == {}
    assert (await desk.data("item", inscriptionId=PUPPET))["listing"] is None
    desk.clock.advance(5)
    assert await own_listings(desk) == {PUPPET: 900_000}


async def test_a_lying_cancel_keeps_the_listing(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    await desk.fault("cancel", "cancel_lie", count=1)

    _, answer = await delist(desk, inscriptionId=PUPPET)

    assert answer["data"]["success"] is True
    assert await own_listings(desk) == {PUPPET: 900_000}


THIEF = "a stranger"


def _seen(draft: dict[str, Any], form: str) -> dict[str, Any]:
    psbt = decode(b64decode(draft[form]))
    ours = {own_script(kind, ANN.key.get_public_key().sec()) for kind in ("p2tr", "p2wpkh")}
    return {
        "inputs": [f"{source.outpoint.txid[::-1].hex()}:{source.outpoint.vout}" for source in psbt.transaction.inputs],
        "pays": [(paid.value, ANN if paid.script in ours else THIEF) for paid in psbt.transaction.outputs],
        "sighash": [fields.get(compact(0x03), b"")[:1].hex() for fields in psbt.inputs],
    }


@pytest.mark.parametrize(("form", "sighash"), [("plain", "83"), ("secure", "81")])
async def test_an_evil_venue_drafts_what_must_not_be_signed(desk: Desk, form: str, sighash: str) -> None:
    await hold(desk, PUPPET, OTHER)
    own, other = await outpoint_of(desk), await outpoint_of(desk, OTHER)
    honest = _seen(await drafted(desk), form)
    (payout,) = honest["pays"]
    assert honest == {"inputs": [own], "pays": [payout], "sighash": [sighash]}
    seen = {}
    for mode in ("wrong_payout", "low_payout", "other_outpoint", "sighash_none", "extra_output", "two_inputs"):
        assert await desk.sim("PUT", "poison", {"mode": mode}) == {"mode": mode}
        desk.clock.advance(1)
        seen[mode] = _seen(await drafted(desk), form)

    assert seen == {
        "wrong_payout": honest | {"pays": [(payout[0], THIEF)]},
        "low_payout": honest | {"pays": [(899_999, ANN)]},
        "other_outpoint": honest | {"inputs": [other]},
        "sighash_none": honest | {"sighash": ["82"]},
        "extra_output": honest | {"pays": [payout, (1_000, THIEF)]},
        "two_inputs": honest | {"inputs": [own, other], "sighash": [sighash, sighash]},
    }
    desk.clock.advance(1)
    await desk.sim("PUT", "poison", {"mode": "extra_input"})
    extra = _seen(await drafted(desk), form)
    assert (len(extra["inputs"]), extra["inputs"][0], extra["sighash"]) == (2, own, [sighash, ""])
    await desk.sim("PUT", "poison", {"mode": None})
    assert _seen(await drafted(desk), form) == honest


async def test_what_an_evil_draft_was_signed_to_is_not_a_listing(desk: Desk) -> None:
    await hold(desk)
    await desk.sim("PUT", "poison", {"mode": "low_payout"})

    status, _ = await list_item(desk)

    assert status == 400
    assert (await desk.ask("PUT", "/sim/poison", {"mode": "nonsense"}))[0] == 400
    await desk.sim("POST", "reset", {"seed": 1})
    assert await desk.sim("GET", "poison") == {"mode": None}
