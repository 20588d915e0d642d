"""The adapter for ord.net (developers.ord.net, 2026-10) and for the practice market with its dialect.

Every request needs a session, which a user opens with two addresses. Requests whose answer is the same for all users
use any open session.
"""

from __future__ import annotations

import binascii
import json
import re
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from core.fields import WithSecrets
from markets import base, parse
from markets.adapter import Adapter, Latest, TraitedAsk, TraitedBid, known_draft
from markets.base import Kind, NotSupported, RateLimited, Refused, SignInNeeded, Unavailable
from markets.http import Http, Permit, Reply, is_page, retry_after_s, segment, words_of
from markets.orders import (
    LONGEST_SIGN_IN_TEXT,
    BidDraft,
    BidToDraft,
    ListingDraft,
    ListingOrder,
    ListingToDraft,
    OwnListing,
    Pair,
    SignInAnswer,
    SignInText,
    SignInTexts,
)
from markets.ordnet import orders, reads
from markets.ordnet.orders import Binding, DraftedListing, Drafts, ListingIds
from markets.ordnet.reads import known_slug, needed_slug, paging, uuid
from markets.parse import Cursor, Page, Unread, Unreadable, of_write

WINDOW_S = 60.0  # limits apply to fixed windows of a minute, and a 429 may not give the remaining time
MARGIN_MS = 30_000  # so that a session's token does not expire during a request
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}", re.ASCII)
_MOST_BINDINGS = 100


class OrdNetHttp(Http):
    """An HTTP client with a session's `token` (None to open a session). Errors and logs never contain the token."""

    def __init__(self, base: str, token: str | None = None) -> None:
        super().__init__(base, {} if token is None else {"Authorization": f"Bearer {token}"})
        self._has_session = token is not None

    def _raise_own(self, reply: Reply) -> None:
        if reply.status == 429:
            said = retry_after_s(reply)
            raise RateLimited(WINDOW_S if said is None else said)
        if is_page(reply):
            return
        if reply.status == 409:
            # The venue's state changed and nothing was done. Refused, so that the outdated PSBT is not sent again.
            raise Refused("changed", words_of(reply) or "the venue says that things have changed")
        if reply.status == 401 and self._has_session:
            # Whatever its text: the session may have expired, and a new sign-in shows whether it had.
            raise SignInNeeded("the venue has ended this session")


class Session(WithSecrets, frozen=True):
    """An open session of `binding`; `bindings` are all of its profile's. `token` is hidden in its repr."""

    hidden = frozenset({"token", "http"})

    binding: Binding
    bindings: tuple[Binding, ...]
    expires_ms: int
    token: str
    http: OrdNetHttp


