"""A standby takes over from a PostgreSQL server that is killed under a storm. One that commits wait for has all that
was answered; one that they do not wait for has not, which the doctor says beforehand."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.doctor import postgresql_check
from models import base
from tests import postgresql
from tests.databases import rows
from tests.models.racing import race
from tests.models.server_storm import Field, laid_out, outcome, storm
from tests.postgresql import Cluster

pytestmark = pytest.mark.skipif(not postgresql.is_wanted(), reason="is about PostgreSQL: make test-postgresql")

PROCESSES = 6
PATIENCE_S = 120.0


class Pair:
    """A primary and its standby, which change places; commits wait for the standby if it is `synchronous`."""

    def __init__(self, directories: list[Path], *, synchronous: bool) -> None:
        settings = ("listen_addresses=''", "max_connections=60")
        self.primary, self.standby = (
            Cluster(directories[0], *settings),
            Cluster(directories[1], *settings, is_empty=True),
        )
        self._names = {self.primary: "one", self.standby: "two"}
        self.is_synchronous = synchronous
        self.primary.start()
        self._tell("CREATE DATABASE storm")
        if synchronous:
            self._tell("ALTER SYSTEM SET synchronous_standby_names TO 'one, two'")

    @property
    def url(self) -> str:
        """The address of whichever of the two is the primary."""
        hosts = ",".join(str(each.directory) for each in self._names)
        return f"postgresql:///storm?host={hosts}&user=bidkeeper&target_session_attrs=read-write"

    def follow(self) -> None:
        """Makes the standby anew, out of the primary."""
        self.standby.follow(self.primary, self._names[self.standby])
        self._tell("SELECT pg_reload_conf()")
        until(lambda: self._states() == ["sync" if self.is_synchronous else "async"])

    def lose_contact(self) -> None:
        """Has the standby receive nothing more."""
        server = self.standby.url("storm")
        postgresql.command(server, "ALTER SYSTEM SET primary_conninfo TO 'host=/nowhere'")
        postgresql.command(server, "SELECT pg_reload_conf()")
        until(lambda: not self._states())

    def fail_over(self) -> None:
        """Kills the primary, and has the standby take over."""
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def stop(self) -> None:
        for each in self._names:
            if each.is_running:
                each.stop()

    def _states(self) -> list[str]:
        found = rows(
            self.primary.url("postgres"), "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        )
        return [str(state) for (state,) in found]

    def _tell(self, text: str) -> None:
        postgresql.command(self.primary.url("postgres"), text)


@contextmanager
def pair(*, synchronous: bool) -> Iterator[Pair]:
    """Runs two servers for the block; the standby follows."""
    with (
        tempfile.TemporaryDirectory(prefix="bk-pg-", ignore_cleanup_errors=True) as one,
        tempfile.TemporaryDirectory(prefix="bk-pg-", ignore_cleanup_errors=True) as two,
    ):
        made = Pair([Path(one), Path(two)], synchronous=synchronous)
        try:
            yield made
        finally:
            made.stop()


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


def wait_for_work(field: Field) -> None:
    """Waits until a number of reservations more are answered, and of tokens."""
    before = field.answered()
    until(lambda: all(field.answered()[word] > before[word] + more for word, more in (("answered", 30), ("token", 5))))


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def standby_check(servers: Pair) -> str:
    """Returns the doctor's line on the standby."""
    with base.reading(servers.url):
        return postgresql_check._standby().line()


@pytest.mark.slow
@pytest.mark.parametrize("fail_overs", [2, pytest.param(20, marks=pytest.mark.faults)])
def test_a_synchronous_standby_has_all_that_was_answered(fail_overs: int, tmp_path: Path) -> None:
    with pair(synchronous=True) as servers:
        field = laid_out(servers.url, tmp_path)
        servers.follow()
        assert standby_check(servers).startswith("ok ")
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
        assert standby_check(servers).startswith("FAIL standby: two is asynchronous")
        fail_over_under_storm(servers, field, 1, out_of_contact=lambda turn: True)
        then = outcome(servers.url, tmp_path)
    print(f"asynchronous, 1 fail-over: {then._replace(lost=set())}, {len(then.lost)} lost")
    assert then.lost, "bids that no row explains"
    assert then.twice > 0
