"""Ordinals Wallet (`turbo.ordinalswallet.com`), and the practice market that speaks its dialect.

It takes no bids of ours: its offers are paid into an escrow by a transaction that is broadcast, and taken back by
another, so that each bid and each cancel costs a network fee. Listings are off-chain and free.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence

from markets import parse
from markets.adapter import Adapter, Latest, TraitedAsk
from markets.base import (
    AuthFailed,
    BidOrder,
    Floor,
    Item,
    Kind,
    NotFound,
    NotSupported,
    NotUnderstood,
    Sale,
    SignInNeeded,
    Unavailable,
    WalletItem,
)
from markets.http import Http, Permit, segment
from markets.orders import (
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
from markets.ordinalswallet import books, wire
from markets.ordinalswallet.books import Prices
from markets.ordinalswallet.wire import ProtectedDraft
from markets.parse import Cursor, Page, Unreadable, number_of

SIGN_IN_ID = "ordinals"
# Its 404 for a slug or an inscription that it does not know has no body. A wallet's 404 is not read so: without a body
# it says nothing about the wallet, and "none" would be a claim about our listings.
NO_BODY = ""
_MOST_SESSIONS = 100_000
_RENEW_S = 300  # a token this close to its end is not used any more
_NO_BIDS = "no bids from here: an offer there, and its cancel, is a transaction that costs a network fee"


class OrdinalsWallet(Adapter):
    """The venue's adapter; `base` ends before `/collection/...`. All its prices are the seller's.

    Listings are drafted as protected ones when it `is_protecting`, else as plain ones; each is submitted as what it is.
    Sessions are held in memory, by the address that signed in. `now_ms` and `nonce` (32 hex digits) are for tests.
    """

    def __init__(
        self,
        base: str,
        name: str,
        *,
        is_protecting: bool = False,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        nonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.name = name
        self._http = Http(base, {"x-ow-client": "bidkeeper"})
        self._images = base.rstrip("/") + "/inscription/content"
        self._is_protecting = is_protecting
        self._drafts: Latest[ProtectedDraft] = Latest()
        self._protected: Latest[str | None] = Latest()  # the output that a listing goes by; None = a plain one
        self._prices: Latest[Prices] = Latest()
        self._now_ms = now_ms
        self._nonce = nonce
        self._sessions: Latest[wire.Session] = Latest(_MOST_SESSIONS)

    def floors(self, slugs: Sequence[str], kind: Kind) -> dict[str, Floor]:
        """Returns the floor of the one slug given: the venue has no request for several. Raises ValueError for more."""
        (slug,) = slugs
        try:
            answer = self._http.read(f"/collection/{segment(books.slug_of(slug, kind))}/stats", missing=NO_BODY)
            return {slug: parse.of_read(lambda: books.floor(answer, slug, kind), self.name)}
        except NotFound:
            return {}

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        """Returns the listings of one answer; another follows one that may have been cut."""
        before = books.Before.of(cursor)
        try:
            answer = self._http.read(f"/collection/{segment(slug)}/escrows", books.paging(before), missing=NO_BODY)
        except NotFound as error:
            if before is None:
                raise
            raise NotUnderstood(f"{self.name} has no more listings, and does not know the collection") from error
        return parse.of_read(lambda: books.asks(answer, slug, before), self.name)

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        answer = self._http.read(f"/collection/{segment(slug)}/attributes", missing=NO_BODY)
        return parse.of_read(lambda: books.trait_counts(answer), self.name)

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[Sale]:
        """Returns one page of the sales through this venue; other venues' sales are not in it."""
        start = number_of(cursor, 0)
        params = {"limit": str(books.SALES_PAGE), "offset": str(start)}
        path = f"/collection/{segment(books.slug_of(slug, kind))}/sold-escrows"
        answer = self._http.read(path, params, missing=NO_BODY)
        return parse.of_read(lambda: books.sales(answer, slug, kind, start), self.name)

    def wallet_contents(self, address: str, cursor: Cursor) -> Page[WalletItem]:
        """Returns all inscriptions in one page."""
        answer = self._http.read(f"/wallet/{segment(address)}/inscriptions")
        return parse.of_read(lambda: books.wallet_items(answer, self._images), self.name)

    def item(self, inscription_id: str) -> Item:
        """Returns details of one inscription, which are up to a day old there."""
        answer = self._http.read(f"/inscription/{segment(inscription_id)}", missing=NO_BODY)
        return parse.of_read(lambda: books.item(answer, inscription_id, self._images), self.name)

    def own_listings(self, owner: str, cursor: Cursor) -> Page[OwnListing]:
        """Returns a wallet's listings: first all with a known price, then the others one by one.

        Each of these is asked for once, and again when its shown price is another. One whose answer is not understood
        is unread, and hides no other.
        """
        if cursor is None:
            answer = self._http.read(f"/wallet/{segment(owner)}/inscriptions")
            page, outpoints = parse.of_read(lambda: books.own_listings(answer, owner, self._prices.of), self.name)
            self._note(outpoints)
            return page
        inscription_id, _, rest = str(cursor).partition(",")
        try:
            answer = self._http.read(f"/market/escrow/{segment(inscription_id)}")
        except NotFound:
            return Page((), rest or None)
        try:
            found = books.own_listing(answer, inscription_id, owner)
            prices = None if found is None else books.prices(answer)
        except Unreadable as error:
            return Page((), rest or None, (parse.left_out(error, inscription_id),))
        if found is None or prices is None:
            return Page((), rest or None)
        self._note({inscription_id: wire.protected_outpoint(answer)})
        self._prices.note(inscription_id, prices)
        return Page((found,), rest or None)

    def draft_bid(self, order: BidToDraft) -> BidDraft:
        raise NotSupported(f"{self.name}: {_NO_BIDS}")

    def place(self, order: BidOrder, permit: Permit | None = None) -> str | None:
        raise NotSupported(f"{self.name}: {_NO_BIDS}")

    def draft_listing(self, ask: ListingToDraft) -> ListingDraft:
        """Returns the PSBT of a plain listing, or the two of a protected one. Changes nothing there."""
        if not self._is_protecting:
            answer = self._http.read("/wallet/escrow-bulk", post=wire.draft_body(ask), missing=NO_BODY)
            return parse.of_read(lambda: wire.draft(answer), self.name)
        body = wire.protected_body(ask)
        answer = self._http.read("/market/secure-listing/build-bulk", post=body, missing=NO_BODY)
        drafted = parse.of_read(lambda: wire.protected_draft(answer, ask), self.name)
        self._drafts.note(ask.inscription_id, drafted)
        return drafted.draft

    def list_item(self, order: ListingOrder, permit: Permit | None = None) -> None:
        if not order.signed_transfer:
            answer = self._http.write("/market/escrow-bulk", wire.list_body(order), permit)
            parse.of_write(lambda: wire.check_listed(answer))
            return
        drafted = wire.drafted_for(order, self._drafts.of(order.ask.inscription_id))
        body = wire.authorize_body(order, drafted)
        answer = self._http.write("/market/secure-listing/authorize-bulk", body, permit)
        parse.of_write(lambda: wire.check_authorized(answer, order.ask.outpoint))
        self._protected.note(order.ask.inscription_id, order.ask.outpoint)

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Cancels the listing of one inscription in the owner's session; `signature` is not used."""
        token, outpoint = self._token(owner), self._protected.of(inscription_id)
        if outpoint == "":
            raise Unavailable("which output the listing goes by is not told at the moment; nothing was sent")
        body = wire.delist_body(inscription_id, outpoint, token)
        try:
            answer = self._http.write("/market/cancel-escrow", body, permit)
            return parse.of_write(lambda: wire.delisted(answer))
        except AuthFailed:
            self._sessions.drop(owner)
            raise

    def _note(self, outpoints: Mapping[str, str | None]) -> None:
        for inscription_id, outpoint in outpoints.items():
            if outpoint != "" or not self._protected.of(inscription_id):
                self._protected.note(inscription_id, outpoint)

    def sign_in_texts(self, pair: Pair) -> SignInTexts:
        """Makes the text that the inscriptions' address must sign within five minutes. No request: we write it."""
        nonce, issued_ms = self._nonce(), self._now_ms()
        message = wire.sign_in_message(pair.ordinals, nonce, issued_ms)
        return SignInTexts(f"{nonce}.{issued_ms}", (SignInText(SIGN_IN_ID, message, pair.ordinals),))

    def sign_in(self, answer: SignInAnswer) -> None:
        """Opens the owner's session, for a day. The venue takes each text once."""
        owner = answer.pair.ordinals
        signature = answer.signatures.get(SIGN_IN_ID)
        if signature is None:
            raise AuthFailed(f"no signature of {SIGN_IN_ID!r}")
        said = self._http.read("/auth/session", post=wire.session_body(owner, answer.reference, signature))
        opened = parse.of_read(lambda: wire.session(said, owner), self.name)
        self._sessions.note(owner, opened)

    def _token(self, owner: str) -> str:
        held = self._sessions.of(owner)
        if held is not None and held.expires_s - _RENEW_S > self._now_ms() // 1000:
            return held.token
        raise SignInNeeded(f"{self.name} wants the owner to sign in")
