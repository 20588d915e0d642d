"""Odd machines and logs: data directories, terminals, addresses, broken parts, and logs as JSON."""

from __future__ import annotations

import json
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests

from bench import odd_health
from core.setting_values import HostPort
from drills.faults.fleet import Fleet
from models.database import damage
from tests import postgresql
from tests.e2e.installation import PATIENCE, Installation, Trader, installation, until

pytestmark = pytest.mark.slow

SIGNS = "a b'\"#?;,\\$=&()[]{}<>|~*!:^`ü%"
LONGEST = 79  # bytes: supervisord binds run/supervisor.sock and its pid in it


@pytest.fixture
def made() -> Iterator[Installation]:
    installation = Installation()
    yield installation
    installation.destroy()


def test_longest_directory_with_every_sign_in_it_works(made: Installation) -> None:
    with tempfile.TemporaryDirectory(prefix="bk-") as home:
        shutil.rmtree(made.data_dir)
        name = SIGNS.replace("%", "")
        name += "x" * (LONGEST - len(f"{home}/{name}".encode()))
        made.data_dir = Path(home) / name
        made.data_dir.mkdir(mode=0o700)
        made.environment["BIDKEEPER_DATA_DIR"] = str(made.data_dir)
        made.up()
        assert made.ready_again(), made.output()
        made.down()
        made.up()  # the signer reads its own records again
        made.down()
        assert [path.name for path in Path(home).iterdir()] == [name], "a part of the name was taken for the whole"


def _can_listen(host: str) -> bool:
    try:
        with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            return True
    except OSError:
        return False


@pytest.mark.thorough_cases("::-::-utf-8")
@pytest.mark.parametrize(
    ("written", "host", "encoding"),
    [("[::1]", "::1", "latin-1"), ("::", "::", "utf-8"), ("127.0.0.2", "127.0.0.2", "ascii")],
)
def test_demo_trades_at_any_address_and_on_any_terminal(
    made: Installation, written: str, host: str, encoding: str
) -> None:
    if not _can_listen(host):
        pytest.skip(f"this machine has no {host}")
    made.url = f"http://{HostPort('::1' if host == '::' else host, made.port)}"
    made.environment |= {"BIDKEEPER_HOST": written, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C"}
    made.environment |= {"PYTHONCOERCECLOCALE": "0"}

    made.up("demo")

    def said() -> str:
        return (made.data_dir / "up.out").read_bytes().decode(encoding)

    until(lambda: said().count(": started: ") >= 4 or None, "three tasks and a listing of the demo")
    assert f"Bidkeeper's page: {made.url}/ " in said()
    rune = "PRACTICE•RUNE•TOKEN".encode(encoding, "backslashreplace").decode(encoding)
    assert said().count(f"{rune}: started: ") == 1, "a letter of the terminal's was taken for a fault"
    made.down()


@postgresql.left_out("the faults of a file are SQLite's")
def test_readiness_doctor_page_and_api_say_the_same_of_each_fault() -> None:
    assert odd_health.on_file(minutes=1, minute_s=0.0, patience_s=PATIENCE) == []


@postgresql.only
def test_readiness_doctor_page_and_api_say_the_same_while_the_server_is_away() -> None:
    assert odd_health.on_server(minutes=1, minute_s=0.0, patience_s=PATIENCE) == []


@postgresql.left_out("the faults of a file are SQLite's")
def test_a_halt_cancels_every_bid_over_a_broken_page() -> None:
    with installation() as service:
        fleet = Fleet(service, tasks=3)
        fleet.start()
        until(lambda: fleet.placed() >= 6, "the ladders")
        file = service.database_url.removeprefix("sqlite:///")
        odd_health.flip_root(Path(file), "cycles")
        until(lambda: damage.known(file) is not None, "the note")
        assert not service.ready_again()
        placed = fleet.placed()
        fleet.trader.call("PUT", "/api/control", {"scope": "user", "state": "halt"})
        until(lambda: all(bid.end_ms for bid in fleet.taken()), "the end of every bid")
        assert fleet.placed() == placed


PROGRAMS = {"simulator", "signer", "gateway", "manager", "hooks", "server", "worker"}
TEXT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARNING|ERROR) task-\d+ [\w.]+: .+")


def test_every_line_of_every_program_is_an_object_and_the_page_shows_text(tmp_path: Path) -> None:
    config = tmp_path / "bidkeeper.toml"  # which the zygote must go by, too
    config.write_text('log_level = "DEBUG"\nlog_format = "json"\n')
    with installation(BIDKEEPER_CONFIG=str(config)) as made:
        trader = Trader(made).sign_in()
        made.put_collection("json-cats", [100_000])
        task = trader.task(slug="json-cats", hardcapSats=100_000, loopSeconds=5)
        trader.start(task)
        until(lambda: trader.get(task)["lastCycle"], "a cycle")
        lines = trader.ok("GET", f"/api/tasks/{task}/log")["lines"]
        assert lines and not [line for line in lines if not TEXT.fullmatch(line)]
        trader.stop_and_drain(task)
        assert requests.get(made.url + "/readyz", timeout=30).status_code == 200
        logs = {path.name: path.read_text().splitlines() for path in (made.data_dir / "logs").glob("*.log")}
    assert logs.pop("supervisord.log"), "which is not ours, and stays text"
    told = [json.loads(line) for of_program in logs.values() for line in of_program]
    assert all(type(each) is dict and {"time", "level", "program", "message"} <= each.keys() for each in told)
    assert {each["program"] for each in told} >= PROGRAMS
    assert {each.get("task") for each in told if each["program"] == "worker"} == {task}
    assert any(each.get("task") == task for each in told if each["program"] == "manager")
    assert all(re.fullmatch(r"[\d-]{10}T[\d:]{8}\.\d{3}Z", each["time"]) for each in told)


def test_a_program_that_cannot_start_says_why_in_its_form(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "bidkeeper.db")) as connection, connection:
        connection.execute("CREATE TABLE schema_migration (id INTEGER, name TEXT, applied TEXT)")
        connection.execute("INSERT INTO schema_migration VALUES (1, '9999_later', '2026-01-01')")
    environment = {
        "BIDKEEPER_DATA_DIR": str(tmp_path),
        "BIDKEEPER_CONFIG": "/dev/null",
        "BIDKEEPER_LOG_FORMAT": "json",
    }

    def said(verb: str) -> str:
        command = [sys.executable, "-m", "cli.main", verb]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 1
        return done.stderr

    told = [json.loads(line) for line in said("manager").splitlines()]
    assert (told[-1]["level"], told[-1]["program"]) == ("ERROR", "manager")
    assert "made by another version" in told[-1]["message"]
    assert said("migrate").startswith("bidkeeper: the database was made by another version"), "for a person"