class Sessions:
    """The open sessions, one for each pair of addresses. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], Session] = {}

    def hold(self, session: Session) -> None:
        with self._lock:
            self._held[session.binding.payment, session.binding.ordinals] = session

    def forget(self, session: Session) -> None:
        """Removes `session`, unless a newer one has replaced it."""
        key = (session.binding.payment, session.binding.ordinals)
        with self._lock:
            if self._held.get(key) is session:
                del self._held[key]

    def of_pair(self, payment: str, ordinals: str) -> Session:
        """Returns the session of these two addresses. Raises SignInNeeded."""
        return self._find(lambda binding: (binding.payment, binding.ordinals) == (payment, ordinals))

    def of_payment(self, payment: str) -> Session:
        """Returns a session with this payment address. Raises SignInNeeded."""
        return self._find(lambda binding: binding.payment == payment)

    def of_ordinals(self, ordinals: str) -> Session:
        """Returns a session with this ordinals address. Raises SignInNeeded."""
        return self._find(lambda binding: binding.ordinals == ordinals)

    def any(self) -> Session:
        """Returns the session that expires last, for requests that any session may make. Raises SignInNeeded."""
        return self._find(lambda binding: True)

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _find(self, is_wanted: Callable[[Binding], bool]) -> Session:
        now_ms = self.now_ms() + MARGIN_MS
        with self._lock:
            self._held = {pair: each for pair, each in self._held.items() if each.expires_ms > now_ms}
            found = [session for session in self._held.values() if is_wanted(session.binding)]
        if not found:
            raise SignInNeeded("no session at ord.net is open; nothing was sent")
        return max(found, key=lambda session: session.expires_ms)


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

    def floors(self, slugs: Sequence[str], kind: Kind) -> dict[str, base.Floor | Unread]:
        self._ordinals(kind)
        known = [found for slug in slugs if (found := known_slug(slug)) is not None]
        if not known:
            return {}
        answer = self._get("/collection-stats/floors", {"slugs": ",".join(dict.fromkeys(known))})
        return _of_read(lambda: reads.floors(answer, slugs))

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        answer = self._get("/listings", {"collectionSlug": needed_slug(slug), "sort": "price", **paging(cursor)})
        return _of_read(lambda: reads.asks(answer, slug, is_first=cursor is None))

    def bids(self, slug: str, kind: Kind, cursor: Cursor) -> Page[TraitedBid]:
        """Returns all bids in one page, because no paging is documented."""
        self._ordinals(kind)
        known = needed_slug(slug)
        answer = self._get(_of(known, "collection-offers"))
        return _of_read(lambda: orders.bids(answer, known))

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        """Returns a collection's traits, counted from its items. Raises NotSupported for more than a hundred items."""
        answer = self._get(_of(needed_slug(slug), "inscriptions"), paging(None))
        return _of_read(lambda: reads.traits(answer))

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[base.Sale]:
        """Returns the sales made at ord.net; empty for an unknown collection."""
        self._ordinals(kind)
        answer = self._get("/sales", {"collectionSlug": needed_slug(slug), **paging(cursor)})
        return _of_read(lambda: reads.sales(answer, slug, is_first=cursor is None))

    def own_bids(self, wallet: str, cursor: Cursor, slugs: Collection[str] = ()) -> Page[base.OwnBid]:
        """Returns the live offers of a payment address on the collections `slugs`, one page each.

        ord.net lists offers on collections by collection only; its list of all offers has those on single items. So it
        raises Unavailable without `slugs`, because an empty answer would mean "no bids".
        """
        session = self._sessions.of_payment(wallet)
        asked = sorted({needed_slug(slug) for slug in slugs})
        if not asked:
            raise Unavailable("ord.net tells our bids by collection only, and none was named")
        slug = asked[0] if cursor is None else str(cursor)
        following = next((each for each in asked if each > slug), None)
        answer = self._get(_of(slug, "my/sent-collection-offers"), session=session)
        found = _of_read(lambda: orders.own_bids(answer, slug, session.binding, session.bindings))
        return found._replace(following=following)

    def item(self, inscription_id: str) -> base.Item:
        """Returns details of an inscription from its listing. Raises NotFound if it is not listed."""
        answer = self._get("/listings", {"inscriptionId": inscription_id, **paging(None)})
        return _of_read(lambda: reads.item(answer, inscription_id))

    def own_listings(self, owner: str, cursor: Cursor) -> Page[OwnListing]:
        answer = self._get("/listings", {"sellerAddress": owner, **paging(cursor)})
        page = _of_read(lambda: reads.own_listings(answer, owner, self._listed.made_of, is_first=cursor is None))
        self._listed.note(page.entries)
        return page

    def draft_bid(self, order: BidToDraft) -> BidDraft:
        session = self._sessions.of_pair(order.payment, order.ordinals)
        path = _of(needed_slug(order.slug), "collection-offers/preflight")
        hours = self.capabilities().life_hours(order.valid_hours)
        if hours is None:
            raise NotSupported(f"no bid at ord.net lives {order.valid_hours} hours")
        ask = replace(order, valid_hours=hours)
        answer = self._get(path, post=orders.bid_preflight(ask, session.binding), session=session)
        return self._drafts.keep(_of_read(lambda: orders.bid_draft(answer, ask)))

    def draft_listing(self, ask: ListingToDraft) -> ListingDraft:
        """Drafts the transfer into the escrow, the sale out of it, and the recovery."""
        session = self._sessions.of_ordinals(ask.owner)
        path = _of(needed_slug(ask.slug), "listings/preflight")
        answer = self._get(path, post=orders.listing_preflight(ask, session.binding), session=session)
        drafted = _of_read(lambda: orders.listing_draft(answer, ask))
        self._listing_drafts.note(ask.inscription_id, drafted)
        return drafted.to_sign()

    def sign_in_texts(self, pair: Pair) -> SignInTexts:
        asked = {"ordinalsAddress": pair.ordinals, "paymentAddress": pair.payment}
        answer = self._http.read("/auth/challenge", post=asked)
        return _of_read(lambda: _texts(answer, pair))

    def sign_in(self, answer: SignInAnswer) -> None:
        opened = self._http.read("/auth/verify", post=_verify_body(answer))
        now_ms = self._sessions.now_ms()
        self._sessions.hold(_of_read(lambda: _session(opened, answer.pair, self._base, now_ms)))

    def place(self, order: base.BidOrder, permit: Permit | None = None) -> str:
        draft = self._drafts.of(order)
        session = self._sessions.of_pair(order.payment, order.receive)
        said = orders.bid_submit(draft, order.signed_psbts[0], session.binding)
        answer = self._post(session, _of(needed_slug(order.slug), "collection-offers/submit"), said, permit)
        return of_write(lambda: orders.bid_submitted(answer, draft))

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        """Cancels one bid, because ord.net takes one per request. `signature` is not used."""
        if len(venue_ids) != 1:
            raise Refused("bad_request", "ord.net cancels one bid at a time; nothing was sent")
        slug, _, offer_id = venue_ids[0].partition(":")
        if known_slug(slug) != slug or not reads.UUID.fullmatch(offer_id):
            raise Refused("bad_request", "that is no offer of ord.net")
        session = self._sessions.of_payment(wallet)
        path = _of(slug, f"collection-offers/{segment(offer_id)}/cancel")
        answer = self._post(session, path, {"walletBindingId": session.binding.id}, permit)
        return of_write(lambda: orders.cancelled(answer, offer_id))

    def list_item(self, order: ListingOrder, permit: Permit | None = None) -> None:
        kept = self._listing_drafts.of(order.ask.inscription_id)
        drafted = known_draft(kept, lambda draft: draft.is_of(order), "listing")
        session = self._sessions.of_ordinals(order.ask.owner)
        said = orders.listing_submit(order, drafted, session.binding)
        answer = self._post(session, _of(needed_slug(order.ask.slug), "listings/submit"), said, permit)
        self._listed.note([of_write(lambda: orders.listing_submitted(answer, order.ask))])

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Ends the inscription's listing, known from `own_listings` or `list_item`. `signature` is not used."""
        listing = self._listed.of(inscription_id, owner)
        session = self._sessions.of_ordinals(owner)
        listed = {"inscriptionId": listing.inscription_id, "listingId": listing.listing_id}
        said = {"walletBindingId": session.binding.id, "listings": [listed]}
        answer = self._post(session, _of(needed_slug(listing.slug), "listings/delist"), said, permit)
        return of_write(lambda: orders.delisted(answer, listing))

    def _ordinals(self, kind: Kind) -> None:
        if kind != "ordinals":
            raise NotSupported("ord.net trades no runes")

    def _get(
        self, path: str, params: Mapping[str, str] | None = None, *, post: Any = None, session: Session | None = None
    ) -> Any:
        """Reads with `session` (None = any open one); removes a session that the venue has ended."""
        used = self._sessions.any() if session is None else session
        try:
            return used.http.read(path, params, post=post)
        except SignInNeeded:
            self._sessions.forget(used)
            raise

    def _post(self, session: Session, path: str, content: Mapping[str, Any], permit: Permit | None) -> Any:
        try:
            return session.http.write(path, json.dumps(content, ensure_ascii=False).encode(), permit)
        except SignInNeeded:
            self._sessions.forget(session)
            raise


