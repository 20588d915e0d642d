"""Reads of one wallet at a marketplace and on the network, and drafts to be signed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import astuple

from gateway.program import Call, answers, needed
from gateway.quota import Priority
from gateway.reads.snapshots import Flight, Source
from gateway.venue import Toll
from markets import verbs
from markets.adapter import Adapter
from markets.base import Balance, OwnBid, OwnBids, Unavailable
from markets.mempool import Mempool
from markets.orders import OwnListing, OwnListings
from markets.parse import Cursor, Page
from markets.verbs import text


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
Entry = TypeVar("Entry")


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
