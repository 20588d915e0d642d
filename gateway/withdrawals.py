"""Withdrawals: a venue's draft for its bidding wallet, and signed transactions to the network.

No task is behind these writes, so no fence holds; instead the deadline must not have passed and the client must still
be there. Sending the same transaction twice changes nothing, and its txid tells its fate, so Unknown is no dead end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gateway.adapters import needed
from gateway.limits.call_budget import Priority
from gateway.limits.windows import Toll
from gateway.marketplace import Marketplaces
from gateway.reads.shared import shared
from gateway.reads.snapshots import Snapshots
from gateway.venue import Abandoned, Venue
from gateway.verbs import Call, answers
from gateway.writes import LONGEST_WAIT_MS, given
from markets import verbs
from markets.base import Unknown
from markets.http import Permit
from markets.mempool import Mempool
from markets.verbs import text

Value = TypeVar("Value")


class Withdrawals:
    """The verbs of withdrawals. Each returns JSON text and raises VenueError leaves; `now_ms` is epoch milliseconds."""

    def __init__(
        self,
        markets: Marketplaces,
        mempool: Mempool | None,
        network: Venue,
        snapshots: Snapshots,
        now_ms: Callable[[], int],
    ) -> None:
        """Wires the verbs. `network` has the limits of the calls of `mempool`."""
        self._markets = markets
        self._mempool = mempool
        self._network = network
        self._snapshots = snapshots
        self._now_ms = now_ms

    @answers(verbs.DraftWithdrawal)
    async def draft(self, call: Call[verbs.DraftWithdrawal]) -> str:
        """Drafts a PSBT that takes sats out of a bidding wallet. Never shared, and changes nothing at the venue."""
        market, args = self._markets.of(call.request.venue), call.args

        def draft() -> str:
            return market.adapter.draft_withdrawal(args.payment, args.amount)

        toll = Toll("write", args.payment, more=1)
        return text(await market.venue.ask("draft_withdrawal", Priority.CANCEL, draft, toll))

    @answers(verbs.SubmitWithdrawal)
    async def submit(self, call: Call[verbs.SubmitWithdrawal]) -> str:
        """Hands a signed draft to the venue, which completes and sends it; returns the txid."""
        market, args = self._markets.of(call.request.venue), call.args

        def submit(permit: Permit) -> str:
            return market.adapter.submit_withdrawal(args.payment, args.psbt, permit)

        toll = Toll("write", args.payment)
        return text(await self._write(market.venue, "submit_withdrawal", submit, toll, call))

    @answers(verbs.Broadcast)
    async def broadcast(self, call: Call[verbs.Broadcast]) -> str:
        """Sends a signed transaction to the network; returns its txid."""
        mempool = needed(self._mempool, "MEMPOOL_URL")

        def broadcast(permit: Permit) -> str:
            return mempool.broadcast(call.args.transaction, permit)

        return text(await self._write(self._network, "broadcast", broadcast, Toll("write"), call))

    @answers(verbs.IsConfirmed)
    async def is_confirmed(self, call: Call[verbs.IsConfirmed]) -> str:
        """Tells whether a transaction is in a block. NotFound when neither a block nor the mempool has it."""
        mempool, txid = needed(self._mempool, "MEMPOOL_URL"), call.args.txid
        key = ("transaction", txid)
        return await shared(
            self._snapshots, self._network, key, call.max_age_s, "is_confirmed", lambda _: mempool.look_up(txid)
        )

    async def _write(
        self, venue: Venue, verb: str, write: Callable[[Permit], Value], toll: Toll, call: Call[Any]
    ) -> Value:
        deadline_ms = min(given(call.request.deadline_ms, "deadline_ms"), self._now_ms() + LONGEST_WAIT_MS)

        def permit() -> None:
            if self._now_ms() >= deadline_ms:
                raise Abandoned("its deadline passed; nothing was sent")
            if call.asker.is_gone():
                raise Abandoned("its asker is gone; nothing was sent")

        permit()
        await venue.turn(Priority.CANCEL, (deadline_ms - self._now_ms()) / 1000, toll)
        # No await between the turn and this: a client that leaves finds it either queued or sending.
        call.asker.droppable = False
        return await venue.run(verb, verb, lambda: write(permit), Unknown)
