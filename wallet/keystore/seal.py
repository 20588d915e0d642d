"""The seal of a keystore's contents: scrypt makes a key of the passphrase, AES-256-GCM encrypts under it.

The header (version, network, how the key is made, nonce) stands in clear and is authenticated with the contents: a
changed header opens nothing. The salt is new with each passphrase, the nonce with each write.
"""

from __future__ import annotations

import base64
import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from wallet.keystore.keystore_file import KeystoreError

VERSION = 2  # 1 is the play keystore's
NETWORK = "mainnet"
LEAST_CHARACTERS = 12
MOST_CHARACTERS = 256  # the most that the signer takes over its socket
_KDF = "scrypt"
_CIPHER = "aes-256-gcm"
_KEY_BYTES = 32
_SALT_BYTES = 16
_NONCE_BYTES = 12
_HEADER = {"version", "network", "kdf", "n", "r", "p", "salt", "cipher", "nonce"}
_MOST_MEMORY = 1 << 30


class WrongPassphrase(KeystoreError):
    """The seal did not open. A wrong passphrase and a damaged file cannot be told apart."""

    def __init__(self) -> None:
        super().__init__("the passphrase is wrong, or the keystore was changed")


@dataclass(frozen=True, slots=True)
class Work:
    """The cost of a guess with scrypt: 128 * n * r bytes of memory, and time in proportion to n * r * p.

    The default takes 128 MiB and about half a second.
    """

    n: int = 1 << 17
    r: int = 8
    p: int = 1

    @property
    def is_sane(self) -> bool:
        """Whether a file's demands are within this machine's means."""
        is_power = self.n > 1 and self.n & (self.n - 1) == 0
        return is_power and self.r > 0 and 0 < self.p <= 16 and 128 * self.n * self.r <= _MOST_MEMORY


@dataclass(frozen=True, slots=True)
class Seal:
    """A file key with the passphrase's salt and work. It lives as long as the keystore is open."""

    _key: bytearray = field(repr=False)
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
        """Seals the contents into the file's object. A nonce (12 random bytes) is for one write only."""
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
    """Reads salt and work from a sealed keystore's header. Raises KeystoreError for a header it does not understand."""
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
    """Returns the passphrase's bytes, the same however a keyboard composes its letters (NFKD).

    Raises WrongPassphrase when it is not valid text.
    """
    try:
        return bytearray(unicodedata.normalize("NFKD", passphrase).encode())
    except UnicodeEncodeError:
        raise WrongPassphrase from None


def wipe(secret: bytearray) -> None:
    """Overwrites the secret. Copies that Python or a library made are out of reach: see docs/keys.md."""
    secret[:] = bytes(len(secret))


def _authenticated(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
