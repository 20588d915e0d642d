"""Sealed keystores: what opens them, what does not, and that no crash or mistake loses one."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.worlds.signer import OTHER_USER, USER
from wallet.keystore import keystore
from wallet.keystore import seal as keystore_seal
from wallet.keystore.keys import Contents, Imported, Keystore, KeystoreError, create_file, derive_user
from wallet.keystore.seal import Seal, Tries, Work, WrongPassphrase, unattended

PASSPHRASE = "correct horse battery staple"
QUICK = Work(n=1 << 10)
SEED = bytes(range(64))
CONTENTS = Contents(SEED, (OTHER_USER, USER))
# Made once and kept: a later version must open what this one wrote.
KEPT = {
    "version": 2,
    "network": "mainnet",
    "kdf": "scrypt",
    "n": 1024,
    "r": 8,
    "p": 1,
    "salt": "000102030405060708090a0b0c0d0e0f",
    "cipher": "aes-256-gcm",
    "nonce": "000102030405060708090a0b",
    "sealed": (
        "XqeSeqhDQ/tMayLYY71Bx9mbk4J8dR1HUln2bIuJQbVg7LmahEeDgKjMjBzgDswUMR0tyYB9wGP8CePJjKEEN40lEhcLmzpWEkfd"
        "VD9mZRnBUkC439z8qBdQVcZvDIUyDKPH6okdA0KRFGOLHjwHDTgX4+xWNL4PLlqXqLSy52qFooufNnUIuR793QRRtcfId9eybHMT"
        "6D3lbJf4Er6V4oWj4jWSSiWbbLAN1lLoPXnzux04mR2f1t2NN7zcygoksWtHmUQfFfPqzdB+KQzyWv0WDX0sMCVoqoIDj+xRfbr9"
        "zyVQcXQIcZ/OkUWHttNmy15AJh1ZgB0I7aOZDsURGW/izucGeVQ+QI0CxANUohdYWLJ2tQm4rJlYOS9ndTYeRFXNn34C0iR25cF6"
        "k+S/+fLKyqv6QBDe/xIzZW3opkODcV7913HGlqxSL/TXeyxwerEWwYy1LAVBwOU4E/VHH+7MOOKodOuMvJ18UhZYLtKeTrp7RxUq"
        "vaM/rtECyg6rd5cohAuUi7tH94ZMRFYrew=="
    ),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "signer" / "keystore.json"
    keystore.create(made, PASSPHRASE, CONTENTS, work=QUICK)
    return made


def stored(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def put(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def test_it_opens_with_its_passphrase_and_gives_every_user_their_keys(path: Path) -> None:
    opened = keystore.unlock(path, PASSPHRASE)
    assert not opened.is_play
    assert opened.users == (OTHER_USER, USER)
    assert opened.secrets_of(USER).public == derive_user(SEED, 1).public
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["keystore.json"]


def test_one_made_by_the_first_version_opens_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "keystore.json"
    path.touch(mode=0o600)
    put(path, KEPT)
    opened = keystore.unlock(path, PASSPHRASE)
    assert opened.users == (OTHER_USER, USER)
    assert opened.is_imported(USER)
    assert opened.secrets_of(USER).payment.secret == bytes([7] * 32)
    assert opened.secrets_of(USER).vault.secret == derive_user(SEED, 1).vault.secret


def test_it_is_aes_256_gcm_under_an_scrypt_key_with_the_header_authenticated(path: Path) -> None:
    found = stored(path)
    header = {name: value for name, value in found.items() if name != "sealed"}
    key = hashlib.scrypt(PASSPHRASE.encode(), salt=bytes.fromhex(found["salt"]), n=1024, r=8, p=1, dklen=32)
    opened = AESGCM(key).decrypt(
        bytes.fromhex(found["nonce"]),
        base64.b64decode(found["sealed"]),
        json.dumps(header, sort_keys=True, separators=(",", ":")).encode(),
    )
    assert json.loads(opened) == {"seed": SEED.hex(), "users": [OTHER_USER, USER], "imported": {}}


@pytest.mark.slow
def test_the_default_work_takes_128_mib(tmp_path: Path) -> None:
    path = tmp_path / "keystore.json"
    keystore.create(path, PASSPHRASE, CONTENTS)
    assert [stored(path)[name] for name in ("kdf", "n", "r", "p")] == ["scrypt", 131_072, 8, 1]
    assert keystore.unlock(path, PASSPHRASE).users == CONTENTS.users


def test_nothing_of_its_contents_stands_in_clear(path: Path) -> None:
    text = path.read_text()
    for secret in (SEED.hex(), SEED.hex()[:32], USER, OTHER_USER, PASSPHRASE, base64.b64encode(SEED).decode()[:40]):
        assert secret not in text


def test_a_file_key_is_not_shown() -> None:
    seal = Seal.of(bytearray(PASSPHRASE.encode()), b"salt", QUICK)
    assert repr(seal) == "Seal(_salt=b'salt', _work=Work(n=1024, r=8, p=1))"


@pytest.mark.parametrize("passphrase", ["", PASSPHRASE + " ", PASSPHRASE.upper(), "x" * 40, "\ud800" * 12])
def test_a_wrong_passphrase_says_the_same_whatever_it_was(path: Path, passphrase: str) -> None:
    with pytest.raises(WrongPassphrase) as refused:
        keystore.unlock(path, passphrase)
    assert str(refused.value) == "the passphrase is wrong, or the keystore was changed"


def test_keystore_sealed_with_a_byte_order_mark_opens_with_its_passphrase_alone(tmp_path: Path) -> None:
    """Earlier versions took the mark of a passphrase's file for its first letter."""
    path = tmp_path / "keystore.json"
    keystore.create(path, f"\ufeff{PASSPHRASE}", CONTENTS, work=QUICK)
    assert keystore.unlock(path, PASSPHRASE).users == (OTHER_USER, USER)
    keystore.change_passphrase(path, PASSPHRASE, "another passphrase", work=QUICK)
    assert keystore.unlock(path, "another passphrase").users == (OTHER_USER, USER)
    with pytest.raises(WrongPassphrase):
        keystore.unlock(path, PASSPHRASE)


