"""Text that an operator wrote: taken where it has one meaning, else refused by its name and without repeating it."""

from __future__ import annotations

import ast
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.errors import SettingsError
from core.fields import NotText, decoded, read_text
from core.local_time import is_between, is_zone, next_change_ms
from core.settings import load
from hooks.program import mailer_of
from tests.core.test_settings import ROOT, problems

KEY = "sf-0123456789abcdef"
# Shapes in which editors and shells leave a key, each with one meaning.
WHOLE = [b"%s", b"%s\n", b"%s\r\n", b"\xef\xbb\xbf%s\r\n", b"  %s \t\n\n"]
BROKEN = [
    (b'"%s"\n', "quote"),
    (b"'%s'\n", "quote"),
    ("\u201c%s\u201d".encode(), "printable ASCII"),
    (b"key: %s", "printable ASCII"),
    (b"%s\n%s\n", "printable ASCII"),
    (b"%s\xc3\xa9", "printable ASCII"),
    (b"%s\x1b", "printable ASCII"),
    (b"%s\0", "NUL"),
    (b"%s\xe9", "not UTF-8 in line 1"),
]


def shaped(shape: bytes) -> bytes:
    return shape.replace(b"%s", KEY.encode())


@pytest.mark.parametrize("name", ["satflow_api_key", "unisat_api_key"])
@pytest.mark.parametrize("shape", WHOLE)
def test_key_file_of_any_editor_gives_the_key_alone(tmp_path: Path, name: str, shape: bytes) -> None:
    (tmp_path / "key").write_bytes(shaped(shape))
    settings = load({f"BIDKEEPER_{name.upper()}_FILE": str(tmp_path / "key")})
    assert getattr(settings, name) == KEY


@pytest.mark.parametrize(("shape", "words"), [*BROKEN, (b"\xff\xfe", "UTF-16")])
def test_key_file_that_no_header_can_hold_is_refused_by_its_name(tmp_path: Path, shape: bytes, words: str) -> None:
    file = tmp_path / "key-file"
    file.write_bytes(shape + KEY.encode("utf-16-le") if words == "UTF-16" else shaped(shape))
    [fault] = problems({"BIDKEEPER_SATFLOW_API_KEY_FILE": str(file)})
    assert f"{file} (BIDKEEPER_SATFLOW_API_KEY_FILE)" in fault and words in fault
    assert KEY not in fault


def test_key_in_a_variable_is_read_alike() -> None:
    for text in (f"{KEY}\r", f" {KEY} "):
        assert load({"BIDKEEPER_UNISAT_API_KEY": text}).unisat_api_key == KEY
    for text in (f'"{KEY}"', f"'{KEY}'\r", f"{KEY} {KEY}", f"{KEY}\n{KEY}", f"{KEY}\u00e9", f"{KEY}\udce9"):
        [fault] = problems({"BIDKEEPER_UNISAT_API_KEY": text})
        assert fault.startswith("BIDKEEPER_UNISAT_API_KEY ") and KEY not in fault


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", "9000", 9000),
        ("host", "::1", "::1"),
        ("data_dir", "/srv/keeper", Path("/srv/keeper")),
        ("market", "simulator", "simulator"),
        ("play_wallet", "true", True),
        ("public_name", "My keeper", "My keeper"),
        ("satflow_url", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
    ],
)
def test_variable_with_a_carriage_return_is_read_and_one_in_quotes_is_refused(
    name: str, text: str, value: object
) -> None:
    variable = f"BIDKEEPER_{name.upper()}"
    for written in (f"{text}\r", f" {text}\t"):
        assert getattr(load({variable: written}), name) == value
    for written in (f'"{text}"', f"'{text}'"):
        assert problems({variable: written}) == [f"{variable} has quotes around it: write the value without them"]
    for written in (f"{text}\nx", f"{text}\udcff"):
        [fault] = problems({variable: written})
        assert fault.startswith(f"{variable} ") and "write it" in fault


def test_settings_file_of_a_windows_editor_is_read(tmp_path: Path) -> None:
    file = tmp_path / "bidkeeper.toml"
    file.write_bytes(b'\xef\xbb\xbfport = 9000\r\nhost = "::1"\r\n')
    assert load({"BIDKEEPER_CONFIG": str(file)}).port == 9000
    assert load({"BIDKEEPER_CONFIG": f"{file}\r"}).port == 9000


def test_variable_that_names_a_file_may_end_in_a_carriage_return(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "address").write_text("sqlite:////srv/keeper.db")
    named = {"BIDKEEPER_SATFLOW_API_KEY_FILE": "key", "BIDKEEPER_DATABASE_URL_FILE": "address"}
    settings = load({name: f"{tmp_path / file}\r" for name, file in named.items()})
    assert (settings.satflow_api_key, settings.database_url) == (KEY, "sqlite:////srv/keeper.db")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("port = 9000".encode("utf-16"), "is UTF-16: save it as UTF-8"),
        (b"port = 9000\0", "NUL byte"),
        (b'port = 9000\npublic_name = "caf\xe9"\n', "is not UTF-8 in line 2: save it as UTF-8"),
    ],
)
def test_settings_file_that_is_not_utf_8_is_refused_by_its_name(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "bidkeeper.toml"
    file.write_bytes(content)
    [fault] = problems({"BIDKEEPER_CONFIG": str(file)})
    assert fault.startswith(f"{file} ") and words in fault


def test_database_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "address").write_bytes(b"\xef\xbb\xbfpostgresql://bot:pw@localhost/bk\r\n")
    settings = load({"BIDKEEPER_DATABASE_URL_FILE": str(tmp_path / "address")})
    assert settings.database_url == "postgresql://bot:pw@localhost/bk"


