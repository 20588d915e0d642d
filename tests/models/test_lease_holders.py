"""Holders of leases: without it they do not live, and they know when another one has it. (`make test-postgresql`)"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent

import pytest
from peewee import OperationalError

from core.errors import BidkeeperError
from models import schema
from models.database import base
from models.leases import held_lease
from tests import postgresql
from tests.databases import another, rows
from tests.models.racing import (
    BRIEF_S,
    HOLDS,
    SECONDS,
    claimed,
    clock_jumps,
    in_a_process,
    said,
)
from tests.standbys import pair, until

# So that a holder can be met between a renewal and its commit.
_SLOW_COMMITS = """
import threading
from models.database.postgresql import Postgresql
commit = Postgresql.commit
def slowly(self):
    if threading.current_thread().name == "lease":
        time.sleep(1.5)
    commit(self)
Postgresql.commit = slowly
"""


@postgresql.only
@pytest.mark.slow
@pytest.mark.parametrize("seconds", [BRIEF_S, BRIEF_S + 7])
def test_a_holder_that_is_stopped_is_killed_before_another_one_holds_its_lease(database: str, seconds: int) -> None:
    """Also one whose machine's setting has it hold the lease for longer than the other one would."""
    with in_a_process(database, "here", seconds=seconds) as first:
        assert said(first) == "held\n"
        first.send_signal(signal.SIGSTOP)
        with in_a_process(database, "there", seconds=BRIEF_S) as second:
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
                for _ in range(2):  # four times a third of the lease: longer than it lasts unless it is renewed
                    assert said(second, SECONDS / 3) == said(third, SECONDS / 3) == "", "it was taken from a living one"
                assert first.poll() is None
            first.kill()
            assert said(second) == "held\n"


@postgresql.only
@pytest.mark.slow
def test_a_database_whose_clock_jumps_back_keeps_no_dead_ones_lease(database: str) -> None:
    clock_jumps(database, 0)
    with in_a_process(database, "here", seconds=BRIEF_S) as first:
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
@pytest.mark.parametrize("is_asked_more", [True, False], ids=["before a statement", "before the commit"])
def test_one_that_stands_by_and_is_frozen_with_the_row_locked_kills_no_holder(
    database: str, is_asked_more: bool
) -> None:
    """It looks twice a second, so a machine that stands still or is cut off may be in the middle of it."""
    with in_a_process(database, "here") as first:
        assert said(first) == "held\n"
        frozen = held_lease._for_lease(database, SECONDS)
        frozen.connect()
        with pytest.raises(OperationalError, match="idle-in-transaction"), frozen.atomic():
            frozen.execute_sql("SELECT 1 FROM leases WHERE name = 'slot 0' FOR UPDATE")
            time.sleep(2 * SECONDS)
            assert first.poll() is None
            if is_asked_more:
                frozen.execute_sql("SELECT 1")
        frozen.close()


@postgresql.only
@pytest.mark.slow
def test_a_holder_that_is_frozen_in_a_renewal_goes_on_while_it_has_time(database: str) -> None:
    """The server ends its transaction meanwhile, and tells that at its commit."""
    seconds = 30
    sent = "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND query ~ '^UPDATE leases'"
    slowly = HOLDS.replace("lease = claim", _SLOW_COMMITS + "lease = claim")
    with in_a_process(database, "here", slowly, seconds=seconds) as process:
        assert said(process) == "held\n"
        until(lambda: bool(rows(database, sent)))
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds / 3 + 2)
        process.send_signal(signal.SIGCONT)
        version = rows(database, "SELECT xmin FROM leases WHERE name = 'slot 0'")
        until(lambda: rows(database, "SELECT xmin FROM leases WHERE name = 'slot 0'") != version)
        assert process.poll() is None


