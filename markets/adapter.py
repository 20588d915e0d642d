"""The contract of every marketplace: an adapter is a subclass that implements its venue's operations.

Each method is exactly one HTTP request at most. An operation that a venue lacks raises NotSupported, the default here.
Reads raise Unavailable (RateLimited), and Refused leaves; writes Unknown as well. A method that needs a session it does
not hold raises SignInNeeded and sends nothing. Sats are int, unit prices Decimal, times epoch milliseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Generic, NoReturn, TypeVar

from msgspec import Struct

from markets import venues
from markets.base import BidOrder, Floor, Item, Kind, NotSupported, OwnBid, Sale, Trait, Unavailable, WalletItem
from markets.http import Permit
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
from markets.venues import Capabilities
from markets.wire import Page, Unread
from strategy.book import Ask, Bid, VenueProfile

Cursor = int | str | None  # the page of a longer answer: None = the first, then the `following` of the page before


class AskAgain(Unavailable):
    """One source of the venue does not have the answer; the same call, made again, asks the next one.

    It says nothing about whether the venue answers.
    """


def number_of(cursor: Cursor, first: int) -> int:
    """Returns a page's start at a venue that numbers its pages or entries from `first`."""
    if cursor is None:
        return first
    if not isinstance(cursor, int):
        raise TypeError("its pages have numbers")
    return cursor


class TraitedAsk(Struct, frozen=True):
    """An ask and the traits its item is known to have; None = the venue does not tell its traits."""

    ask: Ask
    traits: frozenset[Trait] | None


class TraitedBid(Struct, frozen=True):
    """A bid and the traits it asks for, mostly one; none = it is on the whole collection or rune."""

    bid: Bid
    traits: frozenset[Trait]


class Adapter:
    """One venue. May be used by several threads at once. Nothing in here signs."""

    name: str  # as in tasks and grants

    def capabilities(self) -> Capabilities:
        """Returns the venue's capabilities. No request."""
        return venues.capabilities(self.name)

    def profile(self, kind: Kind) -> VenueProfile:
        """Returns the venue's rules for bids on one kind of goods. No request; NotSupported when it takes none."""
        return venues.profile(self.name, kind)

    # reads

    def floors(self, slugs: Sequence[str], kind: Kind) -> Mapping[str, Floor | Unread]:
        """Returns floors by the slugs given, at most `floors_at_once`; slugs the venue does not know are left out.

        A slug whose row could not be read has its Unread instead. Raises AskAgain where the venue has another source.
        """
        self._no("floors")

    def asks(self, slug: str, cursor: Cursor) -> Page[TraitedAsk]:
        """Returns one page of a collection's listings, cheapest first, with the traits they tell."""
        self._no("listings of a collection")

    def bids(self, slug: str, kind: Kind, cursor: Cursor) -> Page[TraitedBid]:
        """Returns one page of the bids on a collection or rune and on its traits, best first; none on single items."""
        self._no("bids of a collection")

    def traits(self, slug: str) -> dict[str, dict[str, int]]:
        """Returns a collection's traits: type to value to the count of items. NotFound for an unknown collection."""
        self._no("traits")

    def sales(self, slug: str, kind: Kind, cursor: Cursor) -> Page[Sale]:
        """Returns one page of the sales of a collection or rune, newest first."""
        self._no("sales")

    def own_bids(self, wallet: str, cursor: Cursor, slugs: Collection[str] = ()) -> Page[OwnBid]:
        """Returns one page of the live bids of a payment address. Unknown is not empty: a strange entry is
        Unavailable.

        `slugs` are the collections to read, where a venue tells a wallet's bids by collection only.
        """
        self._no("a wallet's bids")

    def challenge(self, address: str) -> str:
        """Returns a text that `address` must sign before it may cancel."""
        self._no("challenges: nothing is signed for a cancel")

    def bidding_wallet(self, payment: str, receive: str, pubkey: str) -> str:
        """Returns the address that funds the bids of this pair of addresses. Raises NotFound when there is none yet."""
        self._no("bidding wallets")

    def wallet_contents(self, address: str, cursor: Cursor) -> Page[WalletItem]:
        """Returns one page of the inscriptions at an address."""
        self._no("the contents of wallets")

    def item(self, inscription_id: str) -> Item:
        """Returns details of one inscription."""
        self._no("single inscriptions")

    def own_listings(self, owner: str, cursor: Cursor) -> Page[OwnListing]:
        """Returns one page of an address's listings."""
        self._no("a wallet's listings")

    # drafts to be signed; they change nothing at the venue

    def draft_bid(self, order: BidToDraft) -> BidDraft:
        """Returns the PSBTs that the venue wants signed for a bid, where its bids are no messages."""
        self._no("drafts of bids: its bids are messages, or it takes none")

    def draft_listing(self, ask: ListingToDraft) -> ListingDraft:
        """Returns the PSBTs that the venue wants signed for a listing."""
        self._no("listings of ours")

    def draft_delist(self, owner: str, inscription_id: str) -> ListingDraft:
        """Returns the PSBT that the venue wants signed to take a listing back; signed, it is `delist`'s signature."""
        self._no("drafts for taking a listing back: it wants none signed")

    def draft_withdrawal(self, payment: str, amount: int) -> str:
        """Returns the PSBT (base64) that the venue wants signed to take `amount` sats out of the bidding wallet."""
        self._no("withdrawals from a bidding wallet")

    def sign_in_texts(self, pair: Pair) -> SignInTexts:
        """Returns the texts that the two addresses must sign before the venue opens a session for them."""
        self._no("sign-in")

    def sign_in(self, answer: SignInAnswer) -> None:
        """Opens the session, which the adapter holds in memory. AuthFailed when the venue refuses it."""
        self._no("sign-in")

    # writes: `permit` is called right before the first byte goes out; its error is raised

    def place(self, order: BidOrder, permit: Permit | None = None) -> str | None:
        """Submits a signed bid; returns its id where the venue gives one."""
        self._no("bids")

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        """Cancels bids by their ids; False when the venue reports that it failed for any of them.

        `signature` is the wallet's under a challenge, "" where the venue asks for none.
        """
        self._no("bids")

    def list_item(self, order: ListingOrder, permit: Permit | None = None) -> None:
        """Submits a signed listing; a former one of the same inscription is replaced."""
        self._no("listings of ours")

    def delist(self, owner: str, inscription_id: str, signature: str, permit: Permit | None = None) -> bool:
        """Cancels the listing of one inscription; False when the venue reports that it failed."""
        self._no("listings of ours")

    def submit_withdrawal(self, payment: str, psbt: str, permit: Permit | None = None) -> str:
        """Hands over a signed draft of a withdrawal, which the venue completes and sends; returns the txid."""
        self._no("withdrawals from a bidding wallet")

    def _no(self, what: str) -> NoReturn:
        raise NotSupported(f"{self.name} does not have it: {what}")


Value = TypeVar("Value")


class Latest(Generic[Value]):
    """The latest values by name, usually an inscription; of more than `most` the oldest are dropped. Thread-safe."""

    def __init__(self, most: int = 5000) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Value] = {}

    def note(self, name: Hashable, value: Value) -> None:
        """Keeps `value` instead of the former one."""
        with self._lock:
            self._kept.pop(name, None)
            self._kept[name] = value
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]

    def of(self, name: Hashable) -> Value | None:
        """Returns the stored value, None when there is none."""
        with self._lock:
            return self._kept.get(name)

    def drop(self, name: Hashable) -> Value | None:
        """Returns the stored value as `of`, and keeps it no longer."""
        with self._lock:
            return self._kept.pop(name, None)
