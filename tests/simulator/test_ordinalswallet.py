"""Ordinals Wallet's listings, open and protected: drafted, signed, taken back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest

from markets.orders import ListingDraft
from simulator.venue_scripts import LOCK_BLOCKS, sale_output
from tests.markets.contract.signing import protected_listing
from tests.simulator.desk import ANN, BOB, PUPPETS, Desk
from tests.simulator.seller import (
    OTHER,
    OW,
    PUPPET,
    as_base64,
    as_hex,
    hex_changed,
    hex_signed,
    hex_signed_all,
    hold,
    listed,
    outpoint_of,
    ow_draft,
    ow_listed,
    ow_read,
    ow_submit,
    own_listings,
    session,
    signed,
    token,
)
from wallet.psbt.decode import decode
from wallet.psbt.script import escrow_of, own_script
from wallet.psbt.sign import open_escrow, sign_input
from wallet.psbt.transaction import ALL, Outpoint, Transaction, TxInput, TxOutput, compact, decode_output
from wallet.signer.withdrawals import with_witnesses
from wallet.terms import ESCROW_TERMS

pytestmark = pytest.mark.gen_test


async def _listings(desk: Desk) -> dict[str, int]:
    """Returns the listings of Ann's vault, by inscription, at the buyers' prices."""
    rows = await ow_read(desk, f"wallet/{ANN.ordinals}/inscriptions")
    return {row["id"]: row["escrow"]["satoshi_price"] for row in rows if row["escrow"]}


async def test_a_draft_spends_the_inscription_and_pays_the_price_alone(desk: Desk) -> None:
    await hold(desk)

    status, answer = await ow_draft(desk)

    assert (status, set(answer)) == (200, {"psbt"})
    psbt = decode(bytes.fromhex(answer["psbt"]))
    (source,), (payout,), (fields,) = psbt.transaction.inputs, psbt.transaction.outputs, psbt.inputs
    assert f"{source.outpoint.txid[::-1].hex()}:{source.outpoint.vout}" == await outpoint_of(desk)
    assert payout == TxOutput(900_000, own_script("p2wpkh", ANN.key.get_public_key().sec()))
    assert fields[compact(0x03)] == (0x83).to_bytes(4, "little")
    assert fields[compact(0x17)].hex() == ANN.pubkey[2:]
    assert (await _listings(desk), await desk.events()) == ({}, [])


@pytest.mark.parametrize("final", [False, True])
async def test_a_signed_listing_shows_what_the_buyer_pays(desk: Desk, final: bool) -> None:
    await hold(desk, PUPPET, OTHER)
    _, draft = await ow_draft(desk, prices=[300_000])

    status, answer = await ow_submit(desk, hex_signed(draft["psbt"], final=final))

    assert (status, answer) == (200, {"success": True, "escrow_id": answer["escrow_id"]})
    assert await _listings(desk) == {PUPPET: 308_324}
    (row,) = await ow_read(desk, f"collection/{PUPPETS}/escrows")
    assert (row["id"], row["inscription_id"], row["satoshi_price"]) == (answer["escrow_id"], PUPPET, 308_324)
    assert (row["seller_address"], row["outpoint"]) == (ANN.ordinals, await outpoint_of(desk))
    assert (row["price_per"], row["amount"], row["created"]) == ("", "", "2025-10-09 08:53:20.000000+00")
    escrow = await ow_read(desk, f"market/escrow/{PUPPET}")
    assert (escrow["escrow_price"], escrow["satoshi_price"], escrow["market_royalty"]) == (300_000, 308_324, 0.026998)
    assert (await ow_read(desk, f"collection/{PUPPETS}/stats"))["floor_price"] == 308_324


@pytest.mark.parametrize(
    ("seller", "buyer"), [(15_000, 16_000), (1_990_000, 2_045_220), (2_500_000, 2_569_373), (100_000_000, 102_774_922)]
)
async def test_the_fee_is_that_of_the_recorded_answers(desk: Desk, seller: int, buyer: int) -> None:
    await hold(desk)
    await ow_listed(desk, seller)

    assert await _listings(desk) == {PUPPET: buyer}


async def test_a_listing_stands_at_its_own_venue_only(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets(2_000_000)
    await ow_listed(desk)

    assert await own_listings(desk) == {}
    satflow = await desk.data("activity/listings", collectionSlug=PUPPETS)
    assert [row["price"] for row in satflow["items"]] == [2_000_000]
    assert [row["satoshi_price"] for row in await ow_read(desk, f"collection/{PUPPETS}/escrows")] == [
        924_974,
        2_000_000,
    ]

    await listed(desk)

    assert (await own_listings(desk), await _listings(desk)) == ({PUPPET: 900_000}, {PUPPET: 924_974})
    events = [(event["event"], event["venue"], event["inscriptionId"]) for event in await desk.events()]
    assert events == [("accepted", "ordinalswallet", PUPPET), ("accepted", "satflow", PUPPET)]


async def test_listing_again_replaces(desk: Desk) -> None:
    await hold(desk)
    await ow_listed(desk, 900_000)
    await ow_listed(desk, 800_000)

    assert [row["satoshi_price"] for row in await ow_read(desk, f"collection/{PUPPETS}/escrows")] == [822_199]
    assert [event["reason"] for event in await desk.events("cancelled")] == ["listed again"]


async def test_a_sale_ends_the_listings_at_every_venue(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    await ow_listed(desk)

    sold = await desk.sim("POST", "sell", {"inscriptionId": PUPPET, "venue": "ordinalswallet"})

    assert (await own_listings(desk), await _listings(desk)) == ({}, {})
    status, spend = await desk.ask("GET", f"/mempool/api/tx/{sold['txid']}")
    assert (status, spend["vout"][2]["value"], spend["vout"][2]["scriptpubkey_address"]) == (200, 900_000, ANN.payment)
    filled, cancelled = (await desk.events())[-2:]
    assert (filled["event"], filled["venue"]) == ("filled", "ordinalswallet")
    assert (cancelled["venue"], cancelled["reason"]) == ("satflow", "sold at another venue")


async def test_two_inscriptions_are_listed_at_once(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    _, draft = await ow_draft(desk, inscriptions=[PUPPET, OTHER], prices=[900_000, 800_000])
    psbt = decode(bytes.fromhex(draft["psbt"]))
    assert [output.value for output in psbt.transaction.outputs] == [900_000, 800_000]

    status, answer = await ow_submit(desk, hex_signed(draft["psbt"]))
    assert (status, "not signed" in answer["message"]) == (400, True)
    assert await _listings(desk) == {}
    assert await ow_submit(desk, hex_signed_all(draft["psbt"])) == (200, {"success": True})
    assert await _listings(desk) == {PUPPET: 924_974, OTHER: 822_199}
    await desk.sim("POST", "sell", {"inscriptionId": OTHER})
    assert await _listings(desk) == {PUPPET: 924_974}


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"inscriptions": [OTHER]}, 404, "inscription_not_found"),
        ({"from": BOB.ordinals}, 400, "not_the_owner"),
        ({"public_key": BOB.pubkey}, 400, "invalid_public_key"),
        ({"public_key": "ab"}, 400, "invalid_public_key"),
        ({"prices": [0]}, 400, None),
        ({"prices": []}, 400, None),
        ({"prices": ["900000"]}, 400, None),
        ({"receive_address": "nowhere"}, 400, None),
        ({"inscriptions": [PUPPET, PUPPET], "prices": [1_000, 1_000]}, 400, None),
    ],
)
async def test_no_draft_for_what_cannot_be_listed(
    desk: Desk, changes: dict[str, Any], status: int, code: str | None
) -> None:
    await hold(desk)

    found, answer = await ow_draft(desk, **changes)

    assert (found, answer["error"], answer.get("code")) == (status, True, code)
    assert answer["message"]


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("unsigned", "not signed"),
        ("of another value", "invalid signature"),
        ("sighash ALL", "sighash"),
        ("altered after signing", "invalid signature"),
        ("another outpoint", "no output with an inscription"),
        ("base64", "not hex"),
        ("nonsense", "not a PSBT"),
    ],
)
async def test_a_wrong_listing_is_refused_with_its_reason(desk: Desk, what: str, reason: str) -> None:
    await hold(desk)
    psbt = (await ow_draft(desk))[1]["psbt"]
    good, own = hex_signed(psbt), decode_output(decode(bytes.fromhex(psbt)).inputs[0][compact(0x01)])
    wrong = {
        "unsigned": psbt,
        "of another value": as_hex(signed(as_base64(psbt), spent=own._replace(value=own.value + 1))),
        "sighash ALL": hex_signed(psbt, sighash=0x81),
        "altered after signing": hex_changed(good, value=1_000_000),
        "another outpoint": hex_changed(good, txid="0" * 64),
        "base64": as_base64(good),
        "nonsense": "00ff",
    }

    status, answer = await ow_submit(desk, wrong[what])

    assert (status, answer["error"], reason in answer["message"]) == (400, True, True), answer
    assert await _listings(desk) == {}


async def test_a_listing_of_what_was_moved_is_refused(desk: Desk) -> None:
    await hold(desk)
    good = hex_signed((await ow_draft(desk))[1]["psbt"])
    await desk.sim("POST", "move", {"inscriptionId": PUPPET, "address": ANN.ordinals})

    status, answer = await ow_submit(desk, good)

    assert (status, "spent" in answer["message"]) == (400, True)


async def _delist(desk: Desk, signature: str, **which: Any) -> tuple[int, Any]:
    return await desk.ask("POST", f"{OW}/market/cancel-escrow", {"signature": signature} | which)


@pytest.mark.parametrize("by", ["inscription_id", "outpoint"])
async def test_the_owner_takes_a_listing_back(desk: Desk, by: str) -> None:
    await hold(desk)
    await ow_listed(desk)
    which = {"inscription_id": PUPPET, "outpoint": await outpoint_of(desk)}

    status, answer = await _delist(desk, await token(desk), **{by: which[by]})

    assert (status, answer) == (200, {"success": True})
    assert await _listings(desk) == {}
    assert [event["venue"] for event in await desk.events("cancelled")] == ["ordinalswallet"]
    again = await _delist(desk, await token(desk), inscription_id=PUPPET)
    assert (again[0], again[1]["code"]) == (404, "listing_not_found")


async def test_nobody_else_takes_a_listing_back(desk: Desk) -> None:
    await hold(desk)
    await ow_listed(desk)
    good = await token(desk)
    forged = good[:-1] + ("0" if good[-1] != "0" else "1")

    bob = await _delist(desk, await token(desk, BOB), inscription_id=PUPPET)
    assert (bob[0], bob[1]["code"]) == (401, "not_the_owner")
    for bad in (forged, "ows1.a.b", "nothing", hex_signed((await ow_draft(desk))[1]["psbt"])):
        assert (await _delist(desk, bad, inscription_id=PUPPET))[0] == 401
    for which in ({}, {"inscription_id": PUPPET, "outpoint": await outpoint_of(desk)}):
        status, answer = await _delist(desk, good, **which)
        assert (status, answer["code"]) == (400, "listing_identifier_required")
    desk.clock.advance(24 * 3600 + 1)
    assert (await _delist(desk, good, inscription_id=PUPPET))[0] == 401
    assert await _listings(desk) == {PUPPET: 924_974}


async def test_a_satflow_listing_is_not_taken_back_here(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)

    assert (await _delist(desk, await token(desk), inscription_id=PUPPET))[0] == 404
    assert await own_listings(desk) == {PUPPET: 900_000}


async def test_a_session_lasts_a_day_and_its_nonce_is_good_once(desk: Desk) -> None:
    nonce = "ab" * 16
    status, answer = await session(desk)
    assert (status, answer["address"]) == (200, ANN.ordinals)
    assert answer["expires_at"] == desk.clock.now_ms // 1000 + 86_400
    assert answer["token"].startswith("ows1.")

    # The signature is over another nonce; the nonce is burned all the same.
    assert (await session(desk, nonce=nonce))[0] == 401
    for changes in (
        {"issued_at": desk.clock.now_ms - 5 * 60_000 - 1},
        {"issued_at": desk.clock.now_ms + 10 * 60_000},
        {"address": BOB.ordinals},
        {"signature": "AA=="},
    ):
        status, answer = await session(desk, **changes)
        assert (status, answer) == (401, {"error": True, "message": "Invalid wallet signature"})
    for changes in ({"nonce": "short"}, {"issued_at": "now"}, {"address": "nowhere"}):
        assert (await session(desk, **changes))[0] == 400


async def test_one_signature_opens_one_session(desk: Desk) -> None:
    sent: list[Any] = []
    original = desk.ask

    async def keep(method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        sent.append(body)
        return await original(method, path, body, **options)

    desk.ask = keep  # type: ignore[method-assign]
    await token(desk)

    assert (await original("POST", f"{OW}/auth/session", sent[0]))[0] == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "market/secure-listing/recover"),
        ("POST", "market/offers/build"),
        ("POST", "market/offers/17/cancel"),
        ("GET", f"market/offers/collection/{PUPPETS}"),
        ("POST", "wallet/purchase-bulk"),
        ("POST", "market/secure-purchase/submit"),
    ],
)
async def test_what_is_not_offered_says_so(desk: Desk, method: str, path: str) -> None:
    status, answer = await desk.ask(method, f"{OW}/{path}", {} if method == "POST" else None)

    assert (status, answer["error"], answer["code"]) == (400, True, "not_offered")


PRICE = 900_000
ESCROW = escrow_of(bytes.fromhex(ANN.pubkey), ESCROW_TERMS["simulator-ordinalswallet"])


async def build(desk: Desk, price: int = PRICE, outpoint: str = "", **changes: Any) -> tuple[int, Any]:
    item = {"outpoint": outpoint or await outpoint_of(desk), "escrow_price_sats": price}
    body = {
        "protocol": "ordinal",
        "seller_address": ANN.payment,
        "seller_public_key": ANN.pubkey,
        "items": [item],
    }
    return await desk.ask("POST", f"{OW}/market/secure-listing/build-bulk", body | changes)


async def drafted(desk: Desk, price: int = PRICE) -> dict[str, Any]:
    status, answer = await build(desk, price)
    assert (status, answer["policy"]) == (200, "passthrough_v4"), answer
    (row,) = answer["items"]
    assert row["state"] == "authorization_required", row
    found: dict[str, Any] = row
    return found


def authorization(row: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The item as its seller authorizes it."""
    sale, transfer = (b64encode(bytes.fromhex(row[name])).decode() for name in ("sale_psbt", "psbt"))
    made = protected_listing(ListingDraft(sale, (), transfer), ANN)
    return {
        "outpoint": row["outpoint"],
        "protocol": "ordinal",
        "seller_public_key": ANN.pubkey,
        "template_digest": row["template_digest"],
        "psbt": b64decode(made["signed_transfer"]).hex(),
        "sale_psbt": b64decode(made["signed_psbt"]).hex(),
        "escrow_price_sats": row["escrow_price_sats"],
    } | changes


