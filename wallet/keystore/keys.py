"""Keys of users, the keystore's file with them, and their signatures on messages (BIP-322 simple).

Keystore files come in two kinds with the same name: play keystores, readable and marked as such, and sealed ones for
real money, whose contents are encrypted under a header in clear (wallet/keystore/seal.py). Both are readable by
the owner only and are replaced in one step.

Keys are derived from the installation's one seed, or imported as BIP-39 words and WIF. A user's number n is their place
in the keystore's append-only list, never a database id: any wallet with the seed finds the keys at m/84'/0'/(2n)'/0/0
(payment, P2WPKH) and m/86'/0'/(2n+1)'/0/0 (vault, P2TR). Keys that were imported for a user stand in for the derived
ones.

Messages are signed with SIGHASH_ALL (P2WPKH) and SIGHASH_DEFAULT (P2TR) only: embit 0.8.0 computes a wrong taproot
digest for ANYONECANPAY and SINGLE.
"""

from __future__ import annotations

import base64
import json
import os
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from embit import bip39, hashes, script
from embit.base import EmbitError
from embit.bip32 import HDKey
from embit.ec import PrivateKey
from embit.transaction import SIGHASH, Transaction, TransactionInput, TransactionOutput
from embit.util import secp256k1
from msgspec import field
from msgspec.structs import replace

from core.errors import BidkeeperError
from core.fields import WithSecrets
from core.files import sync_directory
from wallet.address import AddressError, decode_check, hash160, p2tr, p2wpkh, sign_in_address
from wallet.bip322 import verify_ownership
from wallet.protocol import SigningKey, UserKeys

PLAY_VERSION = 1
PLAY = "play"
_WARNING = "PLAY MONEY: this seed is not encrypted. Never send bitcoin to its addresses."


class KeystoreError(BidkeeperError):
    """The keystore cannot be used; the message says why and has nothing of its contents."""


class Imported(WithSecrets, frozen=True):
    """Imported private keys (32 bytes each) of one user; None keeps the derived key."""

    hidden = frozenset({"payment", "vault"})

    payment: bytes | None = None
    vault: bytes | None = None


class Contents(WithSecrets, frozen=True):
    """The seed, the users (normalised sign-in addresses) in order of their numbers from 0, and imported keys."""

    hidden = frozenset({"seed", "imported"})

    seed: bytes
    users: tuple[str, ...] = ()
    imported: Mapping[str, Imported] = field(default_factory=dict)


def read_file(path: Path) -> dict[str, Any]:
    """Returns the file's object. Raises KeystoreError if it is missing, readable by others or damaged."""
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


def write_file(path: Path, stored: Mapping[str, Any]) -> None:
    """Replaces the file atomically. If it raises OSError, the old file stays."""
    _write_next_to(path, stored).replace(path)
    sync_directory(path.parent)


def create_file(path: Path, stored: Mapping[str, Any]) -> None:
    """Creates the file atomically. Raises FileExistsError if the path is taken, or OSError."""
    fresh = _write_next_to(path, stored)
    try:
        os.link(fresh, path, follow_symlinks=False)
    finally:
        fresh.unlink()
    sync_directory(path.parent)


def _write_next_to(path: Path, stored: Mapping[str, Any]) -> Path:
    """Writes the new contents to a file next to it, over any leftover one; returns its path."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    write_new(fresh, stored)
    return fresh


def write_new(path: Path, stored: Mapping[str, Any]) -> None:
    """Writes a new file, and returns once it is on disk. Raises OSError."""
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
    """Returns the file's object for a play keystore."""
    return {"version": PLAY_VERSION, "network": PLAY, "warning": _WARNING, **_plain(contents)}


def play_contents(path: Path, stored: Mapping[str, Any]) -> Contents:
    """Reads the contents of a play keystore. Raises KeystoreError if it is incomplete."""
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
    """Decodes the result of `to_bytes`. Raises KeystoreError."""
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


_SEED_BYTES = 32
_HARDENED = 1 << 31

# Is called with number, user and public keys before a user's keys are first returned.
Note = Callable[[int, str, UserKeys], None]


class UserSecrets(WithSecrets, frozen=True):
    """A user's private keys (the vault's is the untweaked internal key), and the public keys and addresses."""

    hidden = frozenset({"payment", "vault"})

    payment: PrivateKey
    vault: PrivateKey
    public: UserKeys


def derive_key(seed: bytes, purpose: int, account: int) -> PrivateKey:
    """Returns the private key at m/purpose'/0'/account'/0/0."""
    path = [purpose + _HARDENED, _HARDENED, account + _HARDENED, 0, 0]
    return HDKey.from_seed(seed).derive(path).key


def derive_user(seed: bytes, n: int) -> UserSecrets:
    """Returns the keys of the user with number `n`, from 0."""
    return user_secrets(derive_key(seed, 84, 2 * n), derive_key(seed, 86, 2 * n + 1))


