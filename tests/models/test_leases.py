"""Leases: one holder at a time, by the server's clock; without it the holder does not live. (`make test-postgresql`)"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.errors import BidkeeperError
from core.settings import Settings
from models import base, schema
from models.leases import held_lease, leases
from models.leases.held_lease import HeldLease, NotTheOne
from models.leases.lease_watch import Watch
from models.leases.leases import CannotChangeSlots, Holder, LeaseLost, Standing, Taken
from models.leases.manager_places import PeerUnavailable, place_for, places
from models.leases.slot import EVERYBODY, Slot, slot_of
from models.tasks import tasks
from tests import postgresql
from tests.databases import another, questions, rows
from tests.models.test_orders import running_task
from tests.standbys import pair

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
def in_a_process(url: str, home: str, program: str = _HOLDS, seconds: int = SECONDS) -> Iterator[subprocess.Popen[str]]:
    """Runs a process that waits for the lease of slot 0, and says so when it has it."""
    command = [sys.executable, "-c", program, url, home, str(seconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], within_s: float = 60) -> str:
    """Returns the line that the process says within this time, "" for none."""
    assert process.stdout is not None
    return process.stdout.readline() if select.select([process.stdout], [], [], within_s)[0] else ""


def clock_jumps(url: str, by_s: int) -> None:
    """Has the database's clock jump, for whoever connects to it after the first call."""
    name = url.removeprefix("postgresql:///").partition("?")[0]
    with another(url) as other:
        other.execute("CREATE TABLE IF NOT EXISTS ahead (by_s INTEGER)")
        other.execute("INSERT INTO ahead VALUES (?)", [by_s])
        other.execute(
            "CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
            " 'SELECT pg_catalog.clock_timestamp() + sum(by_s) * interval ''1 second'' FROM public.ahead'"
        )
        other.execute(f"ALTER DATABASE {name} SET search_path TO public, pg_catalog")


def run_out(url: str) -> None:
    with another(url) as other:
        other.execute("UPDATE leases SET until_ms = until_ms - 1000000")


def taken(holder: Holder, over: str = "") -> Taken | None:
    found = leases.take(base.database.obj, "slot 0", holder, SECONDS, over)
    return found if isinstance(found, Taken) else None


def version() -> str:
    """Returns the version of the lease, as one sees it who is to wait for it."""
    found = leases.take(base.database.obj, "slot 0", Holder("elsewhere", "c"), SECONDS)
    assert isinstance(found, Standing)
    return found.version


@postgresql.only
def test_a_lease_is_anothers_once_its_time_is_over_and_its_own_homes_at_once(database: str) -> None:
    ours = base.database.obj
    first = taken(HERE)
    assert first == (1, "")
    assert leases.take(ours, "slot 0", THERE, SECONDS) == ("a", version(), SECONDS)
    again = taken(HERE)
    assert again == (2, ""), "its own is no other's"
    assert not leases.renew(ours, "slot 0", first.token, SECONDS)
    stood = version()
    assert leases.renew(ours, "slot 0", again.token, SECONDS)
    assert taken(THERE, stood) is None, "it was renewed meanwhile"
    third = taken(THERE, version())
    assert third == (3, "here")
    assert not leases.renew(ours, "slot 0", again.token, SECONDS)
    held = leases.held("slot 0")
    assert held is not None and held[:4] == ("there", "b", "10.0.0.2:7100", 3) and 0 < held.left_ms <= 1000 * SECONDS
    leases.give_back(ours, "slot 0", again.token)
    assert taken(HERE) is None, "only its holder can give a lease back"
    leases.give_back(ours, "slot 0", third.token)
    assert taken(HERE) == (4, "there")


@postgresql.only
def test_every_renewal_is_another_version_though_the_databases_clock_stands_still(database: str) -> None:
    mine = taken(HERE)
    assert mine is not None
    seen = set()
    for _ in range(5):
        assert leases.renew(base.database.obj, "slot 0", mine.token, SECONDS)
        base.database.execute_sql("UPDATE leases SET until_ms = 1")
        seen.add(version())
        assert version() in seen, "looking at it changes nothing"
    assert len(seen) == 5


def test_a_lease_is_over_when_it_has_stood_for_its_time_by_the_watchers_clock() -> None:
    watch = Watch()
    assert watch.over(1_000_000) == ""
    watch.note("1", 15, 100)
    watch.note("1", 15, 110)
    assert (watch.over(114.9), watch.over(115)) == ("", "1")
    watch.note("2", 20, 114)
    assert (watch.over(133.9), watch.over(134)) == ("", "2"), "for as long as its holder asked"


