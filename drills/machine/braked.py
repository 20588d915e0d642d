"""The rules about brakes: in every state, during every step of a worker, with anything dead, away or full."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from drills.faults.checker import Joined
from drills.machine.brakes import BrakedHouse, BrakedOwners
from drills.machine.machine import Machine, floors, whole
from drills.machine.owner import Owners
from models.ledger.closing import closing
from tests.worlds.house import House, die

SCOPES = st.sampled_from(["global", "user", "task"])
STRICTER = st.sampled_from(["reduce", "halt", "halt"])
BESIDE_S = st.sampled_from([0.0, 0.3, 2.0])
FOLLOWED_S = 15  # within which a halt takes all bids off, with peers that are away for a moment and a manager that dies


class Braked(Machine):
    """The machine with the manager's brakes."""

    house: BrakedHouse
    owners: BrakedOwners

    def _opened(self) -> tuple[House, Owners]:
        house = BrakedHouse()
        return house, BrakedOwners(house)

    # A brake during a worker's cycle

    @rule(scope=SCOPES, at=whole, state=STRICTER, tells=st.booleans(), seconds=BESIDE_S)
    def brake(self, scope: Any, at: int, state: Any, tells: bool, seconds: float) -> None:
        self._set(scope, at, state, tells=tells)
        self.house.run_brakes(seconds)

    @rule(after=st.integers(1, 24), scope=SCOPES, at=whole, seconds=BESIDE_S, dies=st.booleans())
    def halt_beside_a_worker(self, after: int, scope: Any, at: int, seconds: float, dies: bool) -> None:
        """At a crash point of its cycle, which it may not survive."""

        def halt(task_id: int) -> None:
            self._set_amid(scope, at, seconds)
            if dies:
                die(task_id)

        self.house.interrupt(after, halt)
        self.let_all_trade(4)

    @rule(after=st.integers(1, 30), scope=SCOPES, at=whole, seconds=BESIDE_S)
    def halt_beside_a_question(self, after: int, scope: Any, at: int, seconds: float) -> None:
        """While a worker waits for the gateway, and before it gets the answer."""
        self.house.beside_question(after, lambda: self._set_amid(scope, at, seconds))
        self.let_all_trade(4)

    @rule(after=st.integers(1, 24), seconds=BESIDE_S)
    def stop_beside_a_worker(self, after: int, seconds: float) -> None:
        def stop(task_id: int) -> None:
            self.owners.stop_amid(task_id, kill=False)
            self.house.run_brakes(seconds)

        self.house.interrupt(after, stop)
        self.let_all_trade(4)

    @rule(
        nth=st.integers(1, 6),
        scope=SCOPES,
        at=whole,
        what=st.sampled_from(["cycle", "manager", "gateway", "signer", "sale", "away"]),
    )
    def something_beside_a_brake(self, nth: int, scope: Any, at: int, what: str) -> None:
        """Between its note, its cancels, its read and its close."""
        house = self.house
        deeds = {
            "cycle": house.cycle_of_one,
            "manager": lambda: die(0),
            "gateway": house.open_gateway,
            "signer": house.open_signer,
            "sale": lambda: self.market.sell(at),
            "away": lambda: house.gateway_fails.extend(["lost", "away"]),
        }
        self.let_all_trade(3)
        house.beside_brake(nth, deeds[what])
        self._set(scope, at, "halt")
        house.run_brakes(3)

    # What must come of it

    @rule(
        scope=SCOPES,
        at=whole,
        floor=floors,
        is_full=st.booleans(),
        dies_at=st.sampled_from([0, 0, 1, 2, 3, 4, 5, 6]),
        away=st.sampled_from(["", "signer", "gateway"]),
        forgets=st.booleans(),
    )
    def halt_is_followed(
        self, scope: Any, at: int, floor: int, is_full: bool, dies_at: int, away: str, forgets: bool
    ) -> None:
        """No worker has a turn, no row may be written, a peer is away, the manager dies: the bids go all the same."""
        house, owners = self.house, self.owners
        self._all_well(floor)
        doomed = owners.open_of(scope, at)
        if is_full:
            house.fill_disk()
        if dies_at:
            house.beside_brake(dies_at, lambda: die(0))
        if away == "gateway":
            house.gateway_fails = ["away", "lost", "away"]
        self._set(scope, at, "halt")
        if away == "signer":
            house.signer_fails = ["away", "lost", "away"]
        house.run_brakes(FOLLOWED_S)
        house.calm()
        house.signer_fails, house.gateway_fails = [], []
        left = doomed & {bid.mark for bid in self.market.ours()}
        house.make_room()
        if forgets:
            owners.unstored.clear()  # the server ended before there was room
        owners.store_again()
        self.tally["bids taken off"] += len(doomed)
        assert not left, f"not_followed: {len(left)} of {len(doomed)} bids are still there after {FOLLOWED_S} s"

    @rule(scope=SCOPES, at=whole, floor=floors, lies=st.integers(1, 3))
    def halt_while_a_read_is_under_way(self, scope: Any, at: int, floor: int, lies: int) -> None:
        """The read began before the bids were placed, and the venue confirms cancels that it does not carry out."""
        house, owners = self.house, self.owners
        for task in owners.tasks:
            owners.stop(task)
        self._no_faults()
        house.run(30)
        began = {wallet: house.market.own_bids(wallet, 0) for wallet in owners.wallets}
        self._all_well(floor)
        self.market.fault("cancel", "cancel_lie", lies, 4)
        house.reads_under_way = began
        self._set(scope, at, "halt")
        house.run_brakes(0.3)
        house.calm()

    @rule(seconds=st.sampled_from([5, 40]))
    def disk_is_full(self, seconds: int) -> None:
        self.house.fill_disk()
        self.house.run(seconds)
        self.house.make_room()

    @invariant()
    def closing_counts_every_bid(self) -> None:
        """A bid that has to go and is there is in the count of its task."""
        found = self._uncounted()
        assert found == [], found

    def _uncounted(self) -> list[str]:
        run = Joined(self.watch._evidence())
        counts = {user.id: closing(user.id) for user in self.owners.users}
        live: dict[tuple[int, int], int] = {}
        for bid, order in run.pairs():
            if bid.end_ms is None and self.owners.must_go(order["task_id"]):
                subject = order["user_id"], order["task_id"]
                live[subject] = live.get(subject, 0) + 1
        return [
            f"uncounted: {count} bids of task {task} are live, and closing says {counts[user].get(task)}"
            for (user, task), count in live.items()
            if not self._stays(task) and count > _total(counts[user].get(task))
        ]

    # Parts

    def _set(self, scope: Any, at: int, state: Any, *, tells: bool = True) -> None:
        if self.owners.tasks and self.owners.set_control(scope, at, state, tells=tells):
            self.owners.answered(scope, at, state)

    def _set_amid(self, scope: Any, at: int, seconds: float) -> None:
        """Within a worker's cycle: a bid that was signed before may still be placed, so the answer comes after it."""

        def answer() -> None:
            if self.owners.tasks:
                self.owners.answered(scope, at, "halt")

        if self.owners.tasks and self.owners.set_control(scope, at, "halt"):
            self.house.after_cycle(answer)
        self.house.run_brakes(seconds)

    def _all_well(self, floor: int) -> None:
        """Everything trades, with nothing wrong."""
        self._no_faults()
        self._trade_at(floor, [])

    def _no_faults(self) -> None:
        house = self.house
        house.calm()
        house.interrupt(1 << 60, die)
        house.signer_fails, house.gateway_fails, house.wire.lost_requests = [], [], 0
        self.market.no_faults()

    def _stays(self, task_id: int) -> bool:
        """Tells whether its bids may stay for what the rows say: a stop that leaves them, or a halt without a row."""
        configs = self.owners.told.configs[task_id]
        return bool(self.owners.unstored) or not all(config.cancel_on_stop for config in configs)

    def _end(self) -> None:
        self.house.make_room()
        self.house.calm()
        self.owners.store_again()
        super()._end()


def _total(found: Any) -> int:
    return 0 if found is None else found.open + found.unknown
