"""Leases: one holder at a time, by the server's clock; without it the holder does not live. (`make test-postgresql`)"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.errors import BidkeeperError
from core.settings import Settings
from models import base, held_lease, leases
from models.held_lease import HeldLease, NotTheOne
from models.leases import CannotChangeSlots, Holder, LeaseLost
from models.manager_places import PeerUnavailable, place_for, places
from models.slot import EVERYBODY, Slot, slot_of
from models.tasks import tasks
from tests import postgresql
from tests.databases import another, questions, rows
from tests.models.test_orders import running_task

HERE, THERE = Holder("here", "a"), Holder("there", "b", "10.0.0.2:7100")
SECONDS = 5
_HOLDS = """
import sys, time
from models.held_lease import claim
from models.leases import Holder
lease = claim(sys.argv[1], "slot 0", Holder(sys.argv[2], "its machine"), int(sys.argv[3]), waits=True, kind="manager")
print("held", flush=True)
for _ in range(600):
    lease.alive()
    time.sleep(0.1)
"""


def claimed(url: str, holder: Holder = HERE, *, waits: bool = False) -> HeldLease:
    return held_lease.claim(url, "slot 0", holder, SECONDS, waits=waits, kind="manager")


@contextmanager
def in_a_process(url: str, home: str, program: str = _HOLDS) -> Iterator[subprocess.Popen[str]]:
    """Runs a process that waits for the lease of slot 0, and says so when it has it."""
    command = [sys.executable, "-c", program, url, home, str(SECONDS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def run_out(url: str) -> None:
    with another(url) as other:
        other.execute("UPDATE leases SET until_ms = until_ms - 1000000")


@postgresql.only
def test_a_lease_is_anothers_once_it_has_run_out_and_its_own_homes_at_once(database: str) -> None:
    ours = base.database.obj
    first = leases.take(ours, "slot 0", HERE, SECONDS)
    assert first is not None and (first.token, first.former_home) == (1, "")
    assert leases.take(ours, "slot 0", THERE, SECONDS) is None
    again = leases.take(ours, "slot 0", HERE, SECONDS)
    assert again is not None and (again.token, again.former_home) == (2, ""), "its own is no other's"
    assert not leases.renew(ours, "slot 0", first.token, SECONDS)
    assert leases.renew(ours, "slot 0", again.token, SECONDS)
    run_out(database)
    assert not leases.renew(ours, "slot 0", again.token, SECONDS), "what has run out is not brought back to life"
    taken = leases.take(ours, "slot 0", THERE, SECONDS)
    assert taken is not None and (taken.token, taken.former_home) == (3, "here")
    assert 980_000 < taken.over_for_ms < 1_100_000
    held = leases.held("slot 0")
    assert held is not None and held[:4] == ("there", "b", "10.0.0.2:7100", 3) and 0 < held.left_ms <= 1000 * SECONDS
    leases.give_back(ours, "slot 0", again.token)
    assert leases.take(ours, "slot 0", HERE, SECONDS) is None, "only its holder can give a lease back"
    leases.give_back(ours, "slot 0", taken.token)
    assert leases.take(ours, "slot 0", HERE, SECONDS) is not None


@postgresql.only
def test_who_had_it_before_is_known_until_it_is_said_to_be_forgotten(database: str) -> None:
    ours = base.database.obj
    assert leases.take(ours, "slot 0", THERE, SECONDS)
    run_out(database)
    for token in (2, 3):  # the second time as if the answer was lost, or the program was killed at once
        taken = leases.take(ours, "slot 0", HERE, SECONDS)
        assert taken is not None and (taken.token, taken.former_home) == (token, "there")
        assert 980_000 < taken.over_for_ms < 1_100_000
        leases.forget_former("slot 0", token - 1)  # by who has it no more
    leases.forget_former("slot 0", 3)
    again = leases.take(ours, "slot 0", HERE, SECONDS)
    assert again is not None and (again.token, again.former_home) == (4, "")


@postgresql.only
def test_a_manager_that_stood_by_while_the_slots_were_changed_does_not_get_a_former_slot(database: str) -> None:
    ours = base.database.obj
    leases.set_slots(4)
    assert leases.take(ours, "slot 0", THERE, SECONDS)
    run_out(database)
    leases.set_slots(2)
    with pytest.raises(BidkeeperError, match="there is no slot 3: the number of slots was changed"):
        leases.take(ours, "slot 3", HERE, SECONDS)
    assert leases.slots() == 2
    taken = leases.take(ours, "slot 1", HERE, SECONDS)
    assert taken is not None and taken.token == 2, "no token is given twice"
    assert taken.former_home == "before the slots were changed", "whose workers' rights are to be ended"


@postgresql.only
def test_of_two_managers_on_a_database_one_is_refused_and_told_why(database: str) -> None:
    first = claimed(database)
    assert not first.is_anothers
    with pytest.raises(NotTheOne, match=r"another manager runs on the database postgresql://.*, on a$"):
        claimed(database, THERE)
    first.release()
    second = claimed(database, THERE)
    assert second.is_anothers
    second.release()


@postgresql.only
@pytest.mark.slow
def test_a_holder_that_is_stopped_is_killed_before_another_one_holds_its_lease(database: str) -> None:
    with in_a_process(database, "here") as first:
        assert said(first) == "held\n"
        first.send_signal(signal.SIGSTOP)
        with in_a_process(database, "there") as second:
            assert said(second) == "held\n"
            assert first.poll() == -signal.SIGKILL, "the former one still lived"


@postgresql.only
@pytest.mark.slow
def test_a_holder_whose_database_is_gone_does_not_outlive_its_lease(database: str) -> None:
    with in_a_process(database, "here") as first:
        assert said(first) == "held\n"
        time.sleep(SECONDS)  # it renews it
        assert first.poll() is None
        with another(database) as other:
            other.execute("LOCK TABLE leases")
            assert first.wait(60) == -signal.SIGKILL


@postgresql.only
@pytest.mark.slow
def test_a_holder_whose_lease_is_anothers_ends_at_once(database: str) -> None:
    with in_a_process(database, "here") as first:
        assert said(first) == "held\n"
        with another(database) as other:
            other.execute("UPDATE leases SET token = token + 1")
        assert first.wait(60) == -signal.SIGKILL


@postgresql.only
@pytest.mark.slow
def test_the_lease_of_a_program_that_hangs_runs_out(database: str) -> None:
    hanging = _HOLDS.replace("lease.alive()", "pass").replace("waits=True", "waits=True, silent_s=1")
    with in_a_process(database, "here", hanging) as process:
        assert said(process) == "held\n"
        assert process.wait(60) == -signal.SIGKILL


@postgresql.only
@pytest.mark.slow
def test_a_holder_that_outlives_the_kernels_timer_ends_by_itself(database: str) -> None:
    """One that has stood still for long has given no sign of life, either: it must not act while it waits for one."""
    plants = "from core.death_timer import DeathTimer\nDeathTimer.arm = lambda self, at_s: None\n"
    hanging = _HOLDS.replace("lease.alive()", "pass").replace("waits=True", "waits=True, silent_s=1")
    with in_a_process(database, "there", plants + hanging) as process:
        assert said(process) == "held\n"
        assert process.wait(50) == -signal.SIGKILL


@postgresql.only
def test_who_has_lost_the_lease_raises_no_token(database: str) -> None:
    """A frozen machine whose clocks stood still with it does not know that its time is over."""
    task, ours = running_task(), base.database.obj
    first = leases.take(ours, "slot 0", HERE, SECONDS)
    assert first is not None
    leases.act_by(("slot 0", first.token))
    try:
        token = tasks.raise_token(task.id)
        run_out(database)
        assert tasks.raise_token(task.id) == token + 1, "nobody else has it yet"
        assert leases.take(ours, "slot 0", THERE, SECONDS) is not None
        for take_back in (
            lambda: tasks.raise_token(task.id),
            lambda: tasks.raise_tokens([task.id]),
            lambda: tasks.overtake(task.id, token + 1, 100),
        ):
            with pytest.raises(LeaseLost, match="slot 0 is another program's"):
                take_back()
        assert tasks.least_token(task.id) == token + 1
    finally:
        leases.act_by(None)
    assert tasks.raise_token(task.id) == token + 2


@postgresql.only
def test_slots_are_set_while_no_manager_runs(database: str) -> None:
    assert leases.slots() == 1
    leases.set_slots(8)
    assert leases.slots() == 8
    taken = leases.take(base.database.obj, "slot 3", HERE, SECONDS)
    assert taken is not None
    with pytest.raises(CannotChangeSlots, match=r"a manager runs on a \(slot 3\)"):
        leases.set_slots(4)
    leases.set_slots(8)  # they are so many
    leases.give_back(base.database.obj, "slot 3", taken.token)
    leases.set_slots(4)
    assert (leases.slots(), rows(database, "SELECT count(*) FROM leases")) == (4, [(4,)])


@postgresql.only
def test_a_users_manager_is_asked_where_its_lease_says(database: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database)
    settings.run_dir.mkdir(parents=True)
    here = Holder(leases.home_of(settings.run_dir), "a")
    assert place_for(settings, 5) == settings.run_dir / "manager.sock"
    leases.set_slots(4)
    ours = base.database.obj
    for name, holder in (("slot 0", here), ("slot 1", THERE), ("slot 2", Holder("there", "c"))):
        assert leases.take(ours, name, holder, SECONDS)
    assert place_for(settings, 4) == settings.run_dir / "manager-0.sock"
    assert place_for(settings, 5) == "10.0.0.2:7100"
    with pytest.raises(PeerUnavailable, match="slot 2 is kept on c, which answers no other machine"):
        place_for(settings, 6)
    run_out(database)
    with pytest.raises(PeerUnavailable, match=r"nobody keeps slot 1; b did until \d+ s ago"):
        place_for(settings, 5)
    assert place_for(settings, 4) == settings.run_dir / "manager-0.sock"
    assert [type(each).__name__ for each in places(settings)] == ["PosixPath", *["PeerUnavailable"] * 2, "PosixPath"]


@postgresql.left_out("it has slots and leases")
def test_sqlite_has_one_slot_and_needs_no_lease(database: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database)
    assert (leases.slots(), place_for(settings, 7)) == (1, settings.run_dir / "manager.sock")
    leases.set_slots(1)
    with pytest.raises(CannotChangeSlots, match="several slots need PostgreSQL"):
        leases.set_slots(2)
    lease = claimed(database)
    lease.alive()
    assert not lease.is_anothers
    lease.release()


@postgresql.only
def test_a_manager_is_found_by_one_question(database: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database)
    leases.set_slots(3)
    with questions(base.database.obj) as asked:
        assert place_for(settings, 4) == settings.run_dir / "manager-1.sock"
    assert len(asked) == 1


def test_each_user_is_of_one_slot() -> None:
    assert [slot_of(user, 3) for user in range(6)] == [0, 1, 2, 0, 1, 2]


def test_a_manager_sees_the_tasks_of_its_slot_alone(database: str) -> None:
    mine, other = running_task("birds"), running_task("cats", "bc1qb")
    assert (mine.user_id, other.user_id) == (1, 2)
    of_mine = Slot(1, 2)
    assert [glance.id for glance in tasks.glances([], of_mine)] == [mine.id]
    assert [glance.id for glance in tasks.glances([other.id], of_mine)] == [mine.id]
    assert [row.id for row in tasks.rows_of_interest([other.id], of_mine)] == [mine.id]
    assert tasks.ids_beside(of_mine) == [other.id]
    for task in (mine, other):
        tasks.observe(task.id, "starting", 1)
    tasks.forget_workers(of_mine)
    assert tasks.count_by_observed(of_mine) == {"stopped": 1}
    assert tasks.count_by_observed(EVERYBODY) == {"stopped": 1, "starting": 1}


def test_many_tokens_are_raised_in_one_commit(database: str) -> None:
    first, second, third = (running_task(slug) for slug in ("birds", "cats", "dogs"))
    tasks.raise_token(first.id)
    before = {task.id: tasks.least_token(task.id) for task in (first, second, third)}
    raised = tasks.raise_tokens([first.id, second.id])
    assert raised == {task.id: before[task.id] + 1 for task in (first, second)}
    assert tasks.least_token(third.id) == before[third.id]


def test_a_directory_is_told_from_every_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for each in (one, other):
        each.mkdir()
    assert leases.home_of(one) == leases.home_of(one) != leases.home_of(other)
    assert os.uname().nodename == leases.holder_in(one).machine