@postgresql.only
def test_who_had_it_before_is_known_until_it_is_said_to_be_forgotten(database: str) -> None:
    ours = base.database.obj
    assert taken(THERE)
    assert taken(HERE, version()) == (2, "there")
    assert taken(HERE) == (3, "there"), "as if the answer was lost, or the program was killed at once"
    assert not leases.renew(ours, "slot 0", 2, SECONDS, forgets_former=True)
    leases.give_back(ours, "slot 0", 2, forgets_former=True)
    assert taken(HERE) == (4, "there"), "who has it no more forgets nothing"
    assert leases.renew(ours, "slot 0", 4, SECONDS)
    assert taken(HERE) == (5, "there")
    assert leases.renew(ours, "slot 0", 5, SECONDS, forgets_former=True)
    assert taken(HERE) == (6, "")


@postgresql.only
@pytest.mark.parametrize("is_given_back", [False, True])
def test_who_holds_a_lease_forgets_the_former_one_with_its_next_word(database: str, is_given_back: bool) -> None:
    former = taken(THERE)
    assert former is not None
    leases.give_back(base.database.obj, "slot 0", former.token)
    lease = claimed(database)
    assert lease.is_anothers
    lease.forget_former()
    if not is_given_back:
        deadline = time.monotonic() + 60
        while rows(database, "SELECT former_home FROM leases") != [("",)]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    lease.release()
    assert taken(HERE) == (3, "")


@postgresql.only
def test_a_manager_that_stood_by_while_the_slots_were_changed_does_not_get_a_former_slot(database: str) -> None:
    ours = base.database.obj
    leases.set_slots(4)
    former = taken(THERE)
    assert former is not None
    run_out(database)  # or it is refused
    leases.set_slots(2)
    assert not leases.renew(ours, "slot 0", former.token, SECONDS), "it has no slot any more"
    with pytest.raises(BidkeeperError, match="there is no slot 3: the number of slots was changed"):
        leases.take(ours, "slot 3", HERE, SECONDS)
    assert leases.slots() == 2
    found = leases.take(ours, "slot 1", HERE, SECONDS)
    assert found == (3, "before the slots were changed"), "whose workers' rights are to be ended"


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
@pytest.mark.parametrize("seconds", [SECONDS, SECONDS + 7])
def test_a_holder_that_is_stopped_is_killed_before_another_one_holds_its_lease(database: str, seconds: int) -> None:
    """Also one whose machine's setting has it hold the lease for longer than the other one would."""
    with in_a_process(database, "here", seconds=seconds) as first:
        assert said(first) == "held\n"
        first.send_signal(signal.SIGSTOP)
        with in_a_process(database, "there") as second:
            assert said(second) == "held\n"
            assert first.poll() == -signal.SIGKILL, "the former one still lived"


@postgresql.only
@pytest.mark.slow
def test_a_database_whose_clock_jumps_ahead_gives_nobody_a_living_ones_lease(database: str) -> None:
    """As at a fail-over to a server whose clock is ahead."""
    clock_jumps(database, 0)
    with in_a_process(database, "here") as first:
        assert said(first) == "held\n"
        with in_a_process(database, "there") as second:
            assert said(second, 2) == ""
            clock_jumps(database, 1000)
            with in_a_process(database, "elsewhere") as third:
                for _ in range(2):
                    assert said(second, SECONDS) == said(third, SECONDS) == "", "it was taken from a living one"
                assert first.poll() is None
            first.kill()
            assert said(second) == "held\n"


@postgresql.only
@pytest.mark.slow
def test_a_database_whose_clock_jumps_back_keeps_no_dead_ones_lease(database: str) -> None:
    clock_jumps(database, 0)
    with in_a_process(database, "here") as first:
        assert said(first) == "held\n"
        with in_a_process(database, "there") as second:
            assert said(second, 2) == ""
            first.kill()
            clock_jumps(database, -1000)
            assert said(second) == "held\n"


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
def test_a_renewal_that_no_standby_has_is_none(tmp_path: Path) -> None:
    """When somebody cancels its wait for the standby, the server says that it is done, and warns: it may be lost."""
    with pair(synchronous=True) as servers:
        servers.follow()
        base.connect(servers.url)
        schema.migrate()
        with in_a_process(servers.url, "here") as process:
            assert said(process) == "held\n"
            time.sleep(SECONDS)
            assert process.poll() is None
            servers.lose_contact()
            cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            deadline, cancelled = time.monotonic() + 60, 0
            while process.poll() is None:
                assert time.monotonic() < deadline, "it goes on by what only the primary has"
                cancelled += len(rows(servers.primary.url("storm"), cancel))
                time.sleep(0.1)
            assert (process.poll(), cancelled > 0) == (-signal.SIGKILL, True)
        base.close()


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


