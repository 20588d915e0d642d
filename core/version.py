"""The version of this program, and the commit that it was built from. setup.py reads both.

Standard library only: setup.py, deploy/install.sh and `python3 core/version.py` run this file before anything is
installed. Workers never import it.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

VERSION = "0.1.0"
# Each build writes this file to the folder `core`, so that an installation without git knows its commit.
COMMIT_FILE = "commit.txt"
CHANGED = "+changes"  # follows the commit of a checkout with changed files
_HERE = Path(__file__).resolve().parent
_GIT_S = 10.0


class Version(NamedTuple):
    """A version and its commit, which is empty when it is unknown."""

    number: str
    commit: str

    def __str__(self) -> str:
        """Writes `0.1.0 (5c2b9fa7)`."""
        return f"{self.number} ({self.commit or 'unknown commit'})"


@cache
def running() -> Version:
    """Returns the version of this program. In a checkout the first call runs git once."""
    return Version(VERSION, commit_of(_HERE))


def commit_of(package: Path) -> str:
    """Returns the commit that the package `core` in this directory was built from, "" if it is unknown."""
    try:
        return (package / COMMIT_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):  # not a build, so it may be a checkout
        return _commit_by_git(package.parent)


def _commit_by_git(checkout: Path) -> str:
    if not (checkout / ".git").exists():
        return ""  # git would search the parent directories and find another repository
    # Root may install from another user's checkout. It runs that code anyway, so git may trust the directory too.
    command = ["git", "--no-optional-locks", "-C", str(checkout), "-c", f"safe.directory={checkout}"]
    command += ["describe", "--always", "--exclude=*", "--abbrev=8", f"--dirty={CHANGED}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        said = subprocess.check_output(
            command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_GIT_S, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.strip()


if __name__ == "__main__":
    print(running().commit)
