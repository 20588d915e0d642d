"""Keys from elsewhere: BIP-39 words and WIF. No message here repeats the typed text."""

from __future__ import annotations

import unicodedata

from embit import bip39
from embit.base import EmbitError
from embit.ec import PrivateKey

from wallet.base58 import decode_check
from wallet.keystore.keys import derive_key
from wallet.keystore.keystore_file import Imported, KeystoreError

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
