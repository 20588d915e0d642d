"""The seal of a keystore's contents: scrypt derives a key from the passphrase, AES-256-GCM encrypts with it.

The header (version, network, key derivation, nonce) is in clear and authenticated with the contents, so that a changed
header does not open. The salt is new with each passphrase, the nonce with each write.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from core.fields import NotText, WithSecrets, decoded
from wallet.keystore.keys import KeystoreError

VERSION = 2  # version 1 is the play keystore
NETWORK = "mainnet"
LEAST_CHARACTERS = 12
MOST_CHARACTERS = 256  # the maximum that the signer accepts over its socket
_KDF = "scrypt"
_CIPHER = "aes-256-gcm"
_KEY_BYTES = 32
_SALT_BYTES = 16
_NONCE_BYTES = 12
_HEADER = {"version", "network", "kdf", "n", "r", "p", "salt", "cipher", "nonce"}
_MOST_MEMORY = 1 << 30


class WrongPassphrase(KeystoreError):
    """The passphrase is wrong or the file is damaged: the two cannot be distinguished."""

    def __init__(self) -> None:
        super().__init__("the passphrase is wrong, or the keystore was changed")


class Work(Struct, frozen=True):
    """The cost of a guess with scrypt: 128 * n * r bytes of memory, and time in proportion to n * r * p.

    The default takes 128 MiB and about half a second.
    """

    n: int = 1 << 17
    r: int = 8
    p: int = 1

    @property
    def is_sane(self) -> bool:
        """Whether a file's parameters are valid and need at most 1 GiB."""
        is_power = self.n > 1 and self.n & (self.n - 1) == 0
        return is_power and self.r > 0 and 0 < self.p <= 16 and 128 * self.n * self.r <= _MOST_MEMORY


class Seal(WithSecrets, frozen=True):
    """The key derived from a passphrase, with its salt and work. Kept while the keystore is open."""

    hidden = frozenset({"_key"})

    _key: bytearray
    _salt: bytes
    _work: Work

    @classmethod
    def of(cls, passphrase: bytearray, salt: bytes, work: Work) -> Seal:
        """Derives the key, in half a second, and wipes the passphrase."""
        try:
            limit = 2 * 128 * work.n * work.r + (1 << 20)
            derived = hashlib.scrypt(
                passphrase, salt=salt, n=work.n, r=work.r, p=work.p, maxmem=min(limit, (1 << 31) - 1), dklen=_KEY_BYTES
            )
            return cls(bytearray(derived), salt, work)
        finally:
            wipe(passphrase)

    def close(self, contents: bytes, nonce: bytes) -> dict[str, Any]:
        """Seals the contents into the file's object. Each nonce (12 random bytes) may be used once only."""
        header = {
            "version": VERSION,
            "network": NETWORK,
            "kdf": _KDF,
            "n": self._work.n,
            "r": self._work.r,
            "p": self._work.p,
            "salt": self._salt.hex(),
            "cipher": _CIPHER,
            "nonce": nonce.hex(),
        }
        sealed = AESGCM(self._key).encrypt(nonce, contents, _authenticated(header))
        return {**header, "sealed": base64.b64encode(sealed).decode()}

    def open(self, stored: Mapping[str, Any]) -> bytes:
        """Returns the sealed contents. Raises WrongPassphrase."""
        try:
            header = {name: value for name, value in stored.items() if name != "sealed"}
            sealed = base64.b64decode(stored["sealed"], validate=True)
            return AESGCM(self._key).decrypt(bytes.fromhex(stored["nonce"]), sealed, _authenticated(header))
        except (InvalidTag, ValueError, KeyError, TypeError):
            raise WrongPassphrase from None

    def wipe(self) -> None:
        wipe(self._key)


def made_from(stored: Mapping[str, Any]) -> tuple[bytes, Work]:
    """Reads salt and work from a sealed keystore's header. Raises KeystoreError for an invalid header."""
    if stored.keys() != _HEADER | {"sealed"} or stored["version"] != VERSION:
        raise KeystoreError(f"this is no sealed keystore of version {VERSION}")
    if (stored["network"], stored["kdf"], stored["cipher"]) != (NETWORK, _KDF, _CIPHER):
        raise KeystoreError(f"this keystore is not for {NETWORK}, or not sealed with {_KDF} and {_CIPHER}")
    numbers = stored["n"], stored["r"], stored["p"]
    if any(type(number) is not int for number in numbers) or not (work := Work(*numbers)).is_sane:
        raise KeystoreError("this keystore asks for more work than is reasonable")
    try:
        salt, nonce = bytes.fromhex(stored["salt"]), bytes.fromhex(stored["nonce"])
    except (ValueError, TypeError):
        raise KeystoreError("this keystore's header is unreadable") from None
    if len(salt) != _SALT_BYTES or len(nonce) != _NONCE_BYTES:
        raise KeystoreError("this keystore's header is unreadable")
    return salt, work


def passphrase_bytes(passphrase: str) -> bytearray:
    """Returns the passphrase's bytes in NFKD, so that every keyboard's composed letters give the same bytes.

    Raises WrongPassphrase for invalid Unicode.
    """
    try:
        return bytearray(unicodedata.normalize("NFKD", passphrase).encode())
    except UnicodeEncodeError:
        raise WrongPassphrase from None


def wipe(secret: bytearray) -> None:
    """Overwrites the secret. Copies made by Python or a library stay (docs/keys.md)."""
    secret[:] = bytes(len(secret))


def _authenticated(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


CREDENTIAL = "keystore-passphrase"
_MOST_BYTES = 4096
_WINDOW_MS = 60_000
_MOST_TRIES = 3


def unattended(named: Path | None, environment: Mapping[str, str]) -> str | None:
    """Returns the passphrase from the file `named`, else from the unit's systemd credential, else None.

    A descriptor that the parent process left open is named /dev/fd/N. Raises KeystoreError if the file cannot be read,
    or if others may read the file named (systemd protects its credentials itself).
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
    """A count of wrong passphrases, in a file so that a restart of the signer does not reset it. Times in Unix ms."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, now_ms: int) -> bool:
        """Counts a try before it is made; returns False after three within the last minute.

        Setting the clock back frees no tries, because a future timestamp counts as now.
        """
        recent = [at for at in (min(at, now_ms) for at in self._read(now_ms)) if now_ms - at < _WINDOW_MS]
        is_free = len(recent) < _MOST_TRIES
        self._write([*recent, now_ms] if is_free else recent)
        return is_free

    def clear(self) -> None:
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
        return [now_ms] * _MOST_TRIES  # unreadable: counts as tries made now

    def _write(self, tries: list[int]) -> None:
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.write_text(json.dumps(tries))
        fresh.replace(self._path)
