"""ord.net (developers.ord.net, 2026-10), and the practice market that speaks its dialect.

Every request needs a session, which two addresses of a user open together. Requests with the same answer for everybody
use any open session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from msgspec.structs import replace

from markets import parse
from markets.adapter import Adapter, Latest, TraitedAsk, TraitedBid
from markets.base import BidOrder, Floor, Item, Kind, NotSupported, OwnBid, Refused, Sale, SignInNeeded, Unavailable
from markets.http import Permit, segment
from markets.orders import (
    BidDraft,
    BidToDraft,
    ListingDraft,
    ListingOrder,
    ListingToDraft,
    OwnListing,
    Pair,
    SignInAnswer,
    SignInTexts,
)
from markets.ordnet import orders, reads, wire
from markets.ordnet.orders import DraftedListing, Drafts, ListingIds
from markets.ordnet.wire import OrdNetHttp, Session, Sessions, body, known_slug, needed_slug, paging, parts
from markets.parse import Cursor, Page, Unread

Value = TypeVar("Value")


class OrdNet(Adapter):
    """The venue's adapter. `base` ends before the documented routes (`https://ord.net/api/v1`)."""

    def __init__(self, base: str, name: str, *, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self._base = base
        self._http = OrdNetHttp(base)
        self._sessions = Sessions(clock)
        self._drafts = Drafts()
        self._listed = ListingIds()
        self._listing_drafts: Latest[DraftedListing] = Latest()

    def floors(self, slugs: Sequence[str], kind: Kind) -> dict[str, Floor | Unread]:
        self._ordinals(kind)
        known = [found for slug in slugs if (found := known_slug(slug)) is not None]
        if not known:
            return {}
        params = {"slugs": ",".join(dict.fromkeys(known))}
        answer = self._ask(self._sessions.any(), lambda http: http.read("/collection-stats/floors", params))
        return self._read(lambda: reads.floors(answer, slugs))

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        params = {"collectionSlug": needed_slug(slug), "sort": "price", **paging(cursor)}
        answer = self._ask(self._sessions.any(), lambda http: http.read("/listings", params))
        return self._read(lambda: reads.asks(answer, slug, is_first=cursor is None))

    def bids(self, slug: str, kind: Kind, cursor: Cursor) -> Page[TraitedBid]:
        """Returns all bids in one page: no paging is documented."""
        self._ordinals(kind)
        known = needed_slug(slug)
        answer = self._ask(self._sessions.any(), lambda http: http.read(_of(known, "collection-offers")))
        return self._read(lambda: orders.bids(answer, known))

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        """Returns a collection's traits. NotSupported for more than a hundred items, told one by one."""
        path, params = _of(needed_slug(slug), "inscriptions"), paging(None)
        answer = self._ask(self._sessions.any(), lambda http: http.read(path, params))
        return self._read(lambda: reads.traits(answer))

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[Sale]:
        """Returns the sales made at ord.net. An unknown collection has none."""
        self._ordinals(kind)
        params = {"collectionSlug": needed_slug(slug), **paging(cursor)}
        answer = self._ask(self._sessions.any(), lambda http: http.read("/sales", params))
        return self._read(lambda: reads.sales(answer, slug, is_first=cursor is None))

    def own_bids(self, wallet: str, cursor: Cursor, slugs: Collection[str] = ()) -> Page[OwnBid]:
        """Returns the live offers of a payment address on the collections `slugs`, one page each.

        ord.net lists our offers by collection only (its list of all is of those on single items), so without `slugs` it
        is Unavailable, which is not the same as none.
        """
        session = self._sessions.of_payment(wallet)
        asked = sorted({needed_slug(slug) for slug in slugs})
        if not asked:
            raise Unavailable("ord.net tells our bids by collection only, and none was named")
        slug = asked[0] if cursor is None else str(cursor)
        answer = self._ask(session, lambda http: http.read(_of(slug, "my/sent-collection-offers")))
        found = self._read(lambda: orders.own_bids(answer, slug, session.binding, session.bindings))
        return Page(found.entries, next((each for each in asked if each > slug), None), found.unread)

    def item(self, inscription_id: str) -> Item:
        """Returns details of an inscription from its listing. NotFound when it is not listed."""
        params = {"inscriptionId": inscription_id, **paging(None)}
        answer = self._ask(self._sessions.any(), lambda http: http.read("/listings", params))
        return self._read(lambda: reads.item(answer, inscription_id))

    def own_listings(self, owner: str, cursor: Cursor) -> Page[OwnListing]:
        params = {"sellerAddress": owner, **paging(cursor)}
        answer = self._ask(self._sessions.any(), lambda http: http.read("/listings", params))
        page = self._read(lambda: reads.own_listings(answer, owner, self._listed.made_of, is_first=cursor is None))
        self._listed.note(page.entries)
        return page

    def draft_bid(self, order: BidToDraft) -> BidDraft:
        session = self._sessions.of_pair(order.payment, order.ordinals)
        path = _of(needed_slug(order.slug), "collection-offers/preflight")
        ask = replace(order, valid_hours=self._hours(order.valid_hours))
        asked = orders.bid_preflight(ask, session.binding)
        answer = self._ask(session, lambda http: http.read(path, post=asked))
        return self._drafts.keep(self._read(lambda: orders.bid_draft(answer, ask)))

    def draft_listing(self, ask: ListingToDraft) -> ListingDraft:
        """Drafts the transfer into the escrow, the settlement out of it, and the recovery."""
        session = self._sessions.of_ordinals(ask.owner)
        path = _of(needed_slug(ask.slug), "listings/preflight")
        asked = orders.listing_preflight(ask, session.binding)
        answer = self._ask(session, lambda http: http.read(path, post=asked))
        drafted = self._read(lambda: orders.listing_draft(answer, ask))
        self._listing_drafts.note(ask.inscription_id, drafted)
        return orders.to_sign(drafted)

    def sign_in_texts(self, pair: Pair) -> SignInTexts:
        asked = {"ordinalsAddress": pair.ordinals, "paymentAddress": pair.payment}
        answer = self._http.read("/auth/challenge", post=asked)
        return self._read(lambda: wire.texts(answer, pair))

    def sign_in(self, answer: SignInAnswer) -> None:
        opened = self._http.read("/auth/verify", post=wire.verify_body(answer))
        now_ms = self._sessions.now_ms()
        self._sessions.hold(self._read(lambda: wire.session(opened, answer.pair, self._base, now_ms)))

    def place(self, order: BidOrder, permit: Permit | None = None) -> str:
        """Submits the signed form of a draft of `draft_bid`."""
        draft = self._drafts.of(order)
        session = self._sessions.of_pair(order.payment, order.receive)
        path = _of(needed_slug(order.slug), "collection-offers/submit")
        said = body(orders.bid_submit(draft, order.signed_psbts[0], session.binding))
        answer = self._ask(session, lambda http: http.write(path, said, permit))
        return parse.of_write(lambda: orders.bid_submitted(answer, draft))

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        """Cancels one bid: ord.net takes no more at once. Nothing is signed for it."""
        if len(venue_ids) != 1:
            raise Refused("bad_request", "ord.net cancels one bid at a time; nothing was sent")
        slug, offer_id = parts(venue_ids[0])
        session = self._sessions.of_payment(wallet)
        path = _of(slug, f"collection-offers/{segment(offer_id)}/cancel")
        said = body({"walletBindingId": session.binding.id})
        answer = self._ask(session, lambda http: http.write(path, said, permit))
        return parse.of_write(lambda: orders.cancelled(answer, offer_id))

    def list_item(self, order: ListingOrder, permit: Permit | None = None) -> None:
        """Submits the signed form of a draft of `draft_listing`."""
        drafted = orders.drafted_for(order, self._listing_drafts.of(order.ask.inscription_id))
        session = self._sessions.of_ordinals(order.ask.owner)
        path = _of(needed_slug(order.ask.slug), "listings/submit")
        said = body(orders.listing_submit(order, drafted, session.binding))
        answer = self._ask(session, lambda http: http.write(path, said, permit))
        self._listed.note([parse.of_write(lambda: orders.listing_submitted(answer, order.ask))])

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Takes down the inscription's listing that `own_listings` has shown. Nothing is signed for it."""
        listing = self._listed.of(inscription_id, owner)
        session = self._sessions.of_ordinals(owner)
        path = _of(needed_slug(listing.slug), "listings/delist")
        said = body(orders.delist_body(listing, session.binding))
        answer = self._ask(session, lambda http: http.write(path, said, permit))
        return parse.of_write(lambda: orders.delisted(answer, listing))

    def _hours(self, wanted: int) -> int:
        """Returns the shortest life that ord.net gives an offer and that is long enough."""
        if (found := self.capabilities().life_hours(wanted)) is None:
            raise NotSupported(f"no bid at ord.net lives {wanted} hours")
        return found

    def _ordinals(self, kind: Kind) -> None:
        if kind != "ordinals":
            raise NotSupported("ord.net trades no runes")

    def _ask(self, session: Session, ask: Callable[[OrdNetHttp], Value]) -> Value:
        """Makes one request in `session`; a token that the venue refuses is forgotten."""
        try:
            return ask(session.http)
        except SignInNeeded:
            self._sessions.forget(session)
            raise

    def _read(self, understand: Callable[[], Value]) -> Value:
        return parse.of_read(understand, "ord.net")


def _of(slug: str, what: str) -> str:
    return f"/collection/{segment(slug)}/{what}"
