"""ord.net's reads of a market: floors, listings, the inscriptions of a collection, sales."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from simulator.calls import Operation
from simulator.dialects.ordnet.base import OrdnetHandler, moment
from simulator.dialects.ordnet.fields import slug_filter
from simulator.holdings import Member, item_of, members
from simulator.orders import Market, Order
from simulator.ordnet.offers import VENUE, public_id
from simulator.scenes import Told
from simulator.wire import bad

MAX_SLUGS = 100
BTC = Decimal(10) ** 8


class Floors(OrdnetHandler):
    """`GET /collection-stats/floors?slugs=a,b`: unknown slugs are left out."""

    operation: Operation = "floors"

    def subject(self) -> str:
        return self.asked("slugs")

    def answer(self) -> Any:
        slugs = [slug.strip() for slug in self.query("slugs").split(",") if slug.strip()]
        if not slugs or len(slugs) > MAX_SLUGS:
            raise bad(f"slugs: 1 to {MAX_SLUGS} collection slugs")
        markets = (self.engine.market("ordinals", slug) for slug in dict.fromkeys(slugs))
        found = [market for market in markets if market is not None]
        return {"success": True, "data": self.staged("floors", [self._row(market) for market in found], found)}

    def _row(self, market: Market) -> dict[str, Any]:
        asks = market.best("ask", self.engine.now_ms(), VENUE)
        return {
            "slug": market.slug,
            "floor": asks[0].price if asks else None,
            "listedCount": len(asks),
            "ownerCount": len({member.owner for member in members(self.engine, market, VENUE)}),
            "oneDayChange": None,
            "sevenDayChange": None,
            "timestamp": moment(self.engine.now_ms()),
        }


class Listings(OrdnetHandler):
    """`GET /listings?collectionSlug|inscriptionId|sellerAddress&sort&limit&cursor`."""

    operation: Operation = "book"

    def subject(self) -> str:
        return self.asked("collectionSlug", "inscriptionId", "sellerAddress")

    def answer(self) -> Any:
        sort = self.get_query_argument("sort", "recent")
        if sort not in ("recent", "price"):
            raise bad("sort must be recent or price")
        slug = slug_filter(self.get_query_argument("collectionSlug", ""))
        inscription = self.get_query_argument("inscriptionId", "")
        seller = self.get_query_argument("sellerAddress", "")
        found = [
            (ask, market)
            for market in self._markets(slug)
            for ask in market.best("ask", self.engine.now_ms(), VENUE)
            if inscription in ("", ask.inscription) and seller in ("", ask.maker)
        ]
        keyed = sorted(([*_order_key(ask, sort), market.slug], ask, market) for ask, market in found)
        rows = [(ask, market) for _, ask, market in keyed]
        filters = f"listings {sort} {slug} {inscription} {seller}"
        shown, pagination = self.page(rows, [key for key, _, _ in keyed], 50, filters)
        told: Told = "own_listings" if seller else "listings"
        listings = self.staged(told, [self._row(*each) for each in shown], [ask for ask, _ in shown])
        return {"listings": listings, "pagination": pagination}

    def _markets(self, slug: str) -> list[Market]:
        if slug:
            found = self.engine.market("ordinals", slug)
            return [found] if found else []
        self.engine.expire()
        return [market for market in self.engine.markets.values() if market.kind == "ordinals"]

    def _row(self, ask: Order, market: Market) -> dict[str, Any]:
        holder = self.engine.wallets.holder_of(ask.inscription or "")
        item = holder[1] if holder else item_of(ask)
        return {
            "listingId": public_id(ask),
            "inscriptionId": item.id,
            "inscriptionNumber": str(item.number),
            "inscriptionName": item.name,
            "collection": collection_row(market),
            "sellerAddress": ask.maker,
            "priceSats": ask.price,
            "listedAt": moment(ask.placed_ms),
            "listingExpiresAt": moment(ask.expires_ms) if ask.expires_ms is not None else None,
        } | _location(self, item.id)


class Inscriptions(OrdnetHandler):
    """`GET /collection/:slug/inscriptions?sort&limit&cursor`: the known ones, with traits."""

    operation: Operation = "collection"

    def subject(self) -> str:
        return self.path_args[0][:200]

    def answer(self) -> Any:
        sort = self.get_query_argument("sort", "oldest")
        if sort not in ("oldest", "newest"):
            raise bad("sort must be oldest or newest")
        market = self.market()
        sign = 1 if sort == "oldest" else -1
        keyed = sorted(
            ((sign * member.item.number, member.item.id), member) for member in members(self.engine, market, VENUE)
        )
        keys = [list(key) for key, _ in keyed]
        shown, pagination = self.page([member for _, member in keyed], keys, 48, f"inscriptions {sort} {market.slug}")
        items = self.staged("traits", [self._row(member, market) for member in shown], shown)
        return {"items": items, "pagination": pagination}

    def _row(self, member: Member, market: Market) -> dict[str, Any]:
        item, ask = member.item, member.ask
        return {
            "id": item.id,
            "name": item.name,
            "collection": market.slug,
            "collectionHref": f"/collection/{market.slug}",
            "collections": [market.slug],
            "image": f"https://ord.net/content/{item.id}",
            "inscription": item.number,
            "inscriptionId": item.id,
            "listingId": public_id(ask) if ask else None,
            "listingState": "buyable" if ask else None,
            "priceSats": ask.price if ask else None,
            "price": ask.price / BTC if ask else None,
            "listedAt": moment(ask.placed_ms) if ask else None,
            "listingExpiresAt": moment(ask.expires_ms) if ask and ask.expires_ms is not None else None,
            "lastSale": None,
            "owner": member.owner,
            "contentType": "image",
            "rawContentType": "image/png",
            "imageRenderingHint": "auto",
            "cardBackgroundColor": None,
            "traits": [{"type": kind, "value": value} for kind, value in item.traits],
            "satributes": [],
        } | _location(self, item.id)


def _order_key(ask: Order, sort: str) -> list[Any]:
    newest = [-ask.placed_ms, -ask.sequence]
    return [ask.price, ask.placed_ms, ask.sequence] if sort == "price" else newest


def collection_row(market: Market) -> dict[str, Any]:
    """Returns the row's fields that name its collection."""
    return {"slug": market.slug, "name": market.name, "kind": "parent_child", "verificationStatus": "verified"}


def _location(handler: OrdnetHandler, inscription: str) -> dict[str, Any]:
    """Returns an inscription's place; scripts' listings have none."""
    coin = handler.engine.chain.coin_of(inscription)
    txid, vout = coin.outpoint.split(":") if coin else (None, None)
    return {
        "sat": None,
        "locationTxid": txid,
        "locationVout": int(vout) if vout is not None else None,
        "locationSatpoint": f"{coin.outpoint}:0" if coin else None,
    }
