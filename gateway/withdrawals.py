"""Withdrawals: a venue's draft for its bidding wallet, and signed transactions to the network.

No task is behind these writes, so no fence holds; instead the deadline must not have passed and the client must still
be there. Sending the same transaction twice changes nothing, and its txid tells its fate, so Unknown is no dead end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from gateway import arguments as read
from gateway import listing_arguments
from gateway.adapters import needed
from gateway.limits.call_budget import Priority
from gateway.limits.windows import Toll
from gateway.marketplace import Marketplaces
from gateway.reads.shared import shared
from gateway.reads.snapshots import Snapshots
from gateway.venue import Abandoned, Venue
from gateway.writes import LONGEST_WAIT_MS, Asker
from markets.base import Unknown
from markets.http import Permit
from markets.mempool import Mempool
from markets.wire import MAX_SATS

MOST_HEX = 200_000
_HEX = re.compile(r"([0-9a-f]{2}){60,}", re.ASCII)
Value = TypeVar("Value")
Verb = Callable[[Mapping[str, Any], Mapping[str, Any], Asker], Awaitable[str]]


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

    def verbs(self) -> dict[str, Verb]:
        """Returns the verbs by their names on the socket."""
        return {
            "draft_withdrawal": self.draft,
            "submit_withdrawal": self.submit,
            "broadcast": self.broadcast,
            "is_confirmed": self.is_confirmed,
        }

    async def draft(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        """Drafts a PSBT that takes sats out of a bidding wallet. Never shared, and changes nothing at the venue."""
        payment, amount = read.word(args.get("payment"), "payment"), read.whole(args, "amount")
        if not 0 < amount <= MAX_SATS:
            raise read.bad("amount must be a whole number of sats above 0")
        market = self._markets.of(request)

        def call() -> str:
            return market.adapter.draft_withdrawal(payment, amount)

        toll = Toll("write", payment, more=1)
        return json.dumps(await market.venue.ask("draft_withdrawal", Priority.CANCEL, call, toll))

    async def submit(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        """Hands a signed draft to the venue, which completes and sends it; returns the txid."""
        payment, psbt = read.word(args.get("payment"), "payment"), read.psbt(args.get("psbt"))
        market = self._markets.of(request)

        def call(permit: Permit) -> str:
            return market.adapter.submit_withdrawal(payment, psbt, permit)

        toll = Toll("write", payment)
        return json.dumps(await self._write(market.venue, "submit_withdrawal", call, toll, request, asker))

    async def broadcast(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        """Sends a signed transaction to the network; returns its txid."""
        raw = args.get("transaction")
        if not isinstance(raw, str) or len(raw) > MOST_HEX or not _HEX.fullmatch(raw):
            raise read.bad("transaction is not one in hex")
        mempool = needed(self._mempool, "MEMPOOL_URL")

        def call(permit: Permit) -> str:
            return mempool.broadcast(raw, permit)

        return json.dumps(await self._write(self._network, "broadcast", call, Toll("write"), request, asker))

    async def is_confirmed(self, request: Mapping[str, Any], args: Mapping[str, Any], asker: Asker) -> str:
        """Tells whether a transaction is in a block. NotFound when neither a block nor the mempool has it."""
        txid = listing_arguments.txid(args.get("txid"))
        mempool = needed(self._mempool, "MEMPOOL_URL")

        key, max_age_s = ("transaction", txid), read.max_age_s(request)
        return await shared(
            self._snapshots, self._network, key, max_age_s, "is_confirmed", lambda _: mempool.look_up(txid)
        )

    async def _write(
        self,
        venue: Venue,
        verb: str,
        call: Callable[[Permit], Value],
        toll: Toll,
        request: Mapping[str, Any],
        asker: Asker,
    ) -> Value:
        deadline_ms = min(read.whole(request, "deadline_ms"), self._now_ms() + LONGEST_WAIT_MS)

        def permit() -> None:
            if self._now_ms() >= deadline_ms:
                raise Abandoned("its deadline passed; nothing was sent")
            if asker.is_gone():
                raise Abandoned("its asker is gone; nothing was sent")

        permit()
        await venue.turn(Priority.CANCEL, (deadline_ms - self._now_ms()) / 1000, toll)
        # No await between the turn and this: a client that leaves finds it either queued or sending.
        asker.droppable = False
        return await venue.run(verb, verb, lambda: call(permit), Unknown)
