"""A house whose manager has its real brakes, on the house's clock, and what may happen to them at any of their steps.

Between the turns of workers the brakes' own loop runs. Within a turn it runs where a test lets it: at a crash point, or
at a question to the gateway. The other way round, a worker's cycle or a death may fall between two steps of a brake.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar
from unittest.mock import patch

from peewee import PeeweeException

from drills.faults.evidence import bids
from drills.machine.owner import STRICTNESS, Owners
from markets.base import OwnBids
from models import users
from models.database.base import database
from models.leases.leases import EVERYBODY
from models.ledger.states import Order
from models.tasks import tasks
from models.tasks.tasks import STOPPED
from tests.worlds.clockwork import Crash, Loop, Manager, Worker
from tests.worlds.house import House, MarketHere
from wallet.protocol import Scope, State
from wallet.signer_client import SignerError
from workers.manager import brakes
from workers.manager.brakes import Brakes
from workers.manager.loop import Background

Value = TypeVar("Value")
LOOK_S = 5.0


class _Market(MarketHere):
    """The brakes' client: each of its questions has a point before and one after it."""

    def __init__(self, house: BrakedHouse) -> None:
        super().__init__(partial(House._ask_gateway, house))
        self._house = house

    def hold(self, tasks: Collection[int], hold_s: int) -> None:
        self._beside(lambda: MarketHere.hold(self, tasks, hold_s))

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, **how: Any) -> bool:
        self._house.note_cancel(venue_ids)
        return self._beside(lambda: MarketHere.cancel(self, wallet, venue_ids, signature, **how))

    def own_bids(self, wallet: str, max_age_s: float, slugs: Sequence[str] = ()) -> OwnBids:
        if (under_way := self._house.reads_under_way.pop(wallet, None)) is not None:
            return under_way
        return self._beside(lambda: MarketHere.own_bids(self, wallet, max_age_s, slugs))

    def _beside(self, ask: Callable[[], Value]) -> Value:
        self._house.pass_brake()
        answer = ask()
        self._house.pass_brake()
        return answer


class BrakedManager(Manager):
    """A manager that continues while no row can be written, as the real one does."""

    house: BrakedHouse

    def die(self) -> None:
        self.house.end_brakes()
        with self._without_rows():
            super().die()

    def wake(self, task_ids: Collection[int]) -> None:
        for task_id, worker in self.workers():
            if task_id in task_ids:
                worker.due = min(worker.due, self._clock.monotonic())

    def _cycle(self, worker: Worker) -> None:
        try:
            super()._cycle(worker)
            worker.failures = 0
        except PeeweeException:
            if not self.house.is_full:
                raise
            worker.failures += 1
            worker.due = self._clock.monotonic() + min(60.0, 2.0**worker.failures)

    def _bury(self, task_id: int, worker: Worker) -> None:
        with self._without_rows():
            super()._bury(task_id, worker)

    def _agree(self, *of: Any, **how: Any) -> None:
        with self._without_rows():
            super()._agree(*of, **how)

    @contextlib.contextmanager
    def _without_rows(self) -> Iterator[None]:
        try:
            yield
        except PeeweeException:
            if not self.house.is_full:
                raise


