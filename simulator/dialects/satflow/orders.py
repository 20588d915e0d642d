"""Satflow's writes: placing a bid by a signed message, cancelling by a signed challenge."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from simulator.bitcoin.chain import belongs_to
from simulator.calls import Operation
from simulator.dialects.satflow.base import VENUE, SatflowHandler, peek, sign_in_address
from simulator.orders import BidTerms, Kind, Market, Refusal, Side, Trait
from simulator.wire import MAX_WHOLE, ApiError, amount, bad, items, text, whole
from wallet.bip322 import verify_ownership

# The limits of a signed bid's timestamp: its age, and how far it may be ahead of our clock.
MAX_AGE_MS = 5 * 60 * 1000
MAX_AHEAD_MS = 60 * 1000
MAX_IDS = 1_000
MAX_ATTRIBUTES = 50
FEE_TIERS = frozenset({"fastestFee", "halfHourFee", "hourFee", "minimumFee"})
_ORDER_ID = re.compile(r"[0-9a-f]{24}")


@dataclass(frozen=True, slots=True)
class _Signed:
    """A bid with the data that its signature's check needs."""

    kind: Kind
    terms: BidTerms
    public_key: str
    timestamp_ms: int


class PlaceBid(SatflowHandler):
    """`POST /bid/place` for collection, trait and rune bids; the answer has no id, as documented."""

    operation: Operation = "place"
    method = "POST"

    def subject(self) -> str:
        return peek(self.request.body, "collectionSlug")

    def data(self) -> dict[str, Any]:
        body = self.body()
        bid = _signed(body)
        traits = _traits(body)
        engine = self.world.engine
        market = engine.market(bid.kind, bid.terms.slug)
        try:
            self._check(bid, market)
        except ApiError as error:
            engine.refuse(bid.kind, bid.terms, error.text)
            raise
        assert market is not None
        visible_ms = 0
        if self.fault and self.mode == "late":
            visible_ms = engine.now_ms() + round(self.fault.delay_seconds * 1000)
        for trait in traits * (2 if self.mode == "accept_twice" else 1):
            try:
                engine.place_bid(market, replace(bid.terms, trait=trait), visible_ms)
            except Refusal as refusal:
                raise bad(str(refusal)) from None
        return {"message": "Bid placed successfully"}

    def _check(self, bid: _Signed, market: Market | None) -> None:
        terms, now = bid.terms, self.world.engine.now_ms()
        if not belongs_to(bid.public_key, terms.maker):
            raise bad("bidderAddressPublicKey is not the key of bidderAddress")
        if not now - MAX_AGE_MS <= bid.timestamp_ms <= now + MAX_AHEAD_MS:
            raise bad("timestamp is not fresh")
        if not verify_ownership(terms.maker, terms.message, terms.signature):
            raise bad("signedBiddingMessage does not match the bid")
        if market is None:
            raise ApiError(404, "Collection not found", "NOT_FOUND")


def _signed(body: dict[str, Any]) -> _Signed:
    """Reads a bid; every number must be plain, since its text is part of the signed message."""
    if "inscriptionId" in body or "signedBiddingPSBT" in body:
        raise ApiError(501, "bids on one inscription are not implemented here", "NOT_IMPLEMENTED")
    if "bidChallengeId" in body and "timestamp" not in body:
        raise bad("bidChallengeId is not taken here: send timestamp")
    kind: Kind = _meta_type(body.get("metaType"))
    _fee_rate(body.get("feeRate", "fastestFee"))
    slug = text(body.get("collectionSlug"), "collectionSlug")
    if ":" in slug:
        raise bad("collectionSlug must not contain a colon")
    price = whole(body.get("price"), "price", 1)
    quantity, quantity_text = _quantity(body.get("quantity"), kind)
    expires_ms = whole(body.get("bidExpiry"), "bidExpiry", 1, MAX_WHOLE)
    timestamp_ms = whole(body.get("timestamp"), "timestamp", 1, MAX_WHOLE)
    maker = sign_in_address(body.get("bidderAddress"), "bidderAddress")
    receive = sign_in_address(body.get("bidderTokenReceiveAddress"), "bidderTokenReceiveAddress")
    public_key = text(body.get("bidderAddressPublicKey"), "bidderAddressPublicKey")
    # The parts as they were sent: another spelling of the same address is another text.
    parts = (
        body["bidderAddress"],
        public_key,
        body["bidderTokenReceiveAddress"],
        price,
        quantity_text,
        expires_ms,
        slug,
        timestamp_ms,
    )
    terms = BidTerms(
        slug=slug,
        maker=maker,
        receive=receive,
        price=price,
        quantity=quantity,
        expires_ms=expires_ms,
        message=":".join(map(str, parts)),
        signature=text(body.get("signedBiddingMessage"), "signedBiddingMessage", 1000),
    )
    return _Signed(kind, terms, public_key, timestamp_ms)