def user_secrets(payment: PrivateKey, vault: PrivateKey) -> UserSecrets:
    """Makes the secrets of two keys, with their addresses."""
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


def secrets_in(contents: Contents, user: str, n: int) -> UserSecrets:
    """Returns the keys of the user with number `n`: imported ones if present, else the derived ones."""
    derived = derive_user(contents.seed, n)
    imported = contents.imported.get(user)
    if imported is None:
        return derived
    return user_secrets(
        PrivateKey(imported.payment) if imported.payment else derived.payment,
        PrivateKey(imported.vault) if imported.vault else derived.vault,
    )


class Keystore:
    """An open keystore. `write` puts contents on disk in one step; only one process at a time may have it open for
    writing. `is_play`: its keys are for play money only.
    """

    def __init__(self, contents: Contents, write: Callable[[Contents], None], *, is_play: bool) -> None:
        self._contents = contents
        self._write = write
        self._numbers = {user: n for n, user in enumerate(contents.users)}
        self._secrets: dict[str, UserSecrets] = {}
        self._note: Note | None = None
        self.is_play = is_play

    @classmethod
    def open_or_create_play(cls, path: Path, rng_bytes: Callable[[int], bytes]) -> Keystore:
        """Returns the play keystore at `path`, made with a fresh seed if it is missing. Raises KeystoreError."""
        if not path.exists():
            write_file(path, play(Contents(rng_bytes(_SEED_BYTES))))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Keystore:
        """Returns the play keystore at `path`. Raises KeystoreError when it is missing, unreadable or not for play
        money.
        """
        contents = play_contents(path, read_file(path))
        return cls(contents, lambda fresh: write_file(path, play(fresh)), is_play=True)

    @property
    def users(self) -> tuple[str, ...]:
        """Users in order of their numbers, from 0."""
        return self._contents.users

    def is_imported(self, user: str) -> bool:
        """Tells whether any key of this user was imported."""
        return user in self._contents.imported

    def imported_of(self, user: str) -> frozenset[str]:
        """Returns the names of this user's imported keys: `payment`, `vault`."""
        imported = self._contents.imported.get(user, Imported())
        return frozenset(name for name in ("payment", "vault") if getattr(imported, name))

    def note_with(self, note: Note) -> None:
        """Sets the function that `secrets_of` calls before it first returns a user's keys. If it raises, no keys are
        returned.
        """
        self._note = note

    def secrets_of(self, user: str) -> UserSecrets:
        """Returns the keys of a user (normalised sign-in address); a new user gets the next number.

        Raises OSError if a new user cannot be written to disk, or noted.
        """
        if user not in self._secrets:
            n = self._numbers.get(user, len(self._numbers))
            secrets = secrets_in(self._contents, user, n)
            if user not in self._numbers:
                self._store(replace(self._contents, users=(*self._contents.users, user)))
                self._numbers[user] = n
            if self._note is not None:
                self._note(n, user, secrets.public)
            self._secrets[user] = secrets
        return self._secrets[user]

    def put_imported(self, user: str, imported: Imported) -> UserSecrets:
        """Replaces a user's keys with these, and returns all keys of the user.

        Raises KeystoreError if another user has one of the keys, or in a play keystore; OSError as `secrets_of`.
        """
        if self.is_play:
            raise KeystoreError("a play keystore takes no keys from elsewhere")
        users = self.users if user in self._numbers else (*self.users, user)
        wanted = replace(self._contents, users=users, imported={**self._contents.imported, user: imported})
        mine = secrets_in(wanted, user, users.index(user))
        for other in self.users:
            if other != user:
                theirs = self.secrets_of(other).public
                if {mine.public.payment_pubkey[2:], mine.public.vault_pubkey} & {
                    theirs.payment_pubkey[2:],
                    theirs.vault_pubkey,
                }:
                    raise KeystoreError(f"{other} has one of these keys already: a key is one user's only")
        self._store(wanted)
        self._numbers = {known: n for n, known in enumerate(users)}
        self._secrets[user] = mine
        return mine

    def _store(self, contents: Contents) -> None:
        self._write(contents)
        self._contents = contents


WORDS = 24
_ENTROPY_BYTES = 32
_WIF_VERSION = 0x80
_COMPRESSED = 0x01


def words_of(entropy: bytes) -> str:
    """Returns the 24 words for 32 random bytes."""
    if len(entropy) != _ENTROPY_BYTES:
        raise ValueError(f"{WORDS} words stand for {_ENTROPY_BYTES} bytes")
    return str(bip39.mnemonic_from_bytes(entropy))


def seed_of(words: str, passphrase: str = "") -> bytes:
    """Returns the 64-byte seed of 12 to 24 English words, with BIP-39's optional passphrase. Raises KeystoreError."""
    parts = unicodedata.normalize("NFKD", words).lower().split()
    try:
        if len(parts) > WORDS:
            raise ValueError
        return bytes(bip39.mnemonic_to_seed(" ".join(parts), unicodedata.normalize("NFKD", passphrase)))
    except (ValueError, UnicodeEncodeError):
        raise KeystoreError("these are not 12 to 24 English words of BIP-39 with a right checksum") from None


