"""Ordinals Wallet's reads of one inscription: details, place, listing."""

from __future__ import annotations

import re
from typing import Any

from simulator.bitcoin.chain import LEAST_POSTAGE, Coin
from simulator.calls import Operation
from simulator.dialects.ordinalswallet.base import (
    CREATORS_PART,
    VENUE,
    OrdinalsWalletHandler,
    not_found,
    outpoint_of,
    serialized,
)
from simulator.holdings import item_of
from simulator.orders import Market, Order, Trait
from simulator.pictures import media_of
from simulator.wallets import Item
from simulator.wire import ApiError

_INSCRIPTION = re.compile(r"[0-9a-f]{64}i\d{1,9}")


class InscriptionHandler(OrdinalsWalletHandler):
    """A route about one inscription."""

    operation: Operation = "item"

    def found(self) -> tuple[str, Item, Coin]:
        """Returns holder, details and place of the path's inscription. Raises ApiError.

        Of a stranger's only the listing is known: it lies nowhere on the play chain.
        """
        wanted = self.path_args[0]
        if not _INSCRIPTION.fullmatch(wanted):
            raise ApiError(400, "Invalid inscription id", "invalid_inscription_id")
        held, coin = self.engine.wallets.holder_of(wanted), self.engine.chain.coin_of(wanted)
        if held is not None and coin is not None:
            return *held, coin
        ask = self.engine.listing_of(wanted, VENUE)
        if ask is None:
            raise not_found()
        return ask.maker, item_of(ask), coin or Coin(outpoint_of(ask), LEAST_POSTAGE, "")


class Inscription(InscriptionHandler):
    """`GET /inscription/:id`."""

    def answer(self) -> Any:
        owner, item, coin = self.found()
        ask, market = self.engine.listing_of(item.id, VENUE), self.engine.market("ordinals", item.collection)
        collection = collection_of(item, market)
        return {
            "id": item.id,
            "num": item.number,
            "content_length": 1024,
            "content_type": media_of(item.id),
            "effective_content_type": media_of(item.id),
            "delegate": None,
            "created": 1_700_000_000,
            "genesis_height": 820_000,
            "genesis_fee": 0,
            "sat": None,
            "address": owner,
            "value": coin.value,
            "satpoint": f"{coin.outpoint}:0",
            "charms": [],
            "parents": [],
            "properties": {"gallery": [], "attributes": {"title": None, "traits": {}}},
            "meta": meta(item.name, item.traits),
            "collection": collection,
            "collections": [collection],
            "escrow": escrow(ask, self.shown(ask)) if ask else None,
        }


class InscriptionOutpoint(InscriptionHandler):
    """`GET /inscription/:id/outpoint`: its present place and owner."""

    def answer(self) -> Any:
        owner, item, coin = self.found()
        ask = self.engine.listing_of(item.id, VENUE)
        return {
            "inscription": {
                "id": item.id,
                "sat_offset": 0,
                "outpoint": serialized(coin),
                "address": owner,
                "sats": coin.value,
            },
            "owner": owner,
            "sats": coin.value,
            "escrow": escrow(ask, self.shown(ask)) if ask else None,
        }


class Escrow(InscriptionHandler):
    """`GET /market/escrow/:id`: the listing of an inscription with both its prices; 404 when there is none."""

    def answer(self) -> Any:
        owner, item, coin = self.found()
        ask = self.engine.listing_of(item.id, VENUE)
        if ask is None:
            raise not_found()
        market = self.engine.market(ask.kind, ask.slug)
        shown, creator = self.shown(ask), market.creator if market else ""
        fee = shown - ask.price
        royalty = float(CREATORS_PART) if creator and fee else None
        return {
            "inscription_id": item.id,
            "outpoint": serialized(coin),
            "outpoint_sats": coin.value,
            "outpoint_address": owner,
            "seller_address": ask.maker,
            "buyer_address": None,
            "satoshi_price": shown,
            "escrow_price": ask.price,
            "market_royalty": round(fee / shown - (royalty or 0), 6),
            "creator_royalty": royalty,
            "creator_address": creator or None,
            "private_relay": False,
            **protection(ask),
        }


def meta(name: str, traits: tuple[Trait, ...]) -> dict[str, Any]:
    rows = [{"trait_type": key, "value": value, "percent": None} for key, value in traits]
    return {"name": name, "attributes": rows, "rank": None}


def collection_of(item: Item, market: Market | None) -> dict[str, Any]:
    return {
        "name": market.name if market else item.collection,
        "description": None,
        "slug": item.collection,
        "creator_address": (market.creator if market else "") or None,
        "floor_price": None,
        "icon": None,
        "icon_inscription": None,
    }


def escrow(ask: Order, shown: int) -> dict[str, Any]:
    return {
        "protected": bool(ask.papers),
        "satoshi_price": shown,
        "seller_address": ask.maker,
        "buyer_address": None,
        "bought_at": "",
        "purchase_txid": None,
        "private_relay": False,
    }


def protection(ask: Order) -> dict[str, Any]:
    """Returns the marks of a protected listing."""
    is_protected = bool(ask.papers)
    return {
        "secure_purchase_version": 2 if is_protected else None,
        "secure_purchase_state": "listed" if is_protected else None,
        "protected": is_protected,
    }
