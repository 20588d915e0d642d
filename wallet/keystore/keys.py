"""Keys of users: derived from the installation's one seed, or brought as BIP-39 words and WIF.

A user's number n is their place in the keystore's append-only list, never a database id: any wallet with the seed finds
the keys at m/84'/0'/(2n)'/0/0 (payment, P2WPKH) and m/86'/0'/(2n+1)'/0/0 (vault, P2TR). Keys that were imported for a
user stand in for the derived ones.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

from embit import bip39
from embit.base import EmbitError
from embit.bip32 import HDKey
from embit.ec import PrivateKey
from msgspec.structs import replace

from core.fields import WithSecrets
from wallet.address import decode_check, hash160, p2tr, p2wpkh
from wallet.keystore import keystore_file
from wallet.keystore.keystore_file import Contents, Imported, KeystoreError
from wallet.protocol import UserKeys

_SEED_BYTES = 32
_HARDENED = 1 << 31

# Receives the number, the user and the public side of keys before they are first handed out.
Note = Callable[[int, str, UserKeys], None]


class UserSecrets(WithSecrets, frozen=True):
    """A user's private keys (the vault's is the untweaked internal one) and their public side."""

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
    """Puts the two keys together with their addresses."""
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
    """Returns the keys of a user with number `n`: the imported ones where there are any, else the derived ones."""
    derived = derive_user(contents.seed, n)
    imported = contents.imported.get(user)
    if imported is None:
        return derived
    return user_secrets(
        PrivateKey(imported.payment) if imported.payment else derived.payment,
        PrivateKey(imported.vault) if imported.vault else derived.vault,
    )


class Keystore:
    """An open keystore. `write` puts contents on disk in one step; one process at a time has it open for writing.

    `is_play`: the money of its keys is play money.
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
            keystore_file.write(path, keystore_file.play(Contents(rng_bytes(_SEED_BYTES))))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Keystore:
        """Returns the play keystore at `path`. Raises KeystoreError when it is missing, unreadable or not for play
        money.
        """
        contents = keystore_file.play_contents(path, keystore_file.read(path))
        return cls(contents, lambda fresh: keystore_file.write(path, keystore_file.play(fresh)), is_play=True)

    @property
    def users(self) -> tuple[str, ...]:
        """Users in order of their numbers, from 0."""
        return self._contents.users

    def is_imported(self, user: str) -> bool:
        """Tells whether some key of this user was imported."""
        return user in self._contents.imported

    def imported_of(self, user: str) -> frozenset[str]:
        """Returns which keys of this user were imported: `payment`, `vault`."""
        imported = self._contents.imported.get(user, Imported())
        return frozenset(name for name in ("payment", "vault") if getattr(imported, name))

    def note_with(self, note: Note) -> None:
        """Has `note` called before keys are handed out that `secrets_of` has not returned yet. What it raises prevents
        that.
        """
        self._note = note

    def secrets_of(self, user: str) -> UserSecrets:
        """Returns the keys of a user (normalised sign-in address), who gets the next number if new.

        Raises OSError when a new user cannot be written to disk, or noted; no key is shown then.
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
        """Gives a user these keys in place of their former ones, and returns all their keys.

        Raises KeystoreError when another user has one of the keys already or the keys are play money's, OSError as
        `secrets_of` does.
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
