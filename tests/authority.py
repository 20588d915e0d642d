"""The certificates of an installation's hosts, made by the commands that docs/several-machines.md shows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "several-machines.md"


class Authority:
    """An authority, whose files are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        section = PAGE.read_text().partition("### Certificates\n")[2].partition("\n### ")[0]
        make_authority, self._make_certificate = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
        _run(make_authority, directory)

    def certificate(self, role: str, name: str, days: int = 365) -> Path:
        """Returns a directory with a new certificate for a host `name`; below 0 `days` it has expired."""
        made = self.directory / name
        made.mkdir()
        for file in ("ca.pem", "ca.key"):
            (made / file).write_bytes((self.directory / file).read_bytes())
        commands = self._make_certificate
        assert "-days 365 " in commands
        _run(commands.replace("-days 365 ", f"-days {days} "), made, role=role)
        (made / "ca.key").unlink()
        return made


def _run(commands: str, directory: Path, **variables: str) -> None:
    command = ["bash", "-euc", "umask 077; " + commands]
    subprocess.run(command, cwd=directory, env=os.environ | variables, check=True, capture_output=True)
