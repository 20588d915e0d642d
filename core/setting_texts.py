"""The places that settings come from: environment variables, a TOML file, and files of their own for secrets."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

HELD = "held by the gateway"

Texts = dict[str, tuple[str, str]]  # by a setting's name: where it was set, and its text


def read_table(environment: Mapping[str, str], known: Collection[str], problems: list[str]) -> dict[str, Any]:
    """Reads the TOML file that BIDKEEPER_CONFIG names, or bidkeeper.toml if it is there; adds to `problems`."""
    path = Path(environment.get("BIDKEEPER_CONFIG", "bidkeeper.toml"))
    if not path.exists():
        if "BIDKEEPER_CONFIG" in environment:
            problems.append(f"BIDKEEPER_CONFIG names {path}, which is not there")
        return {}
    try:
        table = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {error}")
        return {}
    problems += [f"{path}: unknown setting {name}" for name in table if name not in known]
    return table


def read_texts(environment: Mapping[str, str], table: Mapping[str, Any], variables: Mapping[str, str]) -> Texts:
    """Returns what is set of `variables` (by a setting's name, its variable); the environment wins."""
    texts: Texts = {}
    for name, variable in variables.items():
        if name in table:
            value = table[name]
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            texts[name] = (f"{name} in the TOML file", text)
        if environment.get(variable, "") != "":
            texts[name] = (variable, environment[variable])
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
        variable = f"BIDKEEPER_{name.upper()}_FILE"
        file = environment.get(variable) or table.get(f"{name}_file")
        if file and name not in texts:
            try:
                texts[name] = (variable, Path(file).read_text().strip() if name in read else HELD)
            except OSError as error:
                problems.append(f"{variable} cannot be read: {error.strerror}")
            except UnicodeDecodeError:
                problems.append(f"{variable} cannot be read: the file is no text")


def add_database(texts: Texts, environment: Mapping[str, str], table: Mapping[str, Any], problems: list[str]) -> str:
    """Adds the database's address if it is in a file of its own and not set otherwise.

    Returns the file if this user may not read it, else "": a program that needs no database, such as the signer, runs
    without.
    """
    variable = "BIDKEEPER_DATABASE_URL_FILE"
    file = environment.get(variable) or table.get("database_url_file")
    if file and "database_url" not in texts:
        try:
            texts["database_url"] = (f"the address in {file} ({variable})", Path(file).read_text().strip())
        except PermissionError:
            return str(Path(file).absolute())
        except OSError as error:
            problems.append(f"{variable} cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            problems.append(f"{variable} cannot be read: the file is no text")
    return ""
