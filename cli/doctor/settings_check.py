"""The doctor on settings: every fault at once, and legal values that are seldom meant."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.doctor.check import Check, fail, ok, warn
from core.errors import SettingsError
from core.layout import supervisor_problems
from core.setting_texts import HELD, own_file, read_table, table_file
from core.settings import IN_FILES, OPTIONS, SECRETS, Settings, load
from wallet.signer.allowed import with_normal_addresses

NAME = "settings"
# Variables that are no settings: `up` and the installer hand them to their programs, and a service's file names what
# runs on its machine.
_OTHERS = {"CONFIG", "COMMAND", "CRASHPOINT", "INSTALL_ROOT", "INSTALL_OWNERS", "SLOTS", "RAY"}
_OTHERS |= {f"WITH_{name}" for name in ("SIMULATOR", "SERVER", "GATEWAY", "SIGNER", "MANAGER", "RELAY")}


def read(environment: Mapping[str, str]) -> tuple[Settings | None, list[Check]]:
    """Reads the settings, None when they are wrong; and a line for each fault.

    A key's file that only another user may read is no fault: HELD stands for that key.
    """
    try:
        return with_normal_addresses(load(environment)), []
    except SettingsError as error:
        problems = error.problems
    try:
        settings = with_normal_addresses(load(environment, secrets=()))
    except SettingsError:
        return None, [fail(NAME, problem, "see docs/settings.md") for problem in problems]
    # The rest are files of keys that cannot be read; one that is there is another user's, as it should be.
    files = _key_files(environment)
    absent = [problem for problem in problems if not os.path.lexists(files.get(problem.split()[0], ""))]
    return settings, [fail(NAME, problem, "put the key into that file") for problem in absent]


def is_held(settings: Settings, secret: str) -> bool:
    """Tells whether this key is in a file that this user may not read."""
    return bool(getattr(settings, secret) == HELD)


def examine(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Examines settings that can be read."""
    source = _file(environment)
    yield ok(NAME, f"read from the environment{' and ' + source if source else ''}; market {settings.market}")
    yield from _strangers(environment)
    yield from _secret_files(settings, environment)
    yield from _sockets(settings)
    if settings.gateway_clients & settings.users_of_signer:
        text = "BIDKEEPER_GATEWAY_CLIENTS names the signer's own user, whom the gateway does not answer"
        yield warn(NAME, text, "remove that user from BIDKEEPER_GATEWAY_CLIENTS")
    is_real = settings.market != "simulator"
    if environment.get("BIDKEEPER_CRASHPOINT"):
        found = fail if is_real else warn
        yield found(NAME, "BIDKEEPER_CRASHPOINT makes workers crash on purpose", "unset it; it is for tests only")
    if is_real and not settings.max_exposure_sats:
        text = "BIDKEEPER_MAX_EXPOSURE_SATS is 0: the bids of all users together have no limit"
        yield warn(NAME, text, "set it to an amount you can afford to lose")


def _file(environment: Mapping[str, str]) -> str:
    """Returns the name of the TOML file, empty when there is none."""
    return str(table_file(environment) or "")


def _table(environment: Mapping[str, str]) -> dict[str, Any]:
    return read_table(environment, (), [])


def _key_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the files of keys, and of the database's address, by the variable that names them or could."""
    table = _table(environment)
    return {f"BIDKEEPER_{name.upper()}_FILE": own_file(name, environment, table) for name in IN_FILES}


def _strangers(environment: Mapping[str, str]) -> Iterator[Check]:
    known = {option.variable for option in OPTIONS} | {f"BIDKEEPER_{name}" for name in _OTHERS}
    known |= {f"BIDKEEPER_{name.upper()}_FILE" for name in IN_FILES}
    for name in sorted(environment):
        if name.startswith("BIDKEEPER_") and name not in known:
            yield warn(NAME, f"{name} is not a setting and has no effect", "see docs/settings.md")


def _secret_files(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Yields files with keys that others than their owner may read."""
    files = _key_files(environment)
    files["BIDKEEPER_KEYSTORE_PASSPHRASE_FILE"] = str(settings.keystore_passphrase_file or "")
    if any(name in _table(environment) for name in SECRETS):
        files["the settings file, which contains a key,"] = _file(environment)
    for what, name in files.items():
        # The service's group reads the database, and so its address.
        strangers = 0o037 if what == "BIDKEEPER_DATABASE_URL_FILE" else 0o077
        try:
            if name and Path(name).is_file() and Path(name).stat().st_mode & strangers:
                yield fail(NAME, f"{what} can be read by other users: {name}", f"chmod 600 {name}")
        except OSError:
            continue  # in a directory that only its own user can enter


def _sockets(settings: Settings) -> Iterator[Check]:
    """Checks the paths of supervisord; those of the programs are checked with the settings."""
    problems = supervisor_problems(settings)
    for problem in problems:
        yield fail("sockets", problem, "use another BIDKEEPER_DATA_DIR: bidkeeper up does not start in this one")
    if not problems:
        yield ok("sockets", "the data directory's path is short enough, and supervisord can read it")
