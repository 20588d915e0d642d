"""One bidding task's cycles: one after the other, and the time of the next."""

from __future__ import annotations

import logging
import math
import random
import time
import uuid
from collections.abc import Callable
from functools import partial

from core.local_time import next_change_ms
from markets.base import VenueError
from markets.look import Looker, kind_of
from models.controls import HALT
from models.ledger import orders
from models.ledger.states import CANCELLING, LIVE
from strategy.bid_config import BidConfig
from strategy.bidding.renewal import margin_ms
from strategy.book import VenueProfile
from strategy.fault_codes import Step
from strategy.plan_inputs import Memory
from wallet.protocol import UserKeys
from workers.bidding import report
from workers.bidding.assignment import BiddingAssignment, read_bidding_assignment
from workers.bidding.cycle import BiddingCycle
from workers.bidding.inputs import BidderState, CycleInputs
from workers.bidding.journal import Journal
from workers.bidding.own_bids import needs_fresh_read, read_own_bids
from workers.bidding.quota_words import QuotaWords
from workers.context import Context
from workers.evidence import APART_MS
from workers.faults import Faults
from workers.pace import Backoff, until_rare_cycle
from workers.refused_credentials import RefusedCredentials
from workers.user_keys import read_user_keys

log = logging.getLogger(__name__)

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 60.0
SHORTEST_PAUSE_S = 1.0
AT_ONCE_S = 0.05
LOOK_AGAIN_S = APART_MS / 1000 + 1
LONGEST_REST_S = 30.0  # between cycles; a longer loop wakes up meanwhile to look for stricter limits


class Bidder:
    """The job that keeps the bids of one task right, one `cycle` after the other (see `Job`).

    It survives being killed anywhere: a successor needs only the ledger and the venue's own-bid list.
    """

    def __init__(
        self,
        context: Context,
        *,
        rng: random.Random | None = None,
        new_intent: Callable[[], str] = lambda: uuid.uuid4().hex,
        monotonic: Callable[[], float] = time.monotonic,
        journal: Journal | None = None,
        until_cycle: Callable[[str, float, float], float] | None = None,
    ) -> None:
        """Wires the job. `until_cycle`, see workers/pace.py, times the cycles; without it they begin a loop apart."""
        self._context = context
        self._monotonic = monotonic
        self._until_cycle = until_cycle
        looker = Looker(context.market, context.clock_ms)
        self._state = BidderState(looker, journal or Journal(None), new_intent)
        self._backoff = Backoff(FIRST_BACKOFF_S, LONGEST_BACKOFF_S, rng or random.Random())
        self._month = QuotaWords(context)
        self._credentials = RefusedCredentials()
        self._keys: UserKeys | None = None
        self._profiles: dict[str, VenueProfile] = {}
        self._due = 0.0  # on the monotonic clock
        self._limits: object = None  # in the last cycle
        self._was_late = False

    def cycle(self) -> float | None:
        """Runs one cycle; returns the seconds until the next one, or None when the task is no longer ours.

        Raises BadConfig, and BadCredentials by the rule of `RefusedCredentials`; both are recorded first. When our own
        bids cannot be read, nothing is placed; known bids that cap, range or limits forbid are cancelled all the same.
        When the manager has closed a bid of this cycle meanwhile, for a brake, the next one begins soon.
        """
        limits = self._limits
        try:
            return self._cycle()
        except orders.MovedMeanwhile as moved:
            log.info("task %d: begins anew: %s", self._context.task_id, moved)
            self._due, self._limits = 0.0, limits
            return SHORTEST_PAUSE_S

    def _cycle(self) -> float | None:
        began = self._monotonic()
        assignment = read_bidding_assignment(self._context)
        if assignment is None:
            return None
        limits = assignment.limits
        if began < self._due and limits == self._limits:
            return min(self._due - began, LONGEST_REST_S)
        # Under a halt the manager cancels, so that this can wait.
        is_braked = self._limits not in (None, limits) and assignment.control.state != HALT
        self._limits = limits
        faults, is_late = Faults(), False
        keys = self._keys = self._keys or read_user_keys(self._context, assignment.user.address, faults)
        profile = self._known_profile(assignment.config, faults)
        if keys is None or profile is None:
            report.record_nothing_done(self._context, Memory.loads(assignment.task.memory), faults)
        else:
            outcome = BiddingCycle(
                CycleInputs(self._context, assignment, keys, profile, self._state, faults, is_braked)
            ).run()
            report.record(self._context, outcome, faults, self._month.words(assignment))
            is_late = outcome.done.is_late
        if keys is not None:
            self._credentials.judge(faults, partial(self._look, keys, assignment.config), self._context.clock_ms())
        return self._pause(assignment, began, faults, is_late=is_late)

    def _look(self, keys: UserKeys, config: BidConfig, looked: Faults) -> None:
        read_own_bids(self._context, keys.payment, config.slug, 0.0, looked)

    def _known_profile(self, config: BidConfig, faults: Faults) -> VenueProfile | None:
        if config.type not in self._profiles:
            try:
                self._profiles[config.type] = self._context.market.profile(kind_of(config))
            except VenueError as error:
                faults.add(Step.PROFILE, "learn what the market asks of bids", error)
        return self._profiles.get(config.type)

    def _pause(self, assignment: BiddingAssignment, began: float, faults: Faults, *, is_late: bool) -> float:
        self._due = 0.0
        if faults.backs_off:
            return self._backoff.delay(faults.retry_after_s)
        self._backoff.reset()
        if is_late and not self._was_late:
            self._was_late = True
            return AT_ONCE_S
        self._was_late = False
        if is_late:
            return SHORTEST_PAUSE_S
        pause_s = max(self._until_next(assignment, began), SHORTEST_PAUSE_S)
        for order in orders.open_orders(self._context.task_id):
            if order.state == LIVE and order.misses and order.expires_ms <= self._context.clock_ms():
                pause_s = min(pause_s, LOOK_AGAIN_S)  # it holds its place until a second read
            elif order.state == CANCELLING or order.misses:
                pause_s = min(pause_s, LONGEST_REST_S)  # what became of it does not wait for a long loop
        if pause_s > LONGEST_REST_S:
            self._due = self._monotonic() + pause_s
        return min(pause_s, LONGEST_REST_S)

    def _until_next(self, assignment: BiddingAssignment, began: float) -> float:
        config, now_ms = assignment.config, self._context.clock_ms()
        if self._until_cycle is None:
            first_s = config.loop_s - (self._monotonic() - began)
        else:
            first_s = self._until_cycle(assignment.task.slug_key, config.loop_s, now_ms / 1000)
        every = self._state.calm.loops(config, now_ms)
        if every > 1:
            due_s = self._next_due_ms(config, now_ms) / 1000
            first_s = until_rare_cycle(first_s, config.loop_s, now_ms / 1000, every=every, due_s=due_s)
        if hours := config.active_hours:
            # Bids must not outlast their hours by a long loop.
            change_ms = next_change_ms(hours.tz, hours.begin, hours.end, now_ms, int(first_s * 1000))
            return first_s if change_ms is None else (change_ms - now_ms) / 1000
        return first_s

    def _next_due_ms(self, config: BidConfig, now_ms: int) -> float:
        """Returns when an order of ours next needs a cycle, whatever the market does."""
        own = orders.open_orders(self._context.task_id)
        if needs_fresh_read(own, now_ms):
            return now_ms
        return min((order.expires_ms - margin_ms(config) for order in own), default=math.inf)
