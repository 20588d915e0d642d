"""What the doctor says of installations in many states, line by line, as it says it (`tests/goldens`)."""

from __future__ import annotations

import re
import resource
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest

from core.settings import load
from markets.client import MarketClient
from models import users
from models.database import base
from tests.cli.commands import Way, in_this_process, without_privileges
from tests.cli.half_made import REAL, STATES, Environment, migrated
from tests.cli.test_doctor_venues import CHAIN, SATFLOW, STATUS
from tests.cli.test_every_state import ADDRESS, CLOSED
from tests.cli.venue import venue
from tests.clock import START_MS
from tests.goldens import hold
from tests.needs import need_root
from wallet.keystore import keystore
from wallet.protocol import ControlState, SignerControls, SignerStatus
from wallet.signer_client import SignerClient

PARTS = tuple(f"--only={part}" for part in ("settings", "data", "programs", "live"))
BOUNDED = {
    "BIDKEEPER_PUBLIC_NAME": "bids.example",
    "BIDKEEPER_MAX_EXPOSURE_SATS": "200000",
    "BIDKEEPER_MIN_LISTING_SATS": "50000",
    "BIDKEEPER_MAX_WITHDRAWAL_SATS_PER_DAY": "300000",
    "BIDKEEPER_MEMPOOL_URL": "https://mempool.example",
    "BIDKEEPER_ORD_URL": "https://ord.example",
    "BIDKEEPER_ORDNET_CO_SIGNERS": ", ".join(("11" * 32, "12" * 32, "13" * 32)),
    "BIDKEEPER_UNISAT_URL": "https://unisat.example",
    "BIDKEEPER_UNISAT_API_KEY": "key",
}


def said(environment: Environment, *words: str, way: Way = in_this_process) -> list[str]:
    """Returns the lines and the exit code, without what differs from run to run."""
    code, text, complained = way(environment, "doctor", *words)
    home = str(Path(environment["BIDKEEPER_DATA_DIR"]).parent)
    for name in ("BIDKEEPER_PORT", "BIDKEEPER_SIMULATOR_PORT"):
        text = re.sub(rf"\b{environment[name]}\b", name[10:], text)
    text = text.replace(home, "HOME")
    for pattern, stands_for in (
        (r"127\.0\.0\.1:\d{4,5}", "127.0.0.1:PORT"),
        (r"[\d.]+ GiB free", "N GiB free"),
        (r"ok   bidkeeper: .*", "ok   bidkeeper: VERSION"),
        (r"\b\d{4}-\d\d-\d\d[T ]?[\d:.]*\w*", "DATE"),
        (r".*file system: .*", "file system"),
        (r"damaged: .* ->", "damaged: FAULT ->"),
        (r"\d{4}_\w+(, \d{4}_\w+)*", "MIGRATIONS"),
        (r"(?<=: )the database was made by .* ->", "MADE BY ANOTHER VERSION ->"),
    ):
        text = re.sub(pattern, stands_for, text)
    return [*text.splitlines(), *complained.splitlines(), f"exit {code}"]


def beside(states: dict[str, list[str]]) -> list[str]:
    """Returns the lines of the first state, and of each other one those that it alone has or lacks."""
    (_, first), *others = states.items()
    lines = list(first)
    for name, found in others:
        lines += ["", f"# {name}", *(f"+ {line}" for line in found if line not in first)]
        lines += [f"- {line.partition(':')[0]}" for line in first if line not in found]
    return lines


def test_every_half_made_state(environment: Environment) -> None:
    data_dir = Path(environment["BIDKEEPER_DATA_DIR"])
    found = dict[str, list[str]]()
    for name in ("no-keys", *(name for name in STATES if name not in ("no-keys", "no-server"))):
        settings = environment | REAL
        STATES[name].make(data_dir, settings)
        found[name] = said(settings, *PARTS)
        shutil.rmtree(data_dir) if data_dir.is_dir() else data_dir.unlink(missing_ok=True)
        data_dir.mkdir(mode=0o700)
    hold("doctor_half_made.txt", beside(found))


