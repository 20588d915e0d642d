"""Leases: one holder at a time, whatever the server's clock says. (`make test-postgresql`)"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from threading import Thread

import pytest

from core.errors import PeerUnavailable
from core.settings import Settings
from core.tls import FarAddress
from models.database import base
from models.database.postgresql import _GATE, Postgresql
from models.leases import leases
from models.leases.held_lease import HeldLease, NotTheOne, Seen, Watch
from models.leases.leases import EVERYBODY, LeaseLost, Taken
from models.leases.manager_places import address_at
from models.tasks import tasks
from tests import postgresql
from tests.authority import Authority
from tests.databases import another, rows
from tests.models.racing import (
    HERE,
    SECONDS,
    THERE,
    claimed,
    run_out,
    taken,
    version,
)
from tests.models.test_orders import running_task
from tests.standbys import until


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


def test_a_holder_ends_when_its_directory_was_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its former directory's lease, servers would look for it on another machine."""
    run = tmp_path / "run"
    run.mkdir()
    lease = HeldLease("postgresql://", "slot 0", 9, Taken(1, ""), leases.holder_in(run))
    sent: list[tuple[int, signal.Signals]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    lease.alive()
    shutil.rmtree(run)
    lease.alive()
    assert (sent, leases.home_of(run)) == ([], "")
    run.mkdir()
    lease.alive()
    lease.alive()
    assert sent == [(os.getpid(), signal.SIGTERM)]


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


def test_a_version_that_others_have_seen_is_watched_from_then_on() -> None:
    watch = Watch(Seen("1", 90))
    watch.note("1", 15, 100)
    assert (watch.over(104.9), watch.over(105)) == ("", "1")
    watch.note("2", 15, 106)
    watch.note("1", 15, 107)
    assert (watch.over(121.9), watch.over(122)) == ("", "1"), "it came back, as from a standby: nobody has watched that"
    watch = Watch(Seen("1", 90))
    watch.note("2", 15, 100)
    watch.note("1", 15, 101)
    assert (watch.over(115.9), watch.over(116)) == ("", "1"), "the same, with what was seen after what came back"


def test_what_other_machines_have_seen_counts_from_the_earliest_moment_on() -> None:
    watch = Watch(Seen("1", 96))
    watch.hear([Seen("1", 92), Seen("2", 50), Seen("1", 94)])
    watch.note("1", 15, 100)
    assert (watch.over(106.9), watch.over(107)) == ("", "1")
    watch.note("2", 15, 108)
    assert (watch.over(122.9), watch.over(123)) == ("", "2"), "it was not there when they were asked"


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
def test_who_has_lost_the_lease_raises_no_token_and_says_nothing_of_tasks(database: str) -> None:
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
            lambda: tasks.observe(task.id, "backoff", 2, pid=None),
            lambda: tasks.forget_workers(EVERYBODY),
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
def test_rights_are_ended_while_a_worker_of_others_stands_still(database: str) -> None:
    task, other = running_task(), running_task("dogs")
    token = tasks.raise_token(task.id)
    with another(database) as frozen:
        frozen.rows("SELECT pg_advisory_xact_lock_shared(?)", [_GATE])
        frozen.rows("SELECT 1 FROM tasks WHERE id = ? FOR NO KEY UPDATE", [other.id])
        assert tasks.raise_tokens([task.id]) == {task.id: token + 1}
        assert tasks.overtake(task.id, token + 1, token + 4) == token + 5
        assert tasks.begin_start(task.id, 1) == token + 6
        tasks.observe(task.id, "running", 2, pid=1)


@postgresql.only
def test_a_lease_is_renewed_while_its_holder_waits_for_a_worker_that_stands_still(database: str) -> None:
    task = running_task()
    held = taken(HERE)
    assert held is not None
    renewed = []
    with another(database) as frozen:
        frozen.rows("SELECT 1 FROM tasks WHERE id = ? FOR SHARE", [task.id])

        def renew() -> None:
            until(lambda: bool(rows(database, "SELECT 1 FROM pg_locks WHERE NOT granted")))
            renewing = Postgresql.at(database, within_s=5)
            renewing.connect()
            try:
                renewed.append(leases.renew(renewing, "slot 0", held.token, SECONDS))
            finally:
                renewing.close()
                frozen.rollback()

        leases.act_by(("slot 0", held.token))
        thread = Thread(target=renew)
        try:
            thread.start()
            tasks.raise_tokens([task.id])
        finally:
            thread.join()
            leases.act_by(None)
    assert renewed == [True]


ELSEWHERE = "10.0.0.7:9705"


def test_one_elsewhere_is_asked_with_our_certificate(tmp_path: Path) -> None:
    made = Authority(tmp_path / "authority").certificate("trader", "trader")
    found = address_at(Settings(tls_dir=made), ELSEWHERE)
    assert isinstance(found, FarAddress)
    assert (str(found), found.role) == (ELSEWHERE, "trader")


def test_without_certificates_none_elsewhere_can_be_asked(tmp_path: Path) -> None:
    assert address_at(Settings(), tmp_path / "manager.sock") == tmp_path / "manager.sock"
    for settings in (Settings(), Settings(tls_dir=tmp_path)):
        with pytest.raises(PeerUnavailable, match=ELSEWHERE):
            address_at(settings, ELSEWHERE)
    with pytest.raises(PeerUnavailable, match="nobody"):
        address_at(Settings(), PeerUnavailable("manager", "nobody keeps slot 1"))
