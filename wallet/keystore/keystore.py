"""Sealed keystores: creation, unlocking, a change of passphrase, backup.

A process that writes to one holds its lock, so the signer and `bidkeeper keys` never overwrite each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.fields import MARK
from core.process import hold_lock
from wallet.keystore import keystore_file
from wallet.keystore.keys import Keystore
from wallet.keystore.keystore_file import Contents, KeystoreError
from wallet.keystore.seal import (
    LEAST_CHARACTERS,
    MOST_CHARACTERS,
    Seal,
    Work,
    WrongPassphrase,
    made_from,
    passphrase_bytes,
)

_SALT_BYTES = 16
_NONCE_BYTES = 12

Random = Callable[[int], bytes]


def create(
    path: Path, passphrase: str, contents: Contents, *, work: Work | None = None, rng_bytes: Random = os.urandom
) -> None:
    """Makes a keystore where there is nothing yet. Raises KeystoreError when there is, or for a short passphrase."""
    require_long(passphrase)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    seal = _fresh_seal(passphrase, work or Work(), rng_bytes)
    try:
        keystore_file.create(path, seal.close(keystore_file.to_bytes(contents), rng_bytes(_NONCE_BYTES)))
    except FileExistsError:
        require_absent(path)
        raise
    finally:
        seal.wipe()


def require_absent(path: Path) -> None:
    """Raises KeystoreError when the path is taken: a keystore is never overwritten."""
    if not os.path.lexists(path):
        return
    if _is_play(path):
        raise KeystoreError(
            f"{path} is a play keystore, which is never used for real money: move it away with the practice's data, "
            "or set BIDKEEPER_DATA_DIR (docs/going-live.md)"
        )
    raise KeystoreError(f"{path} is there already and is not overwritten")


def require_long(passphrase: str) -> None:
    """Raises KeystoreError for a new passphrase that is easily guessed, or longer than the signer takes."""
    if not LEAST_CHARACTERS <= len(passphrase) <= MOST_CHARACTERS:
        raise KeystoreError(f"a passphrase has at least {LEAST_CHARACTERS} characters and at most {MOST_CHARACTERS}")


def require_sealed(path: Path) -> dict[str, Any]:
    """Returns the file's object. Raises KeystoreError when it is unreadable, or no sealed keystore for real money."""
    stored = keystore_file.read(path)
    if keystore_file.is_play(stored):
        raise KeystoreError(f"{path} is a play keystore: its keys are for the practice marketplace only")
    try:
        made_from(stored)
    except KeystoreError as error:
        raise KeystoreError(f"{path}: {error}") from None
    return stored


def unlock(path: Path, passphrase: str, *, rng_bytes: Random = os.urandom) -> Keystore:
    """Returns the keystore, open for adding users and keys: hold its lock. Takes half a second.

    Raises WrongPassphrase, or KeystoreError when it cannot be read or is play money's.
    """
    seal, contents = _opened(path, passphrase)

    def store(fresh: Contents) -> None:
        keystore_file.write(path, seal.close(keystore_file.to_bytes(fresh), rng_bytes(_NONCE_BYTES)))

    return Keystore(contents, store, is_play=False)


def change_passphrase(
    path: Path, old: str, new: str, *, work: Work | None = None, rng_bytes: Random = os.urandom
) -> None:
    """Seals the same contents under another passphrase, in one step: hold the lock. Raises as `unlock` does."""
    require_long(new)
    seal, contents = _opened(path, old)
    seal.wipe()
    fresh = _fresh_seal(new, work or Work(), rng_bytes)
    keystore_file.write(path, fresh.close(keystore_file.to_bytes(contents), rng_bytes(_NONCE_BYTES)))
    fresh.wipe()


def backup(path: Path, target: Path) -> None:
    """Copies the keystore to a file that is not there yet. The signer may be running. Raises KeystoreError.

    The copy opens with today's passphrase even after a later change.
    """
    stored = require_sealed(path)
    try:
        keystore_file.put(target, stored)
    except FileExistsError:
        raise KeystoreError(f"{target} is there already and is not overwritten") from None
    except OSError as error:
        raise KeystoreError(f"failed to write {target}: {error.strerror}") from error


def lock(path: Path) -> int:
    """Takes the keystore's lock until the descriptor is closed. Raises KeystoreError while another process has it."""
    held = hold_lock(path.with_name(path.name + ".lock"))
    if held is None:
        raise KeystoreError("the keystore is open in a running signer: stop the service first")
    return held


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the keystore's lock. Raises as `lock` does."""
    held = lock(path)
    try:
        yield
    finally:
        os.close(held)


def _opened(path: Path, passphrase: str) -> tuple[Seal, Contents]:
    """Opens the seal. Raises WrongPassphrase and KeystoreError.

    Earlier versions took a file's byte order mark for the passphrase's first letter. Its reader drops the mark, so a
    keystore that was sealed with one is tried with one, too.
    """
    try:
        return _opened_with(path, passphrase)
    except WrongPassphrase:
        return _opened_with(path, MARK + passphrase)


def _opened_with(path: Path, passphrase: str) -> tuple[Seal, Contents]:
    stored = require_sealed(path)
    seal = Seal.of(passphrase_bytes(passphrase), *made_from(stored))
    try:
        return seal, keystore_file.from_bytes(path, seal.open(stored))
    except BaseException:
        seal.wipe()
        raise


def _fresh_seal(passphrase: str, work: Work, rng_bytes: Random) -> Seal:
    return Seal.of(passphrase_bytes(passphrase), rng_bytes(_SALT_BYTES), work)


def _is_play(path: Path) -> bool:
    try:
        return keystore_file.is_play(keystore_file.read(path))
    except KeystoreError:
        return False