def test_every_closed_state(environment: Environment) -> None:
    need_root("give a file to another user")
    data_dir = Path(environment["BIDKEEPER_DATA_DIR"])
    found = dict[str, list[str]]()
    for close in CLOSED:
        settings = environment | REAL
        close(data_dir, settings)
        found[close.__name__] = said(settings, *PARTS, way=without_privileges)
        data_dir.parent.chmod(0o700)
        shutil.rmtree(data_dir)
        data_dir.mkdir(mode=0o700)
    hold("doctor_closed.txt", beside(found))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keystore, "harden", lambda: None)


def as_it_is(data_dir: Path, environment: Environment) -> None:
    """Changes nothing."""


def with_crash_point(data_dir: Path, environment: Environment) -> None:
    environment |= {"BIDKEEPER_CRASHPOINT": "after_submit", "BIDKEEPER_WHITELISTS": "*", "BIDKEEPER_WHITELIST": ""}


def with_open_files(data_dir: Path, environment: Environment) -> None:
    data_dir.chmod(0o770)
    key = data_dir / "key"
    key.write_text("secret")
    key.chmod(0o644)
    environment |= {"BIDKEEPER_UNISAT_API_KEY_FILE": str(key), "BIDKEEPER_TLS_DIR": str(data_dir / "none")}
    (data_dir / "signer").mkdir(mode=0o755)
    (data_dir / "signer" / "learnt.json").write_text('{"forms": [{"venue": "satflow", "kind": "plain"}], "hmac": ""}')


def with_long_path(data_dir: Path, environment: Environment) -> None:
    environment["BIDKEEPER_DATA_DIR"] = "/tmp/" + "x" * 80


def with_bounds(data_dir: Path, environment: Environment) -> None:
    environment |= BOUNDED


def with_people(data_dir: Path, environment: Environment) -> None:
    environment |= BOUNDED | {"BIDKEEPER_WHITELIST": ADDRESS}
    base.connect(f"sqlite:///{data_dir}/bidkeeper.db")
    users.User.create(address="bc1quser", ordinals_address="bc1quser", created_ms=START_MS)
    base.close()


def with_taken_port(data_dir: Path, environment: Environment) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    environment["BIDKEEPER_PORT"] = str(taken.getsockname()[1])
    OPEN.callback(taken.close)


def with_practice(data_dir: Path, environment: Environment) -> None:
    environment["BIDKEEPER_MARKET"] = "simulator"
    environment["BIDKEEPER_SATFLOW_MONTHLY_CALLS"] = "20000"


OPEN = ExitStack()
SETTINGS: tuple[Callable[[Path, Environment], object], ...] = (
    as_it_is,
    with_crash_point,
    with_open_files,
    with_long_path,
    with_bounds,
    with_people,
    with_taken_port,
    with_practice,
)


def test_every_kind_of_settings(environment: Environment) -> None:
    data_dir = Path(environment["BIDKEEPER_DATA_DIR"])
    found = dict[str, list[str]]()
    with OPEN:
        for change in SETTINGS:
            settings = environment | REAL
            migrated(data_dir)
            change(data_dir, settings)
            found[change.__name__] = said(settings, *PARTS)
            shutil.rmtree(data_dir)
            data_dir.mkdir(mode=0o700)
    hold("doctor_settings.txt", beside(found))


def refuse(*_: Any, **__: Any) -> NoReturn:
    raise subprocess.SubprocessError("cannot be run")