@postgresql.only
def test_a_connection_that_was_renewed_waits_no_longer_than_its_lease(database: str) -> None:
    asking = held_lease._for_lease(database, 6)
    asking.connect()
    for _ in range(2):
        for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            assert asking.execute_sql(f"SHOW {name}").fetchone() == ("2s",)
        [(pid,)] = asking.execute_sql("SELECT pg_backend_pid()").fetchall()
        # Only what has ended is seen to be lost.
        assert rows(database, "SELECT pg_terminate_backend(?, 60000)", [pid]) == [(True,)]
    asking.close()


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
def test_who_has_met_none_but_a_former_primary_finds_the_one_that_took_over(tmp_path: Path) -> None:
    """The former one is the first of the address and says that it is a primary, but commits nothing. Whoever waits for
    it is killed in time, and who is started next finds the lease locked.
    """
    waits = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    with pair(synchronous=True) as servers:
        servers.follow()
        base.connect(servers.url)
        schema.migrate()
        base.close()
        servers.fail_over()
        servers.wait_for_nobody()
        servers.standby.start_again()
        with in_a_process(servers.url, "here"):
            until(lambda: bool(rows(servers.standby.url("storm"), waits)))
        with in_a_process(servers.url, "here") as process:
            assert said(process) == "held\n"
            assert rows(servers.primary.url("storm"), "SELECT home FROM leases WHERE name = 'slot 0'") == [("here",)]


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
    hanging = HOLDS.replace("lease.alive()", "pass").replace("waits=True", "waits=True, silent_s=1")
    with in_a_process(database, "here", hanging, seconds=BRIEF_S) as process:
        assert said(process) == "held\n"
        assert process.wait(60) == -signal.SIGKILL


@postgresql.only
@pytest.mark.slow
def test_a_holder_that_outlives_the_kernels_timer_ends_by_itself(database: str) -> None:
    """One that has stood still for long has given no sign of life, either: it must not act while it waits for one."""
    plants = "from core.process import DeathTimer\nDeathTimer.arm = lambda self, at_s: None\n"
    hanging = HOLDS.replace("lease.alive()", "pass").replace("waits=True", "waits=True, silent_s=1")
    with in_a_process(database, "there", plants + hanging, seconds=BRIEF_S) as process:
        assert said(process) == "held\n"
        assert process.wait(50) == -signal.SIGKILL


_ASKS = """
import sys
from models.leases import held_lease
from models.leases.held_lease import claim
from models.leases.leases import Holder
held_lease._ANSWER_S = 15  # the first answer, and one after a loss, take a new connection
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
                until(lambda: len(rows(url, backends)) == 2)
                frozen = [server.pid, *(pid for (pid,) in rows(url, backends))]
                for pid in frozen:
                    os.kill(pid, signal.SIGSTOP)
                try:
                    assert second.wait(120) == -signal.SIGKILL
                finally:
                    for pid in frozen:
                        os.kill(pid, signal.SIGCONT)


@postgresql.only
@pytest.mark.faults
def test_who_has_many_silent_servers_to_ask_says_that_none_answers(tmp_path: Path) -> None:
    """Asking each of them takes longer than any question about a lease may."""
    with ExitStack() as stack:
        ports = []
        for _ in range(4):
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            ports.append(str(server.getsockname()[1]))
        hosts = ",".join(["127.0.0.1"] * len(ports))
        url = f"postgresql:///any?host={hosts}&port={','.join(ports)}&user=any&connect_timeout=4"
        program = HOLDS.replace("waits=True", "waits=False")
        tells = f"try:\n{indent(program, '    ')}\nexcept Exception as error: print(error)"
        # Of a lease of 5 s: a question about it may take 20 s, asking all of them takes 24.
        with in_a_process(url, "here", tells, seconds=5) as asks:
            assert "cannot be opened: " in said(asks, 120)


@postgresql.only
@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("host=a&nonsense=1", 'invalid URI query parameter: "nonsense"'),
        ("host=a&connect_timeout=abc", "bad value for connect_timeout: 'abc'"),
    ],
)
def test_an_address_that_cannot_be_read_is_refused_in_words(rest: str, why: str) -> None:
    with pytest.raises(BidkeeperError, match=f"cannot be used: .*{why}"):
        claimed(f"postgresql:///any?{rest}")
