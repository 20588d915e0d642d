"""Every part of the doctor, and every command, on every state of an installation: words, a remedy, an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.doctor import doctor, machine_check, questions
from cli.doctor.check import ok
from cli.main import VERBS
from tests.cli.commands import in_this_process, without_privileges
from tests.cli.half_made import PARTS, REAL, STATES, examined, migrated
from tests.needs import need_root
from wallet.keystore import keystore

PRACTICE = {"BIDKEEPER_MARKET": "simulator"}
NOBODY = 65534
ADDRESS = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"
ITEM = "ab" * 32 + "i0"
# One call of each command; those that run until they are ended are left out, and so is the doctor.
WORDS: dict[str, list[str]] = {
    "migrate": [],
    "database copy": ["--to", "sqlite:///{scratch}/copy.db"],
    "whitelist add": [ADDRESS],
    "whitelist remove": [ADDRESS],
    "whitelist list": [],
    "plan set": [ADDRESS, "beta"],
    "plan list": [],
    "sign-in": [ADDRESS],
    "wallet": [ADDRESS],
    "judge": [ADDRESS, ITEM, "100000"],
    "reconcile": [],
    "replay": ["--task", "1"],
    "keys init": [],
    "keys import": ["--user", ADDRESS],
    "keys list": [],
    "keys backup": ["{scratch}/backup"],
    "keys change-passphrase": [],
    "keys unlock": [],
    "audit": ["verify"],
    "venue probe": ["satflow", "--save", "{scratch}/probe.json"],
    "venue check": ["{scratch}/no-file"],
}
LASTING = ("cli.programs", "cli.relay", "cli.up", "cli.demo", "cli.on_ray", "cli.doctor.doctor")
WITHOUT_DATABASE = {"keys init", "audit"}  # these succeed without one
ON_ANY = {"migrate", "whitelist add", "whitelist list", "plan list", "reconcile", *WITHOUT_DATABASE}
SUCCEED = {
    **dict.fromkeys(("nothing", "empty", "empty-database", "unmigrated", "older"), ON_ANY),
    **dict.fromkeys(("newer", "truncated", "no-database", "database-directory", "no-server"), WITHOUT_DATABASE),
    "file": set[str](),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out pauses, the child that tries the network, and what would keep this process from its files."""
    monkeypatch.setattr(questions, "PAUSE_S", 0)
    monkeypatch.setattr(machine_check, "_network", lambda: ok("not tried"))
    monkeypatch.setattr(keystore, "harden", lambda: None)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", STATES)
def test_every_part_of_the_doctor_judges_every_state(environment: dict[str, str], name: str, part: str) -> None:
    environment |= REAL
    state = STATES[name]
    state.make(Path(environment["BIDKEEPER_DATA_DIR"]), environment)
    lines = [check.line() for check in examined(environment, "--only", part)]
    if part == state.part:
        assert any(line.startswith(state.line) and state.remedy in line for line in lines), lines
    if state.cure and part == state.part:
        assert in_this_process(environment, state.cure)[0] == 0
        assert [check.status for check in examined(environment, "--only", part) if check.name == "database"] == ["ok"]


@pytest.mark.parametrize("name", ["nothing", "empty", "unmigrated", "settings-broken"])
def test_all_parts_together_judge_the_practice_market(environment: dict[str, str], name: str) -> None:
    environment |= PRACTICE
    STATES[name].make(Path(environment["BIDKEEPER_DATA_DIR"]), environment)
    flags = ["--live", "--collection", "nodemonkes", "--rune", "DOG•GO•TO•THE•MOON"]
    found = {check.name for check in examined(environment, *flags)}
    assert "live market" in found or name == "settings-broken"


def test_the_flags_that_are_tried_are_all_flags() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    doctor.add_arguments("doctor", parser)
    flags = {action.option_strings[0]: action for action in parser._actions}
    assert flags.keys() == {"--json", "--only", "--live", "--collection", "--rune"}
    assert flags["--only"].choices == PARTS


def unreadable_directory(data_dir: Path, environment: dict[str, str]) -> None:
    migrated(data_dir)
    data_dir.chmod(0)


def directory_in_an_unreadable_one(data_dir: Path, environment: dict[str, str]) -> None:
    migrated(data_dir)
    data_dir.parent.chmod(0)


