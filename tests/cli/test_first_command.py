"""A command on a machine on which nothing has run: it keeps what it makes to itself, and says what it cannot."""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import shutil
import socket
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from cli import api, arguments
from cli.database import check_database
from cli.main import VERBS
from core.errors import SettingsError
from core.process import hold_lock
from core.setting_values import HostPort
from core.settings import load
from models import schema
from models.database import base, damage
from models.database.damage import Damage
from tests import postgresql
from tests.cli.commands import in_this_process
from tests.cli.half_made import migrated
from tests.models.test_damage import backup, fill, flip, page_of_rows
from tests.ports import free_ports
from wallet.address import with_normal_addresses

OWNER = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"


def test_the_first_command_makes_the_data_directory_for_its_user_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    before = os.umask(0o022)
    try:
        told = in_this_process(environment | {"BIDKEEPER_DATA_DIR": str(directory)}, "whitelist", "add", OWNER)
    finally:
        os.umask(before)
    assert told[0] == 0, told
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_data_directory_that_cannot_be_made_is_named(environment: dict[str, str]) -> None:
    for directory in ("/proc/nope", "/etc/passwd/x"):
        code, _, complained = in_this_process(environment | {"BIDKEEPER_DATA_DIR": directory}, "migrate")
        assert code == 1 and complained.startswith(f"bidkeeper: {directory}: "), complained


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x" * 120, "use a shorter data directory"),
        ("a%b", "has a % in it, which supervisord takes for a variable"),
        ("100%", "has a % in it"),
        ("new\nline", "has a line end or another control character in it"),
        ("tab\tbed", "control character"),
        ("latin-\udce9", "is not UTF-8"),
    ],
)
def test_data_directory_that_cannot_be_used_is_refused_at_the_start_by_name(
    environment: dict[str, str], tmp_path: Path, name: str, words: str
) -> None:
    directory = tmp_path / name
    code, _, complained = in_this_process(environment | {"BIDKEEPER_DATA_DIR": str(directory)}, "up")
    assert code == 2 and len(complained.splitlines()) == 1, complained
    assert complained.startswith("bidkeeper: BIDKEEPER_DATA_DIR") and words in complained, complained
    assert list(tmp_path.iterdir()) == []


def test_directory_that_is_too_long_for_supervisord_alone_is_refused_by_up(environment: dict[str, str]) -> None:
    longest = 107 - len("/run/supervisor.sock.4194304")
    for length in range(longest - 2, longest + 12):
        directory = Path("/tmp/" + "x" * (length - len("/tmp/")))
        given = environment | {"BIDKEEPER_DATA_DIR": str(directory), "BIDKEEPER_HOST": "203.0.113.1"}
        assert load(given).data_dir == directory, "the programs themselves can use it"
        try:
            code, _, complained = in_this_process(given, "up")
        finally:
            if directory.exists():
                shutil.rmtree(directory)
        too_long = "supervisor.sock.4194304" in complained
        assert (code, too_long) == ((2, True) if length > longest else (1, False)), complained


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"HOST": "203.0.113.1"}, "BIDKEEPER_HOST: 203.0.113.1 is not an address of this machine"),
        ({"HOST": "2001:db8::1"}, "BIDKEEPER_HOST: 2001:db8::1 is not an address of this machine"),
        (
            {"HOST": "no-such-host.invalid"},
            "BIDKEEPER_HOST: no-such-host.invalid is not a host that this machine knows",
        ),
        ({"HOST": "127.0.0.1:8888"}, "BIDKEEPER_HOST must be an IP address or a host's name, without a port"),
        ({"HOST": "http://127.0.0.1"}, "BIDKEEPER_HOST must be an IP address or a host's name"),
        ({"HOST": "keeper..example"}, "BIDKEEPER_HOST must be an IP address or a host's name"),
        ({"HOST": "x" * 64}, "BIDKEEPER_HOST must be an IP address or a host's name"),
        ({"HOST": "[127.0.0.1"}, "BIDKEEPER_HOST must be an IP address or a host's name"),
    ],
)
def test_host_that_is_not_of_this_machine_is_refused_by_its_own_name(
    environment: dict[str, str], given: dict[str, str], words: str
) -> None:
    given = environment | {f"BIDKEEPER_{name}": value for name, value in given.items()}
    code, _, complained = in_this_process(given, "up")
    assert code in (1, 2) and complained.startswith(f"bidkeeper: {words}"), complained


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "0.0.0.0"])
def test_port_that_is_taken_is_refused_by_the_name_of_the_port(environment: dict[str, str], host: str) -> None:
    port = int(environment["BIDKEEPER_PORT"])
    with socket.create_server((host, port)):
        code, _, complained = in_this_process(environment | {"BIDKEEPER_HOST": host}, "up")
    assert code == 1
    assert complained.startswith(f"bidkeeper: BIDKEEPER_PORT: {host}:{port} cannot be used: "), complained


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (
            resource.RLIMIT_NOFILE,
            "at least 4096 open files are needed, and the limit is 150: raise it as root: `ulimit -n 4096`, or"
            " LimitNOFILE=4096 in the service's unit",
        ),
        (
            resource.RLIMIT_NPROC,
            "at least 200 processes are needed, and the limit is 150: raise it as root: `ulimit -u 200`, or"
            " LimitNPROC=200 in the service's unit",
        ),
    ],
)
def test_limit_that_is_too_low_for_supervisord_is_refused_with_the_number_that_is_needed(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, limit: int, words: str
) -> None:
    real = resource.getrlimit

    def refuse(*_: object) -> None:
        raise ValueError

    with monkeypatch.context() as low:
        low.setattr(resource, "getrlimit", lambda which: (150, 150) if which == limit else real(which))
        low.setattr(resource, "setrlimit", refuse)
        code, _, complained = in_this_process(environment, "up")
    assert (code, complained) == (1, f"bidkeeper: {words}\n")


