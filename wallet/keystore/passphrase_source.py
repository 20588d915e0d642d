"""The passphrase of an unattended start, and a limit on wrong tries."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from core.outside_text import NotText, decoded
from wallet.keystore.keystore_file import KeystoreError

CREDENTIAL = "keystore-passphrase"
_MOST_BYTES = 4096
_WINDOW_MS = 60_000
_MOST_TRIES = 3


def unattended(named: Path | None, environment: Mapping[str, str]) -> str | None:
    """Returns the passphrase from the file named, else from systemd's credential of this unit, else None.

    A descriptor that the starter left open is named /dev/fd/N. Raises KeystoreError when it cannot be read, or when the
    file named may be read by others (of credentials systemd takes care).
    """
    if named is not None:
        return _read(named, must_be_private=True)
    directory = environment.get("CREDENTIALS_DIRECTORY")
    if directory and (credential := Path(directory) / CREDENTIAL).exists():
        return _read(credential, must_be_private=False)
    return None


def _read(path: Path, *, must_be_private: bool) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if must_be_private and stat.S_ISREG(mode) and mode & 0o077:
                raise KeystoreError(f"{path} can be read by others: chmod 600 it")
            content = file.read(_MOST_BYTES)
    except OSError as error:
        raise KeystoreError(f"failed to read the passphrase from {path}: {error.strerror}") from error
    try:
        return decoded(content).rstrip("\r\n")
    except NotText as error:
        raise KeystoreError(f"the passphrase's file {path} {error}") from None


class Tries:
    """A count of wrong passphrases, kept in a file so that killing the signer wins no further try. Times in Unix ms."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, now_ms: int) -> bool:
        """Counts one try before it is made; returns False when there were three within the last minute.

        A clock that goes back gives none back: a try from the future counts as one of now.
        """
        recent = [at for at in (min(at, now_ms) for at in self._read(now_ms)) if now_ms - at < _WINDOW_MS]
        is_free = len(recent) < _MOST_TRIES
        self._write([*recent, now_ms] if is_free else recent)
        return is_free

    def forget(self) -> None:
        """Clears the count after a right passphrase."""
        self._path.unlink(missing_ok=True)

    def _read(self, now_ms: int) -> list[int]:
        try:
            tries = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return []
        except ValueError:
            tries = None
        if isinstance(tries, list) and all(type(at) is int for at in tries):
            return tries
        return [now_ms] * _MOST_TRIES  # unreadable: as if all were made now

    def _write(self, tries: list[int]) -> None:
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.write_text(json.dumps(tries))
        fresh.replace(self._path)
