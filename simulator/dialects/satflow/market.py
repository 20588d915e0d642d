"""Satflow's reads of a market: floors, collections, items."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simulator.calls import Operation
from simulator.dialects.satflow.base import VENUE, SatflowHandler, attributes
from simulator.orders import Kind, Market, Order, Trait
from simulator.pictures import media_of
from simulator.wallets import name_of
from simulator.wire import ApiError, bad, iso

MAX_SLUGS = 200
# The days of each span of volumes.
SPANS = {"1d": 1, "7d": 7, "30d": 30}
DAY_MS = 86_400_000


def _not_found(what: str) -> ApiError:
    return ApiError(404, f"{what} not found", "NOT_FOUND")


class CollectionStats(SatflowHandler):
    """`GET /collection-stats?collectionId=`: floor and count of one collection or rune."""

    operation: Operation = "floors"

    def subject(self) -> str:
        return self.asked("collectionId")

    def data(self) -> dict[str, Any]:
        market = self.engine.find(self.query("collectionId"))
        if market is None:
            raise _not_found("Collection")
        listed = sum(ask.at(VENUE) for ask in market.asks.values())
        row: dict[str, Any] = {"floor": self.engine.floor(market, VENUE) or 0, "listedCount": listed}
        for span, days in SPANS.items():
            sales = self.engine.sales.of(market.key, self.engine.now_ms() - days * DAY_MS)
            volume = sum(sale.price for sale in sales)
            row |= {f"volume{span}": volume, f"volume{span}Change": 0, f"volume{span}ChangePercent": "0"}
        return row | {"metadata": _metadata(market, self._held(market), with_traits=True)}

    def _held(self, market: Market) -> list[tuple[Trait, ...]]:
        return _held_traits(self, market)


class Floors(SatflowHandler):
    """`GET /collection-stats/floors?type=&slugs=a,b`: many floors at once; unknown slugs are left out."""

    operation: Operation = "floors"

    def subject(self) -> str:
        return self.asked("slugs")

    def data(self) -> Any:
        rows = self._rows()
        return {"results": rows} if self.is_as_seen else rows

    def _rows(self) -> list[dict[str, Any]]:
        kind = _kind(self.query("type"))
        slugs = [slug.strip() for slug in self.query("slugs").split(",")]
        if len(slugs) > MAX_SLUGS:
            raise bad(f"slugs: at most {MAX_SLUGS} at once")
        markets = (self.engine.market(kind, slug) for slug in dict.fromkeys(slugs) if slug)
        taken = iso(self.engine.now_ms())
        found = [market for market in markets if market is not None]
        return list(self.staged("floors", [self._row(market, taken) for market in found], found))

    def _row(self, market: Market, taken: str) -> dict[str, Any]:
        makers = [ask.maker for ask in market.asks.values() if ask.at(VENUE)]
        return {
            "slug": market.slug,
            "floor": self.engine.floor(market, VENUE) or 0,
            "listedCount": len(makers),
            "ownerCount": len(set(makers)),
            "oneDayChange": 0.0,
            "sevenDayChange": 0.0,
            "timestamp": taken,
        }


class Collection(SatflowHandler):
    """`GET /collection?collection_id=&categoryAttributes=`: name, size and trait catalogue."""

    operation: Operation = "collection"

    def subject(self) -> str:
        return self.asked("collection_id")

    def data(self) -> dict[str, Any]:
        market = self.engine.market("ordinals", self.query("collection_id"))
        if market is None:
            raise _not_found("Collection")
        with_traits = self.get_query_argument("categoryAttributes", "") == "true"
        row = _metadata(market, _held_traits(self, market), with_traits=with_traits)
        if with_traits:
            row["category_attributes"] = self.staged("traits", row["category_attributes"], row["category_attributes"])
        return {"collection": [row]}


class Item(SatflowHandler):
    """`GET /item?inscriptionId=`: one inscription, listed or held in a play wallet."""

    operation: Operation = "item"

    def subject(self) -> str:
        return self.asked("inscriptionId", "inscriptionNumber")

    def data(self) -> dict[str, Any]:
        if self.get_query_argument("inscriptionNumber", ""):
            raise ApiError(501, "looking up by inscriptionNumber is not implemented here", "NOT_IMPLEMENTED")
        inscription = self.query("inscriptionId")
        held, ask = self.engine.wallets.holder_of(inscription), self.engine.listing_of(inscription, VENUE)
        if held is None and ask is None:
            raise _not_found("Item")
        owner = held[0] if held else ask.maker if ask else None
        slug = held[1].collection if held else ask.slug if ask else ""
        traits = held[1].traits if held else ask.traits if ask else ()
        market = self.engine.market("ordinals", slug)
        bids = [bid for bid in self._bids(market) if bid.trait is None or bid.trait in traits]
        top = bids[0] if bids else None
        genesis = inscription.split("i")[0]
        coin = self.engine.chain.coin_of(inscription)
        output, value = (coin.outpoint, coin.value) if coin else (f"{genesis}:0", 546)
        name = held[1].name if held else name_of(slug, inscription)
        return {
            "id": inscription,
            "inscriptionNumber": held[1].number if held else 0,
            "contentType": media_of(inscription),
            "contentURI": f"/content/{inscription}",
            "contentPreviewURI": f"/preview/{inscription}",
            "genesisTransaction": genesis,
            "owner": owner,
            "location": f"{output}:0",
            "output": output,
            "outputValue": value,
            "listed": ask is not None,
            "listing": {"price": ask.price, "sellerAddress": ask.maker} if ask else None,
            "hasBid": top is not None,
            "topBid": {"price": top.price, "bidderAddress": top.maker} if top else None,
            "bids": [],
            "metadata": {
                "token": {
                    "name": name,
                    "inscription_id": inscription,
                    "attributes": attributes(traits),
                },
                "collection": {"id": slug, "name": market.name if market else slug},
            },
        }

    def _bids(self, market: Market | None) -> list[Order]:
        return market.best("bid", self.engine.now_ms(), VENUE) if market else []


def _kind(text: str) -> Kind:
    if text == "ordinals":
        return "ordinals"
    if text == "runes":
        return "runes"
    raise bad("type must be ordinals or runes")


def _held_traits(handler: SatflowHandler, market: Market) -> list[tuple[Trait, ...]]:
    held = handler.engine.wallets.inscriptions.values()
    listed = {ask.inscription for ask in market.asks.values()}
    return [
        item.traits
        for items in held
        for item in items.values()
        if item.collection == market.slug and item.id not in listed
    ]


def _metadata(market: Market, held: list[tuple[Trait, ...]], *, with_traits: bool) -> dict[str, Any]:
    # An inscription listed at several venues still counts once.
    listed = {ask.inscription or ask.order_id: ask.traits for ask in market.asks.values()}
    every = [*listed.values(), *held]
    row: dict[str, Any] = {
        "id": market.slug,
        "name": market.name,
        "total_items": len(every),
        "royalties": [],
        "creator_fees_enabled": False,
        "creator_tips_address": None,
    }
    if with_traits:
        counted = Counter(trait for traits in every for trait in traits)
        keys = sorted({key for key, _ in counted})
        row["category_attributes"] = [
            {"key": key, "values": [{"value": v, "count": n} for (k, v), n in sorted(counted.items()) if k == key]}
            for key in keys
        ]
    return row
