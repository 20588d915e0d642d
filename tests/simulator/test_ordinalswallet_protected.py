"""Ordinals Wallet's protected listings: drafted, signed, sold out of an escrow, or taken out of it by the seller."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest

from markets.orders import ListingDraft
from simulator.venue_scripts import LOCK_BLOCKS, sale_output
from tests.markets.contract.signing import protected_listing
from tests.simulator.desk import ANN, BOB, Desk
from tests.simulator.seller import OTHER, OW, PUPPET, hold, outpoint_of, ow_listed, ow_read, token
from wallet.psbt.decode import decode
from wallet.psbt.escrow import escrow_of
from wallet.psbt.script import own_script
from wallet.psbt.sighash import ALL
from wallet.psbt.sign import sign_input
from wallet.psbt.sign_escrow import open_escrow
from wallet.psbt.transaction import Outpoint, Transaction, TxInput, TxOutput
from wallet.terms import ESCROW_TERMS
from wallet.withdrawal.sign import with_witnesses

pytestmark = pytest.mark.gen_test

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
