"""The interface of marketplaces: an adapter is a subclass that implements its venue's operations.

Each method makes at most one HTTP request. An operation that a venue lacks raises NotSupported, the default here. Reads
raise Unavailable, RateLimited and Refused leaves; writes also raise Unknown. A method that lacks the session it needs
raises SignInNeeded and sends nothing. Sats are int, unit prices Decimal, times epoch milliseconds.

A signer puts a taproot key signature into the PSBT input (BIP-371), but some venues read only final witnesses
(BIP-174). For a key path the witness is that signature alone.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from msgspec import Struct

from markets import base, orders, venues
from markets.base import LONGEST_PSBT, Kind, NotSupported, Refused, Trait, Unavailable
from markets.http import Permit
from markets.parse import Cursor, Page, Unread, Unreadable
from markets.venues import Capabilities
from strategy.book import Ask, Bid, VenueProfile


class AskAgain(Unavailable):
    """This endpoint of the venue does not have the answer; repeat the call to ask the next endpoint.

    It counts neither as the venue's success nor as its failure.
    """


class TraitedAsk(Struct, frozen=True):
    """An ask and its item's traits; None = the venue does not name them."""

    ask: Ask
    traits: frozenset[Trait] | None


class TraitedBid(Struct, frozen=True):
    """A bid and the traits it asks for, usually one; empty = it is on the whole collection or rune."""

    bid: Bid
    traits: frozenset[Trait]


