"""A seller of inscriptions on the practice market: holds them, signs drafts, hands them back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from tests.shapes import replace
from tests.simulator.desk import ANN, PUPPETS, SATFLOW, Desk, Trader
from wallet.psbt.decode import decode, encode
from wallet.psbt.sign import sign_input, with_signature
from wallet.psbt.transaction import Outpoint, TxOutput, compact, decode_output
from wallet.signer.challenges import sign_message

PUPPET = "a" * 64 + "i0"
OTHER = "b" * 64 + "i1"
LISTING, SECURE = 0x83, 0x81


def signed(psbt: str, trader: Trader = ANN, sighash: int = LISTING, spent: TxOutput | None = None) -> str:
    """`psbt` signed at input 0 by the trader's vault key; by default over the output that the PSBT shows."""
    read = decode(b64decode(psbt))
    own = spent or decode_output(read.inputs[0][compact(0x01)])
    others = (None,) * (len(read.inputs) - 1)
    signature = sign_input(read.transaction, 0, (own, *others), sighash, "p2tr", trader.key)
    return b64encode(encode(with_signature(read, 0, "p2tr", b"", signature))).decode()


def changed(psbt: str, **changes: Any) -> str:
    """`psbt` with another `value` of its output, or another `txid` that its input spends."""
    read = decode(b64decode(psbt))
    tx = read.transaction
    if "value" in changes:
        tx = replace(tx, outputs=(tx.outputs[0]._replace(value=changes["value"]), *tx.outputs[1:]))
    if "txid" in changes:
        other = Outpoint(bytes.fromhex(changes["txid"])[::-1], 0)
        tx = replace(tx, inputs=(tx.inputs[0]._replace(outpoint=other), *tx.inputs[1:]))
    return b64encode(encode(replace(read, transaction=tx))).decode()


def finalized(psbt: str) -> str:
    """Returns a signed `psbt` as a wallet leaves it that finalizes what it signs."""
    read = decode(b64decode(psbt))
    fields = dict(read.inputs[0])
    signature = fields.pop(compact(0x13))
    fields[compact(0x08)] = b"\x01" + bytes([len(signature)]) + signature
    return b64encode(encode(replace(read, inputs=(fields,)))).decode()


def ask(trader: Trader = ANN, **changes: Any) -> dict[str, Any]:
    """Makes the venue's request for a listing."""
    return {
        "price": 900_000,
        "inscriptionId": PUPPET,
        "sellerOrdAddress": trader.ordinals,
        "sellerReceiveAddress": trader.payment,
        "tapInternalKey": trader.pubkey[2:],
    } | changes


async def hold(desk: Desk, *ids: str, trader: Trader = ANN) -> None:
    rows = [{"id": each, "collection": PUPPETS, "traits": {"Hat": "Red"}} for each in ids or (PUPPET,)]
    await desk.sim("PUT", f"wallets/{trader.ordinals}", {"inscriptions": rows})


async def drafted(desk: Desk, trader: Trader = ANN, **changes: Any) -> dict[str, Any]:
    """Returns the draft of a listing: `{plain, secure}` in base64."""
    status, answer = await desk.ask("POST", f"{SATFLOW}/intent/sell", ask(trader, **changes))
    assert status == 200, answer
    seller = answer["data"]["seller"]
    (secure,) = seller["secureListingPSBTs"]
    return {
        "plain": seller["unsignedListingPSBTBase64"],
        "secure": secure["base64"],
        "indices": secure["indicesToSign"],
    }


async def submit(desk: Desk, plain: str, secure: str, trader: Trader = ANN, **changes: Any) -> tuple[int, Any]:
    body = {"listings": [ask(trader, **changes)], "signedListingPSBT": plain, "signedSecureListingPSBTs": [secure]}
    return await desk.ask("POST", f"{SATFLOW}/list", body)


async def list_item(desk: Desk, trader: Trader = ANN, **changes: Any) -> tuple[int, Any]:
    """Runs the whole flow, rightly signed."""
    draft = await drafted(desk, trader, **changes)
    secure = signed(draft["secure"], trader, SECURE)
    return await submit(desk, signed(draft["plain"], trader), secure, trader, **changes)


async def listed(desk: Desk, trader: Trader = ANN, **changes: Any) -> str:
    """Lists an inscription, which must succeed; returns the listing's id."""
    status, answer = await list_item(desk, trader, **changes)
    assert status == 200, answer
    found: str = answer["data"]["listings"][0]["_id"]
    return found


async def delist(desk: Desk, trader: Trader = ANN, **which: Any) -> tuple[int, Any]:
    """Cancels listings, by a challenge of the vault."""
    challenge = (await desk.data("challenge", address=trader.ordinals))["challenge"]
    signature = sign_message(trader.key, "p2tr", challenge)
    body = {"makerAddress": trader.ordinals, "orderType": "ask", "signature": signature} | which
    return await desk.ask("POST", f"{SATFLOW}/cancel", body)


async def own_listings(desk: Desk, trader: Trader = ANN) -> dict[str, int]:
    """Price by inscription."""
    contents = await desk.data("address/wallet-contents", address=trader.ordinals, listedOnly="true")
    rows = contents["results"]["ordinals"]
    return {row["token"]["inscription_id"]: row["listing"]["price"] for row in rows}


async def outpoint_of(desk: Desk, inscription: str = PUPPET) -> str:
    found: str = (await desk.data("item", inscriptionId=inscription))["output"]
    return found
