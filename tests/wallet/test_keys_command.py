"""`bidkeeper keys` as its operator uses it: prompted, at a terminal or through a pipe."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import PeerRefused
from tests.worlds.signer import OTHER_USER, USER
from tests.worlds.signer_process import DEADLINE_S, PASSPHRASE, WORDS, Said, Start, now_ms, run, sealed_keystore
from wallet.keystore import keystore
from wallet.keystore.keys import Keystore, derive_user, seed_of
from wallet.keystore.seal import WrongPassphrase

pytestmark = pytest.mark.slow

KEY_ONE_WIF = "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn"
KEY_ONE_PAYMENT = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
KEY_ONE_VAULT = "bc1pmfr3p9j00pfxjh0zmgp99y8zftmd3s5pmedqhyptwy6lm87hf5sspknck9"
ABANDON = "abandon " * 11 + "about"
FIRST_PAYMENT = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
FIRST_VAULT = "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr"


def environment(data_dir: Path) -> dict[str, str]:
    return {**os.environ, "BIDKEEPER_DATA_DIR": str(data_dir)}


@pytest.fixture
def keys(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Said]:
    """Runs `bidkeeper keys` with these arguments and these lines as its standard input."""

    def run_keys(*arguments: str, given: tuple[str, ...] = ()) -> Said:
        text = "".join(f"{line}\n" for line in given)
        return run(("keys", *arguments), environment(tmp_path), text, tmp_path_factory.mktemp("streams"), DEADLINE_S)

    return run_keys


def test_passphrase_piped_from_a_windows_editor_is_the_typed_one(keys: Callable[..., Said], tmp_path: Path) -> None:
    assert keys("init", given=(f"\ufeff{PASSPHRASE}\r", PASSPHRASE)).code == 0
    assert keys("list", given=(PASSPHRASE,)).code == 0
    assert keystore.unlock(tmp_path / "signer" / "keystore.json", PASSPHRASE).users == ()


def test_init_shows_24_words_once_and_they_are_the_keys(keys: Callable[..., Said], tmp_path: Path) -> None:
    said = keys("init", given=(PASSPHRASE, PASSPHRASE))
    assert (said.code, said.err) == (0, "")
    words = [line.split()[1] for line in said.out.splitlines() if line[:3].strip().isdigit()]
    assert len(words) == 24
    path = tmp_path / "signer" / "keystore.json"
    opened = keystore.unlock(path, PASSPHRASE)
    assert opened.users == ()
    assert opened.secrets_of(USER).public == derive_user(seed_of(" ".join(words)), 0).public
    again = keys("init", given=(PASSPHRASE, PASSPHRASE))
    assert again.code == 1
    assert "not overwritten" in again.err
    assert keystore.unlock(path, PASSPHRASE).users == (USER,)


@pytest.mark.thorough
def test_init_from_words_gives_users_the_numbers_they_had(keys: Callable[..., Said], tmp_path: Path) -> None:
    given = (WORDS, PASSPHRASE, PASSPHRASE)
    said = keys("init", "--words", "--user", OTHER_USER, "--user", USER.upper(), given=given)
    assert said.code == 0, said.err
    assert "winner" not in said.out
    opened = keystore.unlock(tmp_path / "signer" / "keystore.json", PASSPHRASE)
    assert opened.users == (OTHER_USER, USER)
    assert opened.secrets_of(USER).public == derive_user(seed_of(WORDS), 1).public


@pytest.mark.parametrize(
    ("arguments", "given", "reason"),
    [
        ((), (PASSPHRASE, PASSPHRASE + "x"), "entries differ"),
        ((), ("too short", "too short"), "at least 12"),
        ((), (), "no input"),
        ((), (PASSPHRASE,), "no input"),
        (("--words",), ("zebra " * 12, PASSPHRASE, PASSPHRASE), "24 English words"),
        (("--user", USER), (PASSPHRASE, PASSPHRASE), "--words"),
        (("--words", "--user", USER, "--user", USER), (WORDS, PASSPHRASE, PASSPHRASE), "twice"),
    ],
)
def test_an_init_that_goes_wrong_makes_nothing(
    keys: Callable[..., Said], tmp_path: Path, arguments: tuple[str, ...], given: tuple[str, ...], reason: str
) -> None:
    said = keys("init", *arguments, given=given)
    assert said.code == 1
    assert reason in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "signer" / "keystore.json").exists()


@pytest.mark.thorough
def test_a_play_keystore_is_neither_replaced_nor_changed(keys: Callable[..., Said], tmp_path: Path) -> None:
    path = tmp_path / "signer" / "keystore.json"
    path.parent.mkdir()
    play = Keystore.open_or_create_play(path, os.urandom)
    vault = play.secrets_of(USER).public.vault
    before = path.read_bytes()
    for arguments in (
        ("init",),
        ("import", "--user", USER),
        ("change-passphrase",),
        ("backup", str(tmp_path / "copy")),
    ):
        said = keys(*arguments, given=(PASSPHRASE,) * 3)
        assert said.code == 1
        assert "play keystore" in said.err
    assert path.read_bytes() == before
    listed = keys("list")
    assert listed.code == 0
    assert "PLAY MONEY" in listed.out
    assert vault in listed.out


def test_import_of_words_makes_a_wallets_own_addresses_the_users(keys: Callable[..., Said], tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path, OTHER_USER)
    said = keys("import", "--user", USER, given=(PASSPHRASE, ABANDON, ""))
    assert said.code == 0, said.err
    assert FIRST_PAYMENT in said.out
    assert FIRST_VAULT in said.out
    assert keystore.unlock(path, PASSPHRASE).secrets_of(USER).public.vault == FIRST_VAULT
    listed = keys("list", given=(PASSPHRASE,)).out
    assert f"1 {USER}" in listed
    assert f"{FIRST_VAULT} (imported)" in listed
    assert f"0 {OTHER_USER}" in listed


@pytest.mark.thorough
def test_an_import_is_noted_so_that_the_keystore_from_before_it_opens_no_more(
    keys: Callable[..., Said], start: Start, tmp_path: Path
) -> None:
    path, copy = sealed_keystore(tmp_path, OTHER_USER, USER), tmp_path / "copy"
    signer = start("satflow")
    signer.unlock(PASSPHRASE)
    signer.end(signal.SIGTERM)
    assert keys("backup", str(copy)).code == 0
    assert keys("import", "--user", USER, given=(PASSPHRASE, ABANDON, "")).code == 0
    entry = json.loads((tmp_path / "signer" / "audit.jsonl").read_text().splitlines()[-1])
    assert (entry["operation"], entry["user"], entry["user_number"]) == ("keys", USER, 1)
    assert (entry["payment"], entry["vault"]) == (FIRST_PAYMENT, FIRST_VAULT)

    copy.replace(path)
    signer = start("satflow")
    with pytest.raises(PeerRefused, match="or import that user's keys again"):
        signer.unlock(PASSPHRASE)
    signer.end(signal.SIGTERM)
    assert keys("import", "--user", USER, given=(PASSPHRASE, ABANDON, "")).code == 0
    signer = start("satflow")
    signer.unlock(PASSPHRASE)
    assert signer.client.addresses(USER).vault == FIRST_VAULT


def test_no_keys_are_imported_under_the_number_of_another_user(keys: Callable[..., Said], tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path, OTHER_USER, USER)
    assert keys("import", "--user", USER, given=(PASSPHRASE, ABANDON, "")).code == 0
    path.unlink()
    sealed_keystore(tmp_path, OTHER_USER)
    before = path.read_bytes()
    said = keys("import", "--user", KEY_ONE_PAYMENT, given=(PASSPHRASE, "", KEY_ONE_WIF))
    assert said.code == 1
    assert "put the newest keystore.json back" in said.err
    assert path.read_bytes() == before


def test_the_keystores_own_words_are_no_keys_to_import(keys: Callable[..., Said], tmp_path: Path) -> None:
    sealed_keystore(tmp_path, OTHER_USER)
    assert "one user's only" in keys("import", "--user", USER, given=(PASSPHRASE, WORDS, "")).err


def test_import_of_wif_takes_either_key_or_both(keys: Callable[..., Said], tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path, USER)
    derived = derive_user(seed_of(WORDS), 0).public
    assert keys("import", "--user", USER, given=(PASSPHRASE, "", KEY_ONE_WIF)).code == 0
    public = keystore.unlock(path, PASSPHRASE).secrets_of(USER).public
    assert (public.payment, public.vault) == (derived.payment, KEY_ONE_VAULT)
    refused = keys("import", "--user", USER, given=(PASSPHRASE, KEY_ONE_WIF, ""))
    assert "--replace" in refused.err
    assert keys("import", "--user", USER, "--replace", given=(PASSPHRASE, KEY_ONE_WIF, "")).code == 0
    public = keystore.unlock(path, PASSPHRASE).secrets_of(USER).public
    assert (public.payment, public.vault) == (KEY_ONE_PAYMENT, derived.vault)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("wrong passphrase", WORDS, ""), "passphrase is wrong"),
        ((PASSPHRASE, "", ""), "no key was given"),
        ((PASSPHRASE, KEY_ONE_WIF[:-1], ""), "no WIF"),
        ((PASSPHRASE, "", "--" + KEY_ONE_WIF), "no WIF"),
        ((PASSPHRASE, "abandon " * 12, ""), "24 English words"),
        ((PASSPHRASE,), "no input"),
    ],
)
def test_an_import_that_goes_wrong_changes_nothing(
    keys: Callable[..., Said], tmp_path: Path, given: tuple[str, ...], reason: str
) -> None:
    path = sealed_keystore(tmp_path, USER)
    before = path.read_bytes()
    said = keys("import", "--user", USER, given=given)
    assert said.code == 1
    assert reason in said.err
    assert "Traceback" not in said.err
    assert path.read_bytes() == before


@pytest.mark.thorough
def test_what_changes_keys_waits_for_the_signers_end(keys: Callable[..., Said], start: Start, tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path, USER)
    signer = start("satflow")
    signer.unlock(PASSPHRASE)
    before = path.read_bytes()
    for arguments in (("import", "--user", USER), ("change-passphrase",)):
        said = keys(*arguments, given=(PASSPHRASE, "another passphrase", "another passphrase"))
        assert said.code == 1
        assert "stop the service" in said.err
    assert path.read_bytes() == before
    assert keys("list", given=(PASSPHRASE,)).code == 0
    assert keys("backup", str(tmp_path / "copy")).code == 0
    signer.end(signal.SIGTERM)
    signer = start("satflow")
    said = keys("import", "--user", USER, given=(PASSPHRASE, KEY_ONE_WIF, ""))
    assert (said.code, path.read_bytes()) == (1, before), "one that is locked has the audit log open"
    assert "another signer is running" in said.err
    signer.end(signal.SIGTERM)
    assert keys("change-passphrase", given=(PASSPHRASE, "another passphrase", "another passphrase")).code == 0


def test_change_passphrase_and_backup(keys: Callable[..., Said], tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path, USER)
    copy = tmp_path / "copy.json"
    assert keys("backup", str(copy)).code == 0
    assert "not overwritten" in keys("backup", str(copy)).err
    changed = keys("change-passphrase", given=(PASSPHRASE, "another passphrase", "another passphrase"))
    assert changed.code == 0, changed.err
    assert keystore.unlock(path, "another passphrase").users == (USER,)
    with pytest.raises(WrongPassphrase):
        keystore.unlock(path, PASSPHRASE)
    assert keystore.unlock(copy, PASSPHRASE).users == (USER,)


def test_unlock_over_the_signers_socket(keys: Callable[..., Said], start: Start, tmp_path: Path) -> None:
    nobody = keys("unlock", given=(PASSPHRASE,))
    assert nobody.code == 1
    assert "cannot be asked" in nobody.err
    sealed_keystore(tmp_path, USER)
    signer = start("satflow", socket=tmp_path / "run" / "signer.sock")
    wrong = keys("unlock", given=("wrong passphrase",))
    assert (wrong.code, wrong.err) == (1, "bidkeeper: the passphrase is wrong, or the keystore was changed\n")
    right = keys("unlock", given=(PASSPHRASE,))
    assert (right.code, right.out) == (0, "the signer is ready\n")
    assert signer.client.status().state == "ready"


@pytest.mark.thorough
def test_no_clients_wrong_passphrases_keep_the_operator_out(
    keys: Callable[..., Said], start: Start, tmp_path: Path
) -> None:
    sealed_keystore(tmp_path, USER)
    still = {"CLOCK_STANDS_AT_MS": str(now_ms())}  # so that all tries are of one minute, however long they take
    signer = start("satflow", socket=tmp_path / "run" / "signer.sock", environment=still)
    said = []
    for _ in range(5):
        with pytest.raises(PeerRefused) as refused:
            signer.unlock("a guess of some worker")
        said.append(refused.value.code)
    assert said == ["wrong-passphrase"] * 3 + ["too-many-tries"] * 2
    for _ in range(3):
        assert "passphrase is wrong" in keys("unlock", given=("wrong passphrase",)).err
    assert "three tries within a minute" in keys("unlock", given=(PASSPHRASE,)).err, "it has a count of its own"
    (tmp_path / "signer" / "unlock-tries-ops.json").unlink()  # as a minute does
    assert keys("unlock", given=(PASSPHRASE,)).code == 0
    assert signer.client.status().state == "ready"
    assert not list((tmp_path / "signer").glob("unlock-tries*"))


def test_who_may_not_ask_at_the_operators_socket_asks_at_the_other(
    keys: Callable[..., Said], start: Start, tmp_path: Path
) -> None:
    sealed_keystore(tmp_path, USER)
    signer = start("satflow", socket=tmp_path / "run" / "signer.sock")
    (tmp_path / "signer" / "ops.sock").unlink()
    assert keys("unlock", given=(PASSPHRASE,)).code == 0
    assert signer.client.status().state == "ready"


def test_at_a_terminal_nothing_typed_is_shown(start: Start, tmp_path: Path) -> None:
    sealed_keystore(tmp_path, USER)
    signer = start("satflow", socket=tmp_path / "run" / "signer.sock")
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "keys", "unlock"],
        stdin=its,
        stdout=its,
        stderr=its,
        env=environment(tmp_path),
        start_new_session=True,
    )
    shown = b""
    end = time.monotonic() + DEADLINE_S
    while termios.tcgetattr(its)[3] & termios.ECHO or b"Passphrase of the keystore:" not in shown:
        assert time.monotonic() < end, shown
        if select.select([ours], [], [], 0.05)[0]:
            shown += os.read(ours, 4096)
    os.write(ours, PASSPHRASE.encode() + b"\n")
    assert process.wait(DEADLINE_S) == 0
    os.close(its)
    while select.select([ours], [], [], 0.1)[0]:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    assert b"the signer is ready" in shown
    assert PASSPHRASE.encode()[:6] not in shown
    assert signer.client.status().state == "ready"
