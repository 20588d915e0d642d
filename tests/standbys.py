"""A PostgreSQL server and its standby, for tests of what happens when the one takes the other's place."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import postgresql
from tests.databases import rows
from tests.postgresql import Cluster

PATIENCE_S = 120.0


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


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

    def wait_for_nobody(self) -> None:
        """Has the primary's commits wait for no standby, as after a fail-over."""
        self._tell("ALTER SYSTEM SET synchronous_standby_names TO ''")
        self._tell("SELECT pg_reload_conf()")

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
