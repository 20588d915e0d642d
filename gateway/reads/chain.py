"""Facts of the chain, from a mempool server joined with the configured indexes (ord, UniSat).

Value and script come from the transaction's own bytes, whose hash is the requested txid, so no server can forge them;
the signer receives the bytes and checks them itself. Any other fact is accepted unless sources contradict each other.
It is None if they do, or if no source gives it. A source that does not answer is ignored.
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
MOST_ANSWERS = 5000  # of a few hundred bytes each; an output needs five
MOST_WITNESS_BYTES = 2_000  # for one input; our own spends have a few hundred, an inscription's reveal has more
PATIENCE_S = 4.0  # below the signer's 5 s, so that a source that hangs does not hide the others' answers
Value = TypeVar("Value")
Witnessed = tuple[Transaction, tuple[tuple[bytes, ...], ...]]


class ChainFacts:
    """The reads of facts, with their own store of answers on the clocks of `snapshots`."""

    def __init__(self, adapters: Adapters, venues: Venues, snapshots: Snapshots) -> None:
        store = snapshots.beside(MOST_ANSWERS)
        self._mempool, self._by_mempool = adapters.mempool, Source(venues.mempool, store)
        self._ord, self._by_ord = adapters.ord, Source(venues.ord, store)
        self._unisat, self._by_unisat = adapters.unisat_index, Source(venues.unisat, store)

    @answers(verbs.Outpoint)
    async def _outpoint(self, call: Call[verbs.Outpoint]) -> str:
        """Returns the facts of an output (txid:vout), and on request its transaction: hex without witnesses, or null if
        unknown. Raises NotSupported if no source is set, TooManyLookups if the user's look-up budget is empty and only
        UniSat's index could answer.
        """
        outpoint, max_age_s = call.args.outpoint, call.max_age_s
        if self._mempool is None and self._ord is None and self._unisat is None:
            raise NotSupported("not set up here: neither BIDKEEPER_MEMPOOL_URL nor BIDKEEPER_ORD_URL is set")
        (on_chain, transaction), by_ord, by_unisat = await asyncio.gather(
            self._on_chain(outpoint, max_age_s),
            self._from_ord(outpoint, max_age_s),
            self._from_unisat(outpoint, max_age_s),
        )
        if isinstance(by_unisat, TooManyLookups):
            if by_ord is None:
                raise by_unisat  # because UniSat is the only index and will answer later
            by_unisat = None
        indexes = [index for index in (by_ord, by_unisat) if index is not None]
        facts = joined(outpoint, on_chain, indexes)
        if not call.args.with_transaction:
            return text(facts)
        return text(asdict(facts) | {"transaction": None if transaction is None else transaction.encode().hex()})

    @answers(verbs.Transaction)
    async def _transaction(self, call: Call[verbs.Transaction]) -> str:
        """Returns a transaction with its witnesses and its block. Raises NotSupported without a mempool server,
        NotFound if the server does not have the transaction, Unavailable if it does not answer.
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
        """Returns the output that holds an inscription. Raises NotFound if the index does not know the inscription,
        Unavailable if no index answers.
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

    async def _from_ord(self, outpoint: str, max_age_s: float) -> Indexed | None:
        ord_, by = self._ord, self._by_ord
        if ord_ is None:
            return None

        async def fetch(flight: Flight) -> Indexed:
            # The status first, so that the output is never older than the height reported with it.
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
                return output  # without the inscription's offset, which ord did not give
            return replace(output, item_offset=offset)

        return await _known(by.snapshots.get(("by_ord", outpoint), max_age_s, fetch))

    async def _from_unisat(self, outpoint: str, max_age_s: float) -> Indexed | TooManyLookups | None:
        unisat, by = self._unisat, self._by_unisat
        if unisat is None:
            return None

        async def fetch_height(flight: Flight) -> int:
            """Returns the lower height of UniSat's two indexes."""
            chain = await by.read(flight, "chain_height", unisat.chain_height, verb="outpoint")
            return min(chain, await by.read(flight, "runes_height", unisat.runes_height, verb="outpoint"))

        async def fetch(flight: Flight) -> Indexed:
            # The height first, so that the output is never older; cached, so that a withdrawal's outputs share it.
            height = await by.snapshots.get("height_by_unisat", max_age_s, fetch_height)
            output = await by.read(flight, "output", lambda: unisat.output(outpoint), verb="outpoint")
            runes = None
            if output.script is not None:  # UniSat may give no details of a spent output
                runes = await by.read(flight, "output_runes", lambda: unisat.runes(outpoint), verb="outpoint")
            return replace(output, runes=runes, height=height)

        try:
            return await _known(by.snapshots.get(("by_unisat", outpoint), max_age_s, fetch))
        except TooManyLookups as refused:
            return refused


async def _known(reading: Awaitable[Value]) -> Value | None:
    """Returns the answer, or None if the source fails or times out (the log of calls has the reason). Raises
    TooManyLookups, because that is no failure of the source.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await reading
    except TooManyLookups:
        raise
    except (VenueError, TimeoutError):
        return None


def _transaction(mempool: Mempool, txid: str) -> Witnessed:
    """Returns the transaction and its witnesses, after checking its hash. Runs in a venue's thread."""
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
    """A mempool server's facts; None = not given."""

    made: TxOutput | None
    confirmation: Confirmation | None
    spending: Spending | None
    tip_height: int | None


def joined(outpoint: str, on_chain: OnChain, indexes: Sequence[Indexed]) -> OutpointFacts:
    made, spending, tip = on_chain.made, on_chain.spending, on_chain.tip_height
    heights = [index.height for index in indexes if index.height is not None]
    if tip is not None and heights and max(heights) > tip + 1:
        tip = None  # because the server lags; one block of difference may have arrived between the reads
    confirmation = on_chain.confirmation
    is_confirmed = (
        None
        if confirmation is None
        else _agreed([confirmation.is_in_block, *(index.is_confirmed for index in indexes)])
    )
    is_unspent = None if spending is None else not spending.is_spent
    if is_unspent and made is None:
        is_unspent = None  # because servers also call unknown outputs unspent
    if is_unspent and any(index.is_spent for index in indexes):
        is_unspent = None  # because the sources contradict each other
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
    """Returns the value if all sources that know it agree, else None."""
    known = {each for each in said if each is not None}
    return known.pop() if len(known) == 1 else None
