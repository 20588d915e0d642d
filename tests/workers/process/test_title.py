"""A process's title, however its environment lies in memory."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SAYS_ITS_TITLE = """
from pathlib import Path
from workers.process.worker import set_title
set_title("bidkeeper: a title")
print(Path("/proc/self/cmdline").read_text().rstrip(chr(0)), "PATH=" in Path("/proc/self/environ").read_text())
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [{}, {"SPT_NOENV": "1"}, {"HOME": "/", "SPT_NOENV": "1"}], ids=" ".join)
def test_it_is_set_and_the_environment_stays_to_be_seen(before: dict[str, str]) -> None:
    """Ray hands the variable down in no order of its own: it may be the first."""
    rest = {name: value for name, value in os.environ.items() if name not in ("SPT_NOENV", "HOME")}
    command = [sys.executable, "-c", SAYS_ITS_TITLE]
    said = subprocess.run(command, env=before | rest, capture_output=True, text=True, check=True, timeout=120)
    assert said.stdout == "bidkeeper: a title True\n"
