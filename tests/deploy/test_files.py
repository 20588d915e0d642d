"""The files shipped for servers name everything there is, and say the same in each place."""

from __future__ import annotations

import configparser
import re
import subprocess
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from cli.doctor.settings_check import examine
from core.settings import IN_FILES, OPTIONS, load
from tests.deploy.front import DEPLOY
from tests.distributions import TOP_LEVEL

ROOT = DEPLOY.parent
# What a machine's settings file says of the programs that run there.
_WITH = ("SIMULATOR", "SERVER", "GATEWAY", "SIGNER", "MANAGER", "RELAY")
PROGRAMS_HERE = {"BIDKEEPER_SLOTS", *(f"BIDKEEPER_WITH_{name}" for name in _WITH)}
KEPT_APART = {"user", "umask", "directory", "command", "stdout_logfile", "environment"}


def programs(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    parser.read(path)
    return {name: dict(parser[name]) for name in parser.sections() if name.startswith("program:")}


def test_the_service_runs_the_programs_of_up_in_the_same_way() -> None:
    alone, service = programs(ROOT / "supervisord.conf"), programs(DEPLOY / "supervisord.conf")
    assert alone.keys() == service.keys()
    for name, options in service.items():
        same = {key: value for key, value in options.items() if key not in KEPT_APART}
        assert same == {key: value for key, value in alone[name].items() if key not in KEPT_APART}, name
        assert options["command"].split()[1:] == alone[name]["command"].split()[1:]


def test_signer_and_gateway_have_users_of_their_own() -> None:
    users = {name: options["user"] for name, options in programs(DEPLOY / "supervisord.conf").items()}
    assert users.pop("program:relay") == "bidkeeper-relay"
    assert users.pop("program:signer") == "bidkeeper-signer"
    assert users.pop("program:gateway") == users.pop("program:facts") == "bidkeeper-gateway"
    assert set(users.values()) == {"bidkeeper"}


def test_the_service_knows_only_settings_that_there_are() -> None:
    known = {option.variable for option in OPTIONS} | {f"BIDKEEPER_{name.upper()}_FILE" for name in IN_FILES}
    named = re.findall(r"^#?(BIDKEEPER_\w+)=", (DEPLOY / "environment").read_text(), re.M)
    assert set(named) - known == {"BIDKEEPER_CONFIG", *PROGRAMS_HERE}


def test_an_installation_runs_all_programs_unless_told_otherwise() -> None:
    unit = (DEPLOY / "bidkeeper.service").read_text()
    given = dict(re.findall(r"(BIDKEEPER_\w+)=(\w+)", "\n".join(re.findall(r"^Environment=.*", unit, re.M))))
    assert given.keys() == set(re.findall(r"%\(ENV_(\w+)\)s", (DEPLOY / "supervisord.conf").read_text()))
    assert given.keys() == {*PROGRAMS_HERE, "BIDKEEPER_SERVER_PROCESSES"}
    assert (given.pop("BIDKEEPER_SLOTS"), given.pop("BIDKEEPER_SERVER_PROCESSES")) == ("0", "1")
    assert {given.pop("BIDKEEPER_WITH_RELAY"), given.pop("BIDKEEPER_WITH_SIMULATOR")} == {"false"}
    assert set(given.values()) == {"true"}


def test_the_doctor_takes_nothing_that_is_shipped_for_a_stranger(tmp_path: Path) -> None:
    named = {*PROGRAMS_HERE, "BIDKEEPER_RAY"}
    assert "BIDKEEPER_RAY=" in (DEPLOY / "ray" / "environment").read_text()
    settings = load({})
    found = [check.text for check in examine(settings, dict.fromkeys([*named, "BIDKEEPER_WRONG"], "0"))]
    assert [text for text in found if "is not a setting" in text] == [
        "BIDKEEPER_WRONG is not a setting and has no effect"
    ]


@pytest.mark.parametrize("name", ["install.sh", "Dockerfile", "../.dockerignore"])
def test_every_package_is_installed(name: str) -> None:
    text = (DEPLOY / name).read_text()
    assert [package for package in TOP_LEVEL if not re.search(rf"\b{package}\b", text)] == []


@pytest.mark.parametrize("name", ["install.sh", "bidkeeper-as-its-user"])
def test_the_scripts_can_be_parsed(name: str) -> None:
    subprocess.run(["bash", "-n", DEPLOY / name], check=True)
    assert (DEPLOY / name).stat().st_mode & 0o111


def locked(name: str) -> dict[str, str]:
    """Returns the versions that a lock pins."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.M))


def needed(extra: str = "") -> set[str]:
    """Returns the names that setup.py asks for: to run, or for an extra."""
    found = map(Requirement, requires("bidkeeper") or [])
    return {each.name for each in found if not each.marker or each.marker.evaluate({"extra": extra})}


def test_what_runs_is_locked_alone_and_no_tool_of_the_tests_with_it() -> None:
    to_run = locked("requirements.lock")
    assert needed() | {"setuptools", "msgspec", "urllib3"} <= to_run.keys()
    assert not to_run.keys() & (needed("test") - needed() - {"setuptools"})
    assert len(to_run) == 16


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("requirements-*.lock")))
def test_an_additional_lock_contradicts_no_other_and_names_no_host(lock: str) -> None:
    """pip is given several of them at a time; that of the bench has an environment of its own."""
    for other in ROOT.glob("requirements*.lock"):
        if "requirements-bench.lock" not in (lock, other.name):
            mine, theirs = locked(lock), locked(other.name)
            assert {name: mine[name] for name in mine.keys() & theirs} == {
                name: theirs[name] for name in mine.keys() & theirs
            }
    assert "://" not in (ROOT / lock).read_text()


def test_postgresqls_driver_is_all_that_its_lock_adds() -> None:
    assert locked("requirements-postgresql.lock").keys() == {"psycopg", "psycopg-binary", "typing-extensions", "tzdata"}
    assert not locked("requirements-ray.lock").keys() & locked("requirements.lock").keys()


def test_the_command_reads_its_settings_as_the_service_does(tmp_path: Path) -> None:
    url = "postgresql://db.example/bk?sslmode=verify-full&sslrootcert=/etc/ca.pem;$(touch x)"
    (tmp_path / "environment").write_text(f"# words\n  BIDKEEPER_DATABASE_URL={url} \n\nBIDKEEPER_WHITELIST=\n")
    (tmp_path / "ray").write_text("BIDKEEPER_RAY='--head --resources={\"slot\":4}'\nRAY_AUTH_MODE=token")
    read = _read_by_the_command(tmp_path)
    assert (read["BIDKEEPER_DATABASE_URL"], read["BIDKEEPER_WHITELIST"], read["RAY_AUTH_MODE"]) == (url, "", "token")
    assert read["BIDKEEPER_RAY"] == '--head --resources={"slot":4}'


def test_the_settings_for_going_live_are_read_by_the_service_as_in_a_terminal(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "going-live.md").read_text()
    section = page.partition("\n## 2. Settings\n")[2].partition("\n## ")[0]
    (service,) = re.findall(r"^```\n(.*?)^```$", section, re.M | re.S)
    (terminal,) = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
    (tmp_path / "environment").write_text(service)
    read = {name: value for name, value in _read_by_the_command(tmp_path).items() if name.startswith("BIDKEEPER_")}
    given = dict(re.findall(r"^export (\w+)=(\S+)$", terminal, re.M))

    assert read.pop("BIDKEEPER_SETTINGS") == str(tmp_path)
    assert read.pop("BIDKEEPER_WITH_SIMULATOR") == "false"
    key = "BIDKEEPER_SATFLOW_API_KEY_FILE"
    assert (read.pop(key), given.pop(key)) == ("/etc/bidkeeper/satflow.key", "$HOME/satflow.key")
    assert len(read) > 5 and read == given
    assert not re.search(r"[#$\s]", "".join(read.values()))  # a service's value ends with its line


def _read_by_the_command(directory: Path) -> dict[str, str]:
    """Runs the installed command with the settings in this directory, and returns its environment."""
    (directory / "setpriv").write_text("#!/bin/sh\nenv\n")
    (directory / "setpriv").chmod(0o755)
    environment = {"PATH": f"{directory}:/usr/bin:/bin", "BIDKEEPER_SETTINGS": str(directory)}
    done = subprocess.run(
        [DEPLOY / "bidkeeper-as-its-user", "plan", "list"], env=environment, capture_output=True, text=True, check=True
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_settings_of_a_windows_editor_are_read_by_the_command_as_by_systemd(tmp_path: Path) -> None:
    (tmp_path / "environment").write_bytes(b'BIDKEEPER_PORT=9000\r\nBIDKEEPER_PUBLIC_NAME="my keeper"\r\n\r\n# all\r\n')
    read = _read_by_the_command(tmp_path)
    assert (read["BIDKEEPER_PORT"], read["BIDKEEPER_PUBLIC_NAME"]) == ("9000", "my keeper")
