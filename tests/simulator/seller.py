"""Sellers of inscriptions on the practice market: they hold them, sign drafts and hand them back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from secrets import token_hex
from typing import Any

from tests.shapes import replace
from tests.simulator.desk import ANN, PUPPETS, SATFLOW, Desk, Trader
from wallet.keystore.keys import sign_message
from wallet.psbt.decode import decode, encode
from wallet.psbt.sign import sign_input, with_signature
from wallet.psbt.transaction import Outpoint, TxOutput, compact, decode_output

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


OW = "/ordinalswallet"
UNISAT = "/unisat/v3/market/collection/auction"
BEARER = {"Authorization": "Bearer practice"}


def hex_signed(psbt: str, trader: Trader = ANN, sighash: int = LISTING, *, final: bool = False) -> str:
    """Returns a PSBT in hex signed at input 0, or finalized too, as some wallets leave it."""
    done = signed(as_base64(psbt), trader, sighash)
    return as_hex(finalized(done) if final else done)


def hex_signed_all(psbt: str, trader: Trader = ANN) -> str:
    """Returns a PSBT in hex with every input signed for a listing."""
    read = decode(bytes.fromhex(psbt))
    spent = tuple(decode_output(fields[compact(0x01)]) for fields in read.inputs)
    for at in range(len(spent)):
        signature = sign_input(read.transaction, at, spent, LISTING, "p2tr", trader.key)
        read = with_signature(read, at, "p2tr", b"", signature)
    return encode(read).hex()


def hex_changed(psbt: str, **changes: Any) -> str:
    return as_hex(changed(as_base64(psbt), **changes))


def as_base64(psbt: str) -> str:
    return b64encode(bytes.fromhex(psbt)).decode()


def as_hex(psbt: str) -> str:
    return b64decode(psbt).hex()


# Ordinals Wallet


async def token(desk: Desk, trader: Trader = ANN) -> str:
    """Returns a session of the trader's vault."""
    status, answer = await session(desk, trader)
    assert status == 200, answer
    found: str = answer["token"]
    return found


async def session(desk: Desk, trader: Trader = ANN, **changes: Any) -> tuple[int, Any]:
    """Signs in; `changes` are sent but not signed."""
    nonce, issued = token_hex(16), desk.clock.now_ms
    said = (
        "Sign in to Ordinals Wallet\n\nThis proves you own this address. It does not move funds or cost a fee.\n\n"
        f"Address: {trader.ordinals}\nNonce: {nonce}\nIssued At: {issued}"
    )
    body = {
        "address": trader.ordinals,
        "nonce": nonce,
        "issued_at": issued,
        "signature": sign_message(trader.key, "p2tr", said),
    }
    return await desk.ask("POST", f"{OW}/auth/session", body | changes)


async def ow_draft(desk: Desk, trader: Trader = ANN, **changes: Any) -> tuple[int, Any]:
    body = {
        "inscriptions": [PUPPET],
        "from": trader.ordinals,
        "prices": [900_000],
        "public_key": trader.pubkey,
        "receive_address": trader.payment,
    }
    return await desk.ask("POST", f"{OW}/wallet/escrow-bulk", body | changes)


async def ow_submit(desk: Desk, psbt: str) -> tuple[int, Any]:
    return await desk.ask("POST", f"{OW}/market/escrow-bulk", {"psbt": psbt})


async def ow_listed(desk: Desk, price: int = 900_000, trader: Trader = ANN, inscription: str = PUPPET) -> str:
    """Lists an inscription, which must succeed; returns the escrow's id."""
    status, draft = await ow_draft(desk, trader, inscriptions=[inscription], prices=[price])
    assert status == 200, draft
    status, answer = await ow_submit(desk, hex_signed(draft["psbt"], trader))
    assert (status, answer["success"]) == (200, True), answer
    found: str = answer["escrow_id"]
    return found


async def ow_read(desk: Desk, path: str) -> Any:
    status, answer = await desk.ask("GET", f"{OW}/{path}", headers={})
    assert status == 200, answer
    return answer


# UniSat


async def unisat(desk: Desk, name: str, **body: Any) -> tuple[int, Any]:
    """Returns the `code` of an answer and its `data`, or its `msg` when there is none."""
    status, answer = await desk.ask("POST", f"{UNISAT}/{name}", body, headers=BEARER)
    assert set(answer) == {"code", "msg", "data"}
    assert status == 200, answer
    return answer["code"], answer["data"] if answer["code"] == 0 else answer["msg"]


async def put_on(desk: Desk, trader: Trader = ANN, price: int = 900_000, **changes: Any) -> tuple[int, Any]:
    """Asks for the draft of a listing."""
    body = {
        "inscriptionId": PUPPET,
        "initPrice": str(price),
        "unitPrice": str(price),
        "pubkey": trader.pubkey,
        "marketType": "fixedPrice",
        "nftType": "collection",
        "btcAddress": trader.payment,
    }
    return await unisat(desk, "create_put_on", **(body | changes))


async def unisat_book(desk: Desk) -> dict[str, int]:
    """Price by auction of what is for sale here."""
    code, data = await unisat(
        desk, "list", filter={"nftType": "collection", "collectionId": PUPPETS}, sort={}, start=0, limit=50
    )
    assert code == 0
    return {row["auctionId"]: row["price"] for row in data["list"]}


async def unisat_listed(desk: Desk, price: int = 900_000, trader: Trader = ANN) -> str:
    """Lists an inscription, which must succeed; returns the auction's id."""
    code, draft = await put_on(desk, trader, price)
    assert code == 0, draft
    signed_psbt = hex_signed(draft["psbt"], trader)
    code, answer = await unisat(desk, "confirm_put_on", auctionId=draft["auctionId"], psbt=signed_psbt)
    assert (code, answer) == (0, {})
    found: str = draft["auctionId"]
    return found