async def authorize(desk: Desk, *items: dict[str, Any]) -> tuple[int, Any]:
    return await desk.ask("POST", f"{OW}/market/secure-listing/authorize-bulk", {"items": list(items)})


async def protect(desk: Desk, price: int = PRICE) -> dict[str, Any]:
    row = await drafted(desk, price)
    status, answer = await authorize(desk, authorization(row))
    assert (status, answer["state"]) == (200, "listed"), answer
    return row


async def cancel(desk: Desk, **named: str) -> tuple[int, Any]:
    return await desk.ask("POST", f"{OW}/market/cancel-escrow", named | {"signature": await token(desk)})


async def place(desk: Desk) -> str:
    _, found = await desk.ask("GET", f"/ord/inscription/{PUPPET}", headers={"Accept": "application/json"})
    return str(found["satpoint"].rpartition(":")[0])


async def test_a_draft_moves_the_item_to_the_escrow_of_both_keys_and_sells_it_there(desk: Desk) -> None:
    await hold(desk)
    row = await drafted(desk)
    transfer, sale = (decode(bytes.fromhex(row[name])) for name in ("psbt", "sale_psbt"))
    (held,), (payout,) = transfer.transaction.outputs, sale.transaction.outputs
    assert (held.script, held.value) == (ESCROW.script, row["escrow_value"])
    assert sale_output(bytes.fromhex(ANN.pubkey[2:])).script.data == ESCROW.script
    assert payout.value == PRICE
    assert str(sale.transaction.inputs[0].outpoint) == f"{row['passthrough_txid']}:0"
    assert row["cosigner_public_key"] == ESCROW_TERMS["simulator-ordinalswallet"].cosigner.hex()
    assert await desk.events() == []


