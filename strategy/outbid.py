"""Our place among the bids of others: the bid to outbid, the price for it, and the rungs where we are not first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from decimal import Decimal

from strategy.book import Bid
from strategy.config.bid import BidConfig
from strategy.decision import Memory, OwnOrder, by_price, first_of_equals, is_above, ranks_ahead
from strategy.ladders import Ladder
from strategy.reasons import Reason
from strategy.rungs import Level, Rung

HOUR_MS = 3_600_000


class Rivals:
    """The foreign bids as one config sees them: `bids` None when it ignores them.

    `top` is the ladder's upper end. With outbidding that is the price that outbids `leader`, the highest foreign bid
    that can be outbid within the range, or the low end without one. A bid above the lowest ask is left out, since
    its maker could buy that listing for less; `has_implausible` says so.
    """

    def __init__(
        self, config: BidConfig, ladder: Ladder, bids: Sequence[Bid] | None, lowest_ask: Decimal | None = None
    ) -> None:
        self._config = config
        self._ladder = ladder
        ranked = by_price(bids or ())
        self.has_implausible = False
        if lowest_ask is not None and ranked and ranked[0].unit_price > lowest_ask:
            self.has_implausible = config.wants_bids
            ranked = [bid for bid in ranked if bid.unit_price <= lowest_ask]
        self.first: Bid | None = first_of_equals(ranked, 0) if ranked and config.only_bid_if_highest else None
        self.leader: Bid | None = None
        self.top: Level = ladder.high
        if config.outbid_enabled:
            self.top = ladder.low
            ceiling = ladder.unit_ceiling
            for at in range(bisect_left(ranked, True, key=lambda bid: bid.unit_price <= ceiling), len(ranked)):
                if (price := ladder.outbidding(ranked[at])) is not None:
                    self.leader = first_of_equals(ranked, at)
                    self.top = max(ladder.low, price)
                    break

    def is_outranked(self, order: OwnOrder) -> bool:
        return self.first is not None and not ranks_ahead(order, self.first)

    def beaten(self, own: Sequence[OwnOrder]) -> OwnOrder | None:
        """Returns the best of these orders if the bid to outbid ranks ahead of it, else None."""
        if self.leader is None or not own:
            return None
        best = max(own, key=lambda order: (self._ladder.level(order), -order.created_ms, -order.id))
        return None if ranks_ahead(best, self.leader) else best

    def outbids(self, rung: Rung) -> bool:
        """Tells whether a new bid at this rung ranks ahead of the bid to outbid."""
        return self.leader is not None and is_above(rung.price_sats, rung.quantity, self.leader)

    def is_raise(self, own: Sequence[OwnOrder]) -> bool:
        """Tells whether a new bid that outbids is a raise: our best bid is behind the one to outbid.

        Where a bid that is not the highest is cancelled at once, its successor is a raise all the same.
        """
        return self.beaten(own) is not None or (self.leader is not None and self.first is not None and not own)

    def rungs(self, count: int, own: Sequence[OwnOrder], is_renewable: Callable[[OwnOrder], bool]) -> list[Rung]:
        """Returns the rungs, barred where a new bid would not be first.

        A bid of ours that ranks ahead of the leader for less than the top rung's price keeps that rung until it is
        renewed; the other rungs are then not above that bid, or they would pay too much.
        """
        rungs = self._barred(self._ladder.rungs(self.top, count))
        if self.leader is None or not rungs:
            return rungs
        accepts = self._holder_of(rungs[0], self.leader)
        holders = list(filter(accepts, own))
        level = max(map(self._ladder.level, holders), default=self.top)
        if level < self.top and len(rungs) > 1 and rungs[1].level > level:
            equals = (order for order in holders if self._ladder.level(order) == level)
            if rungs[0].barred or not all(map(is_renewable, equals)):
                rungs = self._barred(self._ladder.rungs(self.top, count, level))
        rungs[0].accepts = accepts
        return rungs

    def _barred(self, rungs: list[Rung]) -> list[Rung]:
        for rung in rungs:
            if self.first is not None and not is_above(rung.price_sats, rung.quantity, self.first):
                rung.barred = Reason.NOT_HIGHEST
        return rungs

    def _holder_of(self, top: Rung, leader: Bid) -> Callable[[OwnOrder], bool]:
        """Makes the test for the top rung's holder: any bid ahead of the leader, unless it pays too much for that."""
        least, most = top.level - top.below, top.level + top.above

        def accepts(order: OwnOrder) -> bool:
            level = self._ladder.level(order)
            if level > most and self._config.update_bid_enabled:
                return False
            if self._ladder.is_low(order) and level < least:
                return False
            return ranks_ahead(order, leader)

        return accepts


def recent_raises(memory: Memory, now_ms: int) -> tuple[int, ...]:
    """Returns the raises of the last hour; one in the future, after a clock was set back, counts too."""
    return tuple(raised_ms for raised_ms in memory.raises_ms if now_ms - raised_ms < HOUR_MS)
