"""A trader in ord.net's dialect over HTTP: signs in, signs the preflights' PSBTs, hands them back."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from tests.shapes import replace
from tests.simulator.desk import ANN, PUPPETS, Desk, Trader
from wallet.keystore.keys import sign_message
from wallet.psbt.decode import Psbt, decode, encode
from wallet.psbt.sign import sign_input
from wallet.psbt.transaction import TxOutput, compact, decode_output, sized, taproot_digest

ORDNET = "/ordnet"
OFFERS = f"collection/{PUPPETS}/collection-offers"
LISTINGS = f"collection/{PUPPETS}/listings"
COLLECTION = {"kind": "all"}
SETTLEMENT = 0x83
Change = Callable[[dict[str, Any]], None]


class Client:
    """One wallet at ord.net. `token` is None before it has signed in."""

    def __init__(self, desk: Desk, trader: Trader = ANN) -> None:
        self.desk, self.trader = desk, trader
        self.token: str | None = None
        self.binding = ""

    async def ask(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        asked = f"?{urlencode(query)}" if query else ""
        return await self.desk.ask(method, f"{ORDNET}/{path}{asked}", body, headers=headers)

    async def good(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        status, answer = await self.ask(method, path, body, **query)
        assert status == 200, answer
        return answer

    # Sign-in

    async def challenge(self) -> dict[str, Any]:
        pair = {"ordinalsAddress": self.trader.ordinals, "paymentAddress": self.trader.payment}
        return await self.good("POST", "auth/challenge", pair)

    def answers(self, challenge: dict[str, Any]) -> dict[str, Any]:
        kinds = {self.trader.ordinals: "p2tr", self.trader.payment: "p2wpkh"}
        rows = [
            {
                "challengeId": row["challengeId"],
                "address": row["address"],
                "signature": b64decode(sign_message(self.trader.key, kinds[row["address"]], row["message"])).hex(),
            }
            for row in challenge["challenges"]
        ]
        return {"authRequestId": challenge["authRequestId"], "verifications": rows}

    async def sign_in(self) -> Client:
        found = await self.good("POST", "auth/verify", self.answers(await self.challenge()))
        self.token, self.binding = found["sessionToken"], found["walletBindings"][0]["walletBindingId"]
        return self

    # Offers

    async def coins(self) -> list[dict[str, Any]]:
        """Returns the wallet's coins, from mempool's route."""
        _, rows = await self.desk.ask("GET", f"/mempool/api/address/{self.trader.payment}/utxo", headers={})
        return [{"txid": row["txid"], "vout": row["vout"], "valueSats": row["value"]} for row in rows]

    async def offer(self, price: int = 50_000, **changes: Any) -> dict[str, Any]:
        """Returns the body of a preflight."""
        body: dict[str, Any] = {
            "walletBindingId": self.binding,
            "ordinalsPublicKey": self.trader.pubkey[2:],
            "paymentPublicKey": self.trader.pubkey,
            "target": COLLECTION,
            "priceSats": price,
            "offerCount": 1,
            "ladderStepSats": 0,
            "validityHours": 24,
        }
        if "spendableUtxos" not in changes:
            body["spendableUtxos"] = await self.coins()
        return body | changes

    def signed_offers(self, body: dict[str, Any], preflight: dict[str, Any]) -> dict[str, Any]:
        """Returns the body of the submit."""
        kept = ("priceSats", "selectedPaymentUtxos", "expectedFundingParentTxid", "fundingParentVout", "preflightToken")
        offers = []
        for row in preflight["offers"]:
            step = row["fundingParentStep"]
            signed = step | {"psbtBase64": pay(step["psbtBase64"], self.trader)}
            offers.append({name: row[name] for name in kept} | {"signedFundingParentStep": signed})
        return {name: value for name, value in body.items() if name != "spendableUtxos"} | {"offers": offers}

    async def place(self, price: int = 50_000, change: Change | None = None, **changes: Any) -> tuple[int, Any]:
        """Both steps, rightly signed; `change` alters the submit."""
        body = await self.offer(price, **changes)
        status, preflight = await self.ask("POST", f"{OFFERS}/preflight", body)
        if status != 200:
            return status, preflight
        submit = json.loads(json.dumps(self.signed_offers(body, preflight)))
        if change is not None:
            change(submit)
        return await self.ask("POST", f"{OFFERS}/submit", submit)

    async def placed(self, price: int = 50_000, **changes: Any) -> list[str]:
        """Places offers, which must be taken; returns their ids."""
        status, answer = await self.place(price, **changes)
        assert status == 200, answer
        return [row["offerId"] for row in answer["offers"]]

    async def own(self) -> dict[str, int]:
        """Returns the price of every open own offer, by id."""
        rows = (await self.good("GET", f"collection/{PUPPETS}/my/sent-collection-offers"))["rows"]
        return {row["id"]: row["priceSats"] for row in rows}

    async def sign_in_again_and_own(self) -> dict[str, int]:
        """`own` after more than a session's hour."""
        return await (await self.sign_in()).own()

    async def cancel(self, offer: str) -> tuple[int, Any]:
        return await self.ask("POST", f"{OFFERS}/{offer}/cancel", {"walletBindingId": self.binding})

    # Listings

    async def draft(self, *prices: tuple[str, int], **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the body of a preflight and its answer."""
        body = {
            "walletBindingId": self.binding,
            "ordinalsPublicKey": self.trader.pubkey[2:],
            "items": [{"inscriptionId": inscription, "priceSats": price} for inscription, price in prices],
        } | changes
        return body, await self.good("POST", f"{LISTINGS}/preflight", body)

    def signed_listing(self, body: dict[str, Any], preflight: dict[str, Any], days: int = 30) -> dict[str, Any]:
        """Returns the body of the submit."""
        anchors, signed = [], []
        for row in preflight["listings"]:
            first, second = row["psbts"]
            first = first | {"psbtBase64": sign_key_path(first["psbtBase64"], self.trader, 0x00, [0])}
            second = second | {"psbtBase64": sign_leaf(second["psbtBase64"], self.trader)}
            anchors.append({name: row[name] for name in ("inscriptionId", "anchorUtxoId")})
            signed.append({"inscriptionId": row["inscriptionId"], "psbts": [first, second]})
        recovery = preflight["recoveryPsbt"]
        indexes = recovery["inputsToSign"][0]["signingIndexes"]
        recovery = recovery | {"psbtBase64": sign_key_path(recovery["psbtBase64"], self.trader, 0x01, indexes)}
        more = {"durationDays": days, "anchors": anchors, "signed": signed, "signedRecoveryPsbt": recovery}
        return body | more

    async def list(self, *prices: tuple[str, int], change: Change | None = None, days: int = 30) -> tuple[int, Any]:
        """Both steps, rightly signed; `change` alters the submit."""
        submit = json.loads(json.dumps(self.signed_listing(*await self.draft(*prices), days)))
        if change is not None:
            change(submit)
        return await self.ask("POST", f"{LISTINGS}/submit", submit)

    async def listed(self, inscription: str, price: int = 900_000) -> str:
        """Lists an inscription, which must be taken; returns the listing's id."""
        status, answer = await self.list((inscription, price))
        assert status == 200, answer
        (row,) = answer["listings"]
        return row["listingId"]

    async def delist(self, *pairs: tuple[str, str]) -> tuple[int, Any]:
        rows = [{"inscriptionId": inscription, "listingId": listing} for inscription, listing in pairs]
        return await self.ask("POST", f"{LISTINGS}/delist", {"walletBindingId": self.binding, "listings": rows})


def pay(psbt: str, trader: Trader, sighash: int = 0x01) -> str:
    """`psbt` with every input signed by the payment key."""
    read = decode(b64decode(psbt))
    spent = _spent(read)
    signatures = [
        sign_input(read.transaction, at, spent, sighash, "p2wpkh", trader.key) for at in range(len(read.inputs))
    ]
    return _with(read, {at: {compact(0x02) + bytes.fromhex(trader.pubkey): s} for at, s in enumerate(signatures)})


def sign_key_path(psbt: str, trader: Trader, sighash: int, inputs: list[int]) -> str:
    """`psbt` with taproot inputs signed by key path, tweaked by the merkle root that it tells, if any."""
    read = decode(b64decode(psbt))
    made = {}
    for at in inputs:
        key = trader.key.taproot_tweak(read.inputs[at].get(compact(0x18), b""))
        signature = key.schnorr_sign(taproot_digest(read.transaction, at, _spent(read), sighash)).serialize()
        made[at] = {compact(0x13): signature + (bytes([sighash]) if sighash else b"")}
    return _with(read, made)


def sign_leaf(psbt: str, trader: Trader, sighash: int = SETTLEMENT) -> str:
    """`psbt` with input 0 signed by script path, SINGLE|ANYONECANPAY, with the untweaked key."""
    read = decode(b64decode(psbt))
    ((_, leaf),) = ((key, value) for key, value in read.inputs[0].items() if key[:1] == compact(0x15))
    leaf_hash = tagged("TapLeaf", leaf[-1:] + sized(leaf[:-1]))
    own, output, spent = read.transaction.inputs[0], read.transaction.outputs[0], _spent(read)[0]
    message = b"\x00" + bytes([sighash]) + read.transaction.version.to_bytes(4, "little") + bytes(4)
    message += b"\x02" + own.outpoint.txid + own.outpoint.vout.to_bytes(4, "little") + spent.encode()
    message += own.sequence.to_bytes(4, "little") + hashlib.sha256(output.encode()).digest()
    message += leaf_hash + b"\x00" + b"\xff\xff\xff\xff"
    signature = trader.key.schnorr_sign(tagged("TapSighash", message)).serialize() + bytes([sighash])
    return _with(read, {0: {compact(0x14) + bytes.fromhex(trader.pubkey[2:]) + leaf_hash: signature}})


def _spent(read: Psbt) -> list[TxOutput]:
    return [decode_output(fields[compact(0x01)]) for fields in read.inputs]


def _with(read: Psbt, fields: dict[int, dict[bytes, bytes]]) -> str:
    inputs = tuple({**own, **fields.get(at, {})} for at, own in enumerate(read.inputs))
    return b64encode(encode(replace(read, inputs=inputs))).decode()


def tagged(tag: str, data: bytes) -> bytes:
    """Returns the hash of BIP-340 for `tag`."""
    mark = hashlib.sha256(tag.encode()).digest()
    return hashlib.sha256(mark + mark + data).digest()
