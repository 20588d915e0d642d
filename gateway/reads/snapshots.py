"""A cache of shared reads, and the reads of wallets.

An answer's age counts from the start of its read, because it may show the venue's state of that moment. So a client
with `max_age_s` 0, such as one that has just written, never gets an answer whose read began before its request.

A `Source` reads from one venue into such a cache. Names that a venue does not know are remembered for five minutes, so
that repeated look-ups cost nothing. That applies to people's looks only, because a running task must see immediately
that its collection is back.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import astuple

from gateway.program import Call, answers, needed
from gateway.quota import ORIGIN, BeyondShare, Priority
from gateway.venue import READ, Toll, Venue
from markets import verbs
from markets.adapter import Adapter
from markets.base import Balance, NotFound, OwnBid, OwnBids, Unavailable
from markets.mempool import Mempool
from markets.orders import OwnListing, OwnListings
from markets.parse import Cursor, Page, Unread
from markets.verbs import text

REMEMBERED_S = 300.0
_MOST_UNKNOWN = 2_000  # some hundred bytes each
# Only answers about a slug, a ticker or an inscription, because a wallet that is unknown now may be known soon.
_NAMED = frozenset({"floors", "asks", "bids", "traits", "sales", "item", "rune", "lots", "where_by_ord"})

Entry = TypeVar("Entry")
Value = TypeVar("Value")
Fetch = Callable[["Flight"], Awaitable[Value]]


class Flight:
    """One read. Call `begin` right before its first request is sent."""

    def __init__(self, clock: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._clock = clock
        self._now_ms = now_ms
        self.began_at: float | None = None
        self.origin = ORIGIN.get()
        self.taken_ms = 0
        self.askers = 0
        self.task: asyncio.Future[Any] | None = None

    def begin(self) -> None:
        """Records the start of the read; later calls are no-ops."""
        if self.began_at is None:
            self.began_at = self._clock()
            self.taken_ms = self._now_ms()


class _Entry(Struct):
    value: Any = None
    began_at: float | None = None  # start of the read of `value`; None without a value
    not_before: float = float("-inf")
    flights: list[Flight] = field(default_factory=list)


class Snapshots:
    """A cache of at most `most` answers; the least recently used is evicted. `clock` is monotonic, `now_ms` returns
    epoch milliseconds.
    """

    def __init__(self, clock: Callable[[], float], now_ms: Callable[[], int], most: int = 500) -> None:
        self._clock = clock
        self._now_ms = now_ms
        self._most = most
        self.unknown = Unknowns(clock)
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def beside(self, most: int) -> Snapshots:
        """Returns another cache on the same clocks, so that many small answers do not evict a few large ones."""
        return Snapshots(self._clock, self._now_ms, most)

    async def get(self, key: Hashable, max_age_s: float, fetch: Fetch[Value]) -> Value:
        """Returns an answer of `fetch` that is at most `max_age_s` old; raises its errors, which are not cached.

        Raises NotFound without a read for a look at a name that the venue recently did not know.
        """
        if ORIGIN.get().purpose == "look":
            self.unknown.refuse(key)
        entry = self._entry(key)
        if entry.began_at is not None and self._fresh(entry, entry.began_at, max_age_s):
            return entry.value
        flight = next((each for each in entry.flights if self._may_join(entry, each, max_age_s)), None)
        if flight is None:
            flight = self.flight()
            entry.flights.append(flight)
            flight.task = asyncio.ensure_future(self._fly(key, entry, flight, fetch))
        try:
            return await self._join(entry, flight)
        except BeyondShare:
            if flight.origin == ORIGIN.get():
                raise
        return await self.get(key, max_age_s, fetch)

    def kept(self, key: Hashable, max_age_s: float) -> Any:
        """Returns the cached answer if it is at most `max_age_s` old, else None; reads nothing."""
        entry = self._entries.get(key)
        if entry is None or entry.began_at is None or not self._fresh(entry, entry.began_at, max_age_s):
            return None
        return entry.value

    def flight(self) -> Flight:
        """Returns a new flight on this cache's clocks."""
        return Flight(self._clock, self._now_ms)

    def put(self, key: Hashable, value: Any, flight: Flight) -> None:
        """Caches an answer that another answer's `flight` brought along."""
        self._keep(self._entry(key), value, flight)

    def forget(self, key: Hashable) -> None:
        """Evicts an answer after a write; later requests ignore reads that began before now."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.value, entry.began_at = None, None
            entry.not_before = self._clock()

    def forget_all(self, beginning: tuple[Hashable, ...]) -> None:
        """Evicts the answers of all keys with this beginning; see `forget`."""
        for key in [key for key in self._entries if isinstance(key, tuple) and key[: len(beginning)] == beginning]:
            self.forget(key)

    def tidy(self, key: Hashable) -> None:
        """Evicts an empty entry, so that made-up names do not evict real answers."""
        entry = self._entries.get(key)
        is_empty = entry is not None and entry.value is None and not entry.flights
        if entry is not None and is_empty and entry.not_before == float("-inf"):
            del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def _entry(self, key: Hashable) -> _Entry:
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            idle = next((old for old, each in self._entries.items() if not each.flights and each is not entry), None)
            if idle is not None:
                del self._entries[idle]
        return entry

    def _fresh(self, entry: _Entry, began_at: float, max_age_s: float) -> bool:
        return began_at > entry.not_before and self._clock() - began_at < max_age_s

    def _may_join(self, entry: _Entry, flight: Flight, max_age_s: float) -> bool:
        asker = ORIGIN.get()
        if not asker.may_share(flight.origin):
            return False
        if flight.began_at is None:  # it still waits for its turn, which a person's own call gets before a task's
            return asker.purpose == "task" or asker == flight.origin
        return self._fresh(entry, flight.began_at, max_age_s)

    async def _fly(self, key: Hashable, entry: _Entry, flight: Flight, fetch: Fetch[Value]) -> Value:
        try:
            value = await fetch(flight)
            self.unknown.drop(key)
            self._keep(entry, value, flight)
            return value
        except NotFound:
            self.unknown.add(key)
            raise
        finally:
            if flight in entry.flights:
                entry.flights.remove(flight)
            self.tidy(key)

    def _keep(self, entry: _Entry, value: Any, flight: Flight) -> None:
        began_at = flight.began_at
        if began_at is None or began_at <= entry.not_before:
            return
        if entry.began_at is None or began_at > entry.began_at:
            entry.value, entry.began_at = value, began_at

    async def _join(self, entry: _Entry, flight: Flight) -> Any:
        assert flight.task is not None
        flight.askers += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.askers -= 1
            if not flight.askers and flight.began_at is None and not flight.task.done():
                # No caller waits for it any more, and no call was made yet.
                if flight in entry.flights:
                    entry.flights.remove(flight)
                flight.task.cancel()


class Unknowns:
    """Remembers the keys, such as `("item", id)`, that a venue did not know; `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: OrderedDict[Hashable, float] = OrderedDict()

    def has(self, key: Hashable) -> bool:
        """Returns whether the venue recently did not know this key, or its collection or rune."""
        return any(
            self._clock() - self._since[each] < REMEMBERED_S for each in (key, _floor(key)) if each in self._since
        )

    def refuse(self, key: Hashable) -> None:
        """Raises NotFound if the venue recently did not know this key."""
        if self.has(key):
            raise NotFound(f"the marketplace did not know it within the last {REMEMBERED_S / 60:.0f} minutes")

    def add(self, key: Hashable) -> None:
        """Remembers that the venue does not know this key."""
        if isinstance(key, tuple) and key[0] in _NAMED:
            self._since.pop(key, None)
            self._since[key] = self._clock()
            while len(self._since) > _MOST_UNKNOWN:
                self._since.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Removes the key, because the venue knows it."""
        self._since.pop(key, None)

    def __len__(self) -> int:
        return len(self._since)


def _floor(key: Hashable) -> Hashable:
    """Returns the floor's key for the same collection or rune; an unknown one has no floor, an empty one does."""
    match key:
        case ("asks" | "traits", str() as slug):
            return ("floors", "ordinals", slug)
        case ("bids" | "sales", kind, str() as slug):
            return ("floors", kind, slug)
    return key


class Fetched(NamedTuple, Generic[Entry]):
    """Entries read from `pages` pages, and the rows left out. `is_all`: there is no further page."""

    entries: list[Entry]
    pages: int
    is_all: bool
    unread: list[Unread]

    @property
    def unread_keys(self) -> tuple[str, ...]:
        """The ids of the rows left out, "" for an unreadable id; foreign rows without an id are omitted."""
        return tuple(each.key for each in self.unread if each.key or not each.is_foreign)


class Source:
    """Reads from one venue through one cache. The methods raise subclasses of VenueError.

    `operation` names the call to the venue; `verb` is the request's verb if its name differs.
    """

    def __init__(self, venue: Venue, snapshots: Snapshots) -> None:
        self.venue = venue
        self.snapshots = snapshots

    async def value(
        self, key: Hashable, max_age_s: float, operation: str, call: Callable[[int], Value], *, verb: str = ""
    ) -> Value:
        """Returns the value that one `call` reads; its argument is its start in epoch milliseconds."""

        async def fetch(flight: Flight) -> Value:
            return await self.read(flight, operation, lambda: call(flight.taken_ms), verb=verb)

        return await self.snapshots.get(key, max_age_s, fetch)

    async def text(
        self, key: Hashable, max_age_s: float, operation: str, call: Callable[[int], Any], *, verb: str = ""
    ) -> str:
        """Reads as `value` does; returns JSON text, encoded once for all clients."""

        return await self.value(key, max_age_s, operation, lambda taken_ms: text(call(taken_ms)), verb=verb)

    async def read(self, flight: Flight, operation: str, call: Callable[[], Value], *, verb: str = "") -> Value:
        """Makes one `call` of a read after waiting for its turn."""
        return await self.venue.read(verb or operation, operation, Priority.REST, call, flight.begin)

    async def pages(
        self,
        flight: Flight,
        verb: str,
        operation: str,
        read: Callable[[Cursor], Page[Entry]],
        most: int,
        *,
        priority: Priority = Priority.REST,
        toll: Toll = READ,
        enough: Callable[[list[Entry]], bool] = lambda found: False,
    ) -> Fetched[Entry]:
        """Reads at most `most` pages, one call each, until `enough` of the entries found so far returns True."""
        found: list[Entry] = []
        unread: list[Unread] = []
        at: Cursor = None
        pages = 0
        while pages < most:
            pages += 1

            def call(at: Cursor = at) -> Page[Entry]:
                return read(at)

            page = await self.venue.read(verb, operation, priority, call, flight.begin, toll)
            found += page.entries
            unread += page.unread
            at = page.following
            if at is None or enough(found):
                break
        return Fetched(found, pages, at is None, unread)


class Network:
    """Reads that need only a mempool server: fee rates, addresses, and confirmations."""

    def __init__(self, mempool: Mempool | None, source: Source) -> None:
        self._mempool = mempool
        self._source = source

    @answers(verbs.Fees)
    async def _fees(self, call: Call[verbs.Fees]) -> str:
        return await self._source.text("fees", call.max_age_s, "fees", self.server().fees)

    @answers(verbs.Coins)
    async def _coins(self, call: Call[verbs.Coins]) -> str:
        """Returns an address's unspent outputs, confirmed or not. The verb `outpoint` gives the assets in each."""
        mempool, address = self.server(), call.args.address
        read, key = self._source.text, ("coins", address)
        return await read(key, call.max_age_s, "utxo", lambda _: mempool.coins(address), verb="coins")

    @answers(verbs.IsConfirmed)
    async def _is_confirmed(self, call: Call[verbs.IsConfirmed]) -> str:
        """Returns whether a transaction is in a block. Raises NotFound if neither a block nor the mempool has it."""
        mempool, txid = self.server(), call.args.txid
        read, key = self._source.text, ("transaction", txid)
        return await read(key, call.max_age_s, "is_confirmed", lambda _: mempool.look_up(txid))

    async def balance(self, address: str, max_age_s: float) -> str:
        """Returns the sats of an address, confirmed and unconfirmed, as JSON text."""
        read = self.server().balance
        return await self._source.text(
            ("balance", address), max_age_s, "balance", lambda taken_ms: Balance(address, read(address), taken_ms)
        )

    def server(self) -> Mempool:
        """Returns the mempool server. Raises NotSupported if none is configured."""
        return needed(self._mempool, "MEMPOOL_URL")


WALLET_PAGES = 5
WALLET_ITEMS = 500
# A higher limit would exceed the 30 s that a client waits. Some adapters read listings one by one and remember those
# read, so that the next read needs fewer pages.
OWN_PAGES = 20
WALLET_ADDRESS_AGE_S = 3600.0  # long, because the bidding wallet of a pair of addresses never changes


class Own:
    """Reads wallets at one marketplace through `source`. Drafts, challenges and sign-ins are never shared."""

    def __init__(self, adapter: Adapter, source: Source, network: Network) -> None:
        self._adapter = adapter
        self._can = adapter.capabilities()
        self._source = source
        self._venue = source.venue
        self._network = network

    @answers(verbs.OwnBids)
    async def _own_bids(self, call: Call[verbs.OwnBids]) -> str:
        """Returns all of a wallet's bids.

        If the venue gives bids by collection only, it returns the bids on `slugs`; other venues ignore `slugs`.
        """
        wallet = call.args.wallet
        told = tuple(sorted(set(call.args.slugs))) if self._can.own_bids_by_collection else ()

        def make(entries: list[OwnBid], taken_ms: int, unread: tuple[str, ...]) -> OwnBids:
            return OwnBids(tuple({bid.venue_id: bid for bid in entries}.values()), taken_ms, unread)

        key = ("own_bids", wallet, told)
        return await self._all(key, call, lambda at: self._adapter.own_bids(wallet, at, told), make)

    @answers(verbs.OwnListings)
    async def _own_listings(self, call: Call[verbs.OwnListings]) -> str:
        wallet = call.args.wallet

        def make(entries: list[OwnListing], taken_ms: int, unread: tuple[str, ...]) -> OwnListings:
            return OwnListings(tuple({each.inscription_id: each for each in entries}.values()), taken_ms, unread)

        key = ("own_listings", wallet)
        return await self._all(key, call, lambda at: self._adapter.own_listings(wallet, at), make)

    async def _all(
        self,
        key: tuple[Any, ...],
        call: Call[verbs.OwnBids] | Call[verbs.OwnListings],
        read: Callable[[Cursor], Page[Entry]],
        make: Callable[[list[Entry], int, tuple[str, ...]], Any],
    ) -> str:
        """Returns all of a wallet's bids or listings. Raises Unavailable rather than returning a part, because the
        missing ones would look cancelled or sold.
        """
        verb, toll = call.request.verb, Toll(wallet=call.args.wallet)

        async def fetch(flight: Flight) -> str:
            found = await self._source.pages(flight, verb, verb, read, OWN_PAGES, priority=Priority.OWN_BIDS, toll=toll)
            if not found.is_all:
                raise Unavailable(f"more {verb.removeprefix('own_')} than {OWN_PAGES} pages hold")
            return text(make(found.entries, flight.taken_ms, found.unread_keys))

        return await self._source.snapshots.get(key, call.max_age_s, fetch)

    def forget_bids(self, wallet: str) -> None:
        """Evicts the cached bids of `wallet` after a write."""
        self._source.snapshots.forget_all(("own_bids", wallet))

    def forget_listings(self, wallet: str) -> None:
        """Evicts the cached listings and contents of `wallet` after a listing or delisting."""
        self._source.snapshots.forget(("own_listings", wallet))
        self._source.snapshots.forget(("wallet_contents", wallet))

    @answers(verbs.Balance)
    async def _balance(self, call: Call[verbs.Balance]) -> str:
        """Returns the funds for bids: the bidding wallet's, or the payment address's if bids are PSBTs."""
        self._network.server()
        args = call.args
        if self._can.bids_are_psbt:
            return await self._network.balance(args.payment, call.max_age_s)
        address = await self._source.value(
            ("bidding_wallet", args.payment, args.receive, args.pubkey),
            WALLET_ADDRESS_AGE_S,
            "bidding_wallet",
            lambda _: self._adapter.bidding_wallet(args.payment, args.receive, args.pubkey),
            verb="balance",
        )
        return await self._network.balance(address, call.max_age_s)

    @answers(verbs.WalletContents)
    async def _wallet_contents(self, call: Call[verbs.WalletContents]) -> str:
        address = call.args.address

        async def fetch(flight: Flight) -> str:
            found = await self._source.pages(
                flight,
                "wallet_contents",
                "wallet_contents",
                lambda cursor: self._adapter.wallet_contents(address, cursor),
                WALLET_PAGES,
                toll=Toll(wallet=address),
            )
            return text(list({item.id: item for item in found.entries}.values())[:WALLET_ITEMS])

        return await self._source.snapshots.get(("wallet_contents", address), call.max_age_s, fetch)

    @answers(verbs.Challenge)
    async def _challenge(self, call: Call[verbs.Challenge]) -> str:
        """Returns a challenge to sign for a cancel. Never shared, because a venue may accept each only once."""
        return await self._ask(call, Priority.CANCEL, Toll(wallet=call.args.wallet))

    @answers(verbs.DraftBid)
    async def _draft_bid(self, call: Call[verbs.DraftBid]) -> str:
        """Returns the PSBTs of a bid; the venue counts this as a write.

        Raises Refused('clock_skew') while our clock is too far off.
        """
        self._venue.skew.permit_place()
        return await self._ask(call, Priority.PLACE, Toll("write", call.args.ask.payment, more=1))

    @answers(verbs.DraftListing)
    async def _draft_listing(self, call: Call[verbs.DraftListing]) -> str:
        """Drafts a listing, with a write's priority. Raises Refused('quota') if the quota is too short for one."""
        self._venue.permit_listing()
        return await self._ask(call, Priority.PLACE, Toll("write", call.args.ask.owner, more=1))

    @answers(verbs.DraftDelist, verbs.DraftWithdrawal)
    async def _draft(self, call: Call[verbs.DraftDelist] | Call[verbs.DraftWithdrawal]) -> str:
        """Drafts a delisting, or a withdrawal from a bidding wallet; the verb's first argument is the address."""
        return await self._ask(call, Priority.CANCEL, Toll("write", astuple(call.args)[0], more=1))

    @answers(verbs.SignInTexts)
    async def _texts(self, call: Call[verbs.SignInTexts]) -> str:
        return await self._ask(call, Priority.CANCEL, Toll(wallet=call.args.pair.payment))

    @answers(verbs.SignIn)
    async def _sign_in(self, call: Call[verbs.SignIn]) -> str:
        pair = call.args.answer.pair
        said = await self._ask(call, Priority.CANCEL, Toll(wallet=pair.payment))
        # Count both addresses as one profile in the limits per minute.
        self._venue.windows.bind(pair.ordinals, pair.payment)
        return said

    async def _ask(self, call: Call[Any], priority: Priority, toll: Toll) -> str:
        """Calls the adapter's method named like the verb; the answer is not cached."""
        verb = call.request.verb
        ask = getattr(self._adapter, verb)
        return text(await self._venue.read(verb, verb, priority, lambda: ask(*astuple(call.args)), toll=toll))
