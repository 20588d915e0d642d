"""One task's time on a stage: what it had at the venue at each moment, and whether that is what it should have had."""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from models.tasks.cycles import cycles_of
from simulator.engine import Event, Order
from strategy.config.bid import BidConfig
from strategy.decision import margin_ms
from strategy.reasons import Reason
from wallet.terms import OUTSTANDING_FACTOR

# Rungs without a bid for these reasons are so by the user's own limits, or because the market has no room for them:
# rivals who outbid oftener than twenty times an hour are not followed until the hour is over.
USERS_OR_MARKETS = frozenset(
    {
        Reason.PLAN_BIDS,
        Reason.RANGE_EMPTY,
        Reason.RUNGS_MERGED,
        Reason.TASK_TOTAL,
        Reason.EXPOSURE_LIMIT,
        Reason.INSUFFICIENT_BALANCE,
        Reason.NO_REFERENCE,
        Reason.MAX_FILLS,
        Reason.SPEND_CAP,
        Reason.FILL_PAUSE,
        Reason.FILL_BURST,
        Reason.NOT_HIGHEST,
        Reason.AT_ASK,
        Reason.RAISE_LIMITED,
    }
)
# Told as an error to the task's owner, and not one.
WORDS_OF_MARKET = "several bids were filled"
LONGEST_WITHOUT = 3  # cycles
# A fill is seen at the next cycle, and its rung comes back after the pause that follows a fill.
CYCLES_AFTER_FILL = 3