def _of_read(understand: Callable[[], parse.Value]) -> parse.Value:
    return parse.of_read(understand, "ord.net")


def _of(slug: str, what: str) -> str:
    return f"/collection/{segment(slug)}/{what}"


def _texts(answer: Any, pair: Pair) -> SignInTexts:
    """Reads the texts to be signed from the answer to POST /auth/challenge, at most one for each of the two addresses.

    A text's id ends with its role, so that `_verification` can find the signer's address.
    """
    opened = parse.table(answer, "challenge")
    found: list[SignInText] = []
    for row in parse.rows(opened.get("challenges"), "challenges", most=2):
        entry = parse.table(row, "challenge")
        role = entry.get("role")
        signer = _of_role(str(role), pair)
        if signer is None or parse.address(entry.get("address"), "address of a challenge") != signer:
            raise Unreadable("a challenge is for another address")
        identity = f"{uuid(entry.get('challengeId'), 'id of a challenge')}:{role}"
        found.append(SignInText(identity, _message(entry.get("message")), signer))
    if not found:
        raise Unreadable("nothing is to be signed")
    return SignInTexts(uuid(opened.get("authRequestId"), "id of a sign-in"), tuple(found))


def _of_role(role: str, pair: Pair) -> str | None:
    return {"payment": pair.payment, "ordinals": pair.ordinals}.get(role)


