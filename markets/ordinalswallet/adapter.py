"""The adapter for Ordinals Wallet (`turbo.ordinalswallet.com`) and for the practice market with its dialect.

We place no bids there: an offer is a transaction into an escrow, and its cancel another one, so each costs a network
fee. Listings are off-chain and free.

A protected listing ("passthrough v4") is two PSBTs; neither is broadcast before the sale. The transfer moves the item
into an escrow, the sale pays us out of it. Our own key can return the item, so the venue drafts no recovery. Rows are
identified by the output that the item was listed from. Source: the venue's client's code.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from core.fields import WithSecrets
from markets import base, orders, parse
from markets.adapter import Adapter, Latest, TraitedAsk, known_draft, with_witnesses
from markets.base import (
    LONGEST_PSBT,
    AuthFailed,
    Kind,
    NotFound,
    NotSupported,
    NotUnderstood,
    Refused,
    SignInNeeded,
    Unavailable,
)
from markets.http import Http, Permit, error_text, refusal, segment
from markets.ordinalswallet import books
from markets.ordinalswallet.books import Prices, content, protected_outpoint
from markets.parse import Cursor, Page, Unreadable, number_of

SIGN_IN_ID = "ordinals"
# Its 404 for an unknown slug or inscription has no body. Not used for wallets, because a 404 without a body does not
# prove that a wallet has no listings.
NO_BODY = ""
_MOST_SESSIONS = 100_000
_RENEW_S = 300  # a token this close to its expiry is not used
_NO_BIDS = "no bids from here: an offer there, and its cancel, is a transaction that costs a network fee"
_PSBT = re.compile(r"70736274ff([0-9a-f]{2})+", re.ASCII)
_REFERENCE = re.compile(r"([0-9a-f]{32})\.([0-9]{13})", re.ASCII)
_TOKEN = re.compile(r"[\x21-\x7e]{8,2000}", re.ASCII)
_CANCELLED = ("cancelled", "already_cancelled")
POLICY = "passthrough_v4"
_DIGEST = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)
_CODE = re.compile(r"[a-z][a-z0-9_]{1,80}", re.ASCII)
# Error codes in its client for temporary conditions, such as a new block or an index that lags.
_PASSING = frozenset(
    {
        "build_tip_changed",
        "build_tip",
        "authorize_tip",
        "authorize_tip_changed",
        "asset_index_tip_changed",
        "asset_index_tip_mismatch",
        "asset_index_fork_mismatch",
        "asset_index_incomplete",
        "asset_index_unavailable",
        "asset_index_stale",
        "ord_index_stale",
        "chain_tip_unavailable",
        "cosigner_unavailable",
        "secure_listing_unavailable",
        "outpoint_not_fully_indexed",
    }
)


class Session(WithSecrets, frozen=True):
    """A session of one address until `expires_s` (epoch seconds). `token` is hidden in its repr."""

    hidden = frozenset({"token"})

    token: str
    expires_s: int


class ProtectedDraft(Struct, frozen=True):
    """A draft of a protected listing; its submit must repeat `digest`."""

    ask: orders.ListingToDraft
    draft: orders.ListingDraft
    digest: str


class OrdinalsWallet(Adapter):
    """The venue's adapter; `base` ends before `/collection/...`. All its prices are the seller's.

    With `is_protecting` it drafts protected listings, else plain ones; it submits both. Sessions are kept in memory, by
    the address that signed in. `now_ms` and `nonce` (32 hex digits) are for tests.
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
        self._protected: Latest[str | None] = Latest()  # the output that identifies a listing; None = a plain listing
        self._prices: Latest[Prices] = Latest()
        self._now_ms = now_ms
        self._nonce = nonce
        self._sessions: Latest[Session] = Latest(_MOST_SESSIONS)

    def floors(self, slugs: Sequence[str], kind: Kind) -> dict[str, base.Floor]:
        """Returns the floor of one slug, because the venue has no request for several. Raises ValueError for more."""
        (slug,) = slugs
        try:
            answer = self._http.read(f"/collection/{segment(books.slug_of(slug, kind))}/stats", missing=NO_BODY)
            return {slug: parse.of_read(lambda: books.floor(answer, slug, kind), self.name)}
        except NotFound:
            return {}

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        """Returns the listings of one answer; `following` is set if the answer may have been truncated."""
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

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[base.Sale]:
        """Returns one page of the sales made at this venue."""
        start = number_of(cursor, 0)
        params = {"limit": str(books.SALES_PAGE), "offset": str(start)}
        path = f"/collection/{segment(books.slug_of(slug, kind))}/sold-escrows"
        answer = self._http.read(path, params, missing=NO_BODY)
        return parse.of_read(lambda: books.sales(answer, slug, kind, start), self.name)

    def wallet_contents(self, address: str, cursor: Cursor) -> Page[base.WalletItem]:
        """Returns all inscriptions in one page."""
        answer = self._http.read(f"/wallet/{segment(address)}/inscriptions")
        return parse.of_read(lambda: books.wallet_items(answer, self._images), self.name)

    def item(self, inscription_id: str) -> base.Item:
        """Returns details of one inscription, which the venue may serve a day old."""
        answer = self._http.read(f"/inscription/{segment(inscription_id)}", missing=NO_BODY)
        return parse.of_read(lambda: books.item(answer, inscription_id, self._images), self.name)

    def own_listings(self, owner: str, cursor: Cursor) -> Page[orders.OwnListing]:
        """Returns a wallet's listings: first all with a known price, then the others one by one.

        A listing of the second kind is read once, and again when its shown price changes. If its answer is not
        understood, only that listing is unread.
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
        except Unreadable as error:
            return Page((), rest or None, (parse.left_out(error, inscription_id),))
        if found is None:
            return Page((), rest or None)
        listing, prices = found
        self._note({inscription_id: protected_outpoint(answer)})
        self._prices.note(inscription_id, prices)
        return Page((listing,), rest or None)

    def draft_bid(self, order: orders.BidToDraft) -> orders.BidDraft:
        raise NotSupported(f"{self.name}: {_NO_BIDS}")

    def place(self, order: base.BidOrder, permit: Permit | None = None) -> str | None:
        raise NotSupported(f"{self.name}: {_NO_BIDS}")

    def draft_listing(self, ask: orders.ListingToDraft) -> orders.ListingDraft:
        """Returns the PSBT of a plain listing, or the two of a protected one. Changes nothing at the venue."""
        if not self._is_protecting:
            answer = self._http.read("/wallet/escrow-bulk", post=_draft_body(ask), missing=NO_BODY)
            return parse.of_read(
                lambda: orders.ListingDraft(_psbt(parse.table(content(answer), "draft"), "psbt")), self.name
            )
        body = _protected_body(ask)
        answer = self._http.read("/market/secure-listing/build-bulk", post=body, missing=NO_BODY)
        drafted = parse.of_read(lambda: _protected_draft(answer, ask), self.name)
        self._drafts.note(ask.inscription_id, drafted)
        return drafted.draft

    def list_item(self, order: orders.ListingOrder, permit: Permit | None = None) -> None:
        if not order.signed_transfer:
            answer = self._http.write("/market/escrow-bulk", _list_body(order), permit)
            parse.of_write(lambda: _check_listed(answer))
            return
        signed = (order.ask, order.unsigned_psbt, order.signed_recovery)
        kept = self._drafts.of(order.ask.inscription_id)
        drafted = known_draft(kept, lambda draft: signed == (draft.ask, draft.draft.psbt, ""), "listing")
        body = _authorize_body(order, drafted)
        answer = self._http.write("/market/secure-listing/authorize-bulk", body, permit)
        parse.of_write(lambda: _check_authorized(answer, order.ask.outpoint))
        self._protected.note(order.ask.inscription_id, order.ask.outpoint)

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Ends the listing of one inscription with the owner's session; `signature` is not used."""
        token, outpoint = self._token(owner), self._protected.of(inscription_id)
        if outpoint == "":
            raise Unavailable("which output the listing goes by is not told at the moment; nothing was sent")
        # A protected listing is identified by its output, a plain one by its inscription.
        named = {"inscription_id": inscription_id} if outpoint is None else {"outpoint": outpoint}
        body = json.dumps({**named, "signature": token}).encode()
        try:
            answer = self._http.write("/market/cancel-escrow", body, permit)
            return parse.of_write(lambda: _delisted(answer))
        except AuthFailed:
            self._sessions.drop(owner)
            raise

    def _note(self, outpoints: Mapping[str, str | None]) -> None:
        for inscription_id, outpoint in outpoints.items():
            if outpoint != "" or not self._protected.of(inscription_id):
                self._protected.note(inscription_id, outpoint)

    def sign_in_texts(self, pair: orders.Pair) -> orders.SignInTexts:
        """Returns the text that the inscriptions' address must sign within five minutes. It is ours; no request."""
        nonce, issued_ms = self._nonce(), self._now_ms()
        message = _sign_in_message(pair.ordinals, nonce, issued_ms)
        return orders.SignInTexts(f"{nonce}.{issued_ms}", (orders.SignInText(SIGN_IN_ID, message, pair.ordinals),))

    def sign_in(self, answer: orders.SignInAnswer) -> None:
        """Opens the owner's session for a day. The venue accepts each text once."""
        owner = answer.pair.ordinals
        signature = answer.signatures.get(SIGN_IN_ID)
        if signature is None:
            raise AuthFailed(f"no signature of {SIGN_IN_ID!r}")
        said = self._http.read("/auth/session", post=_session_body(owner, answer.reference, signature))
        opened = parse.of_read(lambda: _session(said, owner), self.name)
        self._sessions.note(owner, opened)

    def _token(self, owner: str) -> str:
        held = self._sessions.of(owner)
        if held is not None and held.expires_s - _RENEW_S > self._now_ms() // 1000:
            return held.token
        raise SignInNeeded(f"{self.name} wants the owner to sign in")


