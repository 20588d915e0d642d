"""Reads that are kept for a while and shared, and the reads of wallets among them.

The age of an answer counts from the moment its reading began, since the venue may have answered from then. So a client
with `max_age_s` 0, such as one that has just written, never gets an answer read before it asked.

A `Source` reads from one venue into such a store. Names that a venue did not know are remembered for some minutes, so
that asking for them again costs nothing. Only people's looks are answered from there: a task that runs must learn at
once that its collection is back.
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
# Answers about a slug, a ticker or an inscription; a wallet that is not there now may be there soon.
_NAMED = frozenset({"floors", "asks", "bids", "traits", "sales", "item", "rune", "lots", "where_by_ord"})

Entry = TypeVar("Entry")
Value = TypeVar("Value")
Fetch = Callable[["Flight"], Awaitable[Value]]


class Flight:
    """One reading. Call `begin` right before its first request is sent."""

    def __init__(self, clock: Callable[[], float], now_ms: Callable[[], int]) -> None:
        self._clock = clock
        self._now_ms = now_ms
        self.began_at: float | None = None
        self.origin = ORIGIN.get()
        self.taken_ms = 0
        self.askers = 0
        self.task: asyncio.Future[Any] | None = None

    def begin(self) -> None:
        """Marks the reading's beginning; further calls change nothing."""
        if self.began_at is None:
            self.began_at = self._clock()
            self.taken_ms = self._now_ms()


class _Entry(Struct):
    value: Any = None
    began_at: float | None = None  # when the reading of `value` began; None without a value
    not_before: float = float("-inf")
    flights: list[Flight] = field(default_factory=list)


