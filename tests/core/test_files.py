"""Brakes in a file that has its room already: a torn write leaves the former one, and a full disk stores them."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.demo import page_line
from core import files
from core.errors import SettingsError
from core.files import Brake, BrakeFile
from core.setting_values import HostPort
from core.settings import load
from tests.core.test_settings import ROOT
from tests.disks import fill, small_disk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "brakes"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("disk"), 16 << 20) as mounted:
        yield mounted


def test_a_stored_brake_is_there_after_a_restart(path: Path) -> None:
    with closing(BrakeFile(path)) as brakes:
        brakes.put("user", "bc1q", "halt", 2)
        brakes.put("task", "17", "reduce", 1)
        brakes.put("task", "17", "halt", 3)
        brakes.put("global", "", "reduce", 4)
        brakes.remove("global", "")
        brakes.remove("global", "never there")
    size = path.stat().st_size
    with closing(BrakeFile(path)) as brakes:
        assert brakes.all() == [Brake("user", "bc1q", "halt", 2), Brake("task", "17", "halt", 3)]
        assert brakes.get("task", "17") == Brake("task", "17", "halt", 3)
        assert brakes.get("task", "18") is None
    assert path.stat().st_size == size and path.stat().st_blocks * 512 >= size
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_write_torn_at_any_byte_leaves_the_former_brake(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    for torn_at in range(60):
        path.unlink(missing_ok=True)
        with closing(BrakeFile(path)) as brakes:
            brakes.put("task", "17", "reduce", 1)
            brakes.put("task", "17", "halt", 2)
            with monkeypatch.context() as crashing:
                crashing.setattr(os, "pwrite", lambda file, text, at, to=torn_at: whole(file, text[:to], at))
                brakes.put("task", "17", "reduce", 3)
        with closing(BrakeFile(path)) as brakes:
            found = brakes.all()
            assert found in ([Brake("task", "17", "halt", 2)], [Brake("task", "17", "reduce", 3)])
            assert found[0].state == "halt" or torn_at >= 40  # the last byte, "]", was there before
            brakes.put("task", "17", "reduce", 4)
        with closing(BrakeFile(path)) as brakes:
            assert brakes.all() == [Brake("task", "17", "reduce", 4)]


def test_a_removal_that_is_torn_leaves_the_brake(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(BrakeFile(path)) as brakes:
        brakes.put("task", "17", "halt", 1)
        with monkeypatch.context() as crashing:
            crashing.setattr(os, "pwrite", lambda file, text, at: 0)
            brakes.remove("task", "17")
    with closing(BrakeFile(path)) as brakes:
        assert brakes.all() == [Brake("task", "17", "halt", 1)]


def test_the_installations_brake_has_a_place_when_all_others_are_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BrakeFile, "PLACES", 4)
    with closing(BrakeFile(path)) as brakes:
        for task in range(3):
            brakes.put("task", str(task), "halt", task)
        with pytest.raises(OSError, match="places are taken") as refused:
            brakes.put("task", "3", "halt", 3)
        assert files.is_full(refused.value)
        brakes.put("global", "", "halt", 4)
        brakes.remove("task", "1")
        brakes.put("task", "3", "halt", 5)
        assert [brake.subject for brake in brakes.all()] == ["0", "2", "", "3"]


def test_the_longest_subject_has_room(path: Path) -> None:
    with closing(BrakeFile(path)) as brakes:
        brakes.put("user", "x" * 256, "reduce", 1 << 53)
        with pytest.raises(ValueError, match="no room"):
            brakes.put("user", "x" * 500, "reduce", 1)
        assert len(brakes.all()) == 1


def test_on_a_full_disk_brakes_are_stored_and_removed(disk: Path) -> None:
    with closing(BrakeFile(disk / "brakes")) as brakes:
        filler = fill(disk)
        for task in range(1, 200):
            brakes.put("task", str(task), "halt", task)
        brakes.remove("task", "1")
    with closing(BrakeFile(disk / "brakes")) as brakes:
        assert len(brakes.all()) == 198
    filler.unlink()


def test_a_file_that_had_no_room_is_made_once_there_is_some(disk: Path) -> None:
    filler = fill(disk)
    path = disk / "late"
    with closing(BrakeFile(path)) as brakes:
        assert brakes.all() == []
        with pytest.raises(OSError, match="No space left"):
            brakes.put("global", "", "halt", 1)
        assert [each.name for each in disk.iterdir() if "late" in each.name] == []
        filler.unlink()
        brakes.put("global", "", "halt", 1)
    with closing(BrakeFile(path)) as brakes:
        assert brakes.all() == [Brake("global", "", "halt", 1)]


def test_a_disk_is_short_below_the_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = os.statvfs(tmp_path)
    monkeypatch.setattr(files, "FLOOR_BYTES", 1)
    assert not files.is_short(tmp_path)
    monkeypatch.setattr(files, "FLOOR_BYTES", free.f_blocks * free.f_frsize + 1)
    assert files.is_short(tmp_path)


def _raised(*errors: Exception) -> BaseException:
    """Returns the last error, raised from the one before it."""
    found: Any = None
    for error in errors:
        try:
            raise error from found
        except Exception as raised:
            found = raised
    assert isinstance(found, Exception)
    return found


@pytest.mark.parametrize(
    ("errors", "full"),
    [
        ((OSError(errno.ENOSPC, "no"),), True),
        ((OSError(errno.EDQUOT, "no"),), True),
        ((OSError(errno.EIO, "no"),), False),
        ((sqlite3.OperationalError("database or disk is full"),), True),
        ((sqlite3.OperationalError("database is locked"),), False),
        ((OSError(errno.ENOSPC, "no"), RuntimeError("the line was not written")), True),
        ((RuntimeError("satflow says: database or disk is full"),), False),
        ((ValueError("disk is full"), RuntimeError("the line was not written")), False),
    ],
)
def test_a_full_disk_is_known_by_its_errors(errors: tuple[Exception, ...], full: bool) -> None:
    assert files.is_full(_raised(*errors)) is full


def test_the_reserve_takes_its_room_and_gives_it_back_once(tmp_path: Path) -> None:
    files.make_reserve(tmp_path)
    files.make_reserve(tmp_path)
    assert (tmp_path / files.RESERVE).stat().st_blocks * 512 >= files.RESERVE_BYTES
    assert files.free_reserve(tmp_path)
    assert not files.free_reserve(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_reserve_is_made_where_it_would_leave_too_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = os.statvfs(tmp_path)
    monkeypatch.setattr(files, "FLOOR_BYTES", free.f_bavail * free.f_frsize)
    files.make_reserve(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_reserve_that_was_freed_is_made_anew(tmp_path: Path) -> None:
    with files.kept_reserve(tmp_path, every_s=0.01):
        for _ in range(2):
            end = time.monotonic() + 60
            while not files.free_reserve(tmp_path):
                assert time.monotonic() < end
                time.sleep(0.01)


def test_room_is_kept_past_the_end_of_a_file(disk: Path) -> None:
    path = disk / "log"
    with path.open("ab", buffering=0) as log:
        files.keep_room(log.fileno(), 1 << 20)
        assert path.stat().st_size == 0
        filler = fill(disk)
        assert log.write(bytes(1 << 20)) == 1 << 20
        with pytest.raises(OSError, match="No space left"):
            files.keep_room(log.fileno(), 1 << 20)
    filler.unlink()


def problems(**environment: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load({f"BIDKEEPER_{name.upper()}": value for name, value in environment.items()})
    return caught.value.problems


def test_a_program_on_other_hosts_is_asked_by_the_relay_and_listens_where_it_did(tmp_path: Path) -> None:
    environment = {
        "BIDKEEPER_DATA_DIR": str(tmp_path),
        "BIDKEEPER_TLS_DIR": "/tls",
        "BIDKEEPER_GATEWAY_HOSTS": "one.example:9701, [fd00::2]:9701",
        "BIDKEEPER_SIGNER_HOST": "10.0.0.9:9703",
    }
    settings = load(environment)
    assert settings.gateway_hosts == (HostPort("one.example", 9701), HostPort("fd00::2", 9701))
    assert list(map(str, settings.gateway_hosts)) == ["one.example:9701", "[fd00::2]:9701"]
    assert settings.gateway_socket == tmp_path / "relay" / "gateway.sock"
    assert settings.signer_socket == tmp_path / "relay" / "signer.sock"
    assert settings.facts_socket == settings.own_facts_socket == tmp_path / "run" / "facts.sock"
    assert settings.own_gateway_socket == tmp_path / "run" / "gateway.sock"
    settings = load(environment | {"BIDKEEPER_RELAY_DIR": "/r", "BIDKEEPER_FACTS_HOSTS": "one.example:9702"})
    assert str(settings.facts_socket) == "/r/facts.sock"


@pytest.mark.parametrize(
    "value",
    ["host", "host:", ":9701", "host:0", "host:65536", "fd00::2:9701", "a b:1", "h:1,x", "h;x:1", "https://h:1"],
)
def test_what_is_no_address_is_refused(value: str) -> None:
    for name in ("gateway_hosts", "signer_host", "gateway_listen"):
        (fault,) = problems(**{name: value, "tls_dir": "/tls"})
        assert fault.startswith(f"BIDKEEPER_{name.upper()} must be HOST:PORT")


@pytest.mark.parametrize("name", ["gateway_hosts", "facts_hosts", "signer_host", "manager_listen", "signer_listen"])
def test_nothing_goes_between_hosts_without_certificates(name: str) -> None:
    (fault,) = problems(**{name: "one.example:9701"})
    assert fault.startswith(f"BIDKEEPER_TLS_DIR is needed with BIDKEEPER_{name.upper()}")


def test_a_manager_names_an_address_that_others_can_use() -> None:
    for host in ("0.0.0.0", "[::]"):
        (fault,) = problems(manager_listen=f"{host}:9704", tls_dir="/tls")
        assert "must name this host" in fault
    assert load({"BIDKEEPER_GATEWAY_LISTEN": "0.0.0.0:9701", "BIDKEEPER_TLS_DIR": "/tls"}).gateway_listen


def test_the_relays_sockets_have_a_short_path() -> None:
    (fault,) = problems(relay_dir="/" + "x" * 100)
    assert fault.startswith("BIDKEEPER_RELAY_DIR: ") and "107" in fault


@pytest.mark.parametrize(
    ("written", "host", "shown", "nearby"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:8888", "http://127.0.0.1:8888"),
        ("127.0.0.2", "127.0.0.2", "127.0.0.2:8888", "http://127.0.0.2:8888"),
        ("0.0.0.0", "0.0.0.0", "0.0.0.0:8888", "http://127.0.0.1:8888"),
        ("::1", "::1", "[::1]:8888", "http://[::1]:8888"),
        ("[::1]", "::1", "[::1]:8888", "http://[::1]:8888"),
        ("::", "::", "[::]:8888", "http://[::1]:8888"),
        ("[::]", "::", "[::]:8888", "http://[::1]:8888"),
        ("0:0:0:0:0:0:0:1", "::1", "[::1]:8888", "http://[::1]:8888"),
        (" 10.0.0.9 ", "10.0.0.9", "10.0.0.9:8888", "http://10.0.0.9:8888"),
        ("keeper.example", "keeper.example", "keeper.example:8888", "http://keeper.example:8888"),
    ],
)
def test_host_and_port_are_joined_alike_wherever_they_are_shown(
    written: str, host: str, shown: str, nearby: str
) -> None:
    settings = load({"BIDKEEPER_HOST": written})
    assert settings.host == host
    assert (str(settings.server_at()), settings.server_at().url) == (shown, nearby)
    assert settings.sign_in_name == shown
    assert page_line(settings).startswith(f"Bidkeeper's page: {nearby}/ ")
    assert settings.simulator_url == "http://127.0.0.1:8890"


def test_one_function_joins_a_host_and_a_port() -> None:
    joined = re.compile(r"\{[^{}]*host[^{}]*\}:\{|\}:\{[^{}]*port[^{}]*\}", re.I)
    folders = ("cli", "core", "gateway", "hooks", "markets", "models", "server", "wallet", "workers")
    found = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text().splitlines()
        if joined.search(line) and "def " not in line
    }
    assert all(each.startswith("core/setting_values.py: return ") for each in found) and len(found) == 1, found
