"""The adapter for UniSat's collection market (open API v3) and for the practice market with its dialect.

Its "bids" buy listings immediately; it has no standing bids. The rune book is in `index.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from markets import base, orders, parse
from markets.adapter import Adapter, AskAgain, Latest, TraitedAsk, is_base64
from markets.base import AuthFailed, Kind, NotFound, NotSupported, NotUnderstood, Refused, Unavailable
from markets.http import Permit
from markets.parse import Cursor, Page, number_of
from markets.unisat import wire
from markets.unisat.wire import UnisatHttp

_NO_BIDS = "it has no standing bids: what it calls a bid buys a listing at once"
_MOST_REMEMBERED = 1000
_BROKEN_MS = 3_600_000  # wait before an endpoint without a collection's floor is retried
_STATISTIC, _STATISTICS, _LISTINGS = range(3)  # the endpoints for floors, in the order of use


class UnisatMarket(Adapter):
    """The venue's adapter; `base` is the origin before `/v3/...`.

    The venue identifies listings by orders, we by inscriptions. An inscription's order is remembered from reads of own
    listings, a draft's order from the draft; both in memory only. `now_ms` is for tests.
    """

    def __init__(
        self,
        base: str,
        api_key: str | None,
        name: str,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.name = name
        self._now_ms = now_ms
        self._http = UnisatHttp(base, api_key)
        self._orders: Latest[str] = Latest(_MOST_REMEMBERED)  # inscription to its live order
        self._drafts: Latest[wire.Draft] = Latest(_MOST_REMEMBERED)  # by the hash of the unsigned PSBT
        # By slug: the endpoint for its floor, and the time (epoch ms) until which it is used.
        self._sources: Latest[tuple[int, int]] = Latest(_MOST_REMEMBERED)

    def floors(self, slugs: Sequence[str], kind: Kind) -> dict[str, base.Floor]:
        """Returns the floor of one slug. Raises ValueError for more slugs, AskAgain to try the next endpoint.

        The endpoint for one collection's statistic fails for many collections; the list of statistics may lack a
        collection without recent trades. The last resort is the cheapest listing.
        """
        (slug,) = slugs
        if kind != "ordinals":
            self._no("floors of runes; their asks are read from its rune market")
        source, until_ms = self._sources.of(slug) or (_STATISTIC, 0)
        if self._now_ms() >= until_ms:
            source = _STATISTIC
        try:
            return self._floor(slug, source)
        except NotFound:
            return {}
        except Unavailable as error:
            if source == _LISTINGS or not (error.status == 500 or isinstance(error, NotUnderstood | AskAgain)):
                raise
            self._sources.note(slug, (source + 1, self._now_ms() + _BROKEN_MS))
            raise AskAgain(error.message) from error

    def _floor(self, slug: str, source: int) -> dict[str, base.Floor]:
        if source == _LISTINGS:
            answer = self._ask("list", _asks_of(slug, 0))
            return {slug: parse.of_read(lambda: wire.floor_of_asks(answer, slug, self._now_ms()), self.name)}
        if source == _STATISTICS:
            wanted = {"timeType": "7d", "collections": [slug]}
            body = {"filter": wanted, "start": 0, "limit": wire.STATISTICS_PAGE}
            answer = self._ask("collection_statistic_list", body)
            listed = parse.of_read(lambda: wire.listed_floor(answer, slug), self.name)
            if listed is None:
                raise AskAgain(f"the list of statistics does not have {slug}")
            return {slug: listed}
        answer = self._ask("collection_statistic", {"collectionId": slug})
        found = parse.of_read(lambda: wire.floor(answer, slug), self.name)
        return {} if found is None else {slug: found}

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        start = number_of(cursor, 0)
        answer = self._ask("list", _asks_of(slug, start))
        return parse.of_read(lambda: wire.asks(answer, slug, start, self._now_ms()), self.name)

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[base.Sale]:
        if kind != "ordinals":
            self._no("sales of runes")
        start = number_of(cursor, 0)
        wanted = {"nftType": "collection", "collectionId": slug, "event": "Sold"}
        answer = self._ask("actions", {"filter": wanted, "start": start, "limit": wire.PAGE_SIZE})
        return parse.of_read(lambda: wire.sales(answer, slug, start), self.name)

    def item(self, inscription_id: str) -> base.Item:
        answer = self._ask("inscription_info", {"inscriptionId": inscription_id})
        return parse.of_read(lambda: wire.item(answer, inscription_id), self.name)

    def own_listings(self, owner: str, cursor: Cursor) -> Page[orders.OwnListing]:
        start = number_of(cursor, 0)
        answer = self._ask("list", _list({"address": owner}, {"onSaleTime": -1}, start))
        found = parse.of_read(lambda: wire.own_listings(answer, owner, start), self.name)
        for listing in found.entries:
            self._orders.note(listing.inscription_id, listing.listing_id)
        return found

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        """Raises NotSupported, because traits of listed items only would make all other traits look nonexistent."""
        self._no("a catalogue of traits: its listings show the traits of what is listed, which may not be all")

    def draft_bid(self, order: orders.BidToDraft) -> orders.BidDraft:
        raise NotSupported(f"{self.name}: {_NO_BIDS}")

    def place(self, order: base.BidOrder, permit: Permit | None = None) -> str | None:
        raise NotSupported(f"{self.name}: {_NO_BIDS}")

    def draft_listing(self, ask: orders.ListingToDraft) -> orders.ListingDraft:
        """Drafts a new order, or a new price for the inscription's known order.

        An order that is not confirmed does not appear in the market.
        """
        auction_id = self._orders.of(ask.inscription_id)
        if auction_id is None:
            body = {
                "nftType": "collection",
                "inscriptionId": ask.inscription_id,
                "initPrice": str(ask.price),
                "unitPrice": str(ask.price),
                # A compressed key; either parity byte will do, because a taproot address depends on x only.
                "pubkey": "02" + ask.tap_internal_key,
                "marketType": "fixedPrice",
                "btcAddress": ask.receive,
            }
            answer = self._ask("create_put_on", body)
            draft = parse.of_read(lambda: wire.draft(answer, None), self.name)
        else:
            draft = self._modify(ask, auction_id)
        self._drafts.note(_key(draft.listing.psbt), draft)
        return draft.listing

    def _modify(self, ask: orders.ListingToDraft, auction_id: str) -> wire.Draft:
        try:
            body = {"auctionId": auction_id, "initPrice": str(ask.price), "unitPrice": str(ask.price)}
            answer = self._ask("create_modify_price", body)
            return parse.of_read(lambda: wire.draft(answer, auction_id), self.name)
        except Refused as error:
            # The order may have ended, so the next draft is for a new order, unless a read of own listings shows it
            # again. A refused API key says nothing about the order.
            if not isinstance(error, AuthFailed):
                self._orders.drop(ask.inscription_id)
            raise

    def list_item(self, order: orders.ListingOrder, permit: Permit | None = None) -> None:
        draft = self._drafts.drop(_key(order.unsigned_psbt))
        if draft is None:
            raise Refused("unknown_draft", "this listing was not drafted here, or too long ago")
        step = "confirm_put_on" if draft.is_new else "confirm_modify_price"
        try:
            self._confirm(step, {"auctionId": draft.auction_id, "psbt": order.signed_psbt}, permit)
        except Unavailable:
            self._drafts.note(_key(draft.listing.psbt), draft)  # nothing was sent
            raise
        self._orders.note(order.ask.inscription_id, draft.auction_id)

    def draft_delist(self, owner: str, inscription_id: str) -> orders.ListingDraft:
        """Drafts the end of a listing without a transaction; pass the signed PSBT to `delist` as its signature."""
        # Without `offChain` it would cost a transaction.
        body = {"auctionId": self._known_order(inscription_id), "nftAddress": owner, "offChain": True}
        answer = self._ask("create_put_off", body)
        return parse.of_read(lambda: wire.put_off_draft(answer), self.name)

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Ends a listing; `signature` is the signed PSBT of `draft_delist`. Raises NotSupported if it is not a PSBT."""
        if not is_base64(signature):
            raise NotSupported(f"{self.name} takes a listing back by a signed PSBT of its own only")
        body = {"auctionId": self._known_order(inscription_id), "psbt": signature, "offChain": True}
        self._confirm("confirm_put_off", body, permit)
        self._orders.drop(inscription_id)
        return True

    def _ask(self, step: str, body: Mapping[str, Any]) -> Any:
        return self._http.read(f"/v3/market/collection/auction/{step}", post=body)

    def _confirm(self, step: str, body: dict[str, Any], permit: Permit | None) -> None:
        sent = json.dumps(body | {"fromBase64": True}).encode()
        answer = self._http.write(f"/v3/market/collection/auction/{step}", sent, permit)
        parse.of_write(lambda: wire.check_confirmed(answer))

    def _known_order(self, inscription_id: str) -> str:
        auction_id = self._orders.of(inscription_id)
        if auction_id is None:
            raise NotFound("no order of this inscription is known; it shows among the own listings")
        return auction_id


def _asks_of(slug: str, start: int) -> dict[str, Any]:
    """Returns the request body for a collection's listings, cheapest first.

    Sorted by `initPrice`, the price set when a listing is made or changed. `unitPrice` has been null or ten times the
    price, so sorting by it could put the cheapest listing on a page that is not read.
    """
    return _list({"collectionId": slug}, {"initPrice": 1}, start)


def _list(wanted: Mapping[str, Any], sort: Mapping[str, int], start: int) -> dict[str, Any]:
    found = {"nftType": "collection", "isEnd": False, **wanted}
    return {"filter": found, "sort": dict(sort), "start": start, "limit": wire.PAGE_SIZE}


def _key(psbt: str) -> bytes:
    return sha256(psbt.encode()).digest()
