"""Facts of the chain: a mempool server's, and of outputs and inscriptions those joined with the indexes that are set.

Value and script come from the transaction's own bytes, whose hash is the txid asked for, so no server can make them up;
the signer has the bytes handed over and looks for itself. Any other fact is believed unless sources contradict one
another; then, and without any source, it is None. A source that does not answer says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from gateway.program import Adapters, Call, Venues, answers, needed
from gateway.reads.snapshots import Flight, Snapshots, Source
from markets import verbs
from markets.base import (
    Confirmation,
    Indexed,
    NotSupported,
    OutpointFacts,
    Spending,
    TooManyLookups,
    TransactionFacts,
    Unavailable,
    VenueError,
)
from markets.mempool import Mempool
from markets.ord import Ord
from markets.unisat.index import UnisatIndex
from markets.verbs import text
from wallet.psbt.transaction import Outpoint, Transaction, TxOutput, WireError, decode_witnessed

MADE_AGE_S = 86_400.0  # a transaction never changes
MOST_ANSWERS = 5000  # each a few hundred bytes, five for an output; a transaction seldom has more than some thousand
MOST_WITNESS_BYTES = 2_000  # of one input: an inscription's reveal has more, our own spends have some hundred
PATIENCE_S = 4.0  # the signer waits 5 s: a source that hangs must not hide the others' answers
Value = TypeVar("Value")
Witnessed = tuple[Transaction, tuple[tuple[bytes, ...], ...]]


class ChainFacts:
    """The reads of facts, which share a store of their own beside `snapshots`."""

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots) -> None:
        store = snapshots.beside(MOST_ANSWERS)
        self._mempool, self._by_mempool = adapters.mempool, Source(venues.mempool, store)
        self._ord, self._by_ord = adapters.ord, Source(venues.ord, store)
        self._unisat, self._by_unisat = adapters.unisat_index, Source(venues.unisat, store)

    @answers(verbs.Outpoint)
    async def _outpoint(self, call: Call[verbs.Outpoint]) -> str:
        """Returns the facts of an output (txid:vout), and if asked the transaction that made it: hex without witnesses,
        null while it is not known. NotSupported when no source is set, TooManyLookups when the only index may not be
        asked for this user now.
        """
        outpoint, max_age_s = call.args.outpoint, call.max_age_s
        if self._mempool is None and self._ord is None and self._unisat is None:
            raise NotSupported("not set up here: neither BIDKEEPER_MEMPOOL_URL nor BIDKEEPER_ORD_URL is set")
        (on_chain, transaction), by_ord, by_unisat = await asyncio.gather(
            self._on_chain(outpoint, max_age_s),
            self._told_by_ord(outpoint, max_age_s),
            self._told_by_unisat(outpoint, max_age_s),
        )
        if isinstance(by_unisat, TooManyLookups):
            if by_ord is None:
                raise by_unisat  # nobody else tells, and it would be told later
            by_unisat = None
        indexes = [index for index in (by_ord, by_unisat) if index is not None]
        facts = joined(outpoint, on_chain, indexes)
        if not call.args.with_transaction:
            return text(facts)
        return text(asdict(facts) | {"transaction": None if transaction is None else transaction.encode().hex()})

    @answers(verbs.Transaction)
    async def _transaction(self, call: Call[verbs.Transaction]) -> str:
        """Returns a transaction with its witnesses, and its block. NotSupported without a mempool server, NotFound if
        the server says so, Unavailable when it does not answer.
        """
        mempool, txid = needed(self._mempool, "MEMPOOL_URL"), call.args.txid
        (made, witnesses), confirmation, tip_height = await asyncio.gather(
            self._made(mempool, txid),
            self._confirmation(mempool, txid, call.max_age_s),
            self._tip_height(mempool, call.max_age_s),
        )
        height, block, time_s = (None, None, None) if confirmation is None else confirmation[1:]
        is_confirmed = None if confirmation is None else confirmation.is_in_block
        items = tuple(tuple(item.hex() for item in stack) for stack in witnesses)
        raw = made.encode().hex()
        return text(TransactionFacts(raw, items, is_confirmed, height, block, time_s, tip_height))

    @answers(verbs.Whereabouts)
    async def _whereabouts(self, call: Call[verbs.Whereabouts]) -> str:
        """Returns the output that an inscription is on. Raises NotFound if the index says so, Unavailable if none
        answers.
        """
        if self._ord is not None:
            try:
                return await self._where(self._by_ord, "where_by_ord", self._ord, call)
            except Unavailable:
                if self._unisat is None:
                    raise
        return await self._where(self._by_unisat, "where_by_unisat", needed(self._unisat, "ORD_URL"), call)

    async def _where(self, by: Source, name: str, index: Ord | UnisatIndex, call: Call[verbs.Whereabouts]) -> str:
        wanted = call.args.inscription_id

        return await by.text(
            (name, wanted), call.max_age_s, "inscription", lambda at: index.inscription(wanted, at), verb="whereabouts"
        )

    async def _on_chain(self, outpoint: str, max_age_s: float) -> tuple[OnChain, Transaction | None]:
        mempool, txid = self._mempool, outpoint.partition(":")[0]
        if mempool is None:
            return OnChain(None, None, None, None), None

        found, confirmation, spent, tip_height = await asyncio.gather(
            _known(self._made(mempool, txid)),
            self._confirmation(mempool, txid, max_age_s),
            _known(self._read("spending", outpoint, max_age_s, lambda: mempool.spending(outpoint))),
            self._tip_height(mempool, max_age_s),
        )
        transaction = found and found[0]
        return OnChain(_made(transaction, outpoint), confirmation, spent, tip_height), transaction

    async def _read(self, name: str, of: str, max_age_s: float, read: Callable[[], Value]) -> Value:
        return await self._by_mempool.value((name, of), max_age_s, name, lambda _: read(), verb="outpoint")

    async def _made(self, mempool: Mempool, txid: str) -> Witnessed:
        return await self._read("made", txid, MADE_AGE_S, lambda: _transaction(mempool, txid))

    async def _confirmation(self, mempool: Mempool, txid: str, max_age_s: float) -> Confirmation | None:
        return await _known(self._read("is_confirmed", txid, max_age_s, lambda: mempool.confirmation(txid)))

    async def _tip_height(self, mempool: Mempool, max_age_s: float) -> int | None:
        return await _known(self._read("tip_height", "", max_age_s, mempool.tip_height))

    async def _told_by_ord(self, outpoint: str, max_age_s: float) -> Indexed | None:
        ord_, by = self._ord, self._by_ord
        if ord_ is None:
            return None

        async def fetch(flight: Flight) -> Indexed:
            # One reading, in this order: the output is never older than the height reported with it.
            state = await by.read(flight, "status", ord_.status, verb="outpoint")
            output = await by.read(flight, "output", lambda: ord_.output(outpoint, state), verb="outpoint")
            if output.is_spent or output.inscriptions is None or len(output.inscriptions) != 1:
                return output
            (inscription,) = output.inscriptions
            try:
                offset = await by.read(
                    flight, "item_offset", lambda: ord_.item_offset(inscription, outpoint), verb="outpoint"
                )
            except VenueError:
                return output  # there is no answer about its place within the output
            return replace(output, item_offset=offset)

        return await _known(by.snapshots.get(("by_ord", outpoint), max_age_s, fetch))

    async def _told_by_unisat(self, outpoint: str, max_age_s: float) -> Indexed | TooManyLookups | None:
        unisat, by = self._unisat, self._by_unisat
        if unisat is None:
            return None

        async def fetch_height(flight: Flight) -> int:
            """Reads the height that both of UniSat's indexes have reached."""
            chain = await by.read(flight, "chain_height", unisat.chain_height, verb="outpoint")
            return min(chain, await by.read(flight, "runes_height", unisat.runes_height, verb="outpoint"))

        async def fetch(flight: Flight) -> Indexed:
            # Before the output, which is so never older than its height; and once for all outputs of one withdrawal.
            height = await by.snapshots.get("height_by_unisat", max_age_s, fetch_height)
            output = await by.read(flight, "output", lambda: unisat.output(outpoint), verb="outpoint")
            is_told = output.script is not None  # it may say nothing more of a spent output
            runes = None
            if is_told:
                runes = await by.read(flight, "output_runes", lambda: unisat.runes(outpoint), verb="outpoint")
            return replace(output, runes=runes, height=height)

        try:
            return await _known(by.snapshots.get(("by_unisat", outpoint), max_age_s, fetch))
        except TooManyLookups as refused:
            return refused


