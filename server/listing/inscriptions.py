"""Inscriptions: those of the caller's addresses, and one in detail. A venue's answers are kept for five minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

from core import pasted
from markets.base import Item, VenueError, WalletItem
from markets.wire import link
from models import inscriptions
from models.inscriptions import Told
from server.http import blocking, json_out
from server.http.api_errors import ApiError
from server.http.base import SignedIn
from server.http.json_out import Raw
from server.http.user_market import UserMarket
from server.task_venues import telling_wallets

KEPT_MS = 300_000
REFRESHED_MS = 20_000  # an answer that was asked for anew may be so old: a page that always does so costs no more
# The gateway's own copies may be this old, so that a refreshing wallet does not use up the venue's quota.
_MAX_AGE_S = 30.0
_MOST_ITEMS = 500
_MOST_TEXT = 500
_MOST_TRAITS = 100


class Cached(SignedIn):
    """A handler of kept answers, which `refresh=1` renews."""

    takes_query = True

    def newer_than_ms(self) -> int:
        """Returns the time since which a kept answer may be from."""
        return self.now_ms - (REFRESHED_MS if self._refreshes() else KEPT_MS)

    def max_age_s(self) -> float:
        """Returns the greatest age of the gateway's answer."""
        return REFRESHED_MS / 1000 if self._refreshes() else _MAX_AGE_S

    def _refreshes(self) -> bool:
        return self.query("refresh").get("refresh") == "1"


class WalletOrdinalsHandler(Cached):
    """GET /api/autolist/wallet/ordinals"""

    async def get(self) -> None:
        self.query("refresh")
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        addresses = dict.fromkeys((self.user.ordinals_address, keys.vault))
        items = await asyncio.gather(*map(self._items, addresses))
        self.answer([*chain.from_iterable(items)][:_MOST_ITEMS])

    async def _items(self, address: str) -> list[Raw]:
        kept = inscriptions.cached_wallet(address, self.newer_than_ms(), self.now_ms)
        if kept is None:
            venue = telling_wallets(self.services.settings)
            items = await self.ask_market(lambda market: market.at(venue).wallet_contents(address, self.max_age_s()))
            kept = "\n".join(json_out.dumps(_item(item, address)) for item in items[:_MOST_ITEMS])
            told = {item.id: Told(item.collection_id, link(item.image_url)) for item in items[:_MOST_ITEMS]}
            inscriptions.store_wallet(address, kept, told, self.now_ms)
        # One line an item: a JSON text has no line break of its own.
        return [Raw(line) for line in kept.splitlines()]


def _item(item: WalletItem, address: str) -> dict[str, object]:
    return {
        "id": item.id,
        "name": _text(item.name),
        "collectionId": _text(item.collection_id),
        "collectionName": _text(item.collection_name),
        "imageUrl": link(item.image_url),
        "listed": item.listed,
        "listingPrice": item.listing_price,
        "address": address,
    }


class InscriptionHandler(Cached):
    """GET /api/autolist/item/:inscriptionId"""

    async def get(self, named: str) -> None:
        inscription_id = inscription_in(named)
        kept = inscriptions.cached_inscription(inscription_id, self.newer_than_ms(), self.now_ms)
        if kept is not None:
            self.answer(Raw(kept))
            return
        try:
            self.answer(await look_up(self, self.look, inscription_id, self.max_age_s()))
        except VenueError as error:
            raise blocking.answer_to(error) from error


def inscription_in(path: str) -> str:
    """Returns the id of the inscription that a path names. Raises ApiError (404), whose message says what an id is."""
    try:
        return pasted.inscription(path)
    except pasted.PasteError as error:
        raise ApiError(404, "Not found", message=f"The inscription in the path {error}.") from None


async def look_up(
    handler: SignedIn, ask: UserMarket, inscription_id: str, max_age_s: float, venue: str | None = None
) -> dict[str, Any]:
    """Returns a marketplace's details of an inscription, by `ask`. Raises VenueError.

    They are kept if they are from the usual marketplace: `venue` None, or its name.
    """
    usual = telling_wallets(handler.services.settings)
    asked = venue or usual
    detail = _detail(await ask(lambda market: market.at(asked).item(inscription_id, max_age_s)))
    if asked != usual:
        return detail
    kept = json_out.dumps(detail)
    told = Told(detail["collectionId"], detail["imageUrl"])
    inscriptions.store_inscription(inscription_id, kept, told, handler.now_ms)
    return detail


def _detail(item: Item) -> dict[str, Any]:
    """Returns the venue's record in the words of this API."""
    return {
        "id": item.id,
        "inscriptionNumber": item.number,
        "name": _text(item.name),
        "collectionId": _text(item.collection_id),
        "collectionName": _text(item.collection_name),
        "imageUrl": item.image_url,
        "contentUrl": item.content_url,
        "contentType": _text(item.content_type),
        "owner": _text(item.owner),
        "location": _text(item.location),
        "output": _text(item.output),
        "outputValue": item.output_value,
        "genesisTransaction": _text(item.genesis),
        "listed": item.listed,
        "listingPrice": item.listing_price,
        "seller": _text(item.seller),
        "topBid": item.top_bid,
        "traits": None if item.traits is None else _traits(item.traits),
    }


def _traits(told: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    texts = [(_text(kind), _text(value)) for kind, value in told]
    return [{"type": kind, "value": value} for kind, value in texts if kind and value][:_MOST_TRAITS]


def _text(value: str | None) -> str | None:
    """Returns a text of the venue's, cut and without characters that could disturb a reader's screen."""
    return "".join(letter for letter in (value or "")[:_MOST_TEXT] if letter.isprintable()) or None