class BrakedHouse(House):
    """`reads_under_way` are answers, by wallet, of reads of own bids that began some time ago and end only now."""

    manager_kind: ClassVar[type[Manager]] = BrakedManager

    def _open(self) -> None:
        self.is_full = False
        self.reads_under_way: dict[str, OwnBids] = {}
        self.may_go: Callable[[int], bool] = lambda task_id: True
        self._at_question: tuple[int, Callable[[], None]] | None = None
        self._at_brake: tuple[int, Callable[[], None]] | None = None
        self._brake_loop: Loop | None = None
        self._is_braking = False
        super()._open()
        for module, name, value in (
            (brakes, "MarketClient", lambda *_: _Market(self)),
            (brakes, "MarketClient", lambda *_: _Market(self)),
            (brakes, "in_thread", self._in_thread),
            (brakes, "time", SimpleNamespace(monotonic=self.clock.monotonic)),
        ):
            self._stack.enter_context(patch.object(module, name, value))
        assert isinstance(self.manager, BrakedManager)
        self.manager.house = self
        self._stack.callback(self.end_brakes)

    # The disk

    def fill_disk(self) -> None:
        """Lets no row be written from now on."""
        database.execute_sql("PRAGMA query_only = ON")
        self.is_full = True

    def make_room(self) -> None:
        database.execute_sql("PRAGMA query_only = OFF")
        self.is_full = False

    # The brakes' process

    def heed(self, scope: str, subject: int, state: str | None) -> None:
        async def heed() -> None:
            self._brakes.heed(scope, subject, state, self.clock.now_ms)

        self._in_brake_loop(heed())

    def run_brakes(self, seconds: float) -> None:
        """Runs the brakes for so long, and no worker. A manager that dies meanwhile is started again."""
        end = self.clock.monotonic() + seconds
        while not self._is_braking and (left := end - self.clock.monotonic()) > 0:
            self._in_brake_loop(asyncio.sleep(left))

    def end_brakes(self) -> None:
        """Ends them as SIGKILL does: only their file is left."""
        loop, self._brake_loop = self._brake_loop, None
        if loop is None:
            return
        for task in asyncio.all_tasks(loop):
            task.cancel()
        with contextlib.suppress(RuntimeError):  # it was stopped between two runs
            self._outside_of_loops(lambda: loop.run_until_complete(asyncio.sleep(0)))
        self._outside_of_loops(lambda: loop.run_until_complete(self._brake_work.cancel()))
        self._brakes.close()
        loop.close()

    def _in_brake_loop(self, work: Any) -> None:
        """Runs `work` in the loop of the brakes, which are started where necessary; never within itself."""
        if self._is_braking:
            work.close()
            return
        if self._brake_loop is None:
            self._brake_loop = Loop(self.clock)
            self._brake_work = Background()
            wake = self.manager.wake  # type: ignore[attr-defined]
            self._brakes = Brakes(self.settings, EVERYBODY, self._brake_work, self.clock.ms, wake, look_s=LOOK_S)
            self._brake_loop.run_until_complete(self._begin())
        self._is_braking, self._is_dead = True, False
        try:
            self._brake_loop.run_until_complete(self._through(work))
        except RuntimeError:
            if not self._is_dead:
                raise
            self.hits["manager amid a brake"] += 1
        finally:
            self._is_braking = False
        if self._is_dead:
            self.manager.die()
            self.manager.full_sweep()

    async def _through(self, work: Any) -> None:
        """Waits for `work`, and for the rounds that have begun: an owner's next deed does not fall into one."""
        await work
        idle = 0
        while idle < 20:  # turns of the loop, in which the next read of the ledger starts its rounds
            await asyncio.sleep(0)
            idle = 0 if self._brakes._in_progress else idle + 1

    async def _begin(self) -> None:
        self._brake_work.run(self._brakes.run())

    async def _in_thread(self, call: Callable[[], Value]) -> Value:
        """In the place of `background.in_thread`; after the manager's death it never returns."""
        assert self._brake_loop is not None
        if not self._is_dead:
            try:
                return self._outside_of_loops(call)
            except Crash:
                self._is_dead = True
                self._brake_loop.stop()
        await asyncio.Event().wait()
        raise AssertionError("a dead manager went on")

    @staticmethod
    def _outside_of_loops(call: Callable[[], Value]) -> Value:
        running = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            return call()
        finally:
            asyncio._set_running_loop(running)

    # Worker and brakes at the same time

    def beside_question(self, after: int, deed: Callable[[], None]) -> None:
        """Has `deed` happen before or after the coming questions of workers to the gateway: twice for each it is one
        less.
        """
        self._at_question = after, deed

    def beside_brake(self, after: int, deed: Callable[[], None]) -> None:
        """Has `deed` happen at the `after`-th step of the brakes from now on."""
        self._at_brake = after, deed

    def calm(self) -> None:
        self._at_question = self._at_brake = None
        self.reads_under_way.clear()

    def pass_brake(self) -> None:
        self._at_brake = self._passed(self._at_brake, "brake")

    def note_cancel(self, venue_ids: Sequence[str]) -> None:
        shown = [bid for bid in bids(self.world.engine.history.rows(None)) if bid.order_id in venue_ids]
        for order in Order.select().where(Order.expires_ms.in_([bid.expires_ms for bid in shown])):
            if not self.may_go(order.task_id):
                self.complaints.append(f"foreign_cancel: of order {order.id}, and task {order.task_id} may keep it")

    def cycle_of_one(self) -> None:
        """A deed: one worker has a whole cycle now."""
        for _, worker in self.manager.workers()[:1]:
            worker.due = self.clock.monotonic()
        self.turn()

    def _ask_gateway(self, body: bytes) -> bytes:
        self._at_question = self._passed(self._at_question, "question")
        answer = super()._ask_gateway(body)
        self._at_question = self._passed(self._at_question, "question")
        return answer

    def _passed(self, waiting: tuple[int, Callable[[], None]] | None, where: str) -> Any:
        if waiting is None:
            return None
        left, deed = waiting
        if left > 1:
            return left - 1, deed
        self._at_question = self._at_brake = None
        self.hits[f"during a {where}"] += 1
        deed()
        return None

    # Time

    def run(self, seconds: float) -> None:
        end = self.clock.monotonic() + seconds
        self.manager.full_sweep()
        while (turn := self.manager.next_turn()) is not None and turn <= end:
            self.run_brakes(turn - self.clock.monotonic())
            self.turn()
        self.run_brakes(end - self.clock.monotonic())
        self.clock.reach(end)
        self.manager.full_sweep()

    def next_turn(self) -> None:
        self.manager.sweep()
        if (turn := self.manager.next_turn()) is not None:
            self.run_brakes(turn - self.clock.monotonic())
            self.turn()