def _message(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_SIGN_IN_TEXT:
        raise Unreadable("a challenge is not a text of a fair length")
    if any(not c.isprintable() and c != "\n" for c in value):
        raise Unreadable("a challenge has control characters")
    return value


def _verify_body(answer: SignInAnswer) -> dict[str, Any]:
    """Returns the body of POST /auth/verify. Raises Refused for invalid signatures."""
    return {
        "authRequestId": answer.reference,
        "verifications": [_verification(*each, answer.pair) for each in answer.signatures.items()],
    }


def _verification(text_id: str, signature: str, pair: Pair) -> Mapping[str, str]:
    challenge_id, _, role = text_id.partition(":")
    signer = _of_role(role, pair)
    try:
        raw = b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if signer is None or not raw:
        raise Refused("bad_request", "that signature is none, or of no text of ord.net")
    return {"challengeId": challenge_id, "signature": raw.hex(), "address": signer}


def _session(answer: Any, pair: Pair, base: str, now_ms: int) -> Session:
    opened = parse.table(answer, "session")
    token = opened.get("sessionToken")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Unreadable("the session has no token")
    expires_ms = parse.moment(opened.get("expiresAt"), "end of the session")
    if expires_ms <= now_ms + MARGIN_MS:
        raise Unreadable("the session is over already: is this machine's clock right?")
    found = parse.rows(opened.get("walletBindings"), "wallet bindings", most=_MOST_BINDINGS)
    bindings = tuple(_binding(parse.table(row, "wallet binding")) for row in found)
    for binding in bindings:
        if (binding.payment, binding.ordinals) == (pair.payment, pair.ordinals):
            return Session(binding, bindings, expires_ms, token, OrdNetHttp(base, token))
    raise Unreadable("the session is of other addresses")


def _binding(entry: Mapping[str, Any]) -> Binding:
    return Binding(
        uuid(entry.get("walletBindingId"), "id of a wallet binding"),
        parse.address(entry.get("paymentAddress"), "payment address"),
        parse.address(entry.get("ordinalsAddress"), "ordinals address"),
    )
