"""Passphrases that lie ready, and how often a wrong one may be tried."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wallet.keystore import hardening
from wallet.keystore.keystore_file import KeystoreError
from wallet.keystore.seal import Tries, unattended

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
    Tries(tmp_path / "tries").forget()
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
    assert not hardening.has_swap(swaps)
    swaps.write_text("Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 1 0 -2\n")
    assert hardening.has_swap(swaps)
    assert hardening.has_swap(tmp_path / "nowhere")
