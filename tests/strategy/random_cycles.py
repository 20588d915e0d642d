"""Random cycles that are likely to mean something: markets that moved, ladders placed before, limits that bind."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from strategy.book import Ask, Bid, History, Snapshot, VenueProfile
from strategy.config.bid import BidConfig, BidLevel, FloorDrop, problems
from strategy.decision import BidPlan, BudgetRoom, Entry, Limits, Memory, OwnOrder, Rules
from strategy.plan_bids import plan_bids
from strategy.reasons import Reason
from tests.shapes import replace
from tests.strategy.checked_case import Case
from tests.worlds.market import NOW, carry_out

IGNORED = "bidderwhoisignored"
IN_FLIGHT = ("reserved", "signed", "submitted", "unknown")


@dataclass(frozen=True)
class Cycle:
    """The arguments of one plan."""

    config: BidConfig
    profile: VenueProfile
    snapshot: Snapshot | None
    own: tuple[OwnOrder, ...]
    limits: Limits
    rules: Rules
    memory: Memory

    def plan(self) -> BidPlan:
        return plan_bids(self.entry())

    def entry(self, now_ms: int = NOW, restraint: Reason | None = None) -> Entry:
        return Entry(
            now_ms, self.config, self.profile, self.snapshot, self.own, self.limits, self.rules, self.memory, restraint
        )

    def case(self, plan: BidPlan) -> Case:
        return Case(self.config, self.profile, self.snapshot, self.own, self.limits, self.rules, NOW, plan)


def random_cycle(rng: Random) -> Cycle:
    config = _config(rng)
    tick = 1 if config.is_rune else rng.choice([1, 1, 500, 1_000])
    profile = VenueProfile(
        "simulator",
        tick,
        rng.choice([0, 1_000, 10_000]),
        900,
        equal_bids_allowed=rng.random() < 0.7,
        balance_model=rng.choice(["per_bid", "reserved"]),
    )
    rules = Rules(tolerance=rng.choice([Decimal(0), Decimal("0.01")]), max_raises=rng.choice([20, 20, 1]))
    floor = rng.randint(20_000, 130_000)
    history = rng.choice([History(), History(floor / basis(config), 60)])
    cycle = Cycle(config, profile, _snapshot(rng, config, floor, history, ()), (), _limits(rng), rules, Memory())
    for _ in range(rng.randint(0, 3)):
        # A market that moves, with a history: each cycle starts from what the one before it left.
        plan = cycle.plan()
        own = list(_aged(rng, carry_out(cycle.config, cycle.own, plan)))
        rng.shuffle(own)
        floor = round(floor * rng.choice([1, 1, rng.uniform(0.97, 1.03), rng.uniform(0.6, 1.6)]))
        if plan.raw_reference is not None and rng.random() < 0.7:
            history = History(plan.raw_reference * rng.choice([1, 1, 1, Decimal("0.7"), Decimal("0.4")]), 10)
        cycle = replace(
            cycle,
            config=_edited(rng, cycle.config),
            snapshot=_snapshot(rng, config, floor, history, own),
            own=tuple(own),
            limits=cycle.limits if rng.random() < 0.6 else _limits(rng),
            memory=Memory(
                rng.choice([None, None, NOW - 1_000, NOW - 300_000]),
                tuple(NOW - rng.choice([1_000, 3_599_999, 3_600_000]) for _ in range(rng.choice([0, 0, 1]))),
            ),
        )
    if rng.random() < 0.3:
        cycle = replace(cycle, own=(*cycle.own, *_strays(rng, cycle)))
    if rng.random() < 0.5:
        cycle = _at_the_edges(rng, cycle)
    return cycle


def _at_the_edges(rng: Random, cycle: Cycle) -> Cycle:
    """Own bids as far from their rungs as they may just be, or a sat further; hard cap and ask next to the high end."""
    config = cycle.config
    if rng.random() < 0.3 and config.bid_percent_low < Decimal("0.98"):
        config = replace(config, bid_percent_high=Decimal(rng.choice(["0.98", "0.99", "1"])))
    prices = _rung_prices(replace(cycle, config=config))
    if not prices:
        return cycle
    tolerance = cycle.rules.tolerance if config.update_tolerance is None else config.update_tolerance
    gap = abs(prices[0] - prices[-1]) // max(len(prices) - 1, 1)
    if rng.random() < 0.4:
        above = rng.randint(0, 2 * max(cycle.profile.tick, int(prices[0] * tolerance)))
        config = replace(config, hardcap_sats=max(prices[0] + above, config.sats_per_order))
    own = []
    for each in cycle.own:
        price = rng.choice([prices[0], rng.choice(prices)])
        ways = [
            cycle.profile.tick,
            2 * cycle.profile.tick,
            int(price * tolerance),
            int(gap * config.keep_within_gap),
            2 * config.outbid_amount,
            int(2 * price * config.outbid_percent),
        ]
        off = rng.choice([-1, 1]) * rng.choice(ways) + rng.choice([-1, 0, 0, 1, 500])
        is_moved = each.id < 1_000 and rng.random() < 0.6
        own.append(_moved(config, each, price, off) if is_moved else each)
    return replace(cycle, config=config, own=tuple(own))


def _rung_prices(cycle: Cycle) -> list[int]:
    return [note.price_sats for note in cycle.plan().rungs if note.price_sats is not None]


def _moved(config: BidConfig, order: OwnOrder, price: int, off: int) -> OwnOrder:
    """Off by so much from the price, or from what it is a token where every order is of the same sats."""
    if config.quantity_mode == "quantity":
        return replace(order, price_sats=max(price + off, 1))
    quantity = (order.quantity * order.price_sats / max(order.price_sats + off, 1)).quantize(order.quantity)
    return replace(order, quantity=quantity or order.quantity)


def _config(rng: Random) -> BidConfig:
    is_rune = rng.random() < 0.5
    is_sats = is_rune and rng.random() < 0.5
    low, high = rng.choice([sorted(rng.sample(range(30, 130), 2)), [30, 95], [50, 80], [74, 75]])
    fixed_low, fixed_high = sorted(rng.choices(range(10_000, 130_000), k=2))
    config = BidConfig(
        slug="ABC" if is_rune else "abc",
        type="rune" if is_rune else "ordinals",
        bid_mode="percent" if is_sats else rng.choice(["percent", "percent", "fixed"]),
        bid_percent_low=Decimal(low) / 100,
        bid_percent_high=Decimal(high) / 100,
        bid_fixed_low=fixed_low,
        bid_fixed_high=fixed_high,
        bid_count=rng.choice([1, 2, 3, 5, 5, 8]),
        hardcap_sats=rng.choice([50_000, 100_000, 1_000_000, 1_000_000]),
        update_bid_enabled=rng.random() < 0.6,
        quantity=rng.choice([Decimal("0.5"), Decimal(3), Decimal(1_000)]) if is_rune else Decimal(1),
        quantity_mode="sats" if is_sats else "quantity",
        sats_per_order=rng.choice([9_999, 30_000, 50_000]) if is_sats else 0,
        use_vwap=is_rune and rng.random() < 0.5,
        depth_sats=rng.choice([20_000, 200_000, 1_000_000]),
        outbid_enabled=rng.random() < 0.5,
        outbid_mode=rng.choice(["fixed", "percent"]),
        outbid_amount=rng.choice([0, 1, 1_000, 5_000]),
        outbid_percent=rng.choice([Decimal("0.000001"), Decimal("0.01"), Decimal("0.05")]),
        only_bid_if_highest=rng.random() < 0.3,
        bid_type="trait" if not is_rune and rng.random() < 0.3 else "collection",
        trait_type="Hat",
        trait_value="Crown",
        update_tolerance=rng.choice([None, None, Decimal("0.001"), Decimal("0.01"), Decimal("0.05"), Decimal("0.2")]),
        keep_within_gap=rng.choice([Decimal("0.25"), Decimal("0.25"), Decimal(0), Decimal("0.1"), Decimal("0.45")]),
        min_age_seconds=rng.choice([None, None, 0, 1, 600, 3_600]),
    )
    # Drawn by what is drawn already: the cycles of a seed stay what they were.
    mode = ("auto", "breakFirst", "makeFirst")[(low + fixed_low) % 3]
    config = replace(
        config, replace_mode=mode, **_spacing(config, high + 7 * fixed_low), **_guards(config, low + fixed_high)
    )
    assert problems(config) == []
    return config


def _spacing(config: BidConfig, lot: int) -> dict[str, Any]:
    """Returns fields about the rungs' prices: mostly an even ladder, else another shape or levels of the owner's."""
    kind = lot % 9
    if kind < 5:
        return {}
    if kind < 7:
        return {"ladder_shape": ("geometric", "top")[kind - 5]}
    low, high = config.bid_percent_low, config.bid_percent_high
    if config.bid_mode == "fixed":
        low, high = Decimal(config.bid_fixed_low), Decimal(config.bid_fixed_high)
    gap = (high - low) / 3 or low / 10
    ats = {int(at) if config.bid_mode == "fixed" else at for at in (high + gap, high - gap / 2, low, low - gap / 7)}
    levels = tuple(BidLevel(Decimal(at), 1 + (lot + place) % 3) for place, at in enumerate(sorted(ats)) if at > 0)
    return {"bid_levels": levels, "bid_count": sum(level.count for level in levels)}


def _guards(config: BidConfig, lot: int) -> dict[str, Any]:
    """Returns guards by the floor, seldom."""
    found: dict[str, Any] = {}
    if lot % 7 == 0:
        unit = basis(config) if config.is_rune else Decimal(1)
        found["only_while_floor_between"] = (Decimal(60_000) / unit, Decimal(100_000) / unit)
    if lot % 6 == 1:
        found["pause_on_floor_drop"] = FloorDrop(Decimal("0.1"), 60, 120)
    if lot % 5 == 2:
        found["ignore_addresses"] = (IGNORED,)
    return found


def basis(config: BidConfig) -> Decimal:
    """Tokens that cost about a floor: of an order, or what makes an order of fixed sats big or small."""
    if config.quantity_mode == "sats":
        return Decimal("0.5") if config.sats_per_order == 30_000 else Decimal(1_000)
    return config.quantity


def _edited(rng: Random, config: BidConfig) -> BidConfig:
    """Returns the config after a PUT, now and then."""
    if rng.random() < 0.8:
        return config
    count = rng.randint(1, 8)
    return replace(
        config,
        bid_count=config.level_count or count,
        hardcap_sats=rng.choice([50_000, 90_000]),
        update_bid_enabled=False,
        update_tolerance=rng.choice([None, Decimal("0.002"), Decimal("0.2")]),
        keep_within_gap=rng.choice([config.keep_within_gap, Decimal("0.45")]),
    )


def _snapshot(
    rng: Random, config: BidConfig, floor: int, history: History, own: tuple[OwnOrder, ...] | list[OwnOrder]
) -> Snapshot | None:
    if rng.random() < 0.04:
        return None
    asks = tuple(
        _ask(rng, config, floor + rng.choice([0, 500, 10_000])) for _ in range(rng.choice([0] + [1] * 3 + [3] * 12))
    )
    with_trait = tuple(_ask(rng, config, floor + rng.choice([500, 20_000])) for _ in range(rng.randint(0, 2)))
    age_ms = rng.choice([0] * 19 + [121_000])
    return Snapshot(
        NOW - age_ms,
        asks,
        complete=rng.random() < 0.96,
        bids=None if rng.random() < 0.05 else tuple(_bid(rng, config, floor, own) for _ in range(rng.randint(0, 5))),
        trait_asks=None if rng.random() < 0.2 else with_trait,
        history=_guarded(rng, config, history, floor) if config.is_guarded else history,
        divisibility=None if rng.random() < 0.05 else rng.choice([0, 0, 2, 8]),
    )


def _guarded(rng: Random, config: BidConfig, history: History, floor: int) -> History:
    """Returns the history with a course of the floor that a guard may mind."""
    highest = (
        Decimal(floor) / (basis(config) if config.is_rune else 1) * rng.choice([1, 1, Decimal("1.05"), Decimal("1.2")])
    )
    return replace(
        history,
        highest=highest,
        lowest=highest * rng.choice([1, Decimal("0.8")]),
        dropped_ms=rng.choice([None, None, NOW - 7_199_999, NOW - 7_200_000]),
        was_outside=rng.random() < 0.3,
    )


def _ask(rng: Random, config: BidConfig, price: int) -> Ask:
    tokens = basis(config)
    lots = rng.choice([1, 1, 5]) if config.is_rune else 1
    return Ask("ask", price * lots, tokens * lots, price / tokens, "somebody")


def _bid(rng: Random, config: BidConfig, floor: int, own: tuple[OwnOrder, ...] | list[OwnOrder]) -> Bid:
    placed_ms = rng.choice([None, NOW - 7_200_000, NOW - 30_000, NOW])
    if own and rng.random() < 0.3:
        same = rng.choice(own)
        price, tokens = max(same.price_sats + rng.choice([0, 0, -1, 1, 900]), 1), same.quantity
    else:
        price, tokens = round(floor * rng.uniform(0.2, 1.1)), basis(config)
        price = max(price // rng.choice([1, 500, 1_000]) * rng.choice([1, 500, 1_000]), 1)
        price = min(price, 2 * floor)
    many = rng.choice([1, 1, 3])
    maker = IGNORED if price % 5 == 1 else "rival"
    return Bid("bid", price * many, tokens * many, price * many / (tokens * many), maker, placed_ms)


def _limits(rng: Random) -> Limits:
    limits = Limits(
        task_total=rng.choice([0, 0, rng.randint(10_000, 500_000)]),
        user_headroom=rng.choice([10**12, 10**12, 10**12, rng.randint(0, 500_000)]),
        plan_bids=rng.choice([20] * 6 + [rng.randint(0, 5)]),
        balance_sats=rng.choice([10**12] * 8 + [rng.randint(0, 400_000), None]),
        fee_reserve_sats=rng.choice([2_000] * 14 + [None]),
        fills_left=rng.choice([None] * 6 + [rng.randint(-1, 6)]),
        spend_left_sats=rng.choice([None] * 6 + [rng.randint(-1, 300_000)]),
        hold=rng.choice([None] * 13 + [Reason.FILL_PAUSE, Reason.FILL_BURST, Reason.CLOCK_SKEW]),
    )
    return _of_today(limits, rng.random())


def _of_today(limits: Limits, luck: float) -> Limits:
    """Returns the limits with some by the hour and the day, seldom."""
    if luck < 0.03:
        return replace(limits, hold=Reason.ACTIVE_HOURS)
    if luck < 0.1:
        return replace(limits, fills_left_today=int(luck * 100) % 5, spend_left_today_sats=int(luck * 3_000_000))
    if luck < 0.13:
        lot = int(luck * 10_000)
        return replace(limits, budget=BudgetRoom(1, "both", (None, lot * 150)[lot % 3 > 0], (None, lot % 6)[lot % 2]))
    return limits


def _aged(rng: Random, own: list[OwnOrder]) -> list[OwnOrder]:
    left = []
    for each in own:
        if rng.random() < 0.1:
            continue
        state = each.state if rng.random() < 0.93 else rng.choice(["live", "cancelling", *IN_FLIGHT])
        created = NOW - rng.choice([1_000, 59_999, 60_000, 600_000])
        expires = NOW + rng.choice([-1, 1_000, 90_000, 90_001, 900_000, 900_000, 900_000])
        left.append(replace(each, state=state, created_ms=created, expires_ms=expires))
    return left


def _strays(rng: Random, cycle: Cycle) -> list[OwnOrder]:
    """Orders that no plan of this config would have made: twins, other quantities, odd prices."""
    taken = [each.price_sats for each in cycle.own] or [50_000]
    return [
        OwnOrder(
            1_000 + number,
            rng.choice(["live", "live", *IN_FLIGHT]),
            rng.choice([rng.choice(taken), rng.randint(1, 130_000)]),
            cycle.config.quantity + rng.choice([0, 0, 0, 1]),
            NOW - rng.choice([1_000, 600_000]),
            NOW + 900_000,
            rng.choice([cycle.config.trait, cycle.config.trait, None, ("Hat", "Cap")]),
        )
        for number in range(rng.randint(1, 4))
    ]
