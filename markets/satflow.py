"""Satflow (API 1.1.4), and the practice market that speaks its dialect. Each method is exactly one HTTP request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from markets import satflow_books, satflow_listings, satflow_sales, satflow_traits, satflow_wire
from markets.base import BidOrder as Order
from markets.base import Floor, Kind, NotFound, NotSupported, OwnBid, Sale, Unavailable, Unknown, WalletItem
from markets.http import Http, Permit
from markets.listings import ListingAsk, ListingDraft, ListingOrder, OwnListing
from markets.replies import error_text, refusal
from markets.satflow_books import Listing, Offer
from markets.wire import Page, Unreadable
from strategy.book import Profile

Market = Literal["satflow", "simulator"]
MIN_DURATION_S = 900
_ORDINALS = {"satflow": (1000, 1000), "simulator": (1000, 10_000)}  # tick and least bid, sats
Value = TypeVar("Value")


def profile(market: Market, kind: Kind) -> Profile:
    """What the market asks of bids on one kind of goods."""
    tick, min_bid = _ORDINALS[market] if kind == "ordinals" else (1, 1)
    return Profile(market, tick, min_bid, MIN_DURATION_S, equal_bids_allowed=True, balance_model="per_bid")


class Satflow:
    """The venue's operations. Reads raise Unavailable, RateLimited and Refused leaves; writes Unknown as well.

    `base` ends before the documented routes (`https://api.satflow.com/v1`).
    """

    def __init__(self, base: str, api_key: str, market: Market) -> None:
        self.market = market
        self._http = Http(base, {"x-api-key": api_key})

    def floors(self, slugs: Sequence[str], kind: Kind) -> dict[str, Floor]:
        """Floors of many slugs at once; unknown slugs are left out."""
        answer = self._http.read("/collection-stats/floors", {"type": kind, "slugs": ",".join(slugs)})
        return _read(lambda: satflow_wire.floors(answer, slugs, kind))

    def asks(self, slug: str, page: int) -> Page[Listing]:
        """One page (from 1) of the listings of a collection, cheapest first, with what they tell of traits."""
        answer = self._http.read("/activity/listings", _book(slug, page, "asc"))
        return _read(lambda: satflow_books.asks(answer, slug, page))

    def bids(self, slug: str, kind: Kind, page: int) -> Page[Offer]:
        """One page (from 1) of the bids on a whole collection or rune and on traits, best first."""
        answer = self._http.read("/activity/bids", _book(slug, page, "desc"))
        return _read(lambda: satflow_books.bids(answer, slug, kind, page))

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        """The traits of a collection: type to value to the count of items. NotFound, NotSupported as they are told."""
        answer = self._http.read("/collection", {"collection_id": slug, "categoryAttributes": "true"})
        return _read(lambda: satflow_traits.catalogue(answer, slug))

    def sales(self, slug: str, kind: Kind, page: int) -> Page[Sale]:
        """One page (from 1) of the sales of a collection or rune, newest first."""
        params = {"collectionSlug": slug, "sortBy": "fillCompletedAt", "sortDirection": "desc"}
        answer = self._http.read("/activity/sales", params | _page(page))
        return _read(lambda: satflow_sales.sales(answer, slug, kind, page))

    def own_bids(self, wallet: str) -> tuple[OwnBid, ...]:
        """All live bids of a payment address. The venue answers 404 for a wallet without bids."""
        try:
            answer = self._http.read("/address/bids", {"address": wallet})
        except NotFound:
            return ()
        return _read(lambda: satflow_wire.own_bids(answer))

    def challenge(self, address: str) -> str:
        """A text to be signed by `address` before it may cancel."""
        answer = self._http.read("/challenge", {"address": address})
        return _read(lambda: satflow_wire.challenge(answer))

    def bidding_wallet(self, payment: str, receive: str, pubkey: str) -> str:
        """The address that funds the bids of this pair of addresses. Raises NotFound when there is none yet."""
        params = {"ordinalsAddress": receive, "paymentAddress": payment, "paymentPubkey": pubkey}
        answer = self._http.read("/address/bidding-wallet", params)
        found = _read(lambda: satflow_wire.bidding_wallet(answer))
        if found is None:
            raise NotFound("this address has no bidding wallet yet")
        return found

    def wallet_contents(self, address: str, cursor: int) -> Page[WalletItem]:
        """One page (cursor from 0) of the inscriptions at an address."""
        params = {"address": address, "itemType": "inscription", "cursor": str(cursor), "limit": "100"}
        answer = self._http.read("/address/wallet-contents", params)
        return _read(lambda: satflow_wire.wallet_items(answer))

    def own_listings(self, owner: str, cursor: int) -> Page[OwnListing]:
        """One page (cursor from 0) of what is listed of an address."""
        params = {"address": owner, "itemType": "inscription", "listedOnly": "true", "cursor": str(cursor)}
        answer = self._http.read("/address/wallet-contents", params | {"limit": "100"})
        return _read(lambda: satflow_listings.own_listings(answer, owner))

    def draft_listing(self, ask: ListingAsk) -> ListingDraft:
        """The PSBTs that the venue wants signed for a listing. Changes nothing there."""
        answer = self._http.read("/intent/sell", post=satflow_listings.ask_body(ask))
        return _read(lambda: satflow_listings.draft(answer))

    def item(self, inscription_id: str) -> Mapping[str, Any]:
        """Details of one inscription, as the venue gives them (A2.2: id, owner, location, listing, topBid, ...)."""
        params = {"inscriptionId": inscription_id, "metadata": "true", "bid": "true", "listing": "true"}
        answer = self._http.read("/item", params)
        return _read(lambda: satflow_wire.item(answer, inscription_id))

    def place(self, order: Order, permit: Permit | None = None) -> None:
        """Submits a signed bid. The venue tells no id: it shows among the own bids, known by its expiry.

        Rune orders go to the practice market only: whether Satflow reads their price as the order's or a token's is
        not settled (its docs say one, its own sample bot sends the other), and a mistake would overpay a thousandfold.
        """
        if order.kind == "runes" and self.market != "simulator":
            raise NotSupported("rune bids are not sent to Satflow: the unit of their price there is not settled")
        answer = self._http.write("/bid/place", satflow_wire.place_body(order), permit)
        _accepted(answer)

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        """Cancels bids by their ids; False when the venue reports that it failed for any of them."""
        answer = self._http.write("/cancel", satflow_wire.cancel_body(wallet, venue_ids, signature), permit)
        _accepted(answer)
        return _sent(lambda: satflow_wire.cancelled(answer, len(venue_ids)))

    def list_item(self, order: ListingOrder, permit: Permit | None = None) -> None:
        """Submits a signed listing; a former one of the same inscription is replaced."""
        answer = self._http.write("/list", satflow_listings.order_body(order), permit)
        _accepted(answer)
        _sent(lambda: satflow_listings.check_listed(answer, order.ask))

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Cancels the listing of one inscription; False when the venue reports that it failed."""
        answer = self._http.write("/cancel", satflow_listings.delist_body(owner, inscription_id, signature), permit)
        _accepted(answer)
        return _sent(lambda: satflow_wire.cancelled(answer, 1))


def _book(slug: str, page: int, direction: str) -> dict[str, str]:
    return {
        "collectionSlug": slug,
        "active": "true",
        "sortBy": "price",
        "sortDirection": direction,
        **_page(page),
    }


def _page(page: int) -> dict[str, str]:
    return {"page": str(page), "pageSize": str(satflow_books.PAGE_SIZE)}


def _accepted(answer: Any) -> None:
    """Raises for an answer with status 200 that says no (Refused) or nothing clear (Unknown)."""
    if not isinstance(answer, dict):
        raise Unknown("sent, but the answer is not understood: not an object")
    if answer.get("success") is True and "error" not in answer:
        return
    if answer.get("success") is not True and (said := error_text({"error": answer.get("error")})):
        raise refusal(said)
    raise Unknown("sent, but the answer does not say whether it was taken")


def _read(understand: Callable[[], Value]) -> Value:
    try:
        return understand()
    except Unreadable as error:
        raise Unavailable(f"failed to understand the venue: {error}") from error


def _sent(understand: Callable[[], Value]) -> Value:
    try:
        return understand()
    except Unreadable as error:
        raise Unknown(f"sent, but the answer is not understood: {error}") from error
