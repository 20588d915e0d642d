"""Ordinals Wallet's protected listings: drafts, their signed forms, and the state of one by its output."""

from __future__ import annotations

import re
from typing import Any

from simulator.bitcoin.taproot import LeafOutput
from simulator.calls import AFTER_THE_DEED, Fault, Operation
from simulator.dialects.ordinalswallet.base import VENUE, OrdinalsWalletHandler, mainnet_address
from simulator.listing.listings import AskTerms, Cause, Unlistable
from simulator.orders import Order, Refusal
from simulator.protected.escrow import cosigner
from simulator.protected.listings import LEAST_POSTAGE, Draft, as_hex, draft, list_protected
from simulator.protected.poison import spoiled
from simulator.wire import ApiError, bad, text, whole

POLICY = "passthrough_v4"
MAX_ITEMS = 100
_MAX_PSBT_TEXT = 200_000
_MOST_DRAFTS = 5_000
_KEY = re.compile(r"0[23]([0-9a-f]{64})")
_OUTPOINT = re.compile(r"[0-9a-f]{64}:\d{1,9}")
_CODES: dict[Cause, str] = {
    "unknown": "asset_not_current",
    "holder": "seller_key_does_not_control_asset",
    "unconfirmed": "unconfirmed_asset_outpoint",
    "crowded": "ambiguous_inscription_assets",
    "script": "unsupported_seller_script",
    "key": "seller_key_does_not_control_asset",
}


