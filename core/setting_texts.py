"""The places that settings come from: environment variables, a TOML file, and files of their own for secrets."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from core.outside_text import NotText, read_text, variable

HELD = "held by the gateway"

Texts = dict[str, tuple[str, str]]  # by a setting's name: where it was set, and its text


def table_file(environment: Mapping[str, str]) -> Path | None:
    """Returns the TOML file that BIDKEEPER_CONFIG names, or bidkeeper.toml; None if it is not there."""
    path = Path(_named_file("BIDKEEPER_CONFIG", environment) or "bidkeeper.toml")
    return path if path.exists() else None


def read_table(environment: Mapping[str, str], known: Collection[str], problems: list[str]) -> dict[str, Any]:
    """Reads the TOML file that BIDKEEPER_CONFIG names, or bidkeeper.toml if it is there; adds to `problems`."""
    path = table_file(environment)
    if path is None:
        if named := _named_file("BIDKEEPER_CONFIG", environment):
            problems.append(f"BIDKEEPER_CONFIG names {named}, which is not there")
        return {}
    try:
        table = tomllib.loads(read_text(path))
    except NotText as error:
        problems.append(f"{path} {error}")
        return {}
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}")
        return {}
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path} cannot be read: {error}")
        return {}
    problems += [f"{path}: unknown setting {name}" for name in table if name not in known]
    return table


def read_texts(
    environment: Mapping[str, str], table: Mapping[str, Any], variables: Mapping[str, str], problems: list[str]
) -> Texts:
    """Returns the texts that are set of `variables` (by a setting's name, its variable); the environment wins.

    Adds to `problems`.
    """
    texts: Texts = {}
    for name, named in variables.items():
        if name in table:
            value = table[name]
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            texts[name] = (f"{name} in the TOML file", text)
        try:
            if text := variable(environment.get(named, "")):
                texts[name] = (named, text)
        except ValueError as error:
            problems.append(f"{named} {error}")
            texts.pop(name, None)
    return texts


def add_secrets(
    texts: Texts,
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    names: Collection[str],
    problems: list[str],
    read: Collection[str],
) -> None:
    """Adds the secrets that are in files of their own and not set otherwise; HELD for those that are not to be read."""
    for name in names:
        file, source = _file(name, "key", environment, table)
        if file and name not in texts:
            try:
                texts[name] = (source, read_text(Path(file)) if name in read else HELD)
            except NotText as error:
                problems.append(f"{source} {error}")
            except OSError as error:
                problems.append(f"{_variable(name)} cannot be read: {error.strerror}")


def add_database(texts: Texts, environment: Mapping[str, str], table: Mapping[str, Any], problems: list[str]) -> str:
    """Adds the database's address if it is in a file of its own and not set otherwise.

    Returns the file if this user may not read it, else "": a program that needs no database, such as the signer, runs
    without.
    """
    file, source = _file("database_url", "address", environment, table)
    if file and "database_url" not in texts:
        try:
            texts["database_url"] = (source, read_text(Path(file)).strip())
        except PermissionError:
            return str(Path(file).absolute())
        except NotText as error:
            problems.append(f"{source} {error}")
        except OSError as error:
            problems.append(f"{_variable('database_url')} cannot be read: {error.strerror}")
    return ""


def _variable(name: str) -> str:
    return f"BIDKEEPER_{name.upper()}_FILE"


def own_file(name: str, environment: Mapping[str, str], table: Mapping[str, Any]) -> str:
    """Returns the file of its own that a setting's text is in, "" without one."""
    return _named_file(_variable(name), environment) or str(table.get(f"{name}_file") or "")


def _named_file(variable_name: str, environment: Mapping[str, str]) -> str:
    return environment.get(variable_name, "").strip()


def _file(name: str, what: str, environment: Mapping[str, str], table: Mapping[str, Any]) -> tuple[str, str]:
    """Returns `own_file`, and the words for the text in it in a fault."""
    file = own_file(name, environment, table)
    return file, f"the {what} in {file} ({_variable(name)})"
