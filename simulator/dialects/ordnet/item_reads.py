"""ord.net's reads of offers for one inscription: its own, and those a wallet sent or received."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.dialects.ordnet.base import OrdnetHandler, moment
from simulator.holdings import item_of
from simulator.orders import Order
from simulator.ordnet.item_offers import FEE_BPS, fee
from simulator.ordnet.offers import VENUE
from simulator.wire import ApiError, bad

_FEES = [(side, kind) for kind in ("MarketplaceFee", "CreatorRoyalty") for side in ("seller", "buyer")]


class ItemOffers(OrdnetHandler):
    """`GET /inscriptions/:id/offers`: the open offers for an inscription, highest first."""

    operation: Operation = "book"

    def subject(self) -> str:
        return self.path_args[0][:200]

    def answer(self) -> Any:
        inscription = self.path_args[0]
        coin, ask = self.engine.chain.coin_of(inscription), self.engine.listing_of(inscription, VENUE)
        holder = self.engine.wallets.holder_of(inscription)
        if holder is None and ask is None:
            raise ApiError(404, "Inscription not found")
        owner = holder[0] if holder else ask.maker if ask else ""
        bids = sorted(self.engine.bids_on(inscription, VENUE), key=Order.rank)
        top = bids[0].price if bids else None
        postage = coin.value if coin else 546
        return {
            "inscriptionId": inscription,
            "ownerAddress": owner,
            "topOfferSats": top,
            "liveOfferCount": len(bids),
            "expiringSoonCount": 0,
            "offers": [_offer(bid, owner, top, postage) for bid in bids],
        }


class OwnItemOffers(OrdnetHandler):
    """`GET /me/offers?view=owned|sent`: offers for single inscriptions, received or sent; not collection offers."""

    operation: Operation = "own_bids"

    def subject(self) -> str:
        return self.own_address()

    def answer(self) -> Any:
        view = self.get_query_argument("view", "owned")
        sent = [bid for bid in self.engine.bids_of(self.session.payment, venue=VENUE) if bid.inscription is not None]
        held = self.engine.wallets.inscriptions.get(self.session.ordinals, {})
        received = {each: bids for each in held if (bids := self.engine.bids_on(each, VENUE))}
        told: dict[str, Any] = {"view": view}
        if view == "sent":
            told |= {"rows": [self._row(bid, "sent") for bid in sent]}
        elif view == "owned":
            told |= {"groups": [self._group(each, bids) for each, bids in received.items()]}
        elif view == "history":
            raise ApiError(501, "view=history is not implemented by the practice market")
        else:
            raise bad("view must be owned, sent or history")
        counts = {"actionableCount": len(received), "ownedCount": len(received), "sentCount": len(sent)}
        return told | counts | {"hasMore": False, "nextCursor": None}

    def _named(self, inscription: str) -> dict[str, Any]:
        holder, ask = self.engine.wallets.holder_of(inscription), self.engine.ask_of(inscription)
        item = holder[1] if holder else item_of(ask) if ask else None
        market = self.engine.market("ordinals", item.collection) if item else None
        return {
            "inscriptionId": inscription,
            "inscriptionNumber": str(item.number if item else 0),
            "inscriptionTitle": item.name if item else None,
            "collectionName": market.name if market else None,
        }

    def _row(self, bid: Order, side: str) -> dict[str, Any]:
        return self._named(bid.inscription or "") | self._sides(bid, side)

    def _sides(self, bid: Order, side: str) -> dict[str, Any]:
        holder, ask = self.engine.wallets.holder_of(bid.inscription or ""), self.engine.ask_of(bid.inscription or "")
        return {
            "id": bid.order_id,
            "kind": "buyer_offer",
            "status": "active",
            "side": side,
            "actionKind": "seller_received_buyer_offer" if side == "received" else None,
            "buyerAddress": bid.maker,
            "sellerAddress": holder[0] if holder else ask.maker if ask else "",
            "priceSats": bid.price,
            "createdAt": moment(bid.placed_ms),
            "expiresAt": moment(bid.expires_ms or bid.placed_ms),
        }

    def _group(self, inscription: str, bids: list[Order]) -> dict[str, Any]:
        return self._named(inscription) | {
            "ownerAddress": self.session.ordinals,
            "actionBindingId": self.session.binding_id,
            "topOfferSats": max(bid.price for bid in bids),
            "activeOfferCount": len(bids),
            "activeCounterCount": 0,
            "earliestExpiresAt": moment(min(bid.expires_ms or bid.placed_ms for bid in bids)),
            "offers": [self._sides(bid, "received") for bid in bids],
            "sentCounters": [],
        }


def _offer(bid: Order, owner: str, top: int | None, postage: int) -> dict[str, Any]:
    cut = fee(bid.price)
    bps = {f"{side}{kind}Bps": FEE_BPS if kind == "MarketplaceFee" else 0 for side, kind in _FEES}
    sats = {f"{side}{kind}Sats": cut if kind == "MarketplaceFee" else 0 for side, kind in _FEES}
    return {
        "id": bid.order_id,
        "parentOfferId": None,
        "kind": "buyer_offer",
        "status": "active",
        "inscriptionId": bid.inscription,
        "buyerAddress": bid.maker,
        "sellerAddress": owner,
        "createdAt": moment(bid.placed_ms),
        "expiresAt": moment(bid.expires_ms or bid.placed_ms),
        "acceptedAt": None,
        "rejectedAt": None,
        "cancelledAt": None,
        "floorSats": None,
        "topOfferSats": top,
        "settlementTxid": None,
        "priceSats": bid.price,
        "inscriptionUtxoValueSats": postage,
        **bps,
        **sats,
        "sellerReceiveSats": bid.price - cut,
        "buyerPayTotalSats": bid.price + cut,
        "marketplaceRevenueSats": 2 * cut,
        "creatorRevenueSats": 0,
    }
