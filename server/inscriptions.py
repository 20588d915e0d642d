"""Inscriptions: those of the caller's addresses, and one in detail. What a venue said is kept for five minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import chain
from typing import Any

from markets.base import VenueError, WalletItem
from markets.satflow_traits import listed_traits
from models import inscriptions
from server import blocking, json_out
from server.base import SignedIn
from server.errors import not_found
from server.json_out import Raw
from server.schemas.listing_config import is_inscription_id
from server.task_venues import telling_wallets

KEPT_MS = 300_000
# The gateway's own copies may be this old, so that a refreshing wallet does not use up the venue's quota.
_MAX_AGE_S = 30.0
_MOST_ITEMS = 500
_MOST_TEXT = 500
_MOST_TRAITS = 100


class Cached(SignedIn):
    """What is fetched afresh with `refresh=1`."""

    def newer_than_ms(self) -> int:
        """How old a kept answer may be."""
        return self.now_ms if self.query("refresh").get("refresh") == "1" else self.now_ms - KEPT_MS

    def max_age_s(self) -> float:
        """How old the gateway's answer may be."""
        return 0.0 if self.query("refresh").get("refresh") == "1" else _MAX_AGE_S


class WalletOrdinalsHandler(Cached):
    """GET /api/autolist/wallet/ordinals"""

    async def get(self) -> None:
        self.query("refresh")
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        addresses = dict.fromkeys((self.user.ordinals_address, keys.vault))
        items = await asyncio.gather(*map(self._items, addresses))
        self.answer([*chain.from_iterable(items)][:_MOST_ITEMS])

    async def _items(self, address: str) -> list[Raw]:
        kept = inscriptions.cached_wallet(address, self.newer_than_ms())
        if kept is None:
            venue = telling_wallets(self.services.settings)
            items = await self.ask_market(lambda market: market.at(venue).wallet_contents(address, self.max_age_s()))
            kept = "\n".join(json_out.dumps(_item(item, address)) for item in items[:_MOST_ITEMS])
            collections = {item.id: item.collection_id for item in items[:_MOST_ITEMS]}
            inscriptions.store_wallet(address, kept, collections, self.now_ms)
        # One line an item: a JSON text has no line break of its own.
        return [Raw(line) for line in kept.splitlines()]


def _item(item: WalletItem, address: str) -> dict[str, object]:
    return {
        "id": item.id,
        "name": _text(item.name),
        "collectionId": _text(item.collection_id),
        "collectionName": _text(item.collection_name),
        "imageUrl": _link(item.image_url),
        "listed": item.listed,
        "listingPrice": item.listing_price,
        "address": address,
    }


class InscriptionHandler(Cached):
    """GET /api/autolist/item/:inscriptionId"""

    async def get(self, inscription_id: str) -> None:
        if not is_inscription_id(inscription_id):
            raise not_found()
        kept = inscriptions.cached_inscription(inscription_id, self.newer_than_ms())
        if kept is not None:
            self.answer(Raw(kept))
            return
        try:
            self.answer(await look_up(self, inscription_id, self.max_age_s()))
        except VenueError as error:
            raise blocking.answer_to(error) from error


async def look_up(handler: SignedIn, inscription_id: str, max_age_s: float, venue: str | None = None) -> dict[str, Any]:
    """What a marketplace says of an inscription. Raises VenueError.

    It is kept for later if it is the one whose words are: `venue` None, or that one's name.
    """
    usual = telling_wallets(handler.services.settings)
    asked = venue or usual
    said = await handler.services.market(lambda market: market.at(asked).item(inscription_id, max_age_s))
    detail = _detail(inscription_id, said)
    if asked != usual:
        return detail
    kept = json_out.dumps(detail)
    inscriptions.store_inscription(inscription_id, kept, detail["collectionId"], handler.now_ms)
    return detail


def _detail(inscription_id: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """The venue's record in the words of this API; what it does not tell, or tells strangely, is null."""
    metadata = _table(said.get("metadata"))
    token, collection = _table(metadata.get("token")), _table(metadata.get("collection"))
    listing, top = _table(said.get("listing")), _table(said.get("topBid"))
    return {
        "id": inscription_id,
        "inscriptionNumber": _whole(said.get("inscriptionNumber")),
        "name": _text(token.get("name")),
        "collectionId": _text(collection.get("id") or collection.get("slug")),
        "collectionName": _text(collection.get("name")),
        "imageUrl": _link(said.get("contentPreviewURI")) or _link(token.get("image_url")),
        "contentUrl": _link(said.get("contentURI")),
        "contentType": _text(said.get("contentType")),
        "owner": _text(said.get("owner")),
        "location": _text(said.get("location")),
        "output": _text(said.get("output")),
        "outputValue": _whole(said.get("outputValue")),
        "genesisTransaction": _text(said.get("genesisTransaction")),
        "listed": said.get("listed") is True or bool(listing),
        "listingPrice": _whole(listing.get("price")),
        "seller": _text(listing.get("sellerAddress")),
        "topBid": _whole(top.get("price")),
        "traits": _traits(said),
    }


def _traits(said: Mapping[str, Any]) -> list[dict[str, str]] | None:
    found = listed_traits(said)
    if found is None:
        return None
    texts = [(_text(kind), _text(value)) for kind, value in sorted(found)]
    return [{"type": kind, "value": value} for kind, value in texts if kind and value][:_MOST_TRAITS]


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 2**63 else None


def _text(value: Any) -> str | None:
    """A text of the venue's, cut and without what could disturb a reader's screen."""
    if not isinstance(value, str):
        return None
    return "".join(letter for letter in value[:_MOST_TEXT] if letter.isprintable()) or None


def _link(value: Any) -> str | None:
    """A web address of the venue's if it is https; it is never fetched from here."""
    is_link = isinstance(value, str) and value.startswith("https://") and len(value) <= _MOST_TEXT
    return value if is_link and value.isprintable() and value.isascii() else None
