"""The receivers of hooks: their addresses, which may be secrets themselves, and secrets, each in a file of its own.

The database has a file's name only, so whoever reads the database, or a copy of it, can send nothing in our name.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from core.files import sync_directory

_NAME = re.compile(r"[0-9a-f]{32}")
_YOUNG_S = 3600.0  # a file may be younger than its row


@dataclass(frozen=True, slots=True)
class Receiver:
    """An address as its owner gave it, and the secret for it, empty without one."""

    url: str = field(repr=False)
    secret: str = field(default="", repr=False)


class NoReceiver(Exception):
    """The file of a receiver is not there, or cannot be read."""


class Receivers:
    """The files in `directory`, for our own user only."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, receiver: Receiver) -> str:
        """Writes the receiver down, on disk when this returns; returns the name of its file."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = secrets.token_hex(16)
        handle = os.open(self._directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"url": receiver.url, "secret": receiver.secret}, file)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._directory)
        return name

    def read(self, name: str) -> Receiver:
        """Returns the receiver. Raises NoReceiver."""
        try:
            found = json.loads((self._directory / name).read_text())
            return Receiver(found["url"], found["secret"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NoReceiver(f"the receiver's file cannot be read: {type(error).__name__}") from None

    def forget(self, name: str) -> None:
        """Removes the receiver."""
        (self._directory / name).unlink(missing_ok=True)

    def forget_all_but(self, names: Collection[str]) -> None:
        """Removes the files that no hook names, but for the newest: their hook may be about to be made."""
        for path in self._directory.glob("*"):
            is_ours = _NAME.fullmatch(path.name) is not None and path.name not in names
            if is_ours and time.time() - path.stat().st_mtime > _YOUNG_S:
                path.unlink(missing_ok=True)