def _sign_in_message(address: str, nonce: str, issued_ms: int) -> str:
    """Returns the sign-in text, which must equal byte for byte the text that the venue rebuilds."""
    return (
        "Sign in to Ordinals Wallet\n\n"
        "This proves you own this address. It does not move funds or cost a fee.\n\n"
        f"Address: {address}\nNonce: {nonce}\nIssued At: {issued_ms}"
    )


def _session_body(address: str, reference: str, signature: str) -> dict[str, Any]:
    """Returns the body of POST /auth/session for our sign-in text. Raises AuthFailed for an invalid reference."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise AuthFailed("this sign-in was not begun here")
    return {"address": address, "nonce": found[1], "issued_at": int(found[2]), "signature": signature}


def _session(answer: Any, address: str) -> Session:
    opened = parse.table(content(answer), "session")
    if opened.get("address") != address:
        raise Unreadable("the session is another address's")
    token = opened.get("token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Unreadable("the session has no token")
    return Session(token, parse.whole(opened.get("expires_at"), "expires_at"))


def _draft_body(ask: orders.ListingToDraft) -> dict[str, Any]:
    return {
        "inscriptions": [ask.inscription_id],
        "from": ask.owner,
        "prices": [ask.price],
        "public_key": _compressed(ask),
        "receive_address": ask.receive,
    }


def _list_body(order: orders.ListingOrder) -> bytes:
    """Returns the body of POST /market/escrow-bulk, with witnesses as the official client sends them.

    Raises Refused if the signed listing is not a PSBT.
    """
    try:
        psbt = base64.b64decode(with_witnesses(order.signed_psbt))
    except ValueError as error:
        raise Refused("not_a_psbt", f"the signed listing is {error}") from error
    return json.dumps({"psbt": psbt.hex()}).encode()


def _check_listed(answer: Any) -> None:
    """Raises a Refused leaf if the listing was refused, Unreadable if the answer is unclear."""
    said = parse.table(content(answer), "answer")
    if parse.flag(said.get("success"), "success"):
        return
    if (why := error_text(said)) is not None:
        raise refusal(why)
    raise Unreadable("neither taken nor refused")


def _delisted(answer: Any) -> bool:
    """Returns whether the listing has ended, now or before."""
    said = parse.table(content(answer), "answer")
    transition = said.get("transition")
    if transition is not None and parse.text(transition, "transition") not in _CANCELLED:
        return False
    return parse.flag(said.get("success"), "success")


def _protected_body(ask: orders.ListingToDraft) -> dict[str, Any]:
    """Returns the body of POST /market/secure-listing/build-bulk for one item. Raises Refused without its output."""
    if not ask.outpoint:
        raise Refused("bad_request", "which output the item is on is needed for a draft there; nothing was sent")
    return {
        "protocol": "ordinal",
        "seller_address": ask.receive,
        "seller_public_key": _compressed(ask),
        "items": [{"outpoint": ask.outpoint, "escrow_price_sats": ask.price}],
    }


def _protected_draft(answer: Any, ask: orders.ListingToDraft) -> ProtectedDraft:
    """Reads the two PSBTs to be signed. Raises Unavailable for a temporary error, Refused for any other."""
    row = _row(answer, ask.outpoint)
    if (code := _fault(row)) is not None:
        if code in _PASSING:
            raise Unavailable(f"no draft at the moment: {code}")
        raise Refused("refused", f"no draft of this item: {code}")
    said = (
        parse.text(row.get("state"), "state"),
        parse.text(row.get("policy"), "policy"),
        row.get("protocol", "ordinal"),
    )
    if said != ("authorization_required", POLICY, "ordinal"):
        raise Unreadable("the draft is of another form than is known")
    if parse.whole(row.get("escrow_price_sats"), "price") != ask.price:
        raise Unreadable("the draft is at another price")
    digest = row.get("template_digest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise Unreadable("the draft has no digest")
    return ProtectedDraft(ask, orders.ListingDraft(_psbt(row, "sale_psbt"), (), _psbt(row, "psbt")), digest)


def _authorize_body(order: orders.ListingOrder, kept: ProtectedDraft) -> bytes:
    """Returns the body of POST /market/secure-listing/authorize-bulk, with the PSBTs signed but not finalized."""
    item = {
        "outpoint": order.ask.outpoint,
        "protocol": "ordinal",
        "seller_public_key": _compressed(order.ask),
        "template_digest": kept.digest,
        "psbt": _hex(order.signed_transfer),
        "sale_psbt": _hex(order.signed_psbt),
        "escrow_price_sats": order.ask.price,
    }
    return json.dumps({"items": [item]}).encode()


def _check_authorized(answer: Any, outpoint: str) -> None:
    """Raises Refused if the listing was refused, Unreadable if the answer is unclear."""
    row = _row(answer, outpoint)
    if (code := _fault(row)) is not None:
        raise Refused("refused", f"not listed: {code}")
    if parse.text(row.get("state"), "state") != "listed":
        raise Unreadable("neither listed nor refused")


def _row(answer: Any, outpoint: str) -> Mapping[str, Any]:
    """Returns the answer's row for this output; the answer may be that row alone."""
    found = parse.table(answer, "answer")
    if "items" not in found and found.get("outpoint") == outpoint:
        return found
    listed = [
        parse.table(row, "item")
        for row in parse.rows(parse.table(content(found), "answer").get("items"), "items", most=1)
    ]
    if len(listed) != 1 or listed[0].get("outpoint") != outpoint:
        raise Unreadable("the answer is not about this item")
    return listed[0]


def _fault(row: Mapping[str, Any]) -> str | None:
    if not row.get("error"):
        return None
    code = row.get("code")
    return code if isinstance(code, str) and _CODE.fullmatch(code) else "no reason is told"


def _psbt(row: Mapping[str, Any], name: str) -> str:
    """Reads a PSBT in hex; returns base64. The signer checks its content."""
    found = row.get(name)
    if not isinstance(found, str) or len(found) > 2 * LONGEST_PSBT or not _PSBT.fullmatch(found):
        raise Unreadable(f"{name} is no PSBT in hex")
    encoded = base64.b64encode(bytes.fromhex(found)).decode()
    if len(encoded) > LONGEST_PSBT:
        raise Unreadable(f"{name} is too long")
    return encoded


def _hex(psbt: str) -> str:
    try:
        return base64.b64decode(psbt, validate=True).hex()
    except ValueError as error:
        raise Refused("not_a_psbt", "a signed PSBT is not base64; nothing was sent") from error


def _compressed(ask: orders.ListingToDraft) -> str:
    # Either parity byte will do, because a taproot key is its x coordinate only.
    return "02" + ask.tap_internal_key