class BrakedOwners(Owners):
    """Owners whose server sends each control state to signer and manager, and keeps what it cannot store."""

    house: BrakedHouse

    def __init__(self, house: BrakedHouse) -> None:
        super().__init__(house)
        self.unstored: dict[tuple[str, int], tuple[str, int]] = {}
        self.halts: set[tuple[str, int]] = set()
        house.may_go = self.must_go

    def must_go(self, task_id: int) -> bool:
        """Tells whether the bids of this task have to go, as far as their owner has said so."""
        row = tasks.with_owner(task_id)
        if row is None or row.desired == STOPPED or row.deleted_ms is not None:
            return True
        return not self.halts.isdisjoint({("global", 0), ("user", row.user_id), ("task", row.id)})

    def set_control(self, scope: Scope, subject: int, state: State, *, tells: bool = True) -> bool:
        row_id, name = self._subject(scope, subject)
        row = users.Control.get_or_none(scope=scope, subject_id=row_id)
        former = users.RUN if row is None else row.state
        if state == users.RUN or STRICTNESS.index(state) < STRICTNESS.index(former):
            try:
                self.house.signer.set_control(scope, name, state)
            except SignerError:
                return False
            self.unstored.pop((scope, row_id), None)
            users.put_control(scope, row_id, state, None, self.now_ms)
            self.halts.discard((scope, row_id))
            if state == users.RUN:
                for task_id in self._about(scope, row_id):
                    self.told.end_quiet(task_id, scope, self.now_ms)
            self.house.heed(scope, row_id, state)
            return True
        if state == users.HALT:
            self.halts.add((scope, row_id))
        try:
            users.put_control(scope, row_id, state, None, self.now_ms)
        except PeeweeException:
            self.unstored[scope, row_id] = state, self.now_ms
        if tells:
            self.house.heed(scope, row_id, state)
        try:
            self.house.signer.set_control(scope, name, state)
        except SignerError:
            return False
        return True

    def store_again(self) -> None:
        for (scope, row_id), (state, at_ms) in self.unstored.items():
            users.put_control(scope, row_id, state, None, at_ms)
        self.unstored.clear()

    def answered(self, scope: Scope, subject: int, state: State) -> None:
        row_id, _ = self._subject(scope, subject)
        if (scope, row_id) in self.unstored:
            for task_id in self._about(scope, row_id):
                self.told.be_quiet(task_id, scope, self.now_ms)
        super().answered(scope, subject, state)

    def open_of(self, scope: Scope, subject: int) -> set[tuple[str, int]]:
        """Returns the marks of the bids that a halt of the subject has to take off, by the ledger."""
        row_id, _ = self._subject(scope, subject)
        about = self._about(scope, row_id)
        can_go = Order.state.in_(("live", "cancelling")) & ~Order.dry_run
        return {(order.wallet, order.expires_ms) for order in Order.select().where(Order.task_id.in_(about), can_go)}
