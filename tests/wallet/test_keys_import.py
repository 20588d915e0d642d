"""Words and WIF from other wallets."""

from __future__ import annotations

import pytest
from embit import bip39
from embit.ec import PrivateKey

from wallet.keystore import keys
from wallet.keystore.keys import user_secrets
from wallet.keystore.keystore_file import Imported, KeystoreError

ABANDON = "abandon " * 11 + "about"
# (entropy, words, seed with the passphrase TREZOR): of the vectors that BIP-39 names.
VECTORS = [
    (
        "00" * 32,
        "abandon " * 23 + "art",
        "bda85446c68413707090a52022edd26a1c9462295029f2e60cd7c4f2bbd3097170af7a4d73245cafa9c3cca8d561a7c3"
        "de6f5d4a10be8ed2a5e608d68f92fcc8",
    ),
    (
        "7f" * 32,
        "legal winner thank year wave sausage worth useful legal winner thank year wave sausage worth useful legal"
        " winner thank year wave sausage worth title",
        "bc09fca1804f7e69da93c2f2028eb238c227f2e9dda30cd63699232578480a4021b146ad717fbb7e451ce9eb835f43620"
        "bf5c514db0f8add49f5d121449d3e87",
    ),
    (
        "ff" * 32,
        "zoo " * 23 + "vote",
        "dd48c104698c30cfe2b6142103248622fb7bb0ff692eebb00089b32d22484e1613912f0a5b694407be899ffd31ed3992"
        "c456cdf60f5d4564b8ba3f05a69890ad",
    ),
]
ONE_WIF = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn"


@pytest.mark.parametrize(("entropy", "words", "seed"), VECTORS)
def test_published_words_and_seeds(entropy: str, words: str, seed: str) -> None:
    assert keys.words_of(bytes.fromhex(entropy)) == words.strip()
    assert keys.seed_of(words, "TREZOR").hex() == seed


def test_words_are_taken_however_they_are_spaced_and_written() -> None:
    assert keys.seed_of("  Abandon\tABANDON " + "abandon " * 9 + "\n about ") == keys.seed_of(ABANDON)


def test_a_wallets_first_account_as_bip84_and_bip86_publish_it() -> None:
    public = user_secrets(*both(keys.from_words(ABANDON))).public
    assert public.payment == "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
    assert public.vault == "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr"


def test_the_passphrase_of_bip39_makes_another_wallet() -> None:
    assert keys.from_words(ABANDON, "TREZOR") != keys.from_words(ABANDON)


def test_the_wif_of_the_key_one() -> None:
    secret = keys.from_wif(f" {ONE_WIF}\n")
    assert secret == bytes(31) + b"\x01"
    public = user_secrets(PrivateKey(secret), PrivateKey(secret)).public
    assert public.payment == "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    assert public.vault == "bc1pmfr3p9j00pfxjh0zmgp99y8zftmd3s5pmedqhyptwy6lm87hf5sspknck9"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "abandon " * 12,  # checksum
        "abandon " * 10 + "about",
        "abandon " * 11 + "abouts",
        bip39.mnemonic_from_bytes(bytes(36)),  # 27 words with a right checksum
        "\ud800 " * 12,
    ],
)
def test_mistyped_words_are_refused_and_not_repeated(words: str) -> None:
    with pytest.raises(KeystoreError, match="24 English words") as refused:
        keys.from_words(words)
    assert "abandon" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    "wif",
    [
        "",
        ONE_WIF[:-1],
        ONE_WIF[:-1] + "m",
        ONE_WIF.replace("K", "0", 1),
        "5HpHagT65TZzG1PH3CSu63k8DbpvD8s5ip4nEB3kEsreAnchuDf",  # uncompressed
        "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA",  # testnet
        "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73Nd2Mcv1",  # zero
        "x" * 10_000,
        "\ud800",
    ],
)
def test_a_mistyped_or_foreign_wif_is_refused_and_not_repeated(wif: str) -> None:
    with pytest.raises(KeystoreError, match=r"this WIF|no WIF") as refused:
        keys.from_wif(wif)
    assert not wif or wif[:8] not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_only_32_bytes_become_24_words() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        keys.words_of(bytes(16))


def both(imported: Imported) -> tuple[PrivateKey, PrivateKey]:
    assert imported.payment and imported.vault
    return PrivateKey(imported.payment), PrivateKey(imported.vault)
