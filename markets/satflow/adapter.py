"""Satflow (API 1.1.4), and the practice market that speaks its dialect. Each method is exactly one HTTP request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from core.settings import PLAY_MARKET
from markets import parse
from markets.adapter import Adapter, Cursor, TraitedAsk, TraitedBid, number_of
from markets.base import BidOrder, Floor, Item, Kind, NotFound, NotSupported, OwnBid, Sale, Unknown, WalletItem
from markets.http import Http, Permit, error_text, refusal
from markets.orders import BidDraft, BidToDraft, ListingDraft, ListingOrder, ListingToDraft, OwnListing
from markets.parse import Page, Unread
from markets.satflow import books, orders, wire
from markets.satflow.wire import PRACTICE, ReadBack, Units


class Satflow(Adapter):
    """The venue's adapter; books and sales are numbered from page 1, wallets from cursor 0.

    `base` ends before the documented routes (`https://api.satflow.com/v1`).
    """

    def __init__(
        self,
        base: str,
        api_key: str,
        name: str,
        rune_price: str | None = None,
    ) -> None:
        """Sets the venue up. `rune_price` is the unit that the price of a rune bid is for: its documentation leaves
        that open.
        """
        self.name = name
        is_play = name == PLAY_MARKET
        self._units = PRACTICE if is_play else Units("item", rune_price or "order")
        self._rune_price = "order" if is_play else rune_price
        self._read_back = ReadBack()
        self._http = Http(base, {"x-api-key": api_key})

    def floors(self, slugs: Sequence[str], kind: Kind) -> dict[str, Floor | Unread]:
        """Returns floors of many slugs at once; unknown slugs are left out."""
        answer = self._http.read("/collection-stats/floors", {"type": kind, "slugs": ",".join(slugs)})
        return parse.of_read(lambda: wire.floors(answer, slugs, kind))

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        page = number_of(cursor, 1)
        answer = self._http.read("/activity/listings", _book(slug, page, "asc"))
        return parse.of_read(lambda: books.asks(answer, slug, page))

    def bids(self, slug: str, kind: Kind, cursor: Cursor) -> Page[TraitedBid]:
        page = number_of(cursor, 1)
        # By the whole order's price, the best price of a token might lie behind the last page that is read.
        by = "unitPrice" if kind == "runes" else "price"
        answer = self._http.read("/activity/bids", _book(slug, page, "desc", by))
        return parse.of_read(lambda: books.bids(answer, slug, kind, page, self._units))

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        """Returns a collection's traits: type to value to the count of items. Raises as `catalogue`."""
        answer = self._http.read("/collection", {"collection_id": slug, "categoryAttributes": "true"})
        return parse.of_read(lambda: books.catalogue(answer, slug))

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[Sale]:
        """Reads a page of sales, asked for as orders that are not active any more, as a filled one is not."""
        return self._sales(slug, kind, number_of(cursor, 1), {"active": "false"})

    def sales_unasked(self, slug: str, kind: Kind) -> Page[Sale]:
        """Reads the first page of sales without naming which: to see whether `sales` hides any."""
        return self._sales(slug, kind, 1, {})

    def _sales(self, slug: str, kind: Kind, page: int, wanted: Mapping[str, str]) -> Page[Sale]:
        params = {"collectionSlug": slug, "sortBy": "fillCompletedAt", "sortDirection": "desc", **wanted}
        answer = self._http.read("/activity/sales", params | _page(page))
        return parse.of_read(lambda: books.sales(answer, slug, kind, page))

    def own_bids(self, wallet: str, cursor: Cursor = None, slugs: Collection[str] = ()) -> Page[OwnBid]:
        """Returns all live bids in one page. The venue answers 404 for a wallet without bids."""
        try:
            answer = self._http.read("/address/bids", {"address": wallet})
        except NotFound:
            return Page((), None)
        found = parse.of_read(lambda: wire.own_bids(answer, self._units))
        return found._replace(entries=self._read_back.checked(wallet, found.entries))

    def challenge(self, address: str) -> str:
        """Returns a text that `address` must sign before it may cancel."""
        answer = self._http.read("/challenge", {"address": address})
        return parse.of_read(lambda: wire.challenge(answer))

    def bidding_wallet(self, payment: str, receive: str, pubkey: str) -> str:
        """Returns the address that funds the bids of this pair of addresses. Raises NotFound when there is none yet."""
        params = {"ordinalsAddress": receive, "paymentAddress": payment, "paymentPubkey": pubkey}
        answer = self._http.read("/address/bidding-wallet", params)
        found = parse.of_read(lambda: wire.bidding_wallet(answer))
        if found is None:
            raise NotFound("this address has no bidding wallet yet")
        return found

    def wallet_contents(self, address: str, cursor: Cursor) -> Page[WalletItem]:
        params = {"address": address, "itemType": "inscription", "cursor": str(number_of(cursor, 0)), "limit": "100"}
        answer = self._http.read("/address/wallet-contents", params)
        return parse.of_read(lambda: wire.wallet_items(answer, is_first=not cursor))

    def own_listings(self, owner: str, cursor: Cursor) -> Page[OwnListing]:
        params = {"address": owner, "itemType": "inscription", "listedOnly": "true"}
        params |= {"cursor": str(number_of(cursor, 0)), "limit": "100"}
        answer = self._http.read("/address/wallet-contents", params)
        return parse.of_read(lambda: orders.own_listings(answer, owner, is_first=not cursor))

    def draft_listing(self, ask: ListingToDraft) -> ListingDraft:
        """Returns the PSBTs that the venue wants signed for a listing. Changes nothing there."""
        answer = self._http.read("/intent/sell", post=orders.listing_body(ask))
        return parse.of_read(lambda: orders.listing_draft(answer))

    def item(self, inscription_id: str) -> Item:
        params = {"inscriptionId": inscription_id, "metadata": "true", "bid": "true", "listing": "true"}
        answer = self._http.read("/item", params)
        return parse.of_read(lambda: orders.item(answer, inscription_id))

    def place(self, order: BidOrder, permit: Permit | None = None) -> None:
        """Submits a signed bid. The venue gives no id: the bid shows among the own bids, known by its expiry.

        Rune orders are sent only if a setting says that their price is the whole order's: Satflow's docs and its own
        sample bot differ, and a mistake would overpay a thousandfold. One that reads back at another price is the last.
        """
        if orders.is_item(order.slug):
            body = orders.signed_offer_body(order)
        else:
            if order.kind == "runes":
                self._check_runes()
                self._read_back.sent(order)
            body = wire.place_body(order)
        _accepted(self._http.write("/bid/place", body, permit))

    def draft_bid(self, order: BidToDraft) -> BidDraft:
        """Drafts an offer on one inscription, whose id is its slug; other bids are messages. Changes nothing."""
        if not orders.is_item(order.slug):
            raise NotSupported(f"{self.name} drafts offers on single inscriptions only: its other bids are messages")
        answer = self._http.read("/intent/bid", post=orders.offer_body(order))
        return parse.of_read(lambda: orders.offer_draft(answer, order))

    def _check_runes(self) -> None:
        if self._rune_price is None:
            raise NotSupported("rune bids are not sent to Satflow: the unit of their price there is not settled")
        if self._rune_price == "token":
            raise NotSupported("rune bids are not sent to Satflow: what is signed here has the whole order's price")
        if self._read_back.fault is not None:
            raise NotSupported(f"no more rune bids are sent to Satflow: {self._read_back.fault}")

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        """Cancels bids by their ids; False when the venue reports that it failed for any of them."""
        answer = self._http.write("/cancel", wire.cancel_body(wallet, venue_ids, signature), permit)
        _accepted(answer)
        return parse.of_write(lambda: wire.cancelled(answer, len(venue_ids)))

    def list_item(self, order: ListingOrder, permit: Permit | None = None) -> None:
        """Submits a signed listing; a former one of the same inscription is replaced."""
        answer = self._http.write("/list", orders.signed_listing_body(order), permit)
        _accepted(answer)
        parse.of_write(lambda: orders.check_listed(answer, order.ask))

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Cancels the listing of one inscription; False when the venue reports that it failed."""
        answer = self._http.write("/cancel", orders.delist_body(owner, inscription_id, signature), permit)
        _accepted(answer)
        return parse.of_write(lambda: wire.cancelled(answer, 1))

    def draft_withdrawal(self, payment: str, amount: int) -> str:
        answer = self._http.read("/intent/withdraw", post={"userAddress": payment, "amount": amount})
        return parse.of_read(lambda: orders.withdrawal_draft(answer))

    def submit_withdrawal(self, payment: str, psbt: str, permit: Permit | None = None) -> str:
        body = orders.signed_withdrawal_body(payment, psbt)
        answer = self._http.write("/withdraw", body, permit)
        _accepted(answer)
        return parse.of_write(lambda: orders.withdrawal_sent(answer))


def _book(slug: str, page: int, direction: str, by: str = "price") -> dict[str, str]:
    return {
        "collectionSlug": slug,
        "active": "true",
        "sortBy": by,
        "sortDirection": direction,
        **_page(page),
    }


def _page(page: int) -> dict[str, str]:
    return {"page": str(page), "pageSize": str(books.PAGE_SIZE)}


def _accepted(answer: Any) -> None:
    """Raises Refused for an answer with status 200 that says no, Unknown for one that says nothing clear."""
    if not isinstance(answer, dict):
        raise Unknown("sent, but the answer is not understood: not an object")
    if answer.get("success") is True and "error" not in answer:
        return
    told = answer if answer.get("success") is False else {"error": answer.get("error")}
    if answer.get("success") is not True and (said := error_text(told)):
        raise refusal(said)
    raise Unknown("sent, but the answer does not say whether it was taken")