_ASKS = """
import sys
from models.held_lease import claim
from models.leases import Holder
lease = claim(sys.argv[1], "slot 0", Holder(sys.argv[2], "its machine"), 300, waits=True, kind="manager")
while True:
    try:
        print(lease.is_ours(), flush=True)
    except Exception as error:
        print("failed", flush=True)
    sys.stdin.readline()
"""


@postgresql.only
@pytest.mark.slow
def test_who_must_be_sure_asks_whether_the_lease_is_still_its_own(database: str) -> None:
    """It cannot wait for its next renewal: its machine may have been frozen, clocks and all."""
    with in_a_process(database, "here", _ASKS) as process:
        assert process.stdin is not None

        def answer() -> str:
            process.stdin.write("\n")
            process.stdin.flush()
            return said(process)

        assert said(process) == answer() == "True\n"
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        rows(database, f"{end} AND pid != pg_backend_pid()")
        assert answer() == "True\n", "it connects anew"
        with another(database) as other:
            other.execute("LOCK TABLE leases")
            assert answer() == "failed\n"
        assert answer() == "True\n"
        with another(database) as other:
            other.execute("UPDATE leases SET token = token + 1")
        assert answer() == "False\n"


@postgresql.only
def test_who_has_lost_the_lease_raises_no_token(database: str) -> None:
    """A frozen machine whose clocks stood still with it does not know that its time is over."""
    task = running_task()
    first = taken(HERE)
    assert first is not None
    leases.act_by(("slot 0", first.token))
    try:
        token = tasks.raise_token(task.id)
        run_out(database)
        assert tasks.raise_token(task.id) == token + 1, "nobody else has it yet"
        assert taken(THERE, version())
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
    found = leases.take(base.database.obj, "slot 3", HERE, SECONDS)
    assert isinstance(found, Taken)
    with pytest.raises(CannotChangeSlots, match=r"a manager runs on a \(slot 3\)"):
        leases.set_slots(4)
    leases.set_slots(8)  # they are so many
    leases.give_back(base.database.obj, "slot 3", found.token)
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
        assert isinstance(leases.take(ours, name, holder, SECONDS), Taken)
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
    assert leases.home_of(one) != leases.home_of(other), "before anybody holds anything there"
    found = leases.holder_in(one)
    assert (found.home, found.machine) == (leases.home_of(one), os.uname().nodename)
    assert leases.holder_in(one) == found, "a program that is started again is at home"
    assert len({leases.home_of(each) for each in (one, other)}) == 2
    assert [path.name for path in one.iterdir()] == ["home"]


def test_a_directory_that_was_made_anew_is_another_home(tmp_path: Path) -> None:
    """Its locks are other ones, too: who held them may still live, and the file system may give its number again."""
    before = leases.holder_in(tmp_path)
    for each in tmp_path.iterdir():
        each.unlink()
    assert tmp_path.stat().st_ino and leases.home_of(tmp_path) != before.home
    assert leases.holder_in(tmp_path).home != before.home


def test_programs_that_start_together_are_at_one_home(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as processes:
        for number in range(10):
            (made := tmp_path / str(number)).mkdir()
            assert len(set(processes.map(leases.holder_in, [made] * 8))) == 1
            assert [path.name for path in made.iterdir()] == ["home"]


@postgresql.only
@pytest.mark.slow
def test_one_that_stands_by_at_a_server_that_freezes_is_ended() -> None:
    """Its connection stays open, so nothing else would tell it: it would stand by for nobody."""
    with postgresql.cluster("fsync=off") as server:
        postgresql.command(server.url("postgres"), "CREATE DATABASE frozen")
        url = server.url("frozen")
        base.connect(url)
        schema.migrate()
        base.close()
        backends = "SELECT pid FROM pg_stat_activity WHERE application_name = 'bidkeeper'"
        with in_a_process(url, "here") as first:
            assert said(first) == "held\n"
            with in_a_process(url, "there") as second:
                while len(rows(url, backends)) < 2:
                    time.sleep(0.1)
                frozen = [server.pid, *(pid for (pid,) in rows(url, backends))]
                for pid in frozen:
                    os.kill(pid, signal.SIGSTOP)
                try:
                    assert second.wait(60) == -signal.SIGKILL
                finally:
                    for pid in frozen:
                        os.kill(pid, signal.SIGCONT)
