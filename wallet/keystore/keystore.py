"""Sealed keystores: creation, unlocking, a change of passphrase, backup; and hardening of the process that opens one.

A process that writes to a keystore holds its lock, so the signer and `bidkeeper keys` never overwrite each other. A
hardened process allows no core dumps, no debugger, no network and no keys on disk.
"""

from __future__ import annotations

import ctypes
import logging
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.fields import MARK
from core.process import give_up_network, hold_lock
from wallet.keystore.keys import (
    Contents,
    Keystore,
    KeystoreError,
    create_file,
    from_bytes,
    is_play,
    read_file,
    to_bytes,
    write_file,
    write_new,
)
from wallet.keystore.seal import (
    LEAST_CHARACTERS,
    MOST_CHARACTERS,
    Seal,
    Work,
    WrongPassphrase,
    made_from,
    passphrase_bytes,
)

log = logging.getLogger(__name__)

_PR_SET_DUMPABLE = 4
_MCL_CURRENT = 1
_MCL_ONFAULT = 4


def harden() -> None:
    """Forbids core dumps, and debuggers and /proc/PID/mem to other processes of our user; gives up the network.

    Raises OSError. If the network cannot be given up, it only logs a warning.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "failed to make the process undumpable")
    os.umask(0o077)
    if problem := give_up_network():
        log.warning("the network cannot be taken from this process, which holds keys: %s", problem)


def lock_memory() -> str:
    """Keeps the current memory out of swap; call it after loading the keys. Returns "", or the reason of a failure.

    Later memory is not locked (no MCL_FUTURE), because under a limit the next scrypt (128 MiB) or any new thread would
    fail. Pages are locked once they are used (MCL_ONFAULT).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_ONFAULT) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def has_swap(swaps: Path = Path("/proc/swaps")) -> bool:
    """Tells whether this machine may swap memory to a disk. True if that is unknown."""
    try:
        return len(swaps.read_text().splitlines()) > 1
    except OSError:
        return True


_SALT_BYTES = 16
_NONCE_BYTES = 12

Random = Callable[[int], bytes]


def create(
    path: Path, passphrase: str, contents: Contents, *, work: Work | None = None, rng_bytes: Random = os.urandom
) -> None:
    """Creates a keystore. Raises KeystoreError if the path is taken, or for a short passphrase."""
    require_long(passphrase)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    seal = _fresh_seal(passphrase, work or Work(), rng_bytes)
    try:
        create_file(path, seal.close(to_bytes(contents), rng_bytes(_NONCE_BYTES)))
    except FileExistsError:
        require_absent(path)
        raise
    finally:
        seal.wipe()


def require_absent(path: Path) -> None:
    """Raises KeystoreError if the path is taken, because a keystore is never overwritten."""
    if not os.path.lexists(path):
        return
    if _is_play(path):
        raise KeystoreError(
            f"{path} is a play keystore, which is never used for real money: move it away with the practice's data, "
            "or set BIDKEEPER_DATA_DIR (docs/going-live.md)"
        )
    raise KeystoreError(f"{path} is there already and is not overwritten")


def require_long(passphrase: str) -> None:
    """Raises KeystoreError for a new passphrase that is too short, or longer than the signer accepts."""
    if not LEAST_CHARACTERS <= len(passphrase) <= MOST_CHARACTERS:
        raise KeystoreError(f"a passphrase has at least {LEAST_CHARACTERS} characters and at most {MOST_CHARACTERS}")


def require_sealed(path: Path) -> dict[str, Any]:
    """Returns the file's object. Raises KeystoreError if it is unreadable or not a sealed keystore for real money."""
    stored = read_file(path)
    if is_play(stored):
        raise KeystoreError(f"{path} is a play keystore: its keys are for the practice marketplace only")
    try:
        made_from(stored)
    except KeystoreError as error:
        raise KeystoreError(f"{path}: {error}") from None
    return stored


def unlock(path: Path, passphrase: str, *, rng_bytes: Random = os.urandom) -> Keystore:
    """Returns the keystore, open for writing: the caller must hold its lock. Takes half a second.

    Raises WrongPassphrase, or KeystoreError if it cannot be read or is a play keystore.
    """
    seal, contents = _opened(path, passphrase)

    def store(fresh: Contents) -> None:
        write_file(path, seal.close(to_bytes(fresh), rng_bytes(_NONCE_BYTES)))

    return Keystore(contents, store, is_play=False)


def change_passphrase(
    path: Path, old: str, new: str, *, work: Work | None = None, rng_bytes: Random = os.urandom
) -> None:
    """Seals the contents under another passphrase, in one step. The caller must hold the lock. Raises as `unlock`."""
    require_long(new)
    seal, contents = _opened(path, old)
    seal.wipe()
    fresh = _fresh_seal(new, work or Work(), rng_bytes)
    write_file(path, fresh.close(to_bytes(contents), rng_bytes(_NONCE_BYTES)))
    fresh.wipe()


def backup(path: Path, target: Path) -> None:
    """Copies the keystore to a new file; the signer may be running. Raises KeystoreError.

    The copy keeps its passphrase when the keystore's is changed.
    """
    stored = require_sealed(path)
    try:
        write_new(target, stored)
    except FileExistsError:
        raise KeystoreError(f"{target} is there already and is not overwritten") from None
    except OSError as error:
        raise KeystoreError(f"failed to write {target}: {error.strerror}") from error


def lock(path: Path) -> int:
    """Takes the keystore's lock until the returned descriptor is closed. Raises KeystoreError if it is held."""
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

    Earlier versions read a file's byte order mark as the passphrase's first letter. The mark is now dropped, so the
    passphrase is also tried with the mark.
    """
    try:
        return _opened_with(path, passphrase)
    except WrongPassphrase:
        return _opened_with(path, MARK + passphrase)


def _opened_with(path: Path, passphrase: str) -> tuple[Seal, Contents]:
    stored = require_sealed(path)
    seal = Seal.of(passphrase_bytes(passphrase), *made_from(stored))
    try:
        return seal, from_bytes(path, seal.open(stored))
    except BaseException:
        seal.wipe()
        raise


def _fresh_seal(passphrase: str, work: Work, rng_bytes: Random) -> Seal:
    return Seal.of(passphrase_bytes(passphrase), rng_bytes(_SALT_BYTES), work)


def _is_play(path: Path) -> bool:
    try:
        return is_play(read_file(path))
    except KeystoreError:
        return False