def _meta_type(value: Any) -> Kind:
    if value == "ordinals":
        return "ordinals"
    if value == "runes":
        return "runes"
    raise bad("metaType must be ordinals or runes")


def _quantity(value: Any, kind: Kind) -> tuple[Decimal, str]:
    """Reads the quantity, and its text in the signed message: a rune's may have decimals, as number or as text."""
    if kind == "runes" and isinstance(value, (str, Decimal)):
        # The digits as they were sent; a number with an exponent has none that could be signed.
        return amount(str(value), "quantity"), str(value)
    found = whole(value, "quantity", 1)
    return Decimal(found), str(found)


def _fee_rate(value: Any) -> None:
    if isinstance(value, str) and value in FEE_TIERS:
        return
    if isinstance(value, str) or amount(value, "feeRate") < 1:
        raise bad(f"feeRate must be one of {', '.join(sorted(FEE_TIERS))} or a number of sat/vB, at least 1")


def _traits(body: dict[str, Any]) -> list[Trait | None]:
    """Reads the trait of each order that the bid makes; [None] for a plain one."""
    if body.get("attributes") is not None:
        rows = items(body["attributes"], "attributes", MAX_ATTRIBUTES)
        if rows:
            return [_trait(row, f"attributes[{at}]") for at, row in enumerate(rows)]
    if body.get("attribute") is None:
        return [None]
    if not isinstance(body["attribute"], dict):
        raise bad("attribute must be an object")
    return [_trait(body["attribute"], "attribute")]


def _trait(row: dict[str, Any], name: str) -> Trait:
    return text(row.get("trait_type"), f"{name}.trait_type"), text(row.get("value"), f"{name}.value")


class Cancel(SatflowHandler):
    """`POST /cancel`: takes out bids or listings of the signer of a challenge."""

    operation: Operation = "cancel"
    method = "POST"

    def subject(self) -> str:
        return peek(self.request.body, "makerAddress")

    def data(self) -> dict[str, Any]:
        body = self.body()
        maker = sign_in_address(body.get("makerAddress"), "makerAddress")
        if body.get("orderType") not in ("bid", "ask"):
            raise bad("orderType must be bid or ask")
        side: Side = "bid" if body["orderType"] == "bid" else "ask"
        ids, many = self._asked(body, maker) if side == "ask" else _order_ids(body)
        signature = text(body.get("signature"), "signature", 1000)
        if not self.world.challenges.answered(maker, signature):
            raise ApiError(403, "invalid signature", "FORBIDDEN")
        # Of several cancels every other one is a lie: one tells nothing about the next.
        lies = set(ids[::2]) if self.mode == "cancel_lie" else set()
        done = [
            {"id": order_id, "success": self._cancel(order_id, maker, side, is_lie=order_id in lies)}
            for order_id in ids
        ]
        failed = sum(not row["success"] for row in done)
        return {
            "success": failed == 0,
            "summary": done if many else done[0],
            "successCount": len(done) - failed,
            "failedCount": failed,
        }

    def _asked(self, body: dict[str, Any], maker: str) -> tuple[list[str], bool]:
        """Reads the ids to cancel; listings may be named by `inscriptionId`, `output` or `runesOutput`, too."""
        if body.get("_id") is not None or body.get("_ids") is not None:
            return _order_ids(body)
        if body.get("inscriptionId") is not None:
            wanted = text(body["inscriptionId"], "inscriptionId")
            ask = self.world.engine.ask_of(wanted, VENUE)
        elif (output := body.get("output", body.get("runesOutput"))) is not None:
            wanted = text(output, "output")
            ask = self.world.engine.ask_on(wanted, maker, VENUE)
        else:
            raise bad("_id, _ids, inscriptionId, output or runesOutput is required")
        return [ask.order_id if ask else wanted], False

    def _cancel(self, order_id: str, maker: str, side: Side, *, is_lie: bool) -> bool:
        engine = self.world.engine
        order = engine.order(order_id)
        if order is None or order.maker != maker or order.side != side or not order.at(VENUE):
            return False
        if self.fault and self.mode == "late":
            end_ms = engine.now_ms() + round(self.fault.delay_seconds * 1000)
            engine.cancel_at(order, end_ms)
        elif not is_lie:
            engine.cancel(order)
        return True


def _order_ids(body: dict[str, Any]) -> tuple[list[str], bool]:
    """Reads the ids to cancel, and whether the answer's summary is a list."""
    many = body.get("multiple", False)
    if not isinstance(many, bool):
        raise bad("multiple must be true or false")
    found = body["_ids"] if body.get("_ids") is not None else [body.get("_id")]
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_IDS:
        raise bad(f"_id, or _ids with 1 to {MAX_IDS} ids, is required")
    if not all(isinstance(each, str) and _ORDER_ID.fullmatch(each) for each in found):
        raise bad("an order id has 24 hex digits")
    if len(found) > 1 and not many:
        raise bad("several _ids need multiple: true")
    return list(dict.fromkeys(found)), many