@dataclass
class TaskTime:
    """Times are milliseconds of the house's clock. `without_ms`: bids were missing for no reason of user or market.

    `filled_ms`: they were missing because they had been bought from. `longest` is in cycles, with the reasons that the
    rungs without a bid had in it.
    """

    task_id: int
    config: BidConfig
    wallet: str
    began_ms: int
    places: int = 0
    cancels: int = 0
    fills: int = 0
    expiries: int = 0
    cycles: int = 0
    live: set[str] = field(default_factory=set)
    live_ms: int = 0  # bids x time
    without_ms: int = 0
    filled_ms: int = 0
    limited_ms: int = 0  # rungs were missing by a reason of user or market
    longest: int = 0
    reasons: Counter[str] = field(default_factory=Counter)  # of rungs without their bids, by cycles
    worst: Counter[str] = field(default_factory=Counter)  # the same in the longest time without
    errors: Counter[str] = field(default_factory=Counter)
    paid: float = 0.0  # sum of price / floor over the fills
    peak: int = 0  # most sats signed and not expired
    starved: int = 0  # cycles that moved a bid while there was no room to sign a renewal
    _until_ms: int = 0
    _is_begun: bool = False  # the ladder was whole once
    _excused: int = 0
    _since_fill: int = CYCLES_AFTER_FILL
    _unfilled: int = 0
    _streak: int = 0
    _streak_reasons: Counter[str] = field(default_factory=Counter)
    _last_cycle: int = 0
    _signed: list[tuple[int, int]] = field(default_factory=list)  # heap of (expires_ms, sats)
    _signed_sats: int = 0

    @property
    def missing(self) -> int:
        return max(0, self.config.bid_count - len(self.live))

    @property
    def peak_share(self) -> float:
        """Of four times the task's maxBidTotal."""
        return self.peak / (OUTSTANDING_FACTOR * self.config.max_bid_total)

    @property
    def without(self) -> float:
        """Share of the time."""
        return self.without_ms / max(1, self._until_ms - self.began_ms)

    def until(self, now_ms: int) -> None:
        """Everything has been as it is until now."""
        passed, self._until_ms = now_ms - max(self._until_ms, self.began_ms), now_ms
        if not self._is_begun:
            self.began_ms = now_ms
            return
        self.live_ms += passed * len(self.live)
        if self.missing > self._excused + self._unfilled:
            self.without_ms += passed
        elif self.missing > self._excused:
            self.filled_ms += passed
        elif self.missing:
            self.limited_ms += passed

    def hear(self, event: Event, order: Order, time_ms: int, floor: int) -> None:
        """Something happened to a bid of this task at the venue."""
        self.until(max(time_ms, self._until_ms))
        if event == "accepted":
            self.places += 1
            self.live.add(order.order_id)
            self._is_begun = self._is_begun or not self.missing
            self._sign(order, time_ms)
            return
        self.live.discard(order.order_id)
        if event == "filled":
            self.fills += 1
            self.paid += order.price / floor if floor else 0.0
            self._unfilled += 1
            self._since_fill = 0
        elif event == "cancelled":
            self.cancels += 1
        elif event == "expired":
            self.expiries += 1

    def _sign(self, order: Order, now_ms: int) -> None:
        assert order.expires_ms is not None
        heapq.heappush(self._signed, (order.expires_ms, order.price))
        self._signed_sats += order.price
        while self._signed[0][0] <= now_ms:
            self._signed_sats -= heapq.heappop(self._signed)[1]
        self.peak = max(self.peak, self._signed_sats)

    def after_cycle(self, now_ms: int) -> None:
        """The task's worker had its turn, and may have used it for a cycle."""
        self.until(now_ms)
        row = cycles_of(self.task_id, 1)[0]
        if row.id == self._last_cycle:
            return
        self._last_cycle = row.id
        self.cycles += 1
        if row.error and any(WORDS_OF_MARKET not in part for part in row.error.split("; ")):
            self.errors[re.sub(r"\d+", "N", row.error)] += 1
        if f'"{Reason.SIGNED_LIMIT}"' in row.detail:
            self.starved += self._is_starving(json.loads(row.detail), now_ms)
        if not self.missing:
            self._excused = self._unfilled = self._streak = 0
            self._streak_reasons = Counter()
            return
        rungs = json.loads(row.detail).get("rungs", [])
        lacking = [rung["reason"] for rung in rungs if "order" not in rung and rung.get("fate") != "placed"]
        self._excused = sum(reason in USERS_OR_MARKETS for reason in lacking)
        self.reasons.update(lacking)
        self._since_fill += 1
        if self._since_fill > CYCLES_AFTER_FILL:
            self._unfilled = 0
        if self.missing > self._excused + self._unfilled and self._is_begun:
            self._streak += 1
            self._streak_reasons.update(lacking or ["nothing"])
            if self._streak > self.longest:
                self.longest, self.worst = self._streak, Counter(self._streak_reasons)
        else:
            self._streak, self._streak_reasons = 0, Counter()

    def _is_starving(self, detail: dict[str, Any], now_ms: int) -> bool:
        """Tells whether a bid is about to expire for want of room, though one that could stay made way for a new price.

        Where all end together, those that make way for the upper rungs would have gone anyway.
        """
        last_ms = now_ms + margin_ms(self.config)
        reasons = {bid["order"]: bid["reason"] for bid in detail["bids"] if bid["expires_ms"] > last_ms}
        waits = any(bid["reason"] == Reason.SIGNED_LIMIT and bid["expires_ms"] <= last_ms for bid in detail["bids"])
        moved = any(reasons.get(order) in (Reason.SURPLUS, Reason.STEP_DOWN) for order in detail["cancelled"])
        return waits and moved and any(rung.get("fate") == "placed" for rung in detail["rungs"])

    def problems(self) -> list[str]:
        """Returns every forbidden thing that happened, in words."""
        who = f"{self.config.slug}"
        found = [f"{who}: {count} cycles with an error: {text}" for text, count in self.errors.items()]
        if not self._is_begun:
            found.append(f"{who}: the ladder was never whole: {dict(self.reasons)}")
        if self.starved:
            found.append(f"{who}: {self.starved} cycles moved a bid while a renewal waited for room")
        if self.longest > LONGEST_WITHOUT:
            found.append(f"{who}: {self.longest} cycles without its bids: {dict(self.worst)}")
        return found
