"""Installations that were never started, were set up by half, or are damaged, and what every finding must hold."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from cli.doctor import doctor
from cli.doctor.check import Check
from cli.main import VERBS
from core.settings import OPTIONS
from models import schema
from models.database import base
from tests.cli.commands import Way, in_this_process

REAL = {
    "BIDKEEPER_MARKET": "satflow",
    "BIDKEEPER_SATFLOW_URL": "http://127.0.0.1:1/v1",
    "BIDKEEPER_SATFLOW_API_KEY": "a-key-of-a-test",
    "BIDKEEPER_ORDNET_URL": "http://127.0.0.1:1/api/v1",
}
Environment = dict[str, str]
PARTS = (*doctor.PARTS, doctor.LIVE)


def examined(environment: dict[str, str], *words: str, way: Way = in_this_process) -> list[Check]:
    """Returns the doctor's findings once they hold what every finding must hold."""
    code, said, complained = way(environment, "doctor", "--json", *words)
    assert complained == ""
    checks = [
        Check(**{**each, "status": each["status"].replace("fail", "FAIL")}) for each in json.loads(said)["checks"]
    ]
    assert code == int(any(check.status == "FAIL" for check in checks)), "1 exactly when something fails"
    for check in checks:
        line = check.line()
        assert check.name and check.text and bool(check.remedy) == (check.status != "ok"), line
        assert not re.search(r"report this line|Traceback|Errno|object has no|indices must|codec can't", line), line
        assert set(re.findall(r"bidkeeper ([a-z][a-z-]+)", check.remedy)) <= VERBS.keys(), line
        assert set(re.findall(r"BIDKEEPER_\w+", check.remedy)) <= {option.variable for option in OPTIONS}, line
        assert all(Path(page).exists() for page in re.findall(r"docs/[\w-]+\.md", check.remedy)), line
    return checks


class State(NamedTuple):
    """One state: `make` brings it about in the data directory and the settings.

    The doctor's part `part` reports it by a line that begins with `line`; `remedy` is in that line. `cure` is a command
    that ends it, where there is one.
    """

    make: Callable[[Path, Environment], object]
    part: str
    line: str
    remedy: str
    cure: str = ""


def migrated(data_dir: Path) -> Path:
    """Makes a database of this version and returns its path."""
    path = data_dir / "bidkeeper.db"
    base.connect(f"sqlite:///{path}")
    schema.migrate()
    base.close()
    return path


def _nothing(data_dir: Path, environment: Environment) -> None:
    shutil.rmtree(data_dir)


def _empty(data_dir: Path, environment: Environment) -> None:
    """Leaves the directory as it is."""


def _file_for_directory(data_dir: Path, environment: Environment) -> None:
    shutil.rmtree(data_dir)
    data_dir.write_text("x")


def _unmigrated(data_dir: Path, environment: Environment) -> None:
    _run_sql(data_dir / "bidkeeper.db", "PRAGMA journal_mode=wal", "CREATE TABLE t (x)", "DROP TABLE t")


def _older(data_dir: Path, environment: Environment) -> None:
    base.connect(f"sqlite:///{data_dir}/bidkeeper.db")
    schema._runner().up("0002_looked_up_details")
    base.close()


def _newer(data_dir: Path, environment: Environment) -> None:
    _run_sql(migrated(data_dir), "INSERT INTO schema_migration (name, applied) VALUES ('9999_more', '2026-01-01')")


def _run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def _cut(left: int) -> Callable[[Path, Environment], object]:
    def cut(data_dir: Path, environment: Environment) -> None:
        path = migrated(data_dir)
        path.write_bytes(path.read_bytes()[:left])

    return cut


def _damaged(data_dir: Path, environment: Environment) -> None:
    path = migrated(data_dir)
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * 8192 + whole[16384:])


def _in_signer(name: str, content: bytes | None) -> Callable[[Path, Environment], object]:
    """Puts a file into the signer's directory, or a directory without content."""

    def put(data_dir: Path, environment: Environment) -> None:
        migrated(data_dir)
        path = data_dir / "signer" / name
        path.parent.mkdir(mode=0o700)
        path.mkdir(mode=0o700) if content is None else path.write_bytes(content)
        path.chmod(0o700 if content is None else 0o600)

    return put


def _signer_is_a_file(data_dir: Path, environment: Environment) -> None:
    migrated(data_dir)
    (data_dir / "signer").touch(0o600)


