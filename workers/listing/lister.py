"""One auto-list task's cycles: one after the other, and the time of the next."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial

from models.tasks import tasks
from strategy.reasons import FaultCode
from wallet.protocol import UserKeys
from workers.context import Context
from workers.faults import Faults
from workers.listing import report
from workers.listing.assignment import ListingAssignment, read_listing_assignment
from workers.listing.cycle import ListerState, ListingCycle
from workers.listing.listing_end import EndFinder
from workers.listing.listing_market import CollectionFinder
from workers.listing.outcome import ListingOutcome
from workers.listing.own_listings import read_own_listings
from workers.pace import Backoff
from workers.refused_credentials import RefusedCredentials
from workers.user_keys import read_user_keys

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 60.0
IN_DOUBT_S = 6.0  # until the next read may resolve a doubt


class Lister:
    """The job that keeps one inscription listed at the configured price, one `cycle` after the other (see `Job`).

    It survives being killed anywhere: a successor needs only the ledger and the venue's own-listings answer.
    """

    def __init__(
        self,
        context: Context,
        *,
        rng: random.Random | None = None,
        new_intent: Callable[[], str] = lambda: os.urandom(32).hex(),
        until_cycle: Callable[[str, float, float], float] | None = None,
    ) -> None:
        """Wires the job. `until_cycle`, see workers/pace.py, times the cycles; without it a loop lies between two."""
        self._context = context
        self._until_cycle = until_cycle
        self._state = ListerState(CollectionFinder(context), EndFinder(context), new_intent)
        self._backoff = Backoff(FIRST_BACKOFF_S, LONGEST_BACKOFF_S, rng or random.Random())
        self._keys: UserKeys | None = None
        self._credentials = RefusedCredentials()

    def cycle(self) -> float | None:
        """Runs one cycle; returns the seconds until the next one.

        None when the task is no longer ours to act for, or when nothing is left to do: sold, or gone. Raises BadConfig,
        and BadCredentials by the rule of `RefusedCredentials`; both are recorded first.
        """
        context = self._context
        assignment = read_listing_assignment(context)
        if assignment is None:
            return None
        faults = Faults()
        keys = self._keys = self._keys or read_user_keys(self._context, assignment.user.address, faults)
        if keys is None:
            report.record_nothing_done(context, faults)
            return self._backoff.delay(faults.retry_after_s)
        outcome = ListingCycle(context, assignment, keys, self._state, faults).run()
        report.record(context, outcome, faults)
        if outcome.is_over:
            tasks.stop_wanting(context.task_id, outcome.error, (FaultCode.NOT_IN_VAULT, {}))
            return None
        self._credentials.judge(faults, partial(read_own_listings, context, keys.vault, 0.0), context.clock_ms())
        return self._pause(assignment, outcome, faults)

    def _pause(self, assignment: ListingAssignment, outcome: ListingOutcome, faults: Faults) -> float:
        if faults.backs_off:
            return self._backoff.delay(faults.retry_after_s)
        self._backoff.reset()
        loop_s = float(assignment.config.loop_s)
        if outcome.is_in_doubt:
            return min(IN_DOUBT_S, loop_s)
        if self._until_cycle is None:
            return loop_s
        place = str(assignment.task.collection_id or assignment.task.inscription_id)
        return self._until_cycle(place, loop_s, self._context.clock_ms() / 1000)