async def _known(reading: Awaitable[Value]) -> Value | None:
    """Returns the answer, or None while there is none; the log of calls says why. Raises TooManyLookups, which says
    nothing of the source.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await reading
    except TooManyLookups:
        raise
    except (VenueError, TimeoutError):
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
    vout = Outpoint.parse(outpoint).vout
    return transaction.outputs[vout] if transaction is not None and vout < len(transaction.outputs) else None


class OnChain(Struct, frozen=True):
    """A mempool server's facts; None is a fact it does not give."""

    made: TxOutput | None
    confirmation: Confirmation | None
    spending: Spending | None
    tip_height: int | None


def joined(outpoint: str, on_chain: OnChain, indexes: Sequence[Indexed]) -> OutpointFacts:
    made, spending, tip = on_chain.made, on_chain.spending, on_chain.tip_height
    heights = [index.height for index in indexes if index.height is not None]
    if tip is not None and heights and max(heights) > tip + 1:
        tip = None  # a block may come between two questions, but a tip that lags is no tip
    confirmation = on_chain.confirmation
    is_confirmed = (
        None
        if confirmation is None
        else _agreed([confirmation.is_in_block, *(index.is_confirmed for index in indexes)])
    )
    is_unspent = None if spending is None else not spending.is_spent
    if is_unspent and made is None:
        is_unspent = None  # servers also call an output unspent that they do not know
    if is_unspent and any(index.is_spent for index in indexes):
        is_unspent = None  # one of them is wrong
    return OutpointFacts(
        outpoint=outpoint,
        value=None if made is None else _agreed([made.value, *(index.value for index in indexes)]),
        script=None if made is None else _agreed([made.script.hex(), *(index.script for index in indexes)]),
        is_unspent=is_unspent,
        is_confirmed=is_confirmed,
        inscriptions=_agreed(index.inscriptions for index in indexes),
        runes=_agreed(index.runes for index in indexes),
        tip_height=tip,
        index_height=min(heights, default=None),
        spent_by=None if spending is None else spending.txid,
        is_spent_in_block=spending is not None and spending.is_in_block,
        item_offset=_agreed(index.item_offset for index in indexes),
        height=confirmation.height if confirmation is not None and is_confirmed else None,
    )


def _agreed(said: Iterable[Value | None]) -> Value | None:
    """Returns the value that all sources agree on that know it, else None."""
    known = {each for each in said if each is not None}
    return known.pop() if len(known) == 1 else None