class Snapshots:
    """A store of at most `most` answers; the one unused for longest goes first. `clock` is monotonic, `now_ms` the
    epoch.
    """

    def __init__(self, clock: Callable[[], float], now_ms: Callable[[], int], most: int = 500) -> None:
        self._clock = clock
        self._now_ms = now_ms
        self._most = most
        self.unknown = Unknowns(clock)
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def beside(self, most: int) -> Snapshots:
        """Makes another store on the same clocks, so that many small answers do not push out a few large ones."""
        return Snapshots(self._clock, self._now_ms, most)

    async def get(self, key: Hashable, max_age_s: float, fetch: Fetch[Value]) -> Value:
        """Returns an answer of `fetch` not older than `max_age_s`; raises its errors, which are not stored.

        A look at a name that the venue lately did not know raises NotFound without being read again.
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
        """Returns the stored answer if it is not older than `max_age_s`, else None; reads nothing."""
        entry = self._entries.get(key)
        if entry is None or entry.began_at is None or not self._fresh(entry, entry.began_at, max_age_s):
            return None
        return entry.value

    def flight(self) -> Flight:
        """Starts a reading on our clocks."""
        return Flight(self._clock, self._now_ms)

    def put(self, key: Hashable, value: Any, flight: Flight) -> None:
        """Stores an answer that came along with another's `flight`."""
        self._keep(self._entry(key), value, flight)

    def forget(self, key: Hashable) -> None:
        """Drops an answer after a write: no reading begun by now is an answer for later requests."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.value, entry.began_at = None, None
            entry.not_before = self._clock()

    def forget_all(self, beginning: tuple[Hashable, ...]) -> None:
        """Drops the answers under all keys that begin like this, whatever follows there."""
        for key in [key for key in self._entries if isinstance(key, tuple) and key[: len(beginning)] == beginning]:
            self.forget(key)

    def tidy(self, key: Hashable) -> None:
        """Drops an entry that holds nothing: made-up names must not push real answers out."""
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
        if flight.began_at is None:  # it still waits, and a person's call has its turn sooner than a task's
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
                # Nothing waits for it any more, and nothing was spent on it yet.
                if flight in entry.flights:
                    entry.flights.remove(flight)
                flight.task.cancel()


class Unknowns:
    """The keys of answers (`("item", id)`) that were "not found"; `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: OrderedDict[Hashable, float] = OrderedDict()

    def has(self, key: Hashable) -> bool:
        """Tells whether the venue lately did not know this, or its collection or rune at all."""
        return any(
            self._clock() - self._since[each] < REMEMBERED_S for each in (key, _floor(key)) if each in self._since
        )

    def refuse(self, key: Hashable) -> None:
        """Raises NotFound for what the venue lately did not know."""
        if self.has(key):
            raise NotFound(f"the marketplace did not know it within the last {REMEMBERED_S / 60:.0f} minutes")

    def add(self, key: Hashable) -> None:
        """Remembers that the venue does not know this."""
        if isinstance(key, tuple) and key[0] in _NAMED:
            self._since.pop(key, None)
            self._since[key] = self._clock()
            while len(self._since) > _MOST_UNKNOWN:
                self._since.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Forgets the key, since the venue knows it."""
        self._since.pop(key, None)

    def __len__(self) -> int:
        return len(self._since)


def _floor(key: Hashable) -> Hashable:
    """Returns the key of the floor of the same collection or rune; it tells unknown ones apart from empty ones."""
    match key:
        case ("asks" | "traits", str() as slug):
            return ("floors", "ordinals", slug)
        case ("bids" | "sales", kind, str() as slug):
            return ("floors", kind, slug)
    return key


class Fetched(NamedTuple, Generic[Entry]):
    """Entries read from `pages` pages, and the rows left out. `is_all`: there are no more."""

    entries: list[Entry]
    pages: int
    is_all: bool
    unread: list[Unread]

    @property
    def unread_keys(self) -> tuple[str, ...]:
        """The ids of the rows left out, "" where it cannot be read; a foreign row without one is dropped."""
        return tuple(each.key for each in self.unread if each.key or not each.is_foreign)


class Source:
    """The reads of one venue through one store of answers. Each raises VenueError leaves.

    `operation` is the venue's call, `verb` the request's where it differs from that.
    """

    def __init__(self, venue: Venue, snapshots: Snapshots) -> None:
        self.venue = venue
        self.snapshots = snapshots

    async def value(
        self, key: Hashable, max_age_s: float, operation: str, call: Callable[[int], Value], *, verb: str = ""
    ) -> Value:
        """Returns the value that one `call` reads, given the moment (epoch milliseconds) when it began."""

        async def fetch(flight: Flight) -> Value:
            return await self.read(flight, operation, lambda: call(flight.taken_ms), verb=verb)

        return await self.snapshots.get(key, max_age_s, fetch)

    async def text(
        self, key: Hashable, max_age_s: float, operation: str, call: Callable[[int], Any], *, verb: str = ""
    ) -> str:
        """Reads as `value`; returns JSON text, written once for all who ask."""

        return await self.value(key, max_age_s, operation, lambda taken_ms: text(call(taken_ms)), verb=verb)

    async def read(self, flight: Flight, operation: str, call: Callable[[], Value], *, verb: str = "") -> Value:
        """Makes one `call` of a reading, in its turn."""
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
        """Reads an answer page by page, each one call in its turn, at most `most` and until `enough`."""
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
    """The reads of a mempool server alone: fee rates, addresses, and whether a transaction is confirmed."""

    def __init__(self, mempool: Mempool | None, source: Source) -> None:
        self._mempool = mempool
        self._source = source

    @answers(verbs.Fees)
    async def _fees(self, call: Call[verbs.Fees]) -> str:
        return await self._source.text("fees", call.max_age_s, "fees", self.server().fees)

    @answers(verbs.Coins)
    async def _coins(self, call: Call[verbs.Coins]) -> str:
        """Returns the unspent outputs of an address, confirmed or not; `outpoint` tells which assets they hold."""
        mempool, address = self.server(), call.args.address
        read, key = self._source.text, ("coins", address)
        return await read(key, call.max_age_s, "utxo", lambda _: mempool.coins(address), verb="coins")

    @answers(verbs.IsConfirmed)
    async def _is_confirmed(self, call: Call[verbs.IsConfirmed]) -> str:
        """Tells whether a transaction is in a block. NotFound when neither a block nor the mempool has it."""
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
        """Returns the source of balances. Raises NotSupported where none is set."""
        return needed(self._mempool, "MEMPOOL_URL")


WALLET_PAGES = 5
WALLET_ITEMS = 500
# Of a venue whose listings are asked for one by one, a read that ends here leaves fewer to the next: its adapter
# remembers. A greater bound would outlast the 30 s for which a client waits.
OWN_PAGES = 20
WALLET_ADDRESS_AGE_S = 3600.0  # a pair of addresses keeps its bidding wallet for good; only "none yet" changes


class Own:
    """The reads of wallets at one marketplace, through `source`. Drafts, challenges and sign-ins are never shared."""

    def __init__(self, adapter: Adapter, source: Source, network: Network) -> None:
        self._adapter = adapter
        self._can = adapter.capabilities()
        self._source = source
        self._venue = source.venue
        self._network = network

    @answers(verbs.OwnBids)
    async def _own_bids(self, call: Call[verbs.OwnBids]) -> str:
        """Returns all of a wallet's bids.

        `slugs` matter only where the venue gives bids by collection: there the answer is all bids on these.
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
        """Returns all of a wallet's bids or listings or none: a part would look as if the others were gone."""
        verb, toll = call.request.verb, Toll(wallet=call.args.wallet)

        async def fetch(flight: Flight) -> str:
            found = await self._source.pages(flight, verb, verb, read, OWN_PAGES, priority=Priority.OWN_BIDS, toll=toll)
            if not found.is_all:
                raise Unavailable(f"more {verb.removeprefix('own_')} than {OWN_PAGES} pages hold")
            return text(make(found.entries, flight.taken_ms, found.unread_keys))

        return await self._source.snapshots.get(key, call.max_age_s, fetch)

    def forget_bids(self, wallet: str) -> None:
        """Drops the stored bids of `wallet` after a write."""
        self._source.snapshots.forget_all(("own_bids", wallet))

    def forget_listings(self, wallet: str) -> None:
        """Drops the stored listings of `wallet` after a listing or delisting."""
        self._source.snapshots.forget(("own_listings", wallet))
        self._source.snapshots.forget(("wallet_contents", wallet))

    @answers(verbs.Balance)
    async def _balance(self, call: Call[verbs.Balance]) -> str:
        """Returns the funds of bids: the bidding wallet's, or the payment address's where bids spend its coins."""
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
        """Returns a challenge to sign. Never shared: it goes with a cancel, and a venue may take each only once."""
        return await self._ask(call, Priority.CANCEL, Toll(wallet=call.args.wallet))

    @answers(verbs.DraftBid)
    async def _draft_bid(self, call: Call[verbs.DraftBid]) -> str:
        """Returns the PSBTs of a bid, which the venue counts as a write.

        Raises Refused('clock_skew') while our clock is too far off for a bid.
        """
        self._venue.skew.permit_place()
        return await self._ask(call, Priority.PLACE, Toll("write", call.args.ask.payment, more=1))

    @answers(verbs.DraftListing)
    async def _draft_listing(self, call: Call[verbs.DraftListing]) -> str:
        """Drafts a listing, with a write's priority. Raises Refused('quota') where the quota is too short for one."""
        self._venue.permit_listing()
        return await self._ask(call, Priority.PLACE, Toll("write", call.args.ask.owner, more=1))

    @answers(verbs.DraftDelist, verbs.DraftWithdrawal)
    async def _draft(self, call: Call[verbs.DraftDelist] | Call[verbs.DraftWithdrawal]) -> str:
        """Drafts what takes a listing back, or sats out of a bidding wallet; the first argument is the address."""
        return await self._ask(call, Priority.CANCEL, Toll("write", astuple(call.args)[0], more=1))

    @answers(verbs.SignInTexts)
    async def _texts(self, call: Call[verbs.SignInTexts]) -> str:
        return await self._ask(call, Priority.CANCEL, Toll(wallet=call.args.pair.payment))

    @answers(verbs.SignIn)
    async def _sign_in(self, call: Call[verbs.SignIn]) -> str:
        pair = call.args.answer.pair
        said = await self._ask(call, Priority.CANCEL, Toll(wallet=pair.payment))
        # One profile, whichever of its addresses a call names.
        self._venue.windows.bind(pair.ordinals, pair.payment)
        return said

    async def _ask(self, call: Call[Any], priority: Priority, toll: Toll) -> str:
        """Asks the adapter's method of the verb's name, for an answer that is never shared."""
        verb = call.request.verb
        ask = getattr(self._adapter, verb)
        return text(await self._venue.read(verb, verb, priority, lambda: ask(*astuple(call.args)), toll=toll))
