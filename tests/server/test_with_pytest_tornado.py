"""The server under pytest-tornado's own plugin and fixtures, which no other test module loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEST = """
import pytest
from core.settings import Settings
from server.app import make_app
from conftest import *

@pytest.fixture
def app(database, tmp_path):
    made = make_app(Settings(data_dir=tmp_path, database_url=database))
    yield made
    made.settings["services"].close()

@pytest.mark.gen_test
async def test_it(http_client, base_url):
    answer = await http_client.fetch(base_url + "/healthz")
    assert answer.code == 200
"""


@pytest.mark.slow
def test_pytest_tornados_fixtures_serve_the_application(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(TEST)
    options = ["-c", "/dev/null", "-p", "pytest_tornado.plugin", "--async-test-timeout=300"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