def database_of_another_user(data_dir: Path, environment: dict[str, str]) -> None:
    path = migrated(data_dir)
    path.chmod(0o600)
    os.chown(path, NOBODY, NOBODY)


def directory_of_another_user(data_dir: Path, environment: dict[str, str]) -> None:
    migrated(data_dir)
    os.chown(data_dir, NOBODY, NOBODY)


def signer_of_another_user(data_dir: Path, environment: dict[str, str]) -> None:
    migrated(data_dir)
    (data_dir / "signer").mkdir(mode=0o700)
    os.chown(data_dir / "signer", NOBODY, NOBODY)


def settings_of_another_user(data_dir: Path, environment: dict[str, str]) -> None:
    path = data_dir / "bidkeeper.toml"
    path.write_text("port = 8888\n")
    path.chmod(0)
    environment["BIDKEEPER_CONFIG"] = str(path)


Close = Callable[[Path, dict[str, str]], None]
AS_OWNER = "run the doctor as the user of the installation, or as root"
CLOSED: dict[Close, tuple[str, str, str]] = {
    unreadable_directory: ("data", "FAIL data directory", "chmod u+rwx"),
    directory_in_an_unreadable_one: ("data", "FAIL data directory", AS_OWNER),
    database_of_another_user: ("data", "FAIL database", AS_OWNER),
    directory_of_another_user: ("data", "FAIL data directory", "run it as nobody"),
    signer_of_another_user: ("data", "ok   audit log", "as that user: bidkeeper audit verify"),
    settings_of_another_user: ("settings", "FAIL settings", "see docs/settings.md"),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("close", CLOSED, ids=lambda close: close.__name__)
def test_every_part_of_the_doctor_judges_what_it_cannot_read(
    environment: dict[str, str], part: str, close: Close
) -> None:
    need_root("give a file to another user")
    environment |= REAL
    data_dir = Path(environment["BIDKEEPER_DATA_DIR"])
    close(data_dir, environment)
    try:
        lines = [check.line() for check in examined(environment, "--only", part, way=without_privileges)]
    finally:
        data_dir.parent.chmod(0o700)
    where, begin, remedy = CLOSED[close]
    if part == where:
        assert any(line.startswith(begin) and remedy in line for line in lines), lines


def leaves(words: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yields the command with each of its actions."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield words
    for action in below:
        for name, each in action.choices.items():
            yield from leaves(f"{words} {name}", each)


def test_the_commands_that_are_tried_are_all_commands() -> None:
    found = list[str]()
    for verb, (module, _) in VERBS.items():
        if module not in LASTING:
            parser = argparse.ArgumentParser()
            importlib.import_module(module).add_arguments(verb, parser)
            found += leaves(verb, parser)
    assert sorted(found) == sorted(WORDS)


@pytest.mark.parametrize("name", [*SUCCEED, "settings-broken"])
def test_every_command_says_what_a_half_made_installation_lacks(
    environment: dict[str, str], tmp_path: Path, name: str
) -> None:
    data_dir = Path(environment["BIDKEEPER_DATA_DIR"])
    given = "a long enough passphrase\n" * 2
    for command, words in WORDS.items():
        data_dir.parent.joinpath("former").mkdir(exist_ok=True)
        if data_dir.exists():
            data_dir.rename(data_dir.parent / "former" / command.replace(" ", "-"))
        data_dir.mkdir(mode=0o700)
        settings = environment | REAL
        STATES[name].make(data_dir, settings)
        written = [word.format(scratch=tmp_path) for word in words]
        code, said, complained = in_this_process(settings, *command.split(), *written, given=given)
        where = f"{command}: {code} {said} {complained}"
        if name == "settings-broken":
            assert code == 2 and "bidkeeper.toml cannot be read" in complained, where
            continue
        assert code == (0 if command in SUCCEED[name] else 2 if command == "venue check" else 1), where
        assert code == 0 or said + complained, where
        assert all(line.startswith("bidkeeper: ") and len(line) < 500 for line in complained.splitlines()), where
        if "cannot be asked" in complained and data_dir.is_dir():
            assert "bidkeeper up" in complained or "while it runs" in complained, where
