"""A cycle to check, and the values that its config may draw from its market, recomputed with fractions.

None of the strategy's code is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from strategy.book import Ask, Bid, Snapshot, VenueProfile
from strategy.config.bid import BidConfig
from strategy.decision import BidPlan, Limits, OwnOrder, Rules
from tests.shapes import replace


@dataclass(frozen=True)
class Facts:
    """The values that a config may draw from a market: unit prices, None if unknown."""

    raw: Fraction | None
    reference: Fraction | None
    ask: Fraction | None
    bids: tuple[Bid, ...] | None


def facts(config: BidConfig, snapshot: Snapshot | None, rules: Rules, now_ms: int) -> Facts:
    if snapshot is None or now_ms - snapshot.taken_ms > rules.stale_after_ms:
        return Facts(None, None, None, None)
    ignored = config.ignore_addresses
    snapshot = replace(
        snapshot,
        asks=tuple(ask for ask in snapshot.asks if ask.maker not in ignored),
        bids=snapshot.bids and tuple(bid for bid in snapshot.bids if bid.maker not in ignored),
        trait_asks=snapshot.trait_asks and tuple(ask for ask in snapshot.trait_asks if ask.maker not in ignored),
    )
    if not snapshot.complete:
        return Facts(None, None, None, snapshot.bids)
    raw = ask = dearest_meant = lowest_of(snapshot.asks)
    if config.bid_type == "trait":
        dearest_meant = trait_floor = lowest_of(snapshot.trait_asks or ())
        if trait_floor is not None:
            raw = ask = trait_floor
        elif config.bid_mode == "fixed":
            ask = None
    if config.type == "rune" and config.use_vwap and raw is not None:
        raw = vwap_of(snapshot.asks, config.depth_sats)
    reference = raw
    history = snapshot.history
    if raw is not None and history.median is not None and history.samples >= rules.min_samples:
        reference = min(raw, Fraction(rules.spike_factor) * Fraction(history.median))
    bids = snapshot.bids
    if bids is not None:
        # An ignored one is nobody's, and whoever bids above an ask could buy it.
        bids = tuple(bid for bid in bids if dearest_meant is None or Fraction(bid.unit_price) <= dearest_meant)
    return Facts(raw, reference, ask, bids)


def lowest_of(asks: tuple[Ask, ...]) -> Fraction | None:
    prices = sorted(Fraction(ask.unit_price) for ask in asks)
    return prices[0] if prices and prices[0] > 0 else None


def vwap_of(asks: tuple[Ask, ...], depth: int) -> Fraction | None:
    left, tokens = Fraction(depth), Fraction(0)
    for unit, quantity in sorted((Fraction(ask.unit_price), Fraction(ask.quantity)) for ask in asks):
        bought = min(quantity, left / unit)
        left, tokens = left - bought * unit, tokens + bought
    spent = depth - left
    return spent / tokens if tokens and spent * 2 >= depth else None


@dataclass(frozen=True)
class Case:
    """Everything that one decision was made of, and the decision."""

    config: BidConfig
    profile: VenueProfile
    snapshot: Snapshot | None
    own: tuple[OwnOrder, ...]
    limits: Limits
    rules: Rules
    now_ms: int
    plan: BidPlan

    @property
    def tick(self) -> int:
        return 1 if self.config.type == "rune" else self.profile.tick

    @property
    def left(self) -> list[OwnOrder]:
        gone = {cancel.order_id for cancel in self.plan.to_cancel}
        return [order for order in self.own if order.id not in gone]

    @property
    def tolerance(self) -> Fraction:
        own = self.config.update_tolerance
        return Fraction(self.rules.tolerance if own is None else own)

    def is_loose(self, order: OwnOrder) -> bool:
        """Tells whether an order can be cancelled."""
        return order.state == "live" and order.expires_ms > self.now_ms

    @property
    def count(self) -> int:
        return min(self.config.bid_count, max(self.limits.plan_bids, 0))


def worth(bid: Bid) -> Fraction:
    return Fraction(bid.price) / Fraction(bid.quantity)


def is_ahead(order: OwnOrder, bid: Bid) -> bool:
    ours = Fraction(order.price_sats) / Fraction(order.quantity)
    is_older = bid.placed_ms is not None and order.created_ms < bid.placed_ms
    return ours > worth(bid) or (ours == worth(bid) and is_older)