async def test_it_is_shown_as_protected_and_sold_out_of_the_escrow(desk: Desk) -> None:
    await desk.list_puppets(950_000)
    await hold(desk)
    row = await protect(desk)
    (entry,) = await ow_read(desk, f"wallet/{ANN.ordinals}/inscriptions")
    assert entry["escrow"]["protected"] is True
    shown = await ow_read(desk, f"market/escrow/{PUPPET}")
    assert (shown["escrow_price"], shown["secure_purchase_version"]) == (PRICE, 2)
    state = await ow_read(desk, f"market/secure-listing/{row['outpoint']}")
    assert state["secure_listing"]["state"] == "listed"
    found = await desk.sim("POST", "sell", {"inscriptionId": PUPPET, "venue": "ordinalswallet"})
    assert (await place(desk), found["sold"]["price"]) == (found["outpoint"], PRICE)
    assert (await desk.ask("GET", f"{OW}/market/secure-listing/{row['outpoint']}"))[0] == 404


async def test_listing_again_replaces_it(desk: Desk) -> None:
    await hold(desk)
    await protect(desk)
    await protect(desk, 950_000)
    assert (await ow_read(desk, f"market/escrow/{PUPPET}"))["escrow_price"] == 950_000


async def test_it_is_cancelled_by_its_output_and_by_nothing_else(desk: Desk) -> None:
    await hold(desk)
    row = await protect(desk)
    assert (await cancel(desk, inscription_id=PUPPET))[0] == 404
    status, answer = await cancel(desk, outpoint=row["outpoint"])
    assert (status, answer["transition"], answer["listing"]["secure_v2"]) == (200, "cancelled", True)
    assert (await cancel(desk, outpoint=row["outpoint"]))[0] == 404


