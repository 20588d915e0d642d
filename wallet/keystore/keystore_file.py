"""The keystore's file: private, replaced in one step, and its contents.

Two kinds with the same name: play keystores, readable and marked as such, and sealed ones for real money, whose
contents stand encrypted under a header in clear (wallet/keystore/seal.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import field

from core.errors import BidkeeperError
from core.fields import WithSecrets
from core.files import sync_directory
from wallet.address import AddressError, sign_in_address

PLAY_VERSION = 1
PLAY = "play"
_WARNING = "PLAY MONEY: this seed is not encrypted. Never send bitcoin to its addresses."


class KeystoreError(BidkeeperError):
    """The keystore cannot be used; the message says why and repeats nothing of it."""


class Imported(WithSecrets, frozen=True):
    """Private keys (32 bytes each) brought in for one user; None leaves the derived one in its place."""

    hidden = frozenset({"payment", "vault"})

    payment: bytes | None = None
    vault: bytes | None = None


class Contents(WithSecrets, frozen=True):
    """The seed, the users (normalised sign-in addresses) in order of their numbers from 0, and imported keys."""

    hidden = frozenset({"seed", "imported"})

    seed: bytes
    users: tuple[str, ...] = ()
    imported: Mapping[str, Imported] = field(default_factory=dict)


def read(path: Path) -> dict[str, Any]:
    """Returns the file's object. Raises KeystoreError when it is missing, open to others or torn."""
    try:
        if path.stat().st_mode & 0o077:
            raise KeystoreError(f"{path} can be read by others: chmod 600 it")
        stored = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        text = f"failed to read {path}: {error.strerror}; bidkeeper keys init creates keys for real money"
        raise KeystoreError(text) from error
    except OSError as error:
        raise KeystoreError(f"failed to read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise KeystoreError(f"{path} is no keystore: it is not JSON") from None
    if not isinstance(stored, dict):
        raise KeystoreError(f"{path} is no keystore")
    return stored


def write(path: Path, stored: Mapping[str, Any]) -> None:
    """Replaces the file: a crash leaves the old one or the new one. Raises OSError and keeps the old one."""
    _beside(path, stored).replace(path)
    sync_directory(path.parent)


def create(path: Path, stored: Mapping[str, Any]) -> None:
    """Makes the file, whole or not at all. Raises FileExistsError when the path is taken, or OSError."""
    fresh = _beside(path, stored)
    try:
        os.link(fresh, path, follow_symlinks=False)
    finally:
        fresh.unlink()
    sync_directory(path.parent)


def _beside(path: Path, stored: Mapping[str, Any]) -> Path:
    """Writes the next contents next to the file, over any leftover ones; returns their path."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    put(fresh, stored)
    return fresh


def put(path: Path, stored: Mapping[str, Any]) -> None:
    """Writes a file that is not there yet, and returns when it is on disk. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(stored, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(handle)
    sync_directory(path.parent)


def is_play(stored: Mapping[str, Any]) -> bool:
    return stored.get("network") == PLAY


def play(contents: Contents) -> dict[str, Any]:
    """Returns a play keystore as it is in its file."""
    return {"version": PLAY_VERSION, "network": PLAY, "warning": _WARNING, **_plain(contents)}


def play_contents(path: Path, stored: Mapping[str, Any]) -> Contents:
    """Reads the contents of a play keystore. Raises KeystoreError when it is not a whole one."""
    if not is_play(stored):
        raise KeystoreError(f"{path} is not a play keystore")
    if stored.get("version") != PLAY_VERSION:
        raise KeystoreError(f"{path} is no play keystore of version {PLAY_VERSION}")
    return _contents(path, stored)


def to_bytes(contents: Contents) -> bytes:
    """Encodes the contents that are sealed."""
    imported = {
        user: {name: key.hex() for name, key in (("payment", keys.payment), ("vault", keys.vault)) if key}
        for user, keys in contents.imported.items()
    }
    return json.dumps({**_plain(contents), "imported": imported}).encode()


def from_bytes(path: Path, opened: bytes) -> Contents:
    """Decodes what `to_bytes` made. Raises KeystoreError."""
    try:
        stored = json.loads(opened)
        imported = {
            user: Imported(**{name: bytes.fromhex(key) for name, key in keys.items()})
            for user, keys in stored["imported"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise KeystoreError(f"{path} is damaged: its contents are not as written") from None
    plain = _contents(path, stored)
    if not imported.keys() <= set(plain.users):
        raise KeystoreError(f"{path} is damaged: keys were imported for nobody")
    return Contents(plain.seed, plain.users, imported)


def _plain(contents: Contents) -> dict[str, Any]:
    return {"seed": contents.seed.hex(), "users": list(contents.users)}


def _contents(path: Path, stored: Mapping[str, Any]) -> Contents:
    seed, users = stored.get("seed"), stored.get("users")
    if not isinstance(seed, str) or not isinstance(users, list) or len(set(map(str, users))) != len(users):
        raise KeystoreError(f"{path} is damaged: seed or users are not as written")
    try:
        if any(sign_in_address(str(user)) != user for user in users):
            raise KeystoreError(f"{path} is damaged: a user's address is not in its normal form")
        raw = bytes.fromhex(seed)
    except (AddressError, ValueError):
        raise KeystoreError(f"{path} is damaged: its seed or a user's address is unreadable") from None
    if not 16 <= len(raw) <= 64:
        raise KeystoreError(f"{path} is damaged: its seed has {len(raw)} bytes")
    return Contents(raw, tuple(users))
