"""ord.net's collection offers: previews, reads, cancels."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.ordnet.base import Bucket, OrdnetHandler, moment
from simulator.dialects.ordnet.fields import utxos
from simulator.holdings import members
from simulator.orders import Market, Order
from simulator.ordnet.offers import DEFAULT_HOURS, HOUR_MS, MAX_COUNT, VENUE, public_id, replaced
from simulator.ordnet.sessions import Session
from simulator.ordnet.targets import eligible, of_order, target_of
from simulator.scenes import Told
from simulator.wire import MAX_SATS, ApiError, whole


class TargetPreview(OrdnetHandler):
    """`POST …/collection-offers/target-preview {target}`: the number of inscriptions that an offer would be for."""

    operation: Operation = "book"
    method = "POST"

    def subject(self) -> str:
        return self.path_args[0][:200]

    def answer(self) -> Any:
        target = target_of(self.body().get("target"))
        found = members(self.engine, self.market(), VENUE)
        taken = eligible(found, target)
        sample = taken[0].item.id if taken else None
        return {
            "target": target.as_json(),
            "eligibleCount": len(taken),
            "floorSats": min((member.ask.price for member in taken if member.ask), default=None),
            "collectionFloorSats": min((member.ask.price for member in found if member.ask), default=None),
            "sampleInscription": sample
            and {
                "inscriptionId": sample,
                "image": f"https://ord.net/content/{sample}",
                "previewContentType": "image/png",
            },
        }


class ReplacementWarning(OrdnetHandler):
    """`POST …/collection-offers/replacement-warning`: the number of own offers that new ones would replace."""

    operation: Operation = "balance"
    method = "POST"

    def subject(self) -> str:
        return self.own_address()

    def answer(self) -> Any:
        body = self.body()
        session, market, target = self.bound(body), self.market(), target_of(body.get("target"))
        prices(body)
        named = {outpoint for outpoint, _ in utxos(body.get("spendableUtxos"), "spendableUtxos")}
        return {
            "replacementWarning": {
                "activeOfferCount": len(replaced(self.engine, market, session.payment, target, named))
            }
        }


class OfferCancel(OrdnetHandler):
    """`POST …/collection-offers/:offerId/cancel {walletBindingId}`: without a signature."""

    operation: Operation = "cancel"
    bucket: Bucket = "write"
    method = "POST"

    def subject(self) -> str:
        return self.own_address()

    def answer(self) -> Any:
        session = self.bound(self.body())
        self.market()
        return self.cancelled(self.path_args[1], session)

    def cancelled(self, offer_id: str, session: Session) -> dict[str, str]:
        """Takes an own offer out of the book. Raises ApiError: 404 when unknown, 409 when over, 403 when another's."""
        engine = self.world.engine
        order = engine.order(offer_id)
        if order is None or order.side != "bid" or order.venue != VENUE:
            raise ApiError(409, "Offer is no longer active") if offer_id in self.desk.taken else _no_offer()
        if order.maker != session.payment or self.path_args[0].lower() not in (order.slug, order.inscription):
            raise ApiError(403, "Offer is not yours")
        if self.mode == "late" and self.fault:
            engine.cancel_at(order, self.visible_ms())
        elif self.mode != "cancel_lie":
            engine.cancel(order)
        return {"offerId": offer_id, "status": "cancelled"}


class Offers(OrdnetHandler):
    """`GET …/collection-offers`: the open collection and trait offers, highest first."""

    operation: Operation = "book"
    told: Told = "bids"

    def subject(self) -> str:
        return self.path_args[0][:200]

    def found(self, market: Market) -> list[Order]:
        return market.best("bid", self.engine.now_ms(), VENUE)

    def answer(self) -> Any:
        market = self.market()
        bids = self.found(market)
        known = members(self.engine, market, VENUE)
        rows = [self.row(bid, len(eligible(known, of_order(bid)))) for bid in bids]
        return {
            "rows": self.staged(self.told, rows, bids),
            "totalCount": len(bids),
            "collectionOfferCount": sum(not bid.traits for bid in bids),
            "traitOfferCount": sum(bool(bid.traits) for bid in bids),
        }

    def row(self, bid: Order, count: int) -> dict[str, Any]:
        target = of_order(bid)
        # Bids of scripts and traders may have no end: told as a week after their start.
        end_ms = bid.expires_ms if bid.expires_ms is not None else bid.placed_ms + DEFAULT_HOURS * HOUR_MS
        return {
            "id": public_id(bid),
            "target": target.as_json(),
            "scopeLabel": target.label,
            "priceSats": int(bid.unit_price),
            "eligibleCount": count,
            "makerAddress": bid.maker,
            "expiresAt": moment(end_ms),
            "createdAt": moment(bid.placed_ms),
            "totalSats": bid.price,
            "status": "active",
            "sampleInscription": None,
        }


class SentOffers(Offers):
    """`GET /collection/:slug/my/sent-collection-offers`: the caller's own."""

    operation: Operation = "own_bids"
    told: Told = "own_bids"

    def subject(self) -> str:
        return self.own_address()

    def found(self, market: Market) -> list[Order]:
        own = self.engine.bids_of(self.session.payment, venue=VENUE)
        return [bid for bid in own if bid.slug == market.slug and bid.inscription is None]

    def row(self, bid: Order, count: int) -> dict[str, Any]:
        return super().row(bid, count) | {"actionBindingId": self.session.binding_id}


def prices(body: dict[str, Any]) -> tuple[int, int, int]:
    """Reads price, count and ladder step of offers. Raises ApiError(400)."""
    return (
        whole(body.get("priceSats"), "priceSats", 1, MAX_SATS),
        whole(body.get("offerCount", 1), "offerCount", 1, MAX_COUNT),
        whole(body.get("ladderStepSats", 0), "ladderStepSats", 0, MAX_SATS),
    )


def _no_offer() -> ApiError:
    return ApiError(404, "Offer not found")