async def test_what_was_listed_in_the_open_needs_a_fresh_output(desk: Desk) -> None:
    await hold(desk)
    await ow_listed(desk)
    _, answer = await build(desk)
    assert [row["code"] for row in answer["items"]] == ["secure_listing_requires_fresh_outpoint"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"template_digest": "00"}, "template_digest_mismatch"),
        ({"escrow_price_sats": PRICE + 1}, "template_digest_mismatch"),
        ({"seller_public_key": BOB.pubkey}, "seller_key_does_not_control_asset"),
        ({"sale_psbt": ""}, "invalid_seller_authorization"),
    ],
)
async def test_what_is_not_the_signed_draft_is_refused(desk: Desk, changes: dict[str, Any], code: str) -> None:
    await hold(desk)
    row = await drafted(desk)
    if changes == {"sale_psbt": ""}:
        changes = {"sale_psbt": row["sale_psbt"]}  # not signed
    status, answer = await authorize(desk, authorization(row, **changes))
    assert (status, answer) == (400, {"outpoint": row["outpoint"], "error": True, "code": code})


async def test_one_of_several_is_refused_alone(desk: Desk) -> None:
    await hold(desk, PUPPET, OTHER)
    items = [{"outpoint": await outpoint_of(desk, each), "escrow_price_sats": PRICE} for each in (PUPPET, OTHER)]
    items[1]["outpoint"] = "ab" * 32 + ":0"
    _, answer = await build(desk, items=items)
    assert [row.get("code") for row in answer["items"]] == [None, "no_supported_assets_on_output"]


