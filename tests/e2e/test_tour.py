"""The tour's commands work word for word beside a running demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import postgresql
from tests.e2e.installation import PATIENCE, Installation, until

pytestmark = [
    pytest.mark.slow,
    postgresql.left_out("the commands are the same"),
    pytest.mark.thorough,  # tests/server has its routes in short
]

ROOT = Path(__file__).resolve().parents[2]
SECTION = (ROOT / "docs" / "tour.md").read_text().partition("## 4. ")[2].partition("\n## ")[0]
# In place of curl, which a bare machine lacks. It fails on each refusal, where curl prints it and goes on.
CURL = f"""#!{sys.executable}
import argparse, urllib.request
given = argparse.ArgumentParser()
given.add_argument("-s", action="store_true")
given.add_argument("-X")
given.add_argument("-H")
given.add_argument("-d", type=str.encode)
given.add_argument("url")
asked = given.parse_args()
request = urllib.request.Request(asked.url, asked.d, dict([asked.H.split(": ", 1)]), method=asked.X)
with urllib.request.urlopen(request, timeout={PATIENCE}) as answer:
    print(answer.read().decode())
"""


def test_every_command_of_the_tour_succeeds(tmp_path: Path) -> None:
    [commands] = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.M | re.S)
    assert commands.count("\ncurl ") > 20
    (tmp_path / "curl").write_text(CURL)
    (tmp_path / "curl").chmod(0o700)
    made = Installation()
    try:
        made.up("demo")
        until(lambda: "auto-list task" in made.output(), "the demo's last task")
        until(lambda: re.search(r"task 1 .*: placed", made.output()), "its first cycle")
        [token] = re.findall(r"export TOKEN=(\S+)", made.output())
        commands = commands.replace("export TOKEN=...", f"export TOKEN={token}", 1)
        commands = commands.replace(".venv/bin/bidkeeper", f"{sys.executable} -m cli.main")
        environment = made.environment | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        command = ["bash", "-e", "-o", "pipefail", "-c", commands]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout[-500:] + done.stderr
        made.down()
    finally:
        made.destroy()