@pytest.mark.parametrize("name", ["logs", "run", "logs/supervisord.log"])
def test_what_supervisord_cannot_write_to_is_named(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = Path(environment["BIDKEEPER_DATA_DIR"]) / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch() if path.suffix else path.mkdir()
    real = os.access
    with monkeypatch.context() as closed:  # root may write anywhere
        closed.setattr(os, "access", lambda at, mode: at != path and real(at, mode))
        code, _, complained = in_this_process(environment, "up")
    assert code == 1
    assert complained == f"bidkeeper: {path} cannot be written by this user: give it to them (chown, chmod u+w)\n"


@pytest.mark.parametrize("verb", ["up", "migrate"])
@postgresql.left_out("its files are its server's")
def test_a_damaged_database_is_refused_with_its_path_the_fault_and_the_newest_backup(
    environment: dict[str, str], verb: str
) -> None:
    file = Path(environment["BIDKEEPER_DATA_DIR"]) / "bidkeeper.db"
    base.connect(f"sqlite:///{file}")
    schema.migrate()
    fill()
    base.close()
    kept = backup(file, "2026-11-28", 0)
    flip(file, page_of_rows(file))
    code, _, complained = in_this_process(environment, verb)
    assert code == 1
    assert complained.startswith(f"bidkeeper: the database {file} is damaged: "), complained
    assert f"; the newest backup is {kept}: stop Bidkeeper, run `" in complained
    kept.unlink()
    assert f"no intact backup is in {file.parent / 'backups'}" in in_this_process(environment, "migrate")[2]


@pytest.mark.parametrize("verb", ["up", "migrate"])
@postgresql.left_out("its files are its server's")
def test_a_file_of_another_kind_is_refused(environment: dict[str, str], verb: str) -> None:
    file = Path(environment["BIDKEEPER_DATA_DIR"]) / "bidkeeper.db"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_bytes(b"x" * 8192)
    code, _, complained = in_this_process(environment, verb)
    assert code == 1
    assert complained.startswith(f"bidkeeper: the database {file} is damaged: file is not a database; "), complained


@pytest.mark.parametrize("words", ["missing", "empty"])
@pytest.mark.parametrize("verb", ["up", "migrate"])
@postgresql.left_out("its files are its server's")
def test_a_database_that_is_missing_where_tasks_have_run_is_not_made_anew(
    environment: dict[str, str], verb: str, words: str
) -> None:
    directory = Path(environment["BIDKEEPER_DATA_DIR"])
    file = directory / "bidkeeper.db"
    (directory / "logs").mkdir(mode=0o700, parents=True)
    (directory / "logs" / "task-1.log").touch()
    if words == "empty":
        file.touch()
    code, _, complained = in_this_process(environment, verb)
    assert (code, damage.is_missing(str(file))) == (1, True)
    assert complained.startswith(f"bidkeeper: the database {file} is {words}, and tasks have run here; ")
    aside = f"put {directory}/logs/task-*.log and {file}* aside"
    assert complained.endswith(f"to begin anew with the keys that are here, {aside}\n")
    examined = in_this_process(environment, "doctor", "--only", "data")[1]
    assert f"FAIL database: {words}, and tasks have run here -> no intact backup" in examined


@pytest.mark.parametrize("is_noted", [False, True])
@pytest.mark.parametrize("verb", ["up", "migrate"])
@postgresql.left_out("its files are its server's")
def test_a_database_that_cannot_be_read_is_refused_and_its_note_stays(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, verb: str, is_noted: bool
) -> None:
    file = migrated(Path(environment["BIDKEEPER_DATA_DIR"]))
    if is_noted:
        damage.write_note(str(file), Damage("database disk image is malformed"))
    monkeypatch.setattr(damage, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode=exclusive")
        holder.execute("BEGIN EXCLUSIVE")
        code, _, complained = in_this_process(environment, verb)
    assert code == 1
    assert complained.startswith(f"bidkeeper: the database {file} could not be checked: database is locked"), complained
    assert damage.note_of(str(file)).exists() == is_noted
    assert in_this_process(environment, "migrate")[0] == 0
    assert not damage.note_of(str(file)).exists()


@pytest.mark.parametrize("name", ["manager.lock", "manager-0.lock", "manager-7.lock", "task-3.lock", "hooks.lock"])
@pytest.mark.parametrize("verb", ["up", "migrate"])
@postgresql.left_out("its files are its server's")
def test_a_lost_file_is_not_checked_while_a_program_has_it_open(
    environment: dict[str, str], verb: str, name: str
) -> None:
    directory = Path(environment["BIDKEEPER_DATA_DIR"])
    file = migrated(directory)
    damage.write_note(str(file), Damage("bidkeeper.db-wal was removed", is_lost=True))
    lock = hold_lock(directory / "run" / name)
    assert lock is not None
    code, _, complained = in_this_process(environment, verb)
    os.close(lock)
    assert code == 1
    assert complained.startswith("bidkeeper: bidkeeper.db-wal was removed: stop Bidkeeper first, "), complained
    assert damage.note_of(str(file)).exists()


@postgresql.left_out("its files are its server's")
def test_a_lost_file_is_checked_by_up_under_its_own_lock_and_by_none_other_meanwhile(
    environment: dict[str, str],
) -> None:
    directory = Path(environment["BIDKEEPER_DATA_DIR"])
    file = migrated(directory)
    damage.write_note(str(file), Damage("bidkeeper.db-wal was removed", is_lost=True))
    lock = hold_lock(directory / "run" / "up.lock")
    assert lock is not None
    assert "stop Bidkeeper first" in in_this_process(environment, "migrate")[2]
    check_database(load(environment), of_up=True)
    assert not damage.note_of(str(file)).exists()
    os.close(lock)


def test_a_name_of_which_one_address_is_absent_is_listened_at_by_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `localhost` where IPv6 is off. This machine lacks 192.0.2.1."""
    (port,) = free_ports(1)
    absent, there = ((socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("192.0.2.1", "127.0.0.1"))
    found = [absent, there]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert api.problem(HostPort("localhost", port), "BIDKEEPER_PORT") is None
    found.remove(there)
    told = api.problem(HostPort("localhost", port), "BIDKEEPER_PORT")
    assert told == "BIDKEEPER_HOST: localhost is not an address of this machine"


ADDRESS = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
INSCRIPTION = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799i0"


def parsed(verb: str, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    importlib.import_module(VERBS[verb][0]).add_arguments(verb, parser)
    return parser.parse_args(words)


@pytest.mark.parametrize("text", [f" {ADDRESS}\n", f"bitcoin:{ADDRESS}?label=x", ADDRESS.upper(), f"\ufeff{ADDRESS}"])
def test_every_command_reads_every_spelling_of_an_address(text: str) -> None:
    assert parsed("whitelist", "add", text).address == ADDRESS
    assert parsed("plan", "set", text, "beta").address == ADDRESS
    assert parsed("wallet", text).address == ADDRESS
    assert parsed("keys", "import", "--user", text).user == ADDRESS


def test_commands_read_ids_slugs_and_tickers() -> None:
    given = parsed("judge", ADDRESS, f"https://ordinals.com/inscription/{INSCRIPTION}", "100000")
    assert given.inscription == INSCRIPTION
    assert arguments.collection("https://x.io/collection/Cats") == "cats"
    assert arguments.ticker("example.rune") == "EXAMPLE\u2022RUNE"


def test_a_refused_argument_says_what_to_paste(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("whitelist", "add", f"bitcoin:{ADDRESS}?req-x=1")
    assert "paste the address alone" in capsys.readouterr().err


def test_settings_read_every_spelling_of_an_address(environment: dict[str, str]) -> None:
    listed = {"BIDKEEPER_WHITELIST": f"bitcoin:{ADDRESS.upper()}", "BIDKEEPER_ADMINS": f"\u200b{ADDRESS}"}
    found = with_normal_addresses(load(environment | listed))
    assert found.whitelist == found.admins == frozenset({ADDRESS})
    testnet = {"BIDKEEPER_ADMINS": "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx"}
    with pytest.raises(SettingsError, match="a testnet address; a mainnet address is needed"):
        with_normal_addresses(load(environment | testnet))
