"""Facts of outputs and inscriptions, joined from a mempool server and the indexes that are set.

Value and script come from the transaction's own bytes, whose hash is the txid asked for, so no server can make them up;
the signer has the bytes handed over and looks for itself. Any other fact is believed unless sources contradict one
another; then, and without any source, it is None. A source that does not answer says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TypeVar

from msgspec.structs import asdict

from gateway.adapters import Adapters, Venues, needed
from gateway.limits.call_budget import Priority
from gateway.reads.joined_facts import OnChain, joined
from gateway.reads.shared import shared
from gateway.reads.snapshots import Fetch, Flight, Snapshots
from gateway.venue import Venue
from markets.base import NotSupported, TooManyLookups, Unavailable, VenueError
from markets.mempool import Mempool
from markets.outpoint_facts import Confirmation, Indexed, TransactionFacts, Whereabouts
from markets.verbs import text
from wallet.psbt.transaction import Outpoint, Transaction, TxOutput, WireError, decode_witnessed

MADE_AGE_S = 86_400.0  # a transaction never changes
MOST_ANSWERS = 5000  # each a few hundred bytes, five for an output; a transaction seldom has more than some thousand
MOST_WITNESS_BYTES = 2_000  # of one input: an inscription's reveal has more, our own spends have some hundred
PATIENCE_S = 4.0  # the signer waits 5 s: a source that hangs must not hide the others' answers
Value = TypeVar("Value")
Witnessed = tuple[Transaction, tuple[tuple[bytes, ...], ...]]


class ChainFacts:
    """Reads of facts. Each returns JSON text and raises VenueError leaves; `max_age_s` as in
    `gateway/reads/snapshots.py`.
    """

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots) -> None:
        self._mempool = adapters.mempool
        self._ord = adapters.ord
        self._unisat = adapters.unisat_index
        self._venues = venues
        self._snapshots = snapshots.beside(MOST_ANSWERS)

    async def outpoint(self, outpoint: str, max_age_s: float, *, with_transaction: bool = False) -> str:
        """Returns the facts of an output (txid:vout), and if asked the transaction that made it: hex without witnesses,
        null while it is not known. NotSupported when no source is set, TooManyLookups when the only index may not be
        asked for this user now.
        """
        if self._mempool is None and self._ord is None and self._unisat is None:
            raise NotSupported("not set up here: neither BIDKEEPER_MEMPOOL_URL nor BIDKEEPER_ORD_URL is set")
        (on_chain, transaction), by_ord, by_unisat = await asyncio.gather(
            self._on_chain(outpoint, max_age_s),
            self._known(("by_ord", outpoint), max_age_s, self._by_ord(outpoint)) if self._ord else _nothing(),
            self._told_by_unisat(outpoint, max_age_s),
        )
        if isinstance(by_unisat, TooManyLookups):
            if by_ord is None:
                raise by_unisat  # nobody else tells, and it would be told later
            by_unisat = None
        indexes = [index for index in (by_ord, by_unisat) if index is not None]
        facts = joined(outpoint, on_chain, indexes)
        if not with_transaction:
            return text(facts)
        return text(asdict(facts) | {"transaction": None if transaction is None else transaction.encode().hex()})

    async def transaction(self, txid: str, max_age_s: float) -> str:
        """Returns a transaction with its witnesses, and its block. NotSupported without a mempool server, NotFound if
        the server says so, Unavailable when it does not answer.
        """
        mempool = needed(self._mempool, "MEMPOOL_URL")
        (made, witnesses), confirmation, tip_height = await asyncio.gather(
            self._snapshots.get(("made", txid), MADE_AGE_S, self._made(mempool, txid)),
            self._confirmation(mempool, txid, max_age_s),
            self._tip_height(mempool, max_age_s),
        )
        height, block, time_s = (None, None, None) if confirmation is None else confirmation[1:]
        is_confirmed = None if confirmation is None else confirmation.is_in_block
        items = tuple(tuple(item.hex() for item in stack) for stack in witnesses)
        raw = made.encode().hex()
        return text(TransactionFacts(raw, items, is_confirmed, height, block, time_s, tip_height))

    async def whereabouts(self, inscription_id: str, max_age_s: float) -> str:
        """Returns the output that an inscription is on. Raises NotFound if the index says so, Unavailable if none
        answers.
        """
        if self._ord is not None:
            try:
                return await self._where_by_ord(inscription_id, max_age_s)
            except Unavailable:
                if self._unisat is None:
                    raise
        unisat = needed(self._unisat, "ORD_URL")
        return await self._where(
            self._venues.unisat,
            ("where_by_unisat", inscription_id),
            max_age_s,
            lambda taken_ms: unisat.inscription(inscription_id, taken_ms),
        )

    async def _on_chain(self, outpoint: str, max_age_s: float) -> tuple[OnChain, Transaction | None]:
        """Returns the server's facts, and the transaction that made the output."""
        mempool, txid = self._mempool, outpoint.partition(":")[0]
        if mempool is None:
            return OnChain(None, None, None, None), None

        read_spending = self._reading(self._venues.mempool, "spending", lambda: mempool.spending(outpoint))
        found, confirmation, spending, tip_height = await asyncio.gather(
            self._known(("made", txid), MADE_AGE_S, self._made(mempool, txid)),
            self._confirmation(mempool, txid, max_age_s),
            self._known(("spending", outpoint), max_age_s, read_spending),
            self._tip_height(mempool, max_age_s),
        )
        transaction = found and found[0]
        return OnChain(_made(transaction, outpoint), confirmation, spending, tip_height), transaction

    def _made(self, mempool: Mempool, txid: str) -> Fetch[Witnessed]:
        return self._reading(self._venues.mempool, "made", lambda: _transaction(mempool, txid))

    async def _confirmation(self, mempool: Mempool, txid: str, max_age_s: float) -> Confirmation | None:
        read = self._reading(self._venues.mempool, "is_confirmed", lambda: mempool.confirmation(txid))
        return await self._known(("is_confirmed", txid), max_age_s, read)

    async def _tip_height(self, mempool: Mempool, max_age_s: float) -> int | None:
        read = self._reading(self._venues.mempool, "tip_height", mempool.tip_height)
        return await self._known(("tip_height", ""), max_age_s, read)

    def _by_ord(self, outpoint: str) -> Fetch[Indexed]:
        ord_, venue = needed(self._ord, "ORD_URL"), self._venues.ord

        async def fetch(flight: Flight) -> Indexed:
            # One reading, in this order: the output is never older than the height reported with it.
            state = await venue.read("outpoint", "status", Priority.REST, ord_.status, flight.begin)
            output = await venue.read(
                "outpoint", "output", Priority.REST, lambda: ord_.output(outpoint, state), flight.begin
            )
            if output.is_spent or output.inscriptions is None or len(output.inscriptions) != 1:
                return output
            return replace(output, item_offset=await self._offset(output.inscriptions[0], outpoint, flight))

        return fetch

    async def _offset(self, inscription_id: str, outpoint: str, flight: Flight) -> int | None:
        """Returns the inscription's place within its output, None while there is no answer."""
        ord_ = needed(self._ord, "ORD_URL")
        try:
            return await self._venues.ord.read(
                "outpoint",
                "item_offset",
                Priority.REST,
                lambda: ord_.item_offset(inscription_id, outpoint),
                flight.begin,
            )
        except VenueError:
            return None

    async def _told_by_unisat(self, outpoint: str, max_age_s: float) -> Indexed | TooManyLookups | None:
        if self._unisat is None:
            return None
        try:
            return await self._known(("by_unisat", outpoint), max_age_s, self._by_unisat(outpoint, max_age_s))
        except TooManyLookups as refused:
            return refused

    def _by_unisat(self, outpoint: str, max_age_s: float) -> Fetch[Indexed]:
        unisat, venue = needed(self._unisat, "UNISAT_URL"), self._venues.unisat

        async def fetch(flight: Flight) -> Indexed:
            async def read(operation: str, call: Callable[[], Value]) -> Value:
                return await venue.read("outpoint", operation, Priority.REST, call, flight.begin)

            # Before the output, which is so never older than its height; and once for all outputs of one withdrawal.
            height = await self._snapshots.get("height_by_unisat", max_age_s, self._unisat_height)
            output = await read("output", lambda: unisat.output(outpoint))
            is_told = output.script is not None  # it may say nothing more of a spent output
            runes = await read("output_runes", lambda: unisat.runes(outpoint)) if is_told else None
            return replace(output, runes=runes, height=height)

        return fetch

    async def _unisat_height(self, flight: Flight) -> int:
        """Reads the height that both of UniSat's indexes have reached."""
        unisat, venue = needed(self._unisat, "UNISAT_URL"), self._venues.unisat
        chain = await venue.read("outpoint", "chain_height", Priority.REST, unisat.chain_height, flight.begin)
        return min(
            chain, await venue.read("outpoint", "runes_height", Priority.REST, unisat.runes_height, flight.begin)
        )

    def _reading(self, venue: Venue, operation: str, call: Callable[[], Value]) -> Fetch[Value]:
        async def fetch(flight: Flight) -> Value:
            return await venue.read("outpoint", operation, Priority.REST, call, flight.begin)

        return fetch

    async def _known(self, key: Hashable, max_age_s: float, fetch: Fetch[Value]) -> Value | None:
        """Returns the answer, or None while there is none; the log of calls says why. Raises TooManyLookups, which
        says nothing of the source.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._snapshots.get(key, max_age_s, fetch)
        except TooManyLookups:
            raise
        except (VenueError, TimeoutError):
            return None

    async def _where_by_ord(self, inscription_id: str, max_age_s: float) -> str:
        ord_ = needed(self._ord, "ORD_URL")
        return await self._where(
            self._venues.ord,
            ("where_by_ord", inscription_id),
            max_age_s,
            lambda taken_ms: ord_.inscription(inscription_id, taken_ms),
        )

    async def _where(self, venue: Venue, key: Hashable, max_age_s: float, ask: Callable[[int], Whereabouts]) -> str:
        return await shared(self._snapshots, venue, key, max_age_s, "inscription", ask, verb="whereabouts")


async def _nothing() -> None:
    return None


def _transaction(mempool: Mempool, txid: str) -> Witnessed:
    """Returns the transaction that hashes to the txid, and its witnesses. Runs in a venue's thread."""
    try:
        transaction, witnesses = decode_witnessed(mempool.transaction(txid))
    except WireError as error:
        raise Unavailable(f"failed to understand a transaction: {error}") from error
    if transaction.txid()[::-1].hex() != txid:
        raise Unavailable("a transaction is not the one that was asked for")
    return transaction, tuple(tuple(items) if sum(map(len, items)) <= MOST_WITNESS_BYTES else () for items in witnesses)


def _made(transaction: Transaction | None, outpoint: str) -> TxOutput | None:
    """Returns the output that the transaction made at that place, None if there is none."""
    vout = Outpoint.parse(outpoint).vout
    return transaction.outputs[vout] if transaction is not None and vout < len(transaction.outputs) else None