class Adapter:
    """One venue. Thread-safe. It signs nothing."""

    name: str  # as in tasks and grants

    def capabilities(self) -> Capabilities:
        """Returns the venue's capabilities. No request."""
        return venues.capabilities(self.name)

    def profile(self, kind: Kind) -> VenueProfile:
        """Returns the venue's rules for bids on one kind of goods. No request. Raises NotSupported if it takes none."""
        return venues.profile(self.name, kind)

    # reads

    def floors(self, slugs: Sequence[str], kind: Kind) -> Mapping[str, base.Floor | Unread]:
        """Returns floors for at most `floors_at_once` slugs; slugs the venue does not know are left out.

        A slug whose row could not be read maps to its Unread. Raises AskAgain if another endpoint may have the answer.
        """
        self._no("floors")

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        """Returns one page of a collection's listings, cheapest first, with the traits they name."""
        self._no("listings of a collection")

    def bids(self, slug: str, kind: Kind, cursor: Cursor) -> Page[TraitedBid]:
        """Returns one page of the bids on a collection or rune and its traits, best first, without single items'."""
        self._no("bids of a collection")

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        """Returns a collection's traits: type to value to the count of items. NotFound for an unknown collection."""
        self._no("traits")

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[base.Sale]:
        """Returns one page of the sales of a collection or rune, newest first."""
        self._no("sales")

    def own_bids(self, wallet: str, cursor: Cursor, slugs: Collection[str] = ()) -> Page[base.OwnBid]:
        """Returns one page of a payment address's live bids; rows that cannot be read are in the page's `unread`.

        `slugs` are the collections to read, for a venue that lists a wallet's bids by collection only.
        """
        self._no("a wallet's bids")

    def challenge(self, address: str) -> str:
        """Returns a text that `address` must sign before it may cancel."""
        self._no("challenges: nothing is signed for a cancel")

    def bidding_wallet(self, payment: str, receive: str, pubkey: str) -> str:
        """Returns the address that funds the bids of this pair of addresses. Raises NotFound if it has none yet."""
        self._no("bidding wallets")

    def wallet_contents(self, address: str, cursor: Cursor) -> Page[base.WalletItem]:
        """Returns one page of the inscriptions at an address."""
        self._no("the contents of wallets")

    def item(self, inscription_id: str) -> base.Item:
        """Returns details of one inscription."""
        self._no("single inscriptions")

    def own_listings(self, owner: str, cursor: Cursor) -> Page[orders.OwnListing]:
        """Returns one page of an address's listings."""
        self._no("a wallet's listings")

    # drafts to be signed; they change nothing at the venue

    def draft_bid(self, order: orders.BidToDraft) -> orders.BidDraft:
        """Returns the PSBTs to be signed for a bid, at a venue whose bids are PSBTs."""
        self._no("drafts of bids: its bids are messages, or it takes none")

    def draft_listing(self, ask: orders.ListingToDraft) -> orders.ListingDraft:
        """Returns the PSBTs to be signed for a listing."""
        self._no("listings of ours")

    def draft_delist(self, owner: str, inscription_id: str) -> orders.ListingDraft:
        """Returns the PSBT to be signed to end a listing; pass the signed one to `delist` as its signature."""
        self._no("drafts for taking a listing back: it wants none signed")

    def draft_withdrawal(self, payment: str, amount: int) -> str:
        """Returns the PSBT (base64) to be signed to withdraw `amount` sats from the bidding wallet."""
        self._no("withdrawals from a bidding wallet")

    def sign_in_texts(self, pair: orders.Pair) -> orders.SignInTexts:
        """Returns the texts that the two addresses must sign before the venue opens a session for them."""
        self._no("sign-in")

    def sign_in(self, answer: orders.SignInAnswer) -> None:
        """Opens the session, which the adapter keeps in memory. Raises AuthFailed if the venue refuses it."""
        self._no("sign-in")

    # writes: `permit` is called right before the first byte is sent; its error is raised

    def place(self, order: base.BidOrder, permit: Permit | None = None) -> str | None:
        """Submits a signed bid; returns its id, or None if the venue gives none."""
        self._no("bids")

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        """Cancels bids by their ids; returns False if the venue reports a failure of any of them.

        `signature` is the wallet's signature of a challenge, "" if the venue needs none.
        """
        self._no("bids")

    def list_item(self, order: orders.ListingOrder, permit: Permit | None = None) -> None:
        """Submits a signed listing; it replaces an earlier one of the same inscription."""
        self._no("listings of ours")

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Cancels the listing of one inscription; returns False if the venue reports a failure."""
        self._no("listings of ours")

    def submit_withdrawal(self, payment: str, psbt: str, permit: Permit | None = None) -> str:
        """Submits a signed draft of a withdrawal, which the venue completes and broadcasts; returns the txid."""
        self._no("withdrawals from a bidding wallet")

    def _no(self, what: str) -> NoReturn:
        raise NotSupported(f"{self.name} does not have it: {what}")


Value = TypeVar("Value")


class Latest(Generic[Value]):
    """A map of at most `most` values, by name (usually an inscription id); evicts the oldest. Thread-safe."""

    def __init__(self, most: int = 5000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Value] = {}

    def note(self, name: Hashable, value: Value) -> None:
        with self._lock:
            self._kept.pop(name, None)
            self._kept[name] = value
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]

    def of(self, name: Hashable) -> Value | None:
        """Returns the stored value, or None."""
        with self._lock:
            return self._kept.get(name)

    def drop(self, name: Hashable) -> Value | None:
        with self._lock:
            return self._kept.pop(name, None)


def known_draft(kept: Value | None, is_it: Callable[[Value], bool], what: str) -> Value:
    """Returns the draft `kept` for a signed order. Raises Refused if it is None or belongs to another order."""
    if kept is None:
        raise Refused("changed", "this draft is not known here any more; nothing was sent")
    if not is_it(kept):
        raise Refused("bad_request", f"the draft is of another {what}; nothing was sent")
    return kept


_HEX = re.compile(r"70736274ff([0-9a-f]{2})+", re.ASCII)
_BASE64 = re.compile(r"cHNidP8[A-Za-z0-9+/]+={0,2}", re.ASCII)


def in_base64(value: Any) -> str:
    """Reads a PSBT in hex or base64; returns base64. Raises Unreadable for other values and for overlong ones."""
    if isinstance(value, str) and len(value) <= 2 * LONGEST_PSBT and _HEX.fullmatch(value):
        value = base64.b64encode(bytes.fromhex(value)).decode()
    if not is_base64(value):
        raise Unreadable("a PSBT is neither hex nor base64 of a fair length")
    assert isinstance(value, str)
    return value


def is_base64(value: Any) -> bool:
    """Returns whether `value` is a PSBT in base64."""
    return isinstance(value, str) and len(value) <= LONGEST_PSBT and _BASE64.fullmatch(value) is not None


def any_base64(value: Any, what: str) -> str:
    """Reads base64 that may be a PSBT; the signer checks that it is one. Raises Unreadable otherwise."""
    if not isinstance(value, str) or len(value) > LONGEST_PSBT or not re.fullmatch("[A-Za-z0-9+/]{4,}={0,2}", value):
        raise Unreadable(f"{what}: a PSBT is not base64 of a fair length")
    return value


_MAGIC = b"psbt\xff"
_UNSIGNED_TX, _FINAL_WITNESS, _KEY_SIGNATURE = b"\x00", b"\x08", b"\x13"

_Map = list[tuple[bytes, bytes]]


def with_witnesses(psbt: str) -> str:
    """Returns `psbt` (version 0, base64) after adding a final witness to each input that has only a key signature.

    Raises ValueError if it is not a PSBT.
    """
    raw = base64.b64decode(psbt, validate=True)
    if not raw.startswith(_MAGIC):
        raise ValueError("not a PSBT")
    maps = list(_maps(raw, len(_MAGIC)))
    inputs = _inputs(dict(maps[0]).get(_UNSIGNED_TX, b"")) if maps else 0
    if len(maps) <= inputs:
        raise ValueError("a PSBT without all of its inputs")
    for each in maps[1 : 1 + inputs]:
        fields = dict(each)
        signature = fields.get(_KEY_SIGNATURE)
        if signature is not None and _FINAL_WITNESS not in fields:
            each.append((_FINAL_WITNESS, b"\x01" + _with_length(signature)))
            each.sort(key=lambda pair: pair[0])
    written = b"".join(
        b"".join(_with_length(key) + _with_length(value) for key, value in each) + b"\0" for each in maps
    )
    return base64.b64encode(_MAGIC + written).decode()


def _maps(raw: bytes, at: int) -> Iterator[_Map]:
    found: _Map = []
    while at < len(raw):
        key, at = _taken(raw, at)
        if not key:
            yield found
            found = []
            continue
        value, at = _taken(raw, at)
        found.append((key, value))
    if found or at != len(raw):
        raise ValueError("a PSBT that ends too early")


def _taken(raw: bytes, at: int) -> tuple[bytes, int]:
    """Returns the length-prefixed bytes at `at`, and their end, which may be beyond the PSBT's end."""
    length, at = _number(raw, at)
    return raw[at : at + length], at + length


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """Returns the compact size at `at` and its end."""
    if at >= len(raw):
        raise ValueError("a PSBT that ends too early")
    width = {0xFD: 2, 0xFE: 4, 0xFF: 8}.get(raw[at], 0)
    if not width:
        return raw[at], at + 1
    return int.from_bytes(raw[at + 1 : at + 1 + width], "little"), at + 1 + width


def _with_length(value: bytes) -> bytes:
    size = len(value)
    if size < 0xFD:
        return bytes([size]) + value
    return (
        b"\xfd" + size.to_bytes(2, "little") + value if size < 1 << 16 else b"\xfe" + size.to_bytes(4, "little") + value
    )


def _inputs(unsigned_tx: bytes) -> int:
    """Returns the number of a transaction's inputs, which follows its version."""
    return _number(unsigned_tx, 4)[0]
