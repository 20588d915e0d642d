"""The play keystore, the derivation of users' keys, and words and WIF from other wallets."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from embit import bip39
from embit.ec import PrivateKey

from tests.worlds.signer import OTHER_USER, USER
from wallet.address import hash160, p2tr, p2wpkh
from wallet.bip322 import verify_ownership
from wallet.keystore import keys
from wallet.keystore.keys import Imported, Keystore, KeystoreError, derive_key, derive_user, user_secrets

# The published mnemonic of BIP-84 and BIP-86.
PUBLISHED = bip39.mnemonic_to_seed("abandon " * 11 + "about")


def test_bip84_published_vector_is_our_first_payment_address() -> None:
    keys = derive_user(PUBLISHED, 0).public
    assert keys.payment == "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
    assert keys.payment_pubkey == "0330d54fd0dd420a6e5f8d3624f5f3482cae350f79d5f0753bf5beef9c2d91af3c"


def test_bip86_published_vector() -> None:
    public = derive_key(PUBLISHED, 86, 0).get_public_key()
    assert public.xonly().hex() == "cc8a4bc64d897bddc5fbc2f670f7a8ba0b386779106cf1223c6fc5d7cd6fc115"
    output_key = public.taproot_tweak(b"").xonly()
    assert p2tr(output_key) == "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr"


def test_users_have_accounts_2n_and_2n_plus_1() -> None:
    secrets = derive_user(PUBLISHED, 3)
    assert secrets.payment.secret == derive_key(PUBLISHED, 84, 6).secret
    assert secrets.vault.secret == derive_key(PUBLISHED, 86, 7).secret
    assert secrets.public.payment == p2wpkh(hash160(secrets.payment.get_public_key().sec()))


def test_both_keys_sign_for_their_addresses() -> None:
    secrets = derive_user(PUBLISHED, 1)
    assert verify_ownership(secrets.public.payment, "text", keys.sign_message(secrets.payment, "p2wpkh", "text"))
    assert verify_ownership(secrets.public.vault, "text", keys.sign_message(secrets.vault, "p2tr", "text"))


def test_libsecp256k1_is_in_use_and_its_absence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    keys.require_libsecp256k1()
    from embit.util import py_secp256k1

    monkeypatch.setattr(keys.secp256k1, "schnorrsig_sign", py_secp256k1.schnorrsig_sign)
    with pytest.raises(RuntimeError, match="libsecp256k1"):
        keys.require_libsecp256k1()


def test_a_new_keystore_is_private_marked_and_opens_itself(tmp_path: Path) -> None:
    path = tmp_path / "keystore.json"
    made = Keystore.open_or_create_play(path, os.urandom).secrets_of(USER).public
    stored = json.loads(path.read_text())
    assert path.stat().st_mode & 0o777 == 0o600
    assert (stored["version"], stored["network"], stored["users"]) == (1, "play", [USER])
    assert "PLAY MONEY" in stored["warning"]
    assert Keystore.open_or_create_play(path, os.urandom).secrets_of(USER).public == made
    assert [file.name for file in tmp_path.iterdir()] == ["keystore.json"]


def test_a_play_keystore_says_so_and_takes_no_keys_from_elsewhere(tmp_path: Path) -> None:
    keystore = Keystore.open_or_create_play(tmp_path / "keystore.json", os.urandom)
    assert keystore.is_play
    before = keystore.secrets_of(USER).public
    with pytest.raises(KeystoreError, match="play keystore"):
        keystore.put_imported(USER, Imported(payment=bytes([7] * 32)))
    assert keystore.secrets_of(USER).public == before


def test_users_keep_their_numbers_in_order_of_arrival(tmp_path: Path) -> None:
    path = tmp_path / "keystore.json"
    keystore = Keystore.open_or_create_play(path, lambda count: PUBLISHED[:count])
    first, second = keystore.secrets_of(USER).public, keystore.secrets_of(OTHER_USER).public
    reopened = Keystore.open(path)
    assert reopened.secrets_of(OTHER_USER).public == second == derive_user(PUBLISHED[:32], 1).public
    assert reopened.secrets_of(USER).public == first == derive_user(PUBLISHED[:32], 0).public


def test_a_user_that_could_not_be_written_gets_no_keys(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "keystore.json"
    path.parent.mkdir()
    keystore = Keystore.open_or_create_play(path, os.urandom)
    path.unlink()
    path.parent.rmdir()
    for _ in range(2):
        with pytest.raises(OSError, match="No such file"):
            keystore.secrets_of(USER)


GOOD = {"version": 1, "network": "play", "seed": "00" * 32, "users": []}


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (GOOD | {"network": "mainnet"}, "not a play keystore"),
        (GOOD | {"network": None}, "not a play keystore"),
        (GOOD | {"version": 2}, "version 1"),
        ([], "no keystore"),
        (GOOD | {"seed": "zz"}, "unreadable"),
        (GOOD | {"seed": "00"}, "1 bytes"),
        (GOOD | {"seed": 7}, "damaged"),
        (GOOD | {"users": [USER, USER]}, "damaged"),
        (GOOD | {"users": [USER.upper()]}, "normal form"),
        (GOOD | {"users": ["nobody"]}, "unreadable"),
        (GOOD | {"users": [7]}, "unreadable"),
        (GOOD | {"users": {}}, "damaged"),
    ],
)
def test_any_other_keystore_is_refused_with_its_reason(stored: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "keystore.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps(stored))
    with pytest.raises(KeystoreError, match=reason):
        Keystore.open_or_create_play(path, os.urandom)


def test_a_missing_open_or_torn_keystore_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keystore.json"
    with pytest.raises(KeystoreError, match="failed to read"):
        Keystore.open(path)
    path.touch(mode=0o600)
    path.write_text(json.dumps(GOOD)[:20])
    with pytest.raises(KeystoreError, match="not JSON"):
        Keystore.open(path)
    path.write_text(json.dumps(GOOD))
    path.chmod(0o640)
    with pytest.raises(KeystoreError, match="chmod 600"):
        Keystore.open(path)


def test_no_secret_shows_in_what_is_printed(tmp_path: Path) -> None:
    keystore = Keystore.open_or_create_play(tmp_path / "keystore.json", lambda count: PUBLISHED[:count])
    secrets = keystore.secrets_of(USER)
    shown = f"{keystore!r} {secrets!r}"
    assert PUBLISHED[:32].hex() not in shown
    assert secrets.payment.wif() not in shown
    assert secrets.vault.wif() not in shown


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