def test_every_kind_of_machine(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(text: str) -> Callable[..., Any]:
        return lambda command, **_: subprocess.CompletedProcess(command, 0, text if "show" in command else "", "")

    lines = list[str]()
    real, endless = resource.getrlimit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    for which, run, swap, version, limit in (
        (None, answer(""), False, (3, 40, 0), endless),
        ("timedatectl", answer("yes\n"), True, (3, 40, 0), (65536, 4096)),
        ("timedatectl", answer("no\n"), True, (3, 40, 0), (65536, 100)),
        ("timedatectl", refuse, True, (3, 36, 0), endless),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "which", lambda _, found=which: found)
            patch.setattr(subprocess, "run", run)
            patch.setattr(keystore, "has_swap", lambda found=swap: found)
            patch.setattr(sqlite3, "sqlite_version_info", version)
            patch.setattr(resource, "getrlimit", lambda _, found=limit: found)
            lines += [
                "",
                *(re.sub(r"\d+\.\d+\.\d+", "N.N.N", line) for line in said(environment | REAL, "--only=machine")),
            ]
        assert resource.getrlimit is real
    hold("doctor_machine.txt", [re.sub("on Linux .*|embit [0-9.]+", "...", line) for line in lines])


ITEM = SATFLOW["/v1/activity/listings"]["data"]["items"][0]
ANSWERS: dict[str, Any] = {
    "well": {},
    "nothing": dict.fromkeys(SATFLOW),
    "refused": {"/v1/collection-stats/floors": 401},
    "limited": {"/v1/collection-stats/floors": 429},
    "failing": {"/v1/activity/listings": 500, "/v1/activity/bids": b"x"},
    "drifted": {"/v1/activity/listings": {"success": True, "data": {"items": [ITEM | {"price": "5e5"}]}}},
    "other floor": {"/v1/activity/listings": {"success": True, "data": {"items": [ITEM | {"price": 600_000}]}}},
    "empty": {"/v1/activity/listings": {"success": True, "data": {"items": []}}},
    "blank index": {"/ord/status": STATUS | {"height": None, "rune_index": False, "inscription_index": False}},
    "late index": {"/ord/status": STATUS | {"height": 1}},
}


def test_every_kind_of_venue(environment: Environment) -> None:
    found = dict[str, list[str]]()
    for name, changes in ANSWERS.items():
        answers = {path: body for path, body in (SATFLOW | CHAIN | changes).items() if body is not None}
        with venue(answers, {"X-RateLimit-Remaining": "41"}) as made:
            urls = {f"BIDKEEPER_{source}_URL": f"{made.url}/{source.lower()}" for source in ("MEMPOOL", "ORD")}
            settings = environment | REAL | urls | {"BIDKEEPER_SATFLOW_URL": f"{made.url}/v1"}
            found[name] = said(settings, "--only=venues", "--collection=nodemonkes")
    hold("doctor_venues.txt", beside(found))


def test_every_state_of_programs(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = environment | REAL
    migrated(Path(environment["BIDKEEPER_DATA_DIR"]))
    made, lines = load(settings), list[str]()
    quota = {"limit": 100, "used": 95, "left": 5, "projected": 200, "rungs": 2}
    well = {"is_cut_off": False, "paused_s": 0, "skew_s": None, "quota": quota | {"left": 50, "rungs": None}}
    ill = {"is_cut_off": True, "paused_s": 3, "skew_s": -61, "unread_rows": {"sales": 1}, "quota": quota}
    spent = well | {"quota": {"rungs": None, "day": quota | {"left": 0}}}
    with ExitStack() as doors:
        for path in (made.signer_socket, made.gateway_socket):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            door = doors.enter_context(socket.socket(socket.AF_UNIX))
            door.bind(str(path))
            door.listen()
        for state, play, reason, controls in (
            ("ready", False, "", SignerControls((), False)),
            ("reconciling", True, "looks", SignerControls((ControlState("global", "", "halt"),), True)),
            ("locked", False, "bidkeeper keys init makes them", SignerControls((), False)),
        ):
            for venues in ({"satflow": well, "ordnet": spent}, {"satflow": ill}):
                with monkeypatch.context() as patch:
                    patch.setattr(SignerClient, "status", lambda _, told=(state, play, reason): SignerStatus(*told))
                    patch.setattr(SignerClient, "controls", lambda _, told=controls: told)
                    patch.setattr(MarketClient, "status", lambda _, told=venues: {"market": "satflow", "venues": told})
                    lines += ["", f"# {state}", *said(settings, "--only=programs")]
    hold("doctor_programs.txt", lines)