# The seller takes it back


async def stranded(desk: Desk) -> str:
    """Lists an item and lets the venue send the transfer alone; returns the escrow."""
    await desk.list_puppets(950_000)
    await hold(desk)
    await protect(desk)
    found = await desk.sim("POST", "escrow", {"inscriptionId": PUPPET})
    assert await place(desk) == found["outpoint"]
    return str(found["outpoint"])


async def way_out(desk: Desk, escrow: str, sequence: int) -> tuple[int, str]:
    """Sends what brings the item home by the seller's key alone."""
    (coin,) = await desk.sim("PUT", f"coins/{ANN.payment}", {"values": [10_000]})
    _, found = await desk.ask("GET", f"/ord/output/{escrow}", headers={"Accept": "application/json"})
    held = TxOutput(found["value"], ESCROW.script)
    key = bytes.fromhex(ANN.pubkey)
    paying = TxOutput(10_000, own_script("p2wpkh", key))
    inputs = (
        TxInput(Outpoint.parse(escrow), b"", sequence),
        TxInput(Outpoint.parse(coin["outpoint"]), b"", 0xFFFFFFFD),
    )
    home = TxOutput(held.value, own_script("p2tr", key))
    made = Transaction(2, inputs, (home,), 0)
    spent = [held, paying]
    opened = open_escrow(made, 0, spent, ESCROW, ANN.key)
    paid = [sign_input(made, 1, spent, ALL, "p2wpkh", ANN.key), key]
    raw = with_witnesses(made, [opened, paid]).hex()
    answer = await desk.fetch("POST", "/mempool/api/tx", raw.encode(), headers={"Content-Type": "text/plain"})
    return answer.code, answer.body.decode()


async def test_its_seller_takes_it_out_after_144_blocks_and_not_before(desk: Desk) -> None:
    escrow = await stranded(desk)
    assert (await desk.ask("GET", f"{OW}/market/escrow/{PUPPET}"))[0] == 404, "it is for sale no more"
    await desk.sim("POST", "blocks", {"count": LOCK_BLOCKS - 2})
    status, answer = await way_out(desk, escrow, LOCK_BLOCKS)
    assert (status, "non-BIP68-final" in answer) == (400, True), answer
    await desk.sim("POST", "blocks", {"count": 1})
    status, answer = await way_out(desk, escrow, LOCK_BLOCKS - 1)
    assert status == 400, "the leaf asks for the whole time"
    status, answer = await way_out(desk, escrow, LOCK_BLOCKS)
    assert status == 200, answer
    await desk.sim("POST", "confirm", {})
    assert (await place(desk)).partition(":")[0] == answer


async def test_it_has_no_recovery_of_the_venues(desk: Desk) -> None:
    await hold(desk)
    await protect(desk)
    assert (await desk.ask("POST", "/sim/escrow", {"inscriptionId": PUPPET, "back": True}, headers={}))[0] == 409
