"""The play keystore, and how each user's keys come from its one seed.

The file unlocks itself and says that its money is play money; every market but the simulator refuses it. A user's
number n is their place in the file's append-only list, never a database id: any wallet with the seed finds the keys
at m/84'/0'/(2n)'/0/0 (payment, P2WPKH) and m/86'/0'/(2n+1)'/0/0 (vault, P2TR).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embit.bip32 import HDKey
from embit.ec import PrivateKey

from core.errors import BidkeeperError
from wallet.address import AddressError, p2tr, p2wpkh, sign_in_address
from wallet.audit import sync_directory
from wallet.hash160 import hash160
from wallet.protocol import UserKeys

VERSION = 1
PLAY = "play"
_SEED_BYTES = 32
_HARDENED = 1 << 31
_WARNING = "PLAY MONEY: this seed is not encrypted. Never send bitcoin to its addresses."


class KeystoreError(BidkeeperError):
    """The keystore cannot be used; the message says why and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class UserSecrets:
    """A user's private keys (the vault's is the untweaked internal one), with what may be shown of them."""

    payment: PrivateKey = field(repr=False)
    vault: PrivateKey = field(repr=False)
    public: UserKeys


def derive_key(seed: bytes, purpose: int, account: int) -> PrivateKey:
    """The private key at m/purpose'/0'/account'/0/0."""
    path = [purpose + _HARDENED, _HARDENED, account + _HARDENED, 0, 0]
    return HDKey.from_seed(seed).derive(path).key


def derive_user(seed: bytes, n: int) -> UserSecrets:
    """The keys of the user with number `n`, from 0."""
    payment, vault = derive_key(seed, 84, 2 * n), derive_key(seed, 86, 2 * n + 1)
    payment_public, vault_public = payment.get_public_key(), vault.get_public_key()
    return UserSecrets(
        payment,
        vault,
        UserKeys(
            payment=p2wpkh(hash160(payment_public.sec())),
            payment_pubkey=payment_public.sec().hex(),
            vault=p2tr(vault_public.taproot_tweak(b"").xonly()),
            vault_pubkey=vault_public.xonly().hex(),
        ),
    )


class Keystore:
    """The open play keystore. One process at a time."""

    def __init__(self, path: Path, seed: bytes, users: list[str]) -> None:
        self._path = path
        self._seed = seed
        self._users = {user: n for n, user in enumerate(users)}
        self._secrets: dict[str, UserSecrets] = {}

    @classmethod
    def open_or_create_play(cls, path: Path, rng_bytes: Callable[[int], bytes]) -> Keystore:
        """The play keystore at `path`, made with a fresh seed when there is none. Raises KeystoreError."""
        if not path.exists():
            _write(path, rng_bytes(_SEED_BYTES), [])
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Keystore:
        """The play keystore at `path`. Raises KeystoreError when it is missing, unreadable or not for play money."""
        try:
            if path.stat().st_mode & 0o077:
                raise KeystoreError(f"{path} can be read by others: chmod 600 it")
            stored = json.loads(path.read_bytes())
        except OSError as error:
            raise KeystoreError(f"failed to read {path}: {error.strerror}") from error
        except ValueError:
            raise KeystoreError(f"{path} is no keystore: it is not JSON") from None
        return cls(path, *_contents(path, stored))

    def secrets_of(self, user: str) -> UserSecrets:
        """The keys of a user (normalised sign-in address), who gets the next number when new.

        Raises OSError when a new user cannot be written to disk; no key is shown then.
        """
        if user not in self._secrets:
            n = self._users.get(user, len(self._users))
            secrets = derive_user(self._seed, n)
            if user not in self._users:
                _write(self._path, self._seed, [*self._users, user])
                self._users[user] = n
            self._secrets[user] = secrets
        return self._secrets[user]


def _contents(path: Path, stored: Any) -> tuple[bytes, list[str]]:
    if not isinstance(stored, dict) or stored.get("version") != VERSION:
        raise KeystoreError(f"{path} is no keystore of version {VERSION}")
    if stored.get("network") != PLAY:
        raise KeystoreError(f"{path} is not a play keystore; keystores for real money cannot be opened yet")
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
    return raw, users


def _write(path: Path, seed: bytes, users: list[str]) -> None:
    """Replaces the file in one step: a crash leaves the old one or the new one."""
    stored = {"version": VERSION, "network": PLAY, "warning": _WARNING, "seed": seed.hex(), "users": users}
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(stored, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(handle)
    fresh.replace(path)
    sync_directory(path.parent)
