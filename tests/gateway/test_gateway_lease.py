"""Two machines' gateways on one database: one answers, the other one stands by. (`make test-postgresql`)"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from markets.base import Unavailable
from markets.client import MarketClient
from markets.http import AFTERMATH_S
from models import schema
from models.database import base
from models.leases import leases
from tests import postgresql
from tests.databases import another, rows
from tests.gateway.conftest import ORDER, soon
from tests.models.test_orders import running_task
from tests.ports import free_ports
from tests.standbys import pair

pytestmark = [
    pytest.mark.slow,
    postgresql.only,
]
ROOT = Path(__file__).parents[2]
LEASE_S = 15  # a gateway that a busy machine holds up for seconds must not lose it
PATIENCE_S = 180.0
WAITS = f"waits {AFTERMATH_S:.0f} s for what the former one has sent"


(NO_MARKET,) = free_ports(1)


@contextmanager
def gateway(url: str, home: Path, verb: str = "gateway", lease_s: int = LEASE_S) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a gateway with its files in `home`, or another program; what it says is added to the file `said` there."""
    home.mkdir(exist_ok=True)
    environment = os.environ | {
        "BIDKEEPER_DATA_DIR": str(home),
        "BIDKEEPER_DATABASE_URL": url,
        "BIDKEEPER_LEASE_SECONDS": str(lease_s),
        "BIDKEEPER_SIMULATOR_PORT": str(NO_MARKET),
        "BIDKEEPER_CONFIG": os.devnull,
    }
    command = [sys.executable, "-m", "cli.main", verb]
    with (
        (home / "said").open("a") as said,
        subprocess.Popen(command, cwd=ROOT, env=environment, stderr=said) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def has_said(home: Path, words: str) -> bool:
    return words in (home / "said").read_text()


def answers(home: Path) -> bool:
    """Tells whether a gateway listens in this directory."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(home / "run" / "gateway.sock"))
        except OSError:
            return False
        return True


def eventually(holds: Callable[[], bool]) -> float:
    """Waits until it holds; returns after how many seconds."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.05)
    return time.monotonic() - began


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_a_gateway_that_is_gone_is_followed_once_nothing_of_it_can_be_on_its_way(
    database: str, tmp_path: Path, end: signal.Signals
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with gateway(database, a) as first:
        eventually(lambda: answers(a))
        with gateway(database, b) as second:
            time.sleep(2)
            assert not answers(b) and second.poll() is None
            first.send_signal(end)
            took_s = eventually(lambda: answers(b))
            assert first.wait(PATIENCE_S) == (0 if end is signal.SIGTERM else -signal.SIGKILL)
            assert took_s >= AFTERMATH_S
            held = leases.held(leases.GATEWAY)
            assert held is not None and (held.token, held.home) == (2, leases.home_of(b / "run"))


def test_a_gateway_that_is_started_again_at_home_answers_at_once(database: str, tmp_path: Path) -> None:
    for _ in range(2):
        with gateway(database, tmp_path, lease_s=300) as process:
            assert eventually(lambda: answers(tmp_path)) < PATIENCE_S
            process.kill()
    held = leases.held(leases.GATEWAY)
    assert held is not None and held.token == 2
    with another(database) as other:  # it was not waited for
        assert other.rows("SELECT until_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM leases") == [
            (True,)
        ]


def test_a_gateway_that_is_killed_while_it_waits_for_the_former_one_waits_again(database: str, tmp_path: Path) -> None:
    former = leases.take(base.database.obj, leases.GATEWAY, leases.Holder("elsewhere", "another"), LEASE_S)
    assert isinstance(former, leases.Taken)
    leases.give_back(base.database.obj, leases.GATEWAY, former.token)
    (tmp_path / "run").mkdir(exist_ok=True)
    with gateway(database, tmp_path) as process:
        eventually(lambda: held_by(tmp_path) == 2)
        process.kill()
    began = time.monotonic()
    with gateway(database, tmp_path):
        eventually(lambda: answers(tmp_path))
        assert held_by(tmp_path) == 3
        assert time.monotonic() - began >= AFTERMATH_S
        assert has_said(tmp_path, WAITS)
        eventually(lambda: rows(database, "SELECT former_home FROM leases") == [("",)])
    (tmp_path / "said").unlink()
    with gateway(database, tmp_path):
        eventually(lambda: answers(tmp_path))
        assert held_by(tmp_path) == 4
        assert not has_said(tmp_path, WAITS), "what is over was waited for again"


def test_a_second_gateway_at_home_takes_nothing_from_the_first(database: str, tmp_path: Path) -> None:
    with gateway(database, tmp_path) as first:
        eventually(lambda: answers(tmp_path))
        with gateway(database, tmp_path) as second:
            assert second.wait(PATIENCE_S) == 1
        assert held_by(tmp_path) == 1
        time.sleep(LEASE_S)
        assert first.poll() is None and answers(tmp_path)


def test_a_gateway_that_does_not_know_yet_that_another_has_taken_over_sends_nothing(
    database: str, tmp_path: Path
) -> None:
    """As when its machine was frozen, clocks and all: its timer has time left, and its next renewal is to come."""
    with (
        gateway(database, tmp_path, lease_s=300) as process,
        MarketClient(tmp_path / "run" / "gateway.sock", timeout_s=20) as client,
    ):
        eventually(lambda: answers(tmp_path))
        task = running_task()

        def place() -> None:
            client.place(ORDER, task=task.id, token=1, deadline_ms=soon())

        def fails_to_send() -> bool:
            with pytest.raises(Unavailable) as raised:
                place()
            return "failed to send" in str(raised.value)

        eventually(fails_to_send)  # there is no marketplace; before, it may take long to ask whether it is the one
        with another(database) as other:
            other.execute("UPDATE leases SET home = 'elsewhere', token = token + 1")
        with pytest.raises(Unavailable, match="another gateway has taken over"):
            place()
        assert process.poll() is None


@pytest.mark.parametrize("verb", ["gateway", "manager", "hooks"])
def test_a_program_waits_for_a_database_that_is_unfit_for_now(database: str, tmp_path: Path, verb: str) -> None:
    """supervisord gives up a program that ends ten times, and would not start it when the database is mended."""
    base.close()
    postgresql.drop(database)
    postgresql.make(database, "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with gateway(database, tmp_path, verb) as process:
        eventually(lambda: has_said(tmp_path, "the database must be one of encoding UTF8"))
        time.sleep(2)
        assert process.poll() is None
        postgresql.drop(database)
        postgresql.make(database)
        base.connect(database)
        name = "slot 0" if verb == "manager" else verb
        eventually(lambda: leases.held(name) is not None)
        assert process.poll() is None


def test_a_gateway_on_a_database_without_our_tables_says_so_and_ends(tmp_path: Path) -> None:
    url = postgresql.fresh("")
    with gateway(url, tmp_path) as process:
        assert process.wait(PATIENCE_S) == 1
        assert has_said(tmp_path, 'cannot be used: relation "leases" does not exist')
    postgresql.drop(url)


def test_a_gateway_that_is_started_again_knows_a_former_primary(tmp_path: Path) -> None:
    """Which has been started by hand, while the standby that took over is away, and would hand out everything twice."""
    with pair(synchronous=False) as servers:
        base.connect(servers.url)
        schema.migrate()
        base.close()
        servers.follow()
        with gateway(servers.url, tmp_path, lease_s=30):
            eventually(lambda: answers(tmp_path))
            servers.fail_over()
            eventually(lambda: '": 2' in (tmp_path / "timelines.json").read_text())
        former, present = servers.standby, servers.primary
        present.kill()
        former.start_again()
        with gateway(servers.url, tmp_path, lease_s=30) as process:
            eventually(lambda: has_said(tmp_path, "has timeline 1, but a standby took over with 2"))
            time.sleep(2)
            assert process.poll() is None and not answers(tmp_path)
            present.start_again()
            eventually(lambda: answers(tmp_path))


def test_a_gateway_needs_no_more_of_the_database_than_the_documents_say(database: str, tmp_path: Path) -> None:
    role = f"gateway_{os.getpid()}"
    rights = (
        "SELECT (id, token) ON tasks",
        *(f"SELECT, INSERT, UPDATE ON {table}" for table in ("leases", "month_counts")),
    )
    with another(database) as other:
        other.execute(f"CREATE ROLE {role} LOGIN")
        for right in rights:
            other.execute(f"GRANT {right} TO {role}")
    try:
        with gateway(database.replace("user=bidkeeper", f"user={role}"), tmp_path):
            eventually(lambda: answers(tmp_path))
            assert held_by(tmp_path) == 1
    finally:
        with another(database) as other:
            other.execute(f"DROP OWNED BY {role}")
            other.execute(f"DROP ROLE {role}")


def held_by(home: Path) -> int:
    """Returns the token under which the gateway in this directory has the lease, 0 when it has not."""
    held = leases.held(leases.GATEWAY)
    return held.token if held is not None and held.home == leases.home_of(home / "run") else 0
