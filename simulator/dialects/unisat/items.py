"""UniSat's reads of an address and of single inscriptions."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simulator.calls import Operation
from simulator.dialects.unisat.base import VENUE, UnisatHandler, refused
from simulator.dialects.unisat.seen import Traits
from simulator.orders import Order
from simulator.pictures import media_of
from simulator.scenes import Made
from simulator.wallets import Item, name_of
from simulator.wire import bad, text

NOT_FOUND = -109
MAX_IDS = 100


class CollectionSummary(UnisatHandler):
    """`POST .../collection_summary`: the number of inscriptions of each collection at an address."""

    operation: Operation = "wallet"
    about = ("address",)

    def data(self) -> dict[str, Any]:
        body = self.body()
        counted = Counter(item.collection for item in held_by(self, body))
        first = body.get("firstCollectionId")
        slugs = sorted(counted, key=lambda slug: (slug != first, slug))
        return {
            "list": [
                {
                    "collectionId": slug,
                    "icon": "",
                    "iconContentType": "",
                    "name": collection_name(self, slug),
                    "total": counted[slug],
                }
                for slug in slugs
            ]
        }


class CollectionInscriptions(UnisatHandler):
    """`POST .../collection_inscriptions`: an address's inscriptions of one collection, in pages."""

    operation: Operation = "wallet"
    about = ("address",)

    def data(self) -> dict[str, Any]:
        body = self.body()
        slug = text(body.get("collectionId"), "collectionId").lower()
        found = [item for item in held_by(self, body) if item.collection == slug]
        rows = self.staged("wallet", Made(self._row, found), found)
        return {"list": self.page(body, rows), "total": len(rows)}

    def _row(self, item: Item) -> dict[str, Any]:
        return {
            "collectionId": item.collection,
            "collectionName": collection_name(self, item.collection),
            "collectionItemName": item.name,
            "collectionHighResImgUrl": "",
            "inscriptionId": item.id,
            "inscriptionNumber": item.number,
            "contentType": media_of(item.id),
            "listed": self.engine.listing_of(item.id, VENUE) is not None,
        }


class InscriptionInfo(UnisatHandler):
    """`POST .../inscription_info`: one inscription and its listing; the fields of `utxo` are not documented."""

    operation: Operation = "item"
    about = ("inscriptionId",)

    def data(self) -> dict[str, Any]:
        wanted = text(self.body().get("inscriptionId"), "inscriptionId")
        held, ask = self.engine.wallets.holder_of(wanted), self.engine.listing_of(wanted, VENUE)
        if held is None and ask is None:
            raise refused(NOT_FOUND, "Inscription not found, please try again later")
        slug = held[1].collection if held else ask.slug if ask else ""
        row = self._row(wanted, held, ask, slug)
        return row | self._as_seen(wanted, held, ask, slug) if self.shows("unisat_holder_in_utxo") else row

    def _as_seen(self, wanted: str, held: tuple[str, Item] | None, ask: Order | None, slug: str) -> dict[str, Any]:
        """Returns the fields that were recorded otherwise: without a listing the holder is in `utxo` alone."""
        market = self.engine.market("ordinals", slug)
        found: dict[str, Any] = {"notOnSale": ask is None, "marketType": "fixedPrice"}
        found["attrs"] = Traits(self.engine, market).of(wanted) if market else []
        if held is not None:
            found["utxo"] = {"address": held[0], "satoshi": 546, "isSpent": False}
        return found if ask else found | {"address": None}

    def _row(self, wanted: str, held: tuple[str, Item] | None, ask: Order | None, slug: str) -> dict[str, Any]:
        return {
            **market_row(wanted, held, ask),
            "unitPrice": ask.price if ask else None,
            "verification": False,
            "collectionId": slug,
            "collectionName": collection_name(self, slug),
            "collectionItemName": held[1].name if held else name_of(slug, wanted),
            "collectionHighResImgUrl": "",
            "contentType": media_of(wanted),
            "contentBody": "",
            "notOnSale": False,
            "utxo": {},
        }


class InscriptionInfoList(UnisatHandler):
    """`POST .../inscription_info_list`: the named inscriptions that are known, or all of an address."""

    operation: Operation = "item"
    about = ("address",)

    def data(self) -> dict[str, Any]:
        body = self.body()
        ids = body.get("inscriptionIds")
        if ids is None:
            ids = [item.id for item in held_by(self, body)]
        if not isinstance(ids, list) or len(ids) > MAX_IDS or not all(isinstance(each, str) for each in ids):
            raise bad(f"inscriptionIds must be a list of at most {MAX_IDS} ids")
        rows = []
        for wanted in ids:
            held, ask = self.engine.wallets.holder_of(wanted), self.engine.listing_of(wanted, VENUE)
            if held or ask:
                rows.append(market_row(wanted, held, ask) | {"status": "listed" if ask else None})
        return {"list": rows}


def held_by(handler: UnisatHandler, body: dict[str, Any]) -> list[Item]:
    """Returns the items of the body's address."""
    address = text(body.get("address"), "address")
    return list(handler.engine.wallets.inscriptions.get(address, {}).values())


def collection_name(handler: UnisatHandler, slug: str) -> str:
    market = handler.engine.market("ordinals", slug)
    return market.name if market else slug


def market_row(inscription: str, held: tuple[str, Item] | None, ask: Order | None) -> dict[str, Any]:
    """Returns an inscription with its listing, whose fields are null without one."""
    return {
        "auctionId": ask.order_id if ask else None,
        "inscriptionId": inscription,
        "inscriptionNumber": held[1].number if held else 0,
        "marketType": "fixedPrice" if ask else None,
        "address": held[0] if held else ask.maker if ask else None,
        "price": ask.price if ask else None,
        "nftType": "collection",
    }
