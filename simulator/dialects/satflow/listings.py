"""Satflow's listing flow: a draft to sign, then the signed listing."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

from simulator.bitcoin.chain import belongs_to
from simulator.calls import AFTER_THE_DEED, Fault, Operation
from simulator.dialects.satflow.base import SatflowHandler, peek, sign_in_address
from simulator.listing.listings import AskTerms, Signed, draft, list_signed, refuse
from simulator.listing.poison import poisoned
from simulator.orders import Refusal
from simulator.wire import ApiError, bad, items, text, whole
from wallet import address

_MAX_PSBT_TEXT = 100_000
_MAX_PSBTS = 100
_KEY = re.compile(r"(?:0[23])?([0-9a-f]{64})")  # documented with 66 digits, and without its parity it is the same


class IntentSell(SatflowHandler):
    """`POST /intent/sell`: the PSBTs that would list an inscription. Changes nothing.

    A fault of the operation `draft` strikes only here; one of `list` here too, unless it concerns a listing that is
    taken.
    """

    operation: Operation = "list"
    method = "POST"

    def subject(self) -> str:
        return peek(self.request.body, "inscriptionId")

    def draw_fault(self) -> Fault | None:
        faults = self.world.faults
        return faults.draw("draft") or faults.draw("list", but=AFTER_THE_DEED)

    def data(self) -> dict[str, Any]:
        terms = _terms(self.body())
        try:
            wanted = draft(self.engine, terms)
        except Refusal as refusal:
            raise bad(str(refusal)) from None
        poison = self.world.poison
        plain, secure = (poisoned(each, poison, self.engine, terms) for each in (wanted.plain, wanted.secure))
        if self.is_as_seen:
            drafts = [{"hex": _hex(secure.encode()), "indicesToSign": list(secure.to_sign)}]
            return {"seller": {"unsignedListingPSBTHex": _hex(plain.encode()), "secureListingPSBTs": drafts}}
        return {
            "seller": {
                "unsignedListingPSBTBase64": plain.encode(),
                "secureListingPSBTs": [{"base64": secure.encode(), "indicesToSign": list(secure.to_sign)}],
            }
        }


class List(SatflowHandler):
    """`POST /list`: takes one signed listing; listing again replaces the former one. The plain form alone will do."""

    operation: Operation = "list"
    method = "POST"

    def subject(self) -> str:
        return peek(self.request.body, "listings", "inscriptionId")

    def data(self) -> dict[str, Any]:
        body = self.body()
        rows = items(body.get("listings"), "listings", 100)
        if len(rows) != 1:
            raise ApiError(501, "only one listing at a time is implemented here", "NOT_IMPLEMENTED")
        terms = _terms(rows[0])
        signed = _signed(body)
        engine = self.world.engine
        try:
            _payment(rows[0])
        except ApiError as error:
            refuse(engine, terms, error.text)
            raise
        late = self.fault.delay_seconds if self.fault and self.mode == "late" else 0
        visible_ms = engine.now_ms() + round(late * 1000) if late else 0
        try:
            order = list_signed(engine, terms, signed, visible_ms)
        except Refusal as refusal:
            raise bad(str(refusal)) from None
        row = {"_id": order.order_id, "price": order.price, "inscriptionId": order.inscription, "status": "active"}
        return {"listings": [row]}


def _terms(row: dict[str, Any]) -> AskTerms:
    if row.get("runesOutput") is not None:
        raise ApiError(501, "listing runes is not implemented here", "NOT_IMPLEMENTED")
    told = row.get("tapInternalKey") or ""
    internal_key = _KEY.fullmatch(told) if isinstance(told, str) else None
    if told and internal_key is None:
        raise bad("tapInternalKey must have 66 hex digits, or 64")
    if row.get("collectionSlug") is not None:
        text(row["collectionSlug"], "collectionSlug")
    return AskTerms(
        inscription=text(row.get("inscriptionId"), "inscriptionId"),
        price=whole(row.get("price"), "price", 1),
        seller=sign_in_address(row.get("sellerOrdAddress"), "sellerOrdAddress"),
        receive=_mainnet(row.get("sellerReceiveAddress"), "sellerReceiveAddress"),
        internal_key=internal_key[1] if internal_key else "",
    )


def _hex(psbt: str) -> str:
    return b64decode(psbt).hex()


def _mainnet(value: Any, name: str) -> str:
    """Reads an address that can be paid, of any kind."""
    try:
        found = address.parse(text(value, name))
    except address.AddressError as error:
        raise bad(f"{name}: {error}") from None
    if found.network != "mainnet":
        raise bad(f"{name}: not an address of mainnet")
    return found.text


def _signed(body: dict[str, Any]) -> Signed:
    secure = body.get("signedSecureListingPSBTs", [])
    if not isinstance(secure, list) or len(secure) > _MAX_PSBTS:
        raise bad("signedSecureListingPSBTs must be a list of PSBTs")
    unsigned = body.get("unsignedListingPSBT")
    return Signed(
        text(body.get("signedListingPSBT"), "signedListingPSBT", _MAX_PSBT_TEXT),
        text(unsigned, "unsignedListingPSBT", _MAX_PSBT_TEXT) if unsigned is not None else "",
        tuple(text(each, "signedSecureListingPSBTs", _MAX_PSBT_TEXT) for each in secure),
    )


def _payment(row: dict[str, Any]) -> None:
    """Checks that the seller's paying pair, if given, belongs together."""
    if row.get("sellerPaymentAddress") is None:
        return
    payment = sign_in_address(row["sellerPaymentAddress"], "sellerPaymentAddress")
    key = row.get("sellerPaymentPublicKey")
    if key is not None and not belongs_to(text(key, "sellerPaymentPublicKey"), payment):
        raise bad("sellerPaymentPublicKey is not the key of sellerPaymentAddress")