def _broken_quota(data_dir: Path, environment: Environment) -> None:
    migrated(data_dir)
    (data_dir / "quota.json").write_text("{")
    environment["BIDKEEPER_SATFLOW_MONTHLY_CALLS"] = "1000"


def _no_server(data_dir: Path, environment: Environment) -> None:
    environment["BIDKEEPER_DATABASE_URL"] = "postgresql://bot:hunter2@127.0.0.1:1/bk"


def _settings_file(content: bytes | None) -> Callable[[Path, Environment], object]:
    """Names a settings file; without content no file."""

    def put(data_dir: Path, environment: Environment) -> None:
        path = data_dir / "bidkeeper.toml"
        environment["BIDKEEPER_CONFIG"] = str(path)
        if content is not None:
            path.write_bytes(content)

    return put


def _wrong_setting(data_dir: Path, environment: Environment) -> None:
    environment["BIDKEEPER_PORT"] = "none"


_DEEP = b"[" * 100_000 + b"\n"
_RESTORE = "put a backup from elsewhere in its place"
_AUDIT = "-> run bidkeeper audit verify"
STATES = {
    "nothing": State(_nothing, "data", "warn data directory", "-> bidkeeper up creates it", "migrate"),
    "empty": State(_empty, "data", "warn database", "-> bidkeeper up (or migrate) creates it", "migrate"),
    "file": State(_file_for_directory, "data", "FAIL data directory", "-> move it away"),
    "empty-database": State(
        lambda data_dir, _: (data_dir / "bidkeeper.db").touch(),
        "data",
        "FAIL database: not in WAL mode",
        "-> bidkeeper migrate",
        "migrate",
    ),
    "unmigrated": State(_unmigrated, "data", "FAIL database: migrations missing", "-> bidkeeper migrate", "migrate"),
    "older": State(_older, "data", "FAIL database: migrations missing", "-> bidkeeper migrate", "migrate"),
    "newer": State(_newer, "data", "FAIL database: the database was made by a newer", "-> run that version or a newer"),
    "no-keys": State(
        lambda data_dir, _: migrated(data_dir), "live", "FAIL live keys", "-> bidkeeper keys init, then bidkeeper up"
    ),
    "truncated": State(_cut(9000), "data", "FAIL database", _RESTORE),
    "truncated-head": State(_cut(15), "data", "FAIL database", "-> "),
    "damaged": State(_damaged, "data", "FAIL database", _RESTORE),
    "no-database": State(
        lambda data_dir, _: (data_dir / "bidkeeper.db").write_bytes(b"not a database" * 99),
        "data",
        "FAIL database",
        _RESTORE,
    ),
    "database-directory": State(
        lambda data_dir, _: (data_dir / "bidkeeper.db").mkdir(), "data", "FAIL database", "-> move what is there away"
    ),
    "damaged-keystore": State(_in_signer("keystore.json", b"\xff\0"), "live", "FAIL live keys", "-> bidkeeper up"),
    "audit-binary": State(_in_signer("audit.jsonl", b"\xff\0\n{}\n"), "data", "FAIL audit log: broken", _AUDIT),
    "audit-other-lines": State(_in_signer("audit.jsonl", b"[1]\n[2]\n"), "data", "FAIL audit log: broken", _AUDIT),
    "audit-deep": State(_in_signer("audit.jsonl", _DEEP * 2), "data", "FAIL audit log: broken", _AUDIT),
    "audit-directory": State(_in_signer("audit.jsonl", None), "data", "FAIL audit log", "-> move what is there away"),
    "signer-file": State(_signer_is_a_file, "data", "FAIL signer's files", "-> move it away"),
    "broken-quota": State(_broken_quota, "programs", "FAIL quota", "-> remove the file"),
    "no-server": State(_no_server, "data", "FAIL database: postgresql://127.0.0.1:1/bk", "-> "),
    "settings-broken": State(_settings_file(b"port = [\n"), "settings", "FAIL settings", "-> see docs/settings.md"),
    "settings-binary": State(_settings_file(b"\xff\xfe\0"), "settings", "FAIL settings", "-> see docs/settings.md"),
    "settings-missing": State(_settings_file(None), "settings", "FAIL settings", "-> see docs/settings.md"),
    "setting-wrong": State(_wrong_setting, "settings", "FAIL settings: BIDKEEPER_PORT", "-> see docs/settings.md"),
}
