"""A command on a machine on which nothing has run: it keeps what it makes to itself, and says what it cannot."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tests.cli.commands import in_this_process

OWNER = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"


def test_the_first_command_makes_the_data_directory_for_its_user_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    before = os.umask(0o022)
    try:
        told = in_this_process(environment | {"BIDKEEPER_DATA_DIR": str(directory)}, "whitelist", "add", OWNER)
    finally:
        os.umask(before)
    assert told[0] == 0, told
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_data_directory_that_cannot_be_made_is_named(environment: dict[str, str]) -> None:
    for directory in ("/proc/nope", "/etc/passwd/x"):
        code, _, complained = in_this_process(environment | {"BIDKEEPER_DATA_DIR": directory}, "migrate")
        assert code == 1 and complained.startswith(f"bidkeeper: {directory}: "), complained
