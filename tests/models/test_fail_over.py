"""A standby takes over from a PostgreSQL server that is killed under a storm. One that commits wait for has all that
was answered; one that they do not wait for has not, which the doctor says beforehand."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from peewee import OperationalError

from cli.doctor import data_check
from models.database import base
from models.database import servers as known_servers
from models.database.damage import DatabaseAway
from models.database.servers import look_at_each
from models.tasks import tasks
from tests import postgresql
from tests.databases import rows
from tests.models.racing import race
from tests.models.server_storm import Field, laid_out, outcome, storm
from tests.standbys import PATIENCE_S, Pair, pair, until

pytestmark = postgresql.only

PROCESSES = 6


def fail_over_under_storm(
    servers: Pair, field: Field, fail_overs: int, *, out_of_contact: Callable[[int], bool]
) -> None:
    """Has the standby take over so often while processes work; now and then it has lost contact for a while before."""
    failed = []

    def drive() -> None:
        try:
            for turn in range(fail_overs):
                wait_for_work(field)
                if out_of_contact(turn):
                    servers.lose_contact()
                    if servers.is_synchronous:
                        time.sleep(0.5)  # in which nothing is answered
                    else:
                        wait_for_work(field)
                servers.fail_over()
                servers.follow()
            wait_for_work(field)
        except BaseException as error:
            failed.append(error)
            servers.stop()  # or commits wait for ever
        finally:
            field.end()

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        found = race(storm, servers.url, field, PROCESSES, 1)
    finally:
        field.end()
        driver.join()
    assert failed == []
    assert found["lost"] + found["unknown"] >= fail_overs
    assert not (servers.is_synchronous and found["gone"])


def wait_for_work(field: Field) -> None:
    """Waits until a number of reservations more are answered, and of tokens."""
    before = field.answered()
    until(lambda: all(field.answered()[word] > before[word] + more for word, more in (("answered", 30), ("token", 5))))


def doctors_lines(servers: Pair) -> dict[str, str]:
    """Returns the doctor's lines on the servers, by their names."""
    with base.reading(servers.url):
        return {each.name: each.line() for each in data_check.examine_postgresql(1, look_at_each(servers.url))}


@pytest.mark.slow
@pytest.mark.parametrize("fail_overs", [2, pytest.param(20, marks=pytest.mark.faults)])
def test_a_synchronous_standby_has_all_that_was_answered(fail_overs: int, tmp_path: Path) -> None:
    with pair(synchronous=True) as servers:
        field = laid_out(servers.url, tmp_path)
        servers.follow()
        doctor = doctors_lines(servers)
        assert doctor["standby"].startswith("ok   standby: two has every commit")
        assert doctor["servers"].startswith("ok ")
        fail_over_under_storm(servers, field, fail_overs, out_of_contact=lambda turn: turn % 2 == 1)
        then = outcome(servers.url, tmp_path)
    print(f"{fail_overs} fail-overs: {then}")
    assert then.lost == set(), "a bid would have been placed without a row"
    assert then.opened_again == then.from_nowhere == set()
    assert (then.twice, then.over) == (0, {})
    assert then.tokens > fail_overs


@pytest.mark.slow
def test_an_asynchronous_standby_has_not_and_the_doctor_has_said_so(tmp_path: Path) -> None:
    with pair(synchronous=False) as servers:
        field = laid_out(servers.url, tmp_path)
        servers.follow()
        assert "is asynchronous: after a failover, bids would be missing" in doctors_lines(servers)["standby"]
        fail_over_under_storm(servers, field, 1, out_of_contact=lambda turn: True)
        then = outcome(servers.url, tmp_path)
    print(f"asynchronous, 1 fail-over: {then._replace(lost=set())}, {len(then.lost)} lost")
    assert then.lost, "bids that no row explains"
    assert then.twice > 0


def raise_token(url: str, task: int, said: Any) -> None:
    """Raises a token in a process of its own, which may wait for ever."""
    base.connect(url)
    try:
        said.put(tasks.raise_token(task))
    except OperationalError as error:
        said.put(f"{type(error).__name__}: {error}")


