"""Logs as JSON: every program and worker writes one object a line, and the page's log stays text."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import requests

from tests.e2e.installation import Trader, installation, until

pytestmark = pytest.mark.slow

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
