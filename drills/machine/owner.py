"""The actions of a house's users."""

from __future__ import annotations

import contextlib
from typing import Any

from core.subscription_plans import FIRST_PLAN
from models import accounts, budgets, users
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED, Task, TaskExists, TaskLimitReached
from models.users import DAY_MS, Entitlements, User
from strategy.config.bid import BidConfig, canonical_slug, dump_bid_config, load_bid_config, normal_slug
from tests.shapes import replace
from tests.worlds.clockwork import Crash, NotStarted
from tests.worlds.house import House, Told
from wallet.address import p2wpkh
from wallet.protocol import Scope, State
from wallet.signer_client import SignerError

STRICTNESS = users.STATES
BUDGET = {"max_open_sats": 120_000, "spend_cap_sats": 200_000, "max_fills": 4}


class Owners:
    """Two users and their tasks. Answers are as the API's; what it refuses does nothing."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.told = Told()
        plans = dict(house.settings.plans)
        self.users = [users.find_or_create(p2wpkh(bytes([n] * 20)), plans, self.now_ms) for n in (1, 2)]
        self.wallets = [house.signer.addresses(user.address).payment for user in self.users]
        self.tasks: list[int] = []
        self.budgets = {user.id: budgets.create(user.id, self.now_ms, name="both", **BUDGET).id for user in self.users}

    @property
    def now_ms(self) -> int:
        return self.house.clock.now_ms

    # Tasks

    def create(self, user: int, config: BidConfig) -> int | None:
        owner = self.users[user]
        try:
            row = tasks.create_bidding_task(
                owner.id,
                **_columns(self._shared(owner.id, config)),
                venue=self.house.settings.market,
                max_tasks=self.house.settings.plans[FIRST_PLAN].max_tasks,
                now_ms=self.now_ms,
            )
        except (TaskExists, TaskLimitReached):
            return None
        self.tasks.append(row.id)
        self.told.configs[row.id].append(load_bid_config(row.config))
        for scope, state in self._controls_of(row).items():
            if state != users.RUN:
                self.told.be_quiet(row.id, scope, self.now_ms)
        return int(row.id)

    def _shared(self, user_id: int, config: BidConfig) -> BidConfig:
        """Returns the config with its owner's budget, if it names one."""
        return config if config.budget_id is None else replace(config, budget_id=self.budgets[user_id])

    def start(self, task_id: int) -> None:
        row = self._row(task_id)
        if row is None or (row.is_running and row.observed == RUNNING) or self._is_refused(row.user):
            return
        self.told.end_quiet(task_id, "stop", self.now_ms)
        was_desired = row.desired
        tasks.set_desired(row, RUNNING)
        try:
            self.house.manager.settle(task_id)
        except NotStarted:
            if was_desired == STOPPED or row.observed == "crashed":
                tasks.set_desired(row, STOPPED)
        self.told.done["start"] += 1

    def stop(self, task_id: int) -> None:
        row = self._row(task_id)
        if row is None:
            return
        tasks.set_desired(row, STOPPED)
        self.house.manager.settle(task_id)
        self.stopped(task_id)

    def stopped(self, task_id: int) -> None:
        """The stop is answered."""
        self.told.be_quiet(task_id, "stop", self.now_ms)
        self.told.done["stop"] += 1

    def put(self, task_id: int, config: BidConfig, *, moves: bool) -> None:
        """Another config; unless it `moves`, for the same slug where that can be."""
        row = self._row(task_id)
        if row is None:
            return
        if not moves:
            config = self._about_the_same(row, config)
        # A task that joined another budget would take its bids along, whatever that one has room for.
        config = replace(config, budget_id=row.budget_id)
        before = {name: getattr(row, name) for name in ("type", "slug", "slug_key", "config", "budget_id")}
        try:
            revision = tasks.change_bidding_task(row, **_columns(config))
        except TaskExists:
            return
        self.told.configs[task_id].append(load_bid_config(_columns(config)["config"]))
        self.told.done["put"] += 1
        if not row.is_running:
            return
        try:
            self.house.manager.settle(task_id)
        except NotStarted:
            now = self._row(task_id)
            if now is not None and now.revision == revision:
                tasks.change_bidding_task(now, **before)

    def delete(self, task_id: int) -> None:
        row = self._row(task_id)
        if row is None:
            return
        tasks.set_desired(row, STOPPED)
        self.house.manager.settle(task_id)
        tasks.mark_deleted(row, self.now_ms)
        self.house.manager.settle(task_id)
        self.told.be_quiet(task_id, "stop", self.now_ms)
        self.tasks.remove(task_id)
        self.told.done["delete"] += 1

    def config(self, task_id: int) -> BidConfig | None:
        row = self._row(task_id)
        return None if row is None else load_bid_config(row.config)

    def _row(self, task_id: int) -> Task | None:
        row = tasks.with_owner(task_id)
        return None if row is None or row.deleted_ms is not None else row

    def _is_refused(self, user: User) -> bool:
        return Entitlements(self.house.settings).refusal(user, self.now_ms) is not None

    # Control and plans

    def control(self, scope: Scope, subject: int, state: State) -> None:
        """`subject` is the place of a user or task in its list."""
        if self.set_control(scope, subject, state):
            self.answered(scope, subject, state)

    def set_control(self, scope: Scope, subject: int, state: State) -> bool:
        """Sets it; says whether its owner is told that it holds, the signer included."""
        row_id, name = self._subject(scope, subject)
        row = users.Control.get_or_none(scope=scope, subject_id=row_id)
        former = users.RUN if row is None else row.state
        if former == state == users.RUN:
            return True
        if STRICTNESS.index(state) < STRICTNESS.index(former):
            try:
                self.house.signer.set_control(scope, name, state)
            except SignerError:
                return False
            users.put_control(scope, row_id, state, None, self.now_ms)
            if state == users.RUN:
                for task_id in self._about(scope, row_id):
                    self.told.end_quiet(task_id, scope, self.now_ms)
            return True
        users.put_control(scope, row_id, state, None, self.now_ms)
        try:
            self.house.signer.set_control(scope, name, state)
        except SignerError:
            return False
        return True

    def answered(self, scope: Scope, subject: int, state: State) -> None:
        row_id, _ = self._subject(scope, subject)
        for task_id in self._about(scope, row_id):
            if state != users.RUN and state == self._controls_of(tasks.with_owner(task_id)).get(scope):
                self.told.be_quiet(task_id, scope, self.now_ms)
        self.told.done[state] += 1

    def allow_everything(self) -> None:
        for user in (0, 1):
            self.plan_again(user)
            self.control("user", user, "run")
        self.control("global", 0, "run")
        for at in range(len(self.tasks)):
            self.control("task", at, "run")

    def _subject(self, scope: Scope, subject: int) -> tuple[int, str]:
        if scope == "global":
            return users.EVERYBODY, ""
        if scope == "user":
            user = self.users[subject % 2]
            return user.id, user.address
        task_id = self.tasks[subject % len(self.tasks)]
        return task_id, str(task_id)

    def _about(self, scope: Scope, row_id: int) -> list[int]:
        rows = [tasks.with_owner(task_id) for task_id in self.tasks]
        return [row.id for row in rows if row is not None and _subjects(row)[scope] == row_id]

    def _controls_of(self, row: Any) -> dict[str, str]:
        about = _subjects(row)
        return {c.scope: c.state for c in users.Control.select() if about[c.scope] == c.subject_id}

    def plan_over(self, user: int) -> None:
        accounts.set_plan(self.users[user].id, FIRST_PLAN, self.now_ms - 1, self.now_ms)
        self.told.done["plan over"] += 1

    def plan_again(self, user: int) -> None:
        accounts.set_plan(self.users[user].id, FIRST_PLAN, self.now_ms + 365 * DAY_MS, self.now_ms)

    # In the middle of a cycle

    def stop_amid(self, task_id: int, *, kill: bool) -> None:
        """A deed: the task is stopped while its worker is at work, which is given time to end, or is not."""
        row = self._row(task_id)
        if row is None or row.desired == STOPPED:
            return
        tasks.set_desired(row, STOPPED)
        self.house.manager.begin_stop(task_id)
        self.house.after_cycle(lambda: self._end_stop(task_id))
        self.told.done["stop amid"] += 1
        if kill:
            raise Crash

    def _end_stop(self, task_id: int) -> None:
        self.house.manager.settle(task_id)
        self.stopped(task_id)

    def put_amid(self, task_id: int, config: BidConfig) -> None:
        """A deed: the worker is at work under the old config while its task gets another one."""
        row = self._row(task_id)
        if row is None or not row.is_running:
            return
        try:
            kept = replace(self._about_the_same(row, config), budget_id=row.budget_id)
            tasks.change_bidding_task(row, **_columns(kept))
        except TaskExists:
            return
        self.told.configs[task_id].append(load_bid_config(tasks.with_owner(task_id).config))
        self.house.manager.begin_stop(task_id)
        self.house.after_cycle(lambda: self._end_put(task_id))
        self.told.done["put amid"] += 1

    def _end_put(self, task_id: int) -> None:
        with contextlib.suppress(NotStarted):
            self.house.manager.settle(task_id)

    def _about_the_same(self, row: Task, config: BidConfig) -> BidConfig:
        return replace(config, slug=row.slug) if row.type == config.type else config

    def halt_amid(self, task_id: int, state: State) -> None:
        """A deed. What has its signature by then may still be placed: the answer comes after that."""
        if task_id not in self.tasks:
            return
        at = self.tasks.index(task_id)
        if self.set_control("task", at, state):
            self.house.after_cycle(lambda: self._answer_halt(task_id, state))

    def _answer_halt(self, task_id: int, state: State) -> None:
        if task_id in self.tasks:
            self.answered("task", self.tasks.index(task_id), state)


def _subjects(row: Task) -> dict[str, int]:
    """Returns the subject of each scope for this task."""
    return {users.GLOBAL: users.EVERYBODY, users.USER: row.user_id, users.TASK: row.id}


def _columns(config: BidConfig) -> dict[str, Any]:
    slug = canonical_slug(config.type, config.slug)
    return {
        "type": config.type,
        "slug": slug,
        "slug_key": normal_slug(config.type, slug),
        "config": dump_bid_config(config),
        "budget_id": config.budget_id,
    }