@contextmanager
def raising(url: str, task: int) -> Iterator[Any]:
    """Raises a token for the block; gives the queue of the answer."""
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    process = context.Process(target=raise_token, args=(url, task, said), daemon=True)
    process.start()
    try:
        yield said
    finally:
        process.kill()
        process.join()


WAITS = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'bidkeeper'"


@pytest.mark.slow
def test_a_commit_that_somebody_has_wait_no_longer_is_not_taken_for_one(tmp_path: Path) -> None:
    """As an operator may who sees commits hang. The server then answers that all is well, and warns."""
    with pair(synchronous=True) as servers:
        field = laid_out(servers.url, tmp_path)
        servers.follow()
        servers.lose_contact()
        server = servers.primary.url("storm")
        with raising(servers.url, field.starting[0]) as said:
            until(lambda: bool(rows(server, WAITS)))
            assert said.empty()
            postgresql.command(server, WAITS.replace("pid", "pg_cancel_backend(pid)"))
            assert said.get(timeout=PATIENCE_S) == "CommitUnknown: the server did not wait for its standby"


@pytest.mark.slow
@pytest.mark.parametrize("is_kept", [True, False], ids=["seen before the start", "seen by this process"])
def test_a_former_primary_that_comes_back_is_not_used(
    is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the first of the address, and says that it is a primary."""
    monkeypatch.setattr(known_servers, "_seen", {})
    monkeypatch.setattr(known_servers, "_file", None)
    if is_kept:
        known_servers.keep_in(tmp_path / "timelines.json")
    with pair(synchronous=False) as servers:
        laid_out(servers.url, tmp_path)
        servers.follow()
        servers.fail_over()
        where = "SELECT setting FROM pg_settings WHERE name = 'data_directory'"
        for _ in range(2):
            base.connect(servers.url)
            assert base.database.execute_sql(where).fetchone() == (f"{servers.primary.directory}/data",)
            base.close()
            if is_kept:
                known_servers._seen.clear()
            if not servers.standby.is_running:
                servers.standby.start_again()
                doctor = doctors_lines(servers)
                assert doctor["servers"].startswith("FAIL servers: ")
                assert (
                    "(timeline 1) and" in doctor["servers"] and "(timeline 2) are both primaries" in doctor["servers"]
                )
                assert "the address names several servers, but none is synchronous" in doctor["standby"]
        servers.primary.stop()
        with pytest.raises(DatabaseAway, match="has timeline 1, but a standby took over with 2"):
            base.connect(servers.url)


@pytest.mark.slow
def test_a_former_primary_is_not_taken_for_a_newer_one_that_is_only_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known of their cluster yet, as on a new machine."""
    with pair(synchronous=False) as servers:
        laid_out(servers.url, tmp_path)
        servers.follow()
        servers.fail_over()
        servers.standby.start_again()
        primary = servers.primary
        for name, value in (
            ("_seen", {}),
            ("_file", None),
            ("_taken", int(str(primary.directory) in servers.url.split(",")[1])),
        ):
            monkeypatch.setattr(known_servers, name, value)
        os.kill(primary.pid, signal.SIGSTOP)
        goes_on = threading.Timer(3, os.kill, (primary.pid, signal.SIGCONT))
        goes_on.start()
        try:
            # After a hasty look at both each is waited for so long, in which it goes on, however busy the machine is.
            base.connect(f"{servers.url}&connect_timeout=60")
            where = "SELECT setting FROM pg_settings WHERE name = 'data_directory'"
            assert base.database.execute_sql(where).fetchone() == (f"{primary.directory}/data",)
        finally:
            goes_on.join()
            base.close()


@pytest.mark.slow
def test_a_former_primary_that_nobody_knows_for_one_answers_no_durable_commit(tmp_path: Path) -> None:
    """Its own commits wait for a standby, which it no longer has."""
    with pair(synchronous=True) as servers:
        field = laid_out(servers.url, tmp_path)
        servers.follow()
        servers.fail_over()
        servers.standby.start_again()
        with raising(servers.standby.url("storm"), field.starting[0]) as said:
            until(lambda: bool(rows(servers.standby.url("storm"), WAITS)))
            time.sleep(1)
            assert said.empty()
