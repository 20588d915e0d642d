"""A state machine of users, tasks, market, clock and faults, and the choices it makes."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from drills.machine.owner import Owners
from drills.machine.promises import Watch
from models.ledger import orders
from strategy.config.bid import ActiveHours, BidConfig, BidLevel, FloorDrop, OnFill, problems
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.shapes import replace
from tests.worlds.house import House, Market, die

SLUGS, TICKER = ("cats", "dogs"), "MODELRUNE"
# Of each operation of the venue, the ways in which it may fail. Left out are lies that leave nobody a way to know: a
# stale list of sales, and a stale book.
ANY = ("timeout", "cut", "error_500", "rate_429", "bad_json", "slow", "refuse_400", "auth_401")
LOST = ("late", "accept_then_timeout", "accept_then_500")
MODES = {
    "place": (*ANY, *LOST, "accept_twice"),
    "cancel": (*ANY, *LOST, "cancel_lie"),
    "own_bids": (*ANY, "stale"),
    "challenge": ANY,
    "book": ANY,
    "sales": ANY,
    "balance": ANY,
    "fees": ANY,
}
FAULTS = st.sampled_from(sorted(MODES)).flatmap(
    lambda operation: st.tuples(st.just(operation), st.sampled_from(MODES[operation]))
)
# Answers that are lost most of all. A venue that takes bids twice would hide that we send them twice.
WRITES_FAIL = st.one_of(
    st.tuples(st.just("place"), st.sampled_from((*LOST, *LOST, *ANY))),
    st.tuples(st.just("cancel"), st.sampled_from((*LOST, *ANY, "cancel_lie"))),
)
THOUSANDS = 1_000

whole = st.integers(0, 7)
floors = st.sampled_from([40, 60, 80, 100, 101, 140, 200]).map(lambda price: price * THOUSANDS)
rivals = st.lists(st.integers(10, 100).map(lambda price: price * THOUSANDS), max_size=3)
states = st.sampled_from(["run", "run", "reduce", "halt"])


def _seldom(ordinary: Any, *others: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([ordinary] * 10 * len(others) + list(others))


COMMON = {
    "bid_count": st.integers(1, 4),
    "hardcap_sats": st.sampled_from([40_000, 75_000, 99_000, 150_000]),
    "max_bid_total": st.sampled_from([0, 0, 60_000, 90_000, 140_000]),
    "bid_expiry_minutes": st.sampled_from([None, 15, 20]),
    "loop_seconds": st.sampled_from([20, 60, 60, 10]),
    "outbid_enabled": st.booleans(),
    "outbid_mode": st.sampled_from(["fixed", "percent"]),
    "update_bid_enabled": st.booleans(),
    "only_bid_if_highest": _seldom(False, True),
    "cancel_on_stop": st.sampled_from([True, True, True, False]),
    "max_fills": _seldom(0, 1, 2),
    "spend_cap_sats": _seldom(0, 100_000),
    "replace_mode": st.sampled_from(["auto", "auto", "breakFirst", "makeFirst"]),
    "dry_run": _seldom(False, True),
    "ladder_shape": _seldom("even", "geometric", "top"),
    "pause_after_fill_seconds": _seldom(60, 0, 600),
    "max_fills_per_day": _seldom(0, 1),
    "spend_cap_per_day_sats": _seldom(0, 100_000),
    "only_while_floor_between": _seldom(None, (Decimal(50_000), Decimal(120_000))),
    "pause_on_floor_drop": _seldom(None, FloorDrop(Decimal("0.1"), 10, 20)),
    "active_hours": _seldom(None, ActiveHours("Europe/Berlin", "08:00", "20:00")),
    "ignore_addresses": _seldom((), ("bc1qnobodyhere0000000000000",)),
    "budget_id": _seldom(None, 1),  # stands for the owner's own
}
RANGE = {
    "bid_percent_low": st.sampled_from([Decimal("0.15"), Decimal("0.4")]),
    "bid_percent_high": st.sampled_from([Decimal("0.75"), Decimal("0.9"), Decimal("1.1")]),
}
ordinals = st.builds(
    BidConfig,
    slug=st.sampled_from(SLUGS),
    bid_mode=st.sampled_from(["percent", "percent", "fixed"]),
    bid_fixed_low=st.sampled_from([10_000, 20_500, 30_000]),
    bid_fixed_high=st.sampled_from([30_000, 55_500, 90_000]),
    outbid_amount=st.sampled_from([500, 1_000, 2_500]),
    **COMMON,
    **RANGE,
)
runes = st.builds(
    BidConfig,
    slug=st.just(TICKER),
    type=st.just("rune"),
    bid_mode=_seldom("percent", "fixed"),
    bid_fixed_low=st.sampled_from([1_000, 5_000]),
    bid_fixed_high=st.sampled_from([9_999, 60_000]),
    quantity=st.sampled_from([Decimal(100), Decimal(777)]),
    quantity_mode=st.sampled_from(["quantity", "sats"]),
    sats_per_order=st.sampled_from([20_000, 33_333]),
    use_vwap=st.booleans(),
    depth_sats=st.sampled_from([10_000, 60_000]),
    **COMMON,
    **RANGE,
)
LEVELS = (BidLevel(Decimal("0.85"), 1), BidLevel(Decimal("0.6"), 2))


RULE = OnFill(dump_listing_config(ListingConfig(min_margin=Decimal("0.1"))), start=False)


def _to_vault(config: BidConfig, is_wanted: bool, rule: OnFill | None) -> BidConfig:
    return replace(config, deliver_to="vault", on_fill=rule) if is_wanted else config


def _with_levels(config: BidConfig, are_wanted: bool) -> BidConfig:
    """Returns the config with levels in place of its even ladder, where they are fractions."""
    return replace(config, bid_levels=LEVELS, bid_count=3) if are_wanted and config.bid_mode == "percent" else config


ordinals = st.builds(_with_levels, ordinals, _seldom(False, True))
ordinals = st.builds(_to_vault, ordinals, _seldom(False, True), st.sampled_from([None, RULE]))
ordinals = ordinals.filter(lambda config: not problems(config))
configs = st.one_of(ordinals, ordinals, runes.filter(lambda config: not problems(config)))

LONG_S = 1_000  # longer than the shortest life of a bid
DRAINED_S = 180  # within which a drain with everything well cancels what it may


class Machine(RuleBasedStateMachine):
    """One example: a house and what happens to it. `tally` counts over all examples, `hits` what was interrupted."""

    tally: ClassVar[Counter[str]] = Counter()
    hits: ClassVar[Counter[str]] = Counter()

    @classmethod
    def start_counting(cls) -> None:
        cls.tally, cls.hits = Counter(), Counter()

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.house, self.owners = self._opened()
        self.market = Market(self.house, self.owners.told, self.owners.wallets)
        self.watch = Watch(self.house, self.owners)

    def _opened(self) -> tuple[House, Owners]:
        house = House()
        return house, Owners(house)

    @initialize(first=ordinals, second=configs, floor=floors, rivals=rivals)
    def two_tasks(self, first: BidConfig, second: BidConfig, floor: int, rivals: list[int]) -> None:
        for slug in SLUGS:
            self.market.collection(slug, floor, rivals)
        self.market.rune(TICKER, 100, [50])
        for user, config in enumerate((first, second)):
            task = self.owners.create(user, config)
            assert task is not None
            self.owners.start(task)

    # Time

    @rule(cycles=st.integers(1, 4))
    def go_on(self, cycles: int) -> None:
        for _ in range(cycles):
            self.house.next_turn()

    @rule(seconds=st.sampled_from([1, 6, 15, 40, 70]))
    def wait(self, seconds: int) -> None:
        self.house.run(seconds)

    @precondition(lambda self: self.house.clock.monotonic() < LONG_S)
    @rule(seconds=st.sampled_from([320, LONG_S]))
    def wait_long(self, seconds: int) -> None:
        self.house.run(seconds)

    # Owners

    @precondition(lambda self: len(self.owners.tasks) < 5)
    @rule(user=st.integers(0, 1), config=configs)
    def create(self, user: int, config: BidConfig) -> None:
        task = self.owners.create(user, config)
        if task is not None:
            self.owners.start(task)

    @precondition(lambda self: self.owners.tasks)
    @rule(at=whole)
    def start(self, at: int) -> None:
        self.owners.start(self._task(at))

    @rule(cycles=st.integers(0, 8))
    def let_all_trade(self, cycles: int) -> None:
        """Nobody forbids anything, and every task runs for a while."""
        self.owners.allow_everything()
        for task in self.owners.tasks:
            self.owners.start(task)
        self.go_on(cycles)

    @rule(floor=floors, rivals=rivals, fault=WRITES_FAIL, count=st.integers(1, 2))
    def trade_while_writes_fail(self, floor: int, rivals: list[int], fault: tuple[str, str], count: int) -> None:
        """Every ladder has to move, and most get a second look."""
        self.market.fault(*fault, count, 4)
        self._trade_at(floor, rivals)

    @rule(floor=floors, rivals=rivals, after=st.integers(1, 24))
    def trade_and_die(self, floor: int, rivals: list[int], after: int) -> None:
        self.market.no_faults()
        self.house.interrupt(after, die)
        self._trade_at(floor, rivals)

    @rule(floor=floors, rivals=rivals, after=st.integers(1, 24), kill=st.booleans())
    def trade_and_stop(self, floor: int, rivals: list[int], after: int, kill: bool) -> None:
        self.house.interrupt(after, lambda task: self.owners.stop_amid(task, kill=kill))
        self._trade_at(floor, rivals)

    @precondition(lambda self: self.owners.tasks)
    @rule(at=whole, floor=floors, below=st.integers(0, 3))
    def trade_against_rival_near_a_cap(self, at: int, floor: int, below: int) -> None:
        config = self.owners.config(self._task(at))
        if config is not None:
            cap = config.bid_fixed_high if config.bid_mode == "fixed" else min(config.hardcap_sats, floor)
            self._trade_at(floor, [max(10 * THOUSANDS, (cap // THOUSANDS - below) * THOUSANDS)])

    def _trade_at(self, floor: int, rivals: list[int]) -> None:
        for slug in SLUGS:
            self.market.collection(slug, floor, rivals)
        self.let_all_trade(0)
        self.wait(45)

    @precondition(lambda self: self.owners.tasks)
    @rule(at=whole)
    def stop(self, at: int) -> None:
        self.owners.stop(self._task(at))

    @precondition(lambda self: self.owners.tasks)
    @rule(at=whole, config=configs, moves=st.booleans())
    def put(self, at: int, config: BidConfig, moves: bool) -> None:
        self.owners.put(self._task(at), config, moves=moves)

    @precondition(lambda self: len(self.owners.tasks) > 1)
    @rule(at=whole)
    def delete(self, at: int) -> None:
        self.owners.delete(self._task(at))

    @precondition(lambda self: self.owners.tasks)
    @rule(scope=st.sampled_from(["global", "user", "task"]), at=whole, state=states)
    def control(self, scope: Any, at: int, state: Any) -> None:
        self.owners.control(scope, at, state)

    @rule(user=st.integers(0, 1), over=st.booleans())
    def plan(self, user: int, over: bool) -> None:
        (self.owners.plan_over if over else self.owners.plan_again)(user)

    # The market

    @rule(slug=st.sampled_from(SLUGS), floor=st.one_of(floors, floors, floors, st.none()), rivals=rivals)
    def market_moves(self, slug: str, floor: int | None, rivals: list[int]) -> None:
        self.market.collection(slug, floor, rivals)

    @rule(unit=st.sampled_from([60, 99, 100, 150]), rivals=st.lists(st.integers(20, 90), max_size=2))
    def rune_moves(self, unit: int, rivals: list[int]) -> None:
        self.market.rune(TICKER, unit, rivals)

    @rule(nth=whole)
    def sell(self, nth: int) -> None:
        self.market.sell(nth)

    @rule(user=st.integers(0, 1), sats=st.sampled_from([30_000, 80_000, 100_000_000, 100_000_000]))
    def balance(self, user: int, sats: int) -> None:
        self.market.balance(user, sats)

    # The venue fails

    @rule(fault=FAULTS, count=st.integers(1, 3), delay=st.sampled_from([1, 4]))
    def fault(self, fault: tuple[str, str], count: int, delay: int) -> None:
        operation, mode = fault
        hangs = mode in ("timeout", "accept_then_timeout")
        self.market.fault(operation, mode, 1 if mode == "stale" else count, 30 if hangs and delay == 4 else delay)

    @rule()
    def venue_is_well(self) -> None:
        self.market.no_faults()

    @rule(requests=st.integers(1, 3))
    def unreachable(self, requests: int) -> None:
        self.house.wire.lost_requests = requests

    # Processes die, or are away

    @precondition(lambda self: self.owners.tasks)
    @rule(at=whole)
    def kill_worker(self, at: int) -> None:
        self.house.manager.kill(self._task(at))

    @rule()
    def kill_manager(self) -> None:
        self.house.manager.die()
        self.house.manager.full_sweep()

    @rule()
    def restart_gateway(self) -> None:
        self.house.open_gateway()

    @rule()
    def restart_signer(self) -> None:
        self.house.open_signer()

    @rule(fails=st.lists(st.sampled_from(["", "away", "lost"]), max_size=4))
    def signer_fails(self, fails: list[str]) -> None:
        self.house.signer_fails = fails

    @rule(fails=st.lists(st.sampled_from(["", "", "away", "lost"]), max_size=6))
    def gateway_fails(self, fails: list[str]) -> None:
        self.house.gateway_fails = fails

    # In the middle of a cycle

    @rule(after=st.integers(1, 16), state=st.sampled_from(["reduce", "halt"]))
    def halt_amid(self, after: int, state: Any) -> None:
        self.house.interrupt(after, lambda task: self.owners.halt_amid(task, state))
        self.house.next_turn()

    @rule(after=st.integers(1, 16), config=configs)
    def put_amid(self, after: int, config: BidConfig) -> None:
        self.house.interrupt(after, lambda task: self.owners.put_amid(task, config))
        self.let_all_trade(4)

    @rule(after=st.integers(1, 16), nth=whole)
    def sell_amid(self, after: int, nth: int) -> None:
        self.house.interrupt(after, lambda task: self.market.sell(nth))
        self.house.next_turn()

    @rule(after=st.integers(1, 16), slug=st.sampled_from(SLUGS), floor=floors, rivals=rivals)
    def market_moves_amid(self, after: int, slug: str, floor: int, rivals: list[int]) -> None:
        self.house.interrupt(after, lambda task: self.market.collection(slug, floor, rivals))
        self.house.next_turn()

    @rule(after=st.integers(1, 16), fault=FAULTS)
    def fault_amid(self, after: int, fault: tuple[str, str]) -> None:
        self.house.interrupt(after, lambda task: self.market.fault(*fault, 1, 4))
        self.house.next_turn()

    # What must hold

    @invariant()
    def promises_hold(self) -> None:
        self.steps += 1
        found = self.watch.broken()
        assert found == [], found

    def teardown(self) -> None:
        try:
            self._end()
        finally:
            self.house.close()

    def _end(self) -> None:
        """All is well again and everything is stopped: bids are gone soon, and no order outlives its bid by much."""
        house, owners = self.house, self.owners
        house.interrupt(1 << 60, die)
        house.signer_fails, house.gateway_fails, house.wire.lost_requests = [], [], 0
        self.market.no_faults()
        for task in owners.tasks:
            owners.stop(task)
        house.run(DRAINED_S)
        found = self.watch.broken_after_drain()
        for _ in range(30):
            house.run(60)
            if not orders.tasks_with_open_orders():
                break
        found += self.watch.broken_in_the_end()
        self._count()
        assert found == [], found

    def _count(self) -> None:
        events = Counter(row["event"] for row in self.house.world.engine.history.rows(None) if row["message"])
        tally = self.tally
        tally.update({f"bids {event}": n for event, n in events.items()})
        tally.update(self.owners.told.done)
        tally.update(examples=1, steps=self.steps, requests=self.house.wire.requests)
        tally["simulated minutes"] += int(self.house.clock.monotonic() / 60)
        self.hits.update(self.house.hits)

    def _task(self, at: int) -> int:
        return self.owners.tasks[at % len(self.owners.tasks)]
