"""The unit tests that are written in JavaScript, one file at a time, by Node's own runner."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import LIBATOMIC, need
from tests.web.javascript import NODE, WITH_MADE
from tests.web.visitor import ROOT

FILES = sorted((Path(__file__).parent / "unit").glob("*.test.js"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_in_javascript(file: Path) -> None:
    need(LIBATOMIC)
    done = subprocess.run(
        [*NODE, "--test", str(file)], capture_output=True, text=True, cwd=ROOT, timeout=120, env=WITH_MADE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nℹ tests 0\n" not in done.stdout and "# tests 0\n" not in done.stdout
