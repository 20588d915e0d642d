"""Random cycles that are likely to mean something: markets that moved, ladders placed before, limits that bind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random

from strategy.bidding import Limits, Memory, OwnOrder, Plan, Rules, plan_bids
from strategy.book import Ask, Profile, Snapshot
from strategy.config import BidConfig, problems
from tests.strategy.market import NOW, carry_out

IN_FLIGHT = ("reserved", "signed", "submitted", "unknown")


@dataclass(frozen=True)
class Cycle:
    """The arguments of one plan."""

    config: BidConfig
    profile: Profile
    snapshot: Snapshot | None
    own: tuple[OwnOrder, ...]
    limits: Limits
    rules: Rules
    memory: Memory

    def plan(self) -> Plan:
        return plan_bids(self.config, self.profile, self.snapshot, self.own, self.limits, self.rules, self.memory, NOW)

    @property
    def count(self) -> int:
        return min(self.config.bid_count, self.limits.plan_bids)

    @property
    def exposure_limit(self) -> int:
        return min(self.limits.task_total or 10**15, self.limits.user_headroom)


def random_cycle(rng: Random) -> Cycle:
    config = _config(rng)
    tick = 1 if config.is_rune else rng.choice([1, 1, 500, 1_000])
    profile = Profile(
        "simulator",
        tick,
        rng.choice([0, 1_000, 10_000]),
        900,
        equal_bids_allowed=rng.random() < 0.7,
        balance_model=rng.choice(["per_bid", "reserved"]),
    )
    rules = Rules(tolerance=rng.choice([Decimal(0), Decimal("0.01")]))
    floor = rng.randint(20_000, 130_000)
    cycle = Cycle(config, profile, _snapshot(rng, config, floor), (), _limits(rng), rules, Memory())
    for _ in range(rng.randint(0, 3)):
        # A market that moves, with a history: each cycle starts from what the one before it left.
        own = list(_aged(rng, carry_out(cycle.config, cycle.own, cycle.plan())))
        rng.shuffle(own)
        floor = round(floor * rng.choice([1, 1, rng.uniform(0.97, 1.03), rng.uniform(0.6, 1.6)]))
        cycle = replace(
            cycle,
            config=_edited(rng, cycle.config),
            snapshot=_snapshot(rng, config, floor),
            own=tuple(own),
            limits=cycle.limits if rng.random() < 0.6 else _limits(rng),
            memory=Memory(rng.choice([None, None, NOW - 1_000, NOW - 300_000])),
        )
    if rng.random() < 0.3:
        cycle = replace(cycle, own=(*cycle.own, *_strays(rng, cycle)))
    return cycle


def _config(rng: Random) -> BidConfig:
    is_rune = rng.random() < 0.4
    low, high = sorted(rng.sample(range(30, 130), 2)) if rng.random() < 0.7 else (74, 75)
    fixed_low, fixed_high = sorted(rng.choices(range(10_000, 130_000), k=2))
    config = BidConfig(
        slug="ABC" if is_rune else "abc",
        type="rune" if is_rune else "ordinals",
        bid_mode=rng.choice(["percent", "percent", "fixed"]),
        bid_percent_low=Decimal(low) / 100,
        bid_percent_high=Decimal(high) / 100,
        bid_fixed_low=fixed_low,
        bid_fixed_high=fixed_high,
        bid_count=rng.choice([1, 2, 3, 5, 5, 8]),
        hardcap_sats=rng.choice([50_000, 100_000, 100_000, 1_000_000]),
        update_bid_enabled=rng.random() < 0.6,
        quantity=rng.choice([Decimal("0.5"), Decimal(1_000)]) if is_rune else Decimal(1),
    )
    assert problems(config) == []
    return config


def _edited(rng: Random, config: BidConfig) -> BidConfig:
    """The config after a PUT, now and then."""
    if rng.random() < 0.8:
        return config
    return replace(
        config, bid_count=rng.randint(1, 8), hardcap_sats=rng.choice([40_000, 90_000]), update_bid_enabled=False
    )


def _snapshot(rng: Random, config: BidConfig, floor: int) -> Snapshot | None:
    if rng.random() < 0.05:
        return None
    whole = [Decimal(floor + rng.choice([0, 500, 10_000])) for _ in range(rng.choice([0, 1, 3, 3, 3, 3]))]
    asks = tuple(Ask("ask", int(each), config.quantity, each / config.quantity, "somebody") for each in whole)
    age_ms = rng.choice([0, 0, 0, 0, 0, 121_000])
    return Snapshot(NOW - age_ms, asks, complete=rng.random() < 0.95)


def _limits(rng: Random) -> Limits:
    return Limits(
        task_total=rng.choice([0, rng.randint(10_000, 500_000)]),
        user_headroom=rng.choice([10**12, 10**12, rng.randint(0, 500_000)]),
        plan_bids=rng.choice([20, 20, 20, rng.randint(0, 5)]),
        balance_sats=rng.choice([10**12, 10**12, 10**12, rng.randint(0, 400_000), None]),
        fee_reserve_sats=rng.choice([2_000] * 7 + [None]),
    )


def _aged(rng: Random, own: list[OwnOrder]) -> list[OwnOrder]:
    left = []
    for each in own:
        if rng.random() < 0.1:
            continue
        state = each.state if rng.random() < 0.85 else rng.choice(["live", "cancelling", *IN_FLIGHT])
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
        )
        for number in range(rng.randint(1, 4))
    ]