def test_letters_composed_by_another_keyboard_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "keystore.json"
    keystore.create(path, "caf\u00e9 au lait \u212b", CONTENTS, work=QUICK)
    assert keystore.unlock(path, "cafe\u0301 au lait \u00c5").users == CONTENTS.users


def other_first_letter(text: str) -> str:
    """Returns hex digits or base64 with another first letter: salt and nonce are random and may begin with any."""
    return ("b" if text[0] == "a" else "a") + text[1:]


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "n": lambda found: found["n"] * 2,
    "r": lambda found: found["r"] * 2,
    "p": lambda found: found["p"] + 1,
    "salt": lambda found: other_first_letter(found["salt"]),
    "nonce": lambda found: other_first_letter(found["nonce"]),
    "sealed": lambda found: other_first_letter(found["sealed"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_is_changed_it_does_not_open(path: Path, name: str) -> None:
    found = stored(path)
    found[name] = CHANGES[name](found)
    put(path, found)
    with pytest.raises(WrongPassphrase):
        keystore.unlock(path, PASSPHRASE)


def test_a_header_that_only_a_reader_would_take_for_the_same_does_not_open(path: Path) -> None:
    """The header is authenticated, not only used: the same salt in capitals makes the same key."""
    found = stored(path)
    salt = found["salt"].upper()
    assert salt != found["salt"]
    put(path, found | {"salt": salt})
    with pytest.raises(WrongPassphrase):
        keystore.unlock(path, PASSPHRASE)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 3}, "version 2"),
        ({"more": 1}, "version 2"),
        ({"network": "testnet"}, "mainnet"),
        ({"kdf": "pbkdf2"}, "scrypt"),
        ({"cipher": "aes-128-gcm"}, "scrypt"),
        ({"n": 1 << 40}, "more work"),
        ({"n": 1000}, "more work"),
        ({"n": True}, "more work"),
        ({"r": 0}, "more work"),
        ({"r": -8}, "more work"),
        ({"r": 1 << 20}, "more work"),
        ({"p": 1 << 20}, "more work"),
        ({"p": "1"}, "more work"),
        ({"salt": "00"}, "unreadable"),
        ({"salt": 7}, "unreadable"),
        ({"nonce": "zz"}, "unreadable"),
    ],
)
def test_a_header_that_is_not_understood_is_refused_before_any_work(
    path: Path, change: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(path, stored(path) | change)
    monkeypatch.setattr(hashlib, "scrypt", lambda *arguments, **options: pytest.fail("it worked"))
    with pytest.raises(KeystoreError, match=reason):
        keystore.unlock(path, PASSPHRASE)


@pytest.mark.parametrize(
    "contents",
    [
        b"[]",
        b"{",
        json.dumps({"seed": SEED.hex(), "users": [USER]}).encode(),
        json.dumps({"seed": "00", "users": [], "imported": {}}).encode(),
        json.dumps({"seed": SEED.hex(), "users": [], "imported": {USER: {}}}).encode(),
        json.dumps({"seed": SEED.hex(), "users": [USER], "imported": {USER: {"other": "00"}}}).encode(),
    ],
)
def test_contents_that_are_not_as_written_are_refused(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "keystore.json"
    path.touch(mode=0o600)
    seal = keystore_seal.Seal.of(bytearray(PASSPHRASE.encode()), bytes(16), QUICK)
    put(path, seal.close(contents, bytes(12)))
    with pytest.raises(KeystoreError, match="damaged"):
        keystore.unlock(path, PASSPHRASE)


def test_each_write_has_a_nonce_of_its_own_and_each_passphrase_a_salt(path: Path) -> None:
    opened = keystore.unlock(path, PASSPHRASE)
    seen = [stored(path)]
    for user in ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"):
        opened.secrets_of(user)
        seen.append(stored(path))
    keystore.change_passphrase(path, PASSPHRASE, "another passphrase", work=QUICK)
    seen.append(stored(path))
    assert len({found["nonce"] for found in seen}) == 4
    assert [found["salt"] == seen[0]["salt"] for found in seen] == [True, True, True, False]
    assert keystore.unlock(path, "another passphrase").users[2:] == opened.users[2:]


def test_a_keystore_is_never_overwritten(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(KeystoreError, match="not overwritten"):
        keystore.create(path, PASSPHRASE, CONTENTS, work=QUICK)
    assert path.read_bytes() == before
    dangling = tmp_path / "dangling.json"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(KeystoreError, match="not overwritten"):
        keystore.create(dangling, PASSPHRASE, CONTENTS, work=QUICK)
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(FileExistsError):
        create_file(path, {})
    assert path.read_bytes() == before


@pytest.mark.slow
def test_play_keys_and_real_ones_do_not_take_each_others_place(path: Path, tmp_path: Path) -> None:
    play = tmp_path / "play.json"
    Keystore.open_or_create_play(play, os.urandom)
    attempts: list[Callable[[], object]] = [
        lambda: keystore.unlock(play, PASSPHRASE),
        lambda: keystore.create(play, PASSPHRASE, CONTENTS),
        lambda: keystore.change_passphrase(play, PASSPHRASE, PASSPHRASE),
        lambda: keystore.backup(play, tmp_path / "copy"),
    ]
    for attempt in attempts:
        with pytest.raises(KeystoreError, match="play keystore"):
            attempt()
    with pytest.raises(KeystoreError, match="not a play keystore"):
        Keystore.open_or_create_play(path, os.urandom)


def test_changing_the_passphrase_keeps_the_keys(path: Path) -> None:
    keys = keystore.unlock(path, PASSPHRASE).secrets_of(USER).public
    keystore.change_passphrase(path, PASSPHRASE, "another passphrase", work=QUICK)
    assert keystore.unlock(path, "another passphrase").secrets_of(USER).public == keys
    with pytest.raises(WrongPassphrase):
        keystore.unlock(path, PASSPHRASE)
    with pytest.raises(WrongPassphrase):
        keystore.change_passphrase(path, PASSPHRASE, "yet another passphrase", work=QUICK)


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_change_that_fails_half_way_leaves_the_old_keystore(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        if step == "write":
            patched.setattr(json, "dump", fail)
        elif step == "fsync":
            patched.setattr(os, "fsync", fail)
        else:
            patched.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="no space"):
            keystore.change_passphrase(path, PASSPHRASE, "another passphrase", work=QUICK)
    assert keystore.unlock(path, PASSPHRASE).users == CONTENTS.users
    keystore.change_passphrase(path, PASSPHRASE, "another passphrase", work=QUICK)
    assert keystore.unlock(path, "another passphrase").users == CONTENTS.users


def test_a_short_passphrase_is_refused_for_new_keystores(path: Path, tmp_path: Path) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: keystore.create(tmp_path / "new.json", "elevenchars", CONTENTS, work=QUICK),
        lambda: keystore.change_passphrase(path, PASSPHRASE, "elevenchars", work=QUICK),
    ]
    for attempt in attempts:
        with pytest.raises(KeystoreError, match="at least 12"):
            attempt()
    with pytest.raises(KeystoreError, match="at most 256"):
        keystore.create(tmp_path / "new.json", "x" * 257, CONTENTS, work=QUICK)
    assert not (tmp_path / "new.json").exists()


def test_a_backup_is_the_same_keystore_and_overwrites_nothing(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "backup.json"
    keystore.backup(path, copy)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert keystore.unlock(copy, PASSPHRASE).secrets_of(USER).public == derive_user(SEED, 1).public
    before = copy.read_bytes()
    keystore.unlock(path, PASSPHRASE).secrets_of("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
    with pytest.raises(KeystoreError, match="not overwritten"):
        keystore.backup(path, copy)
    assert copy.read_bytes() == before
    with pytest.raises(KeystoreError, match="failed to write"):
        keystore.backup(path, tmp_path / "nowhere" / "copy")


def test_two_processes_do_not_have_it_open_for_writing(path: Path) -> None:
    with keystore.locked(path), pytest.raises(KeystoreError, match="running signer"):
        keystore.lock(path)
    os.close(keystore.lock(path))


class TestImportedKeys:
    MINE = Imported(payment=bytes([7] * 32), vault=bytes([8] * 32))

    def test_they_stand_in_for_the_derived_ones_and_stay(self, path: Path) -> None:
        before = keystore.unlock(path, PASSPHRASE)
        before.secrets_of(USER)
        given = before.put_imported(USER, self.MINE)
        assert before.secrets_of(USER).public == given.public
        assert (given.payment.secret, given.vault.secret) == (bytes([7] * 32), bytes([8] * 32))
        opened = keystore.unlock(path, PASSPHRASE)
        assert opened.secrets_of(USER).public == given.public
        assert opened.secrets_of(OTHER_USER).public == derive_user(SEED, 0).public
        assert opened.users == CONTENTS.users
        assert (opened.is_imported(USER), opened.is_imported(OTHER_USER)) == (True, False)

    def test_one_of_them_leaves_the_other_derived(self, path: Path) -> None:
        given = keystore.unlock(path, PASSPHRASE).put_imported(USER, Imported(vault=bytes([8] * 32)))
        assert given.payment.secret == derive_user(SEED, 1).payment.secret
        assert keystore.unlock(path, PASSPHRASE).secrets_of(USER).vault.secret == bytes([8] * 32)

    def test_a_user_who_never_signed_in_gets_the_next_number(self, path: Path) -> None:
        newcomer = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
        keystore.unlock(path, PASSPHRASE).put_imported(newcomer, self.MINE)
        assert keystore.unlock(path, PASSPHRASE).users == (*CONTENTS.users, newcomer)

    @pytest.mark.parametrize(
        "mine",
        [
            MINE,
            Imported(payment=bytes([7] * 32)),
            Imported(vault=bytes([7] * 32)),  # the same key under another kind of address
            Imported(payment=derive_user(SEED, 0).payment.secret),
        ],
    )
    def test_a_key_is_one_users_only(self, path: Path, mine: Imported) -> None:
        opened = keystore.unlock(path, PASSPHRASE)
        if mine.payment != derive_user(SEED, 0).payment.secret:
            opened.put_imported(OTHER_USER, Imported(payment=bytes([7] * 32)))
        before = path.read_bytes()
        with pytest.raises(KeystoreError, match="one user's only"):
            opened.put_imported(USER, mine)
        assert path.read_bytes() == before
        assert opened.secrets_of(USER).public == derive_user(SEED, 1).public


NOW = 1_800_000_000_000
MINUTE = 60_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "passphrase"
    path.touch(mode=0o600)
    path.write_bytes(b"two words \n")
    return path


def test_the_named_file_is_read_without_its_line_end(file: Path) -> None:
    assert unattended(file, {}) == "two words "


def test_byte_order_mark_is_no_letter_of_the_passphrase(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbftwo w\xc3\xb6rds \r\n")
    assert unattended(file, {}) == "two wörds "


@pytest.mark.parametrize("content", ["two words".encode("utf-16"), b"two\0words", b"two w\xf6rds"])
def test_file_that_is_not_utf_8_is_refused_without_its_words(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(KeystoreError, match="save it as UTF-8") as caught:
        unattended(file, {})
    assert "words" not in str(caught.value)


def test_a_file_that_others_may_read_is_refused(file: Path) -> None:
    for mode in (0o640, 0o604, 0o620):
        file.chmod(mode)
        with pytest.raises(KeystoreError, match="chmod 600"):
            unattended(file, {})


def test_a_missing_or_unreadable_file_is_refused_and_not_passed_over(file: Path, tmp_path: Path) -> None:
    credentials = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    (tmp_path / "keystore-passphrase").write_text("another")
    with pytest.raises(KeystoreError, match="failed to read"):
        unattended(tmp_path / "nowhere", credentials)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(KeystoreError, match="is UTF-16: save it as UTF-8"):
        unattended(file, credentials)


def test_systemd_credentials_are_found_and_a_named_file_comes_first(file: Path, tmp_path: Path) -> None:
    environment = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert unattended(None, environment) is None
    credential = tmp_path / "keystore-passphrase"
    credential.write_text("from systemd")
    credential.chmod(0o440)  # as an access list makes it look
    assert unattended(None, environment) == "from systemd"
    assert unattended(file, environment) == "two words "
    assert unattended(None, {}) is None


def test_a_descriptor_is_named_as_a_file() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"through a pipe\n")
    os.close(writer)
    assert unattended(Path(f"/dev/fd/{reader}"), {}) == "through a pipe"
    os.close(reader)


def test_three_tries_a_minute(tmp_path: Path) -> None:
    tries = Tries(tmp_path / "tries")
    assert [tries.take(NOW + at) for at in (0, 10_000, 20_000, 30_000)] == [True, True, True, False]
    assert not tries.take(NOW + MINUTE - 1)
    assert tries.take(NOW + MINUTE)
    assert not tries.take(NOW + MINUTE + 1)
    assert tries.take(NOW + MINUTE + 10_000)


def test_a_restart_wins_no_try_and_a_right_passphrase_ends_the_count(tmp_path: Path) -> None:
    for _ in range(3):
        assert Tries(tmp_path / "tries").take(NOW)
    assert not Tries(tmp_path / "tries").take(NOW)
    Tries(tmp_path / "tries").clear()
    assert Tries(tmp_path / "tries").take(NOW)


def test_a_clock_set_back_wins_no_try_and_costs_a_minute_at_most(tmp_path: Path) -> None:
    tries = Tries(tmp_path / "tries")
    for _ in range(3):
        assert tries.take(NOW + 1_000 * MINUTE)
    assert not tries.take(NOW)
    assert not tries.take(NOW + MINUTE - 1)
    assert tries.take(NOW + MINUTE)


@pytest.mark.parametrize("content", ["", "[", "{}", "[null]", "7", "[1, 2, 3", '["x"]'])
def test_a_damaged_count_costs_a_minute(tmp_path: Path, content: str) -> None:
    (tmp_path / "tries").write_text(content)
    tries = Tries(tmp_path / "tries")
    assert not tries.take(NOW)
    assert not tries.take(NOW + MINUTE - 1)
    assert tries.take(NOW + MINUTE)


def test_whether_a_machine_swaps(tmp_path: Path) -> None:
    swaps = tmp_path / "swaps"
    swaps.write_text("Filename\tType\tSize\tUsed\tPriority\n")
    assert not keystore.has_swap(swaps)
    swaps.write_text("Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 1 0 -2\n")
    assert keystore.has_swap(swaps)
    assert keystore.has_swap(tmp_path / "nowhere")