def from_words(words: str, passphrase: str = "") -> Imported:
    """Derives a wallet's first account: m/84'/0'/0'/0/0 as payment, m/86'/0'/0'/0/0 as vault key. Raises
    KeystoreError.
    """
    seed = seed_of(words, passphrase)
    return Imported(payment=derive_key(seed, 84, 0).secret, vault=derive_key(seed, 86, 0).secret)


def from_wif(text: str) -> bytes:
    """Returns the private key (32 bytes) of a WIF for mainnet and a compressed public key. Raises KeystoreError."""
    try:
        raw = decode_check(text.strip())
    except ValueError:
        raise KeystoreError("this is no WIF: a letter is missing, too many or wrong") from None
    if len(raw) != 34 or raw[0] != _WIF_VERSION or raw[-1] != _COMPRESSED:
        raise KeystoreError("this WIF is not for mainnet, or not for a compressed public key")
    try:
        return bytes(PrivateKey(raw[1:-1]).secret)
    except EmbitError:
        raise KeystoreError("this WIF holds no number that is a private key") from None


SigningKind = Literal["p2wpkh", "p2tr"]

_TAG = "BIP0322-signed-message"
_OP_RETURN = script.Script(b"\x6a")


def require_libsecp256k1() -> None:
    """Raises RuntimeError if embit fell back to curve arithmetic in Python, which is slow and leaks by its timing."""
    for name in ("ec_pubkey_create", "ecdsa_sign", "schnorrsig_sign"):
        if getattr(secp256k1, name).__module__ != "embit.util.ctypes_secp256k1":
            raise RuntimeError("libsecp256k1 could not be loaded: embit has no build of it for this machine")


def sign_message(private_key: PrivateKey, kind: SigningKind, message: str) -> str:
    """Signs `message` for the P2WPKH or (key path, untweaked internal key given) P2TR address of `private_key`.

    Returns the base64 of the witness stack, without the `smp` prefix. The same arguments give the same text.
    Raises UnicodeEncodeError when the message is not valid Unicode.
    """
    text = message.encode()
    if kind == "p2wpkh":
        return _witness(*_p2wpkh_items(private_key, text))
    return _witness(_p2tr_item(private_key, text))


def _p2wpkh_items(private_key: PrivateKey, message: bytes) -> tuple[bytes, bytes]:
    public_key = private_key.get_public_key()
    script_pubkey = script.p2wpkh(public_key)
    to_sign = _to_sign(script_pubkey, message)
    digest = to_sign.sighash_segwit(0, script.p2pkh_from_p2wpkh(script_pubkey), 0, SIGHASH.ALL)
    signature: bytes = private_key.sign(digest).serialize()
    return signature + bytes([SIGHASH.ALL]), public_key.sec()


def _p2tr_item(private_key: PrivateKey, message: bytes) -> bytes:
    script_pubkey = script.p2tr(private_key.get_public_key())
    to_sign = _to_sign(script_pubkey, message)
    digest = to_sign.sighash_taproot(0, [script_pubkey], [0], SIGHASH.DEFAULT)
    signature: bytes = private_key.taproot_tweak(b"").schnorr_sign(digest).serialize()
    return signature


def _to_sign(script_pubkey: script.Script, message: bytes) -> Transaction:
    """Builds BIP-322's virtual spend of the virtual output that commits to the message."""
    commitment = hashes.tagged_hash(_TAG, message)
    to_spend = Transaction(
        version=0,
        vin=[TransactionInput(bytes(32), 0xFFFFFFFF, script.Script(b"\x00\x20" + commitment), sequence=0)],
        vout=[TransactionOutput(0, script_pubkey)],
        locktime=0,
    )
    return Transaction(
        version=0,
        vin=[TransactionInput(to_spend.txid(), 0, sequence=0)],
        vout=[TransactionOutput(0, _OP_RETURN)],
        locktime=0,
    )


def _witness(*items: bytes) -> str:
    stack = bytes([len(items)]) + b"".join(bytes([len(item)]) + item for item in items)
    return base64.b64encode(stack).decode()


def signed_by(secrets: UserSecrets, key: SigningKey, message: str) -> str:
    """Returns the base64 BIP-322 signature of `message`, verified because a faulty one could reveal the key.

    Raises RuntimeError when it does not verify.
    """
    if key == "vault":
        signature = sign_message(secrets.vault, "p2tr", message)
    else:
        signature = sign_message(secrets.payment, "p2wpkh", message)
    if not verify_ownership(address_of(secrets, key), message, signature):
        raise RuntimeError("the signature just made does not verify: nothing is handed out")
    return signature


def address_of(secrets: UserSecrets, key: SigningKey) -> str:
    return secrets.public.vault if key == "vault" else secrets.public.payment