def test_mail_password_is_read_alike(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = load(
        {
            "BIDKEEPER_SMTP_URL": "smtps://bot@mail.example",
            "BIDKEEPER_MAIL_FROM": "bot@mail.example",
            "BIDKEEPER_SMTP_PASSWORD_FILE": str(file),
        }
    )
    file.write_bytes(b"\xef\xbb\xbfpass word\r\n")
    made = mailer_of(settings)
    assert made is not None and made.password == "pass word"
    for content in (b"\xff\xfep\0w\0", "pässword".encode(), b"p\xe4ssword"):
        file.write_bytes(content)
        with pytest.raises(SettingsError, match=f"{file} .BIDKEEPER_SMTP_PASSWORD_FILE. ") as caught:
            mailer_of(settings)
        assert "ssword".encode("utf-16-le").decode() not in str(caught.value)
        assert not any(shown in str(caught.value) for shown in ("pässword", "p\\xe4", "p\ufffd"))


def test_text_without_a_mark_is_what_it_was(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\r\nb\rc\n")
    assert read_text(tmp_path / "text") == "a\nb\nc\n"
    assert decoded("\ufeffa\ufeff é\r\n".encode()) == "a\ufeff é\r\n"
    with pytest.raises(NotText, match="line 3"):
        decoded(b"a\nb\n\xff")


# Files that this program or the kernel wrote, the vendored packages' list, and the checkout's own source and docs.
_OWN_FILES = {
    "cli/doctor/data_check.py",
    "cli/doctor/machine_check.py",
    "cli/doctor/program_check.py",
    "core/hook_receivers.py",
    "core/version.py",
    "gateway/quota_count.py",
    "models/database/servers.py",
    "models/leases/leases.py",
    "models/leases/held_lease.py",
    "tools/diagram.py",
    "tools/vendor.py",
    "wallet/keystore/keystore.py",
}


def test_files_of_an_operator_have_one_reader() -> None:
    folders = ("cli", "core", "deploy", "gateway", "hooks", "markets", "models", "server", "tools", "wallet", "workers")
    readers = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if any(
            isinstance(node, ast.Attribute) and node.attr == "read_text"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }
    assert readers == _OWN_FILES


NIGHT, DAY = ("22:00", "06:30"), ("09:00", "17:00")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


def berlin(hours: tuple[str, str], utc: str) -> bool:
    return is_between("Europe/Berlin", *hours, ms(utc))


@pytest.mark.parametrize(
    ("hours", "utc", "is_active"),
    [
        (DAY, "2026-01-15T07:59:59", False),
        (DAY, "2026-01-15T08:00:00", True),
        (DAY, "2026-01-15T15:59:59", True),
        (DAY, "2026-01-15T16:00:00", False),
        # In summer the same local hours begin an hour earlier by UTC.
        (DAY, "2026-07-15T07:00:00", True),
        (DAY, "2026-07-15T06:59:59", False),
        (NIGHT, "2026-01-15T20:59:59", False),
        (NIGHT, "2026-01-15T21:00:00", True),
        (NIGHT, "2026-01-16T05:29:59", True),
        (NIGHT, "2026-01-16T05:30:00", False),
        # 29 March 2026: 02:00 becomes 03:00 (01:00 UTC). 02:30 does not come, 03:00 does.
        (("02:30", "03:30"), "2026-03-29T00:59:59", False),
        (("02:30", "03:30"), "2026-03-29T01:00:00", True),
        (("02:00", "03:00"), "2026-03-29T01:00:00", False),
        # 25 October 2026: 03:00 becomes 02:00 (01:00 UTC). 02:30 comes twice.
        (("02:30", "03:00"), "2026-10-25T00:30:00", True),
        (("02:30", "03:00"), "2026-10-25T01:00:00", False),
        (("02:30", "03:00"), "2026-10-25T01:30:00", True),
        (("02:30", "03:00"), "2026-10-25T02:00:00", False),
    ],
)
def test_local_hours(hours: tuple[str, str], utc: str, is_active: bool) -> None:
    assert berlin(hours, utc) is is_active


def test_zones() -> None:
    assert is_zone("UTC") and is_zone("America/New_York")
    assert not any(map(is_zone, ("", "Europe", "Mars/Olympus", "../etc/passwd", "/etc/passwd", "europe/nowhere")))


def test_the_next_change() -> None:
    zone, before = ("Europe/Berlin", *DAY), ms("2026-01-15T07:58:30")
    assert next_change_ms(*zone, before, 120_000) == ms("2026-01-15T08:00:00")
    assert next_change_ms(*zone, before, 89_000) is None
    assert next_change_ms(*zone, ms("2026-01-15T15:59:00"), 60_000) == ms("2026-01-15T16:00:00")


@pytest.mark.slow
def test_nobody_loads_zones_without_need() -> None:
    code = "import sys, workers.bidding.bidder; print('zoneinfo' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