class _Refused(Exception):
    """A refusal of one item; the other items of the call go on."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class ProtectedHandler(OrdinalsWalletHandler):
    """A route about protected listings of one key."""

    operation: Operation = "list"
    method = "POST"

    def subject(self) -> str:
        try:
            rows = self.body().get("items")
        except ApiError:
            return "(unreadable)"
        first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
        coin = self.engine.chain.coins.get(str(first.get("outpoint")))
        return coin.inscriptions[0] if coin and coin.inscriptions else ""

    def items(self) -> list[dict[str, Any]]:
        rows = self.body().get("items")
        if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_ITEMS:
            raise ApiError(400, "Select between 1 and 100 items", "invalid_batch_size")
        if not all(isinstance(row, dict) for row in rows):
            raise bad("items must be objects")
        return rows

    def draft(self, outpoint: str, price: int, receive: str, key: str) -> Draft:
        """Drafts a listing of what lies on the output. Raises _Refused."""
        coin = self.engine.chain.coins.get(outpoint)
        if coin is None or not coin.inscriptions or coin.address is None:
            raise _Refused("no_supported_assets_on_output")
        if coin.spent_by is not None:
            raise _Refused("outpoint_spent_in_mempool")
        if price < LEAST_POSTAGE:
            raise _Refused("price_below_dust")
        if coin.value < LEAST_POSTAGE:
            raise _Refused("postage_too_small")
        if any(ask.at(VENUE) and ask.outpoint == outpoint and not ask.papers for ask in self._asks(coin.inscriptions)):
            raise _Refused("secure_listing_requires_fresh_outpoint")
        terms = AskTerms(coin.inscriptions[0], price, coin.address, receive, key, VENUE)
        try:
            return draft(self.engine, terms)
        except Unlistable as refusal:
            raise _Refused(_CODES[refusal.cause]) from None

    def _asks(self, inscriptions: tuple[str, ...]) -> list[Order]:
        return [ask for each in inscriptions for ask in self.engine.asks_of(each)]


class BuildProtected(ProtectedHandler):
    """`POST /market/secure-listing/build-bulk`: the two PSBTs of each item, in hex. Changes nothing."""

    def draw_fault(self) -> Fault | None:
        faults = self.world.faults
        return faults.draw("draft") or faults.draw("list", but=AFTER_THE_DEED)

    def answer(self) -> Any:
        body = self.body()
        if body.get("protocol") != "ordinal":
            raise ApiError(400, "This item type cannot be protected", "protocol_mismatch")
        receive = mainnet_address(text(body.get("seller_address"), "seller_address"))
        key = _key(body)
        rows = []
        for item in self.items():
            outpoint = _outpoint(item)
            price = whole(item.get("escrow_price_sats"), "escrow_price_sats", 1)
            try:
                rows.append(self._row(self.draft(outpoint, price, receive, key)))
            except _Refused as refused:
                rows.append({"outpoint": outpoint, "error": True, "code": refused.code})
        return {"version": 4, "policy": POLICY, "items": rows}

    def _row(self, made: Draft) -> dict[str, Any]:
        kept = self.world.protected
        kept[made.digest] = made.terms
        while len(kept) > _MOST_DRAFTS:
            del kept[next(iter(kept))]
        transfer, sale = spoiled(made, self.world.poison, self.engine)
        return {
            **_about(made),
            "state": "authorization_required",
            "psbt": as_hex(transfer),
            "sale_psbt": as_hex(sale),
            "escrow_price_sats": made.terms.price,
            "escrow_script": _script(made.escrow),
            "cosigner_public_key": cosigner().hex(),
            "ordinal_offset": 0,
        }


class AuthorizeProtected(ProtectedHandler):
    """`POST /market/secure-listing/authorize-bulk`: takes the signed PSBTs; listing again replaces.

    A call for one item is answered with its row alone, 400 when it is refused.
    """

    def answer(self) -> Any:
        rows = [self._row(item) for item in self.items()]
        if len(rows) > 1:
            return {"version": 4, "policy": POLICY, "items": rows}
        return rows[0]

    def deliver(self, value: Any) -> None:
        self.send(value, 400 if value.get("error") else 200)

    def _row(self, item: dict[str, Any]) -> dict[str, Any]:
        outpoint = _outpoint(item)
        try:
            return self._listed(item, outpoint)
        except _Refused as refused:
            return {"outpoint": outpoint, "error": True, "code": refused.code}

    def _listed(self, item: dict[str, Any], outpoint: str) -> dict[str, Any]:
        digest = text(item.get("template_digest"), "template_digest")
        terms = self.world.protected.get(digest)
        if terms is None or item.get("protocol") != "ordinal":
            raise _Refused("template_digest_mismatch")
        made = self.draft(outpoint, terms.price, terms.receive, _key(item, "seller_public_key"))
        asked = item.get("escrow_price_sats", terms.price)
        if made.digest != digest or asked != terms.price:
            raise _Refused("template_digest_mismatch")
        transfer, sale = (text(item.get(name), name, _MAX_PSBT_TEXT) for name in ("psbt", "sale_psbt"))
        late = self.fault.delay_seconds if self.fault and self.mode == "late" else 0
        visible_ms = self.engine.now_ms() + round(late * 1000) if late else 0
        try:
            list_protected(self.world.engine, made, transfer, sale, visible_ms=visible_ms)
        except Refusal:
            raise _Refused("invalid_seller_authorization") from None
        del self.world.protected[digest]
        return {**_about(made), "state": "listed"}


class ProtectedState(OrdinalsWalletHandler):
    """`GET /market/secure-listing/:outpoint`: the protected listing of an output; 404 when there is none."""

    operation: Operation = "item"

    def answer(self) -> Any:
        outpoint = self.path_args[0]
        coin = self.engine.chain.coins.get(outpoint)
        ask = self.engine.ask_on(outpoint, coin.address or "", VENUE) if coin else None
        if ask is None or not ask.papers:
            raise ApiError(404, "secure listing not found")
        about = {"version": 2, "state": "listed", "outpoint": outpoint, "protocol": "ordinal", "policy": POLICY}
        return {"secure_listing": about}


def _about(made: Draft) -> dict[str, Any]:
    return {
        "version": 4,
        "outpoint": made.coin.outpoint,
        "protocol": "ordinal",
        "policy": POLICY,
        "template_digest": made.digest,
        "passthrough_txid": made.transfer.txid().hex(),
        "escrow_value": made.held.value,
    }


def _outpoint(item: dict[str, Any]) -> str:
    found = text(item.get("outpoint"), "outpoint")
    if not _OUTPOINT.fullmatch(found):
        raise bad("outpoint must be txid:vout")
    return found


def _key(body: dict[str, Any], name: str = "seller_public_key") -> str:
    found = _KEY.fullmatch(text(body.get(name), name))
    if found is None:
        raise ApiError(400, "Invalid public key", "invalid_public_key")
    return found[1]


def _script(escrow: LeafOutput) -> str:
    return str(escrow.script.data.hex())
