"""Starts on machines that are set up in other ways: data directories, terminals and addresses that are seldom used."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.setting_values import HostPort
from tests.e2e.installation import Installation, until

pytestmark = pytest.mark.slow

SIGNS = "a b'\"#?;,\\$=&()[]{}<>|~*!:^`ü%"
LONGEST = 79  # bytes: supervisord binds run/supervisor.sock and its pid in it


@pytest.fixture
def made() -> Iterator[Installation]:
    installation = Installation()
    yield installation
    installation.destroy()


def test_longest_directory_with_every_sign_in_it_works(made: Installation) -> None:
    with tempfile.TemporaryDirectory(prefix="bk-") as home:
        shutil.rmtree(made.data_dir)
        name = SIGNS.replace("%", "")
        name += "x" * (LONGEST - len(f"{home}/{name}".encode()))
        made.data_dir = Path(home) / name
        made.data_dir.mkdir(mode=0o700)
        made.environment["BIDKEEPER_DATA_DIR"] = str(made.data_dir)
        made.up()
        assert made.ready_again(), made.output()
        made.down()
        made.up()  # the signer reads its own records again
        made.down()
        assert [path.name for path in Path(home).iterdir()] == [name], "a part of the name was taken for the whole"


def _can_listen(host: str) -> bool:
    try:
        with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            return True
    except OSError:
        return False


@pytest.mark.thorough_cases("::-::-utf-8")
@pytest.mark.parametrize(
    ("written", "host", "encoding"),
    [("[::1]", "::1", "latin-1"), ("::", "::", "utf-8"), ("127.0.0.2", "127.0.0.2", "ascii")],
)
def test_demo_trades_at_any_address_and_on_any_terminal(
    made: Installation, written: str, host: str, encoding: str
) -> None:
    if not _can_listen(host):
        pytest.skip(f"this machine has no {host}")
    made.url = f"http://{HostPort('::1' if host == '::' else host, made.port)}"
    made.environment |= {"BIDKEEPER_HOST": written, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C"}
    made.environment |= {"PYTHONCOERCECLOCALE": "0"}

    made.up("demo")

    def said() -> str:
        return (made.data_dir / "up.out").read_bytes().decode(encoding)

    until(lambda: said().count(": started: ") >= 4 or None, "three tasks and a listing of the demo")
    assert f"Bidkeeper's page: {made.url}/ " in said()
    rune = "PRACTICE•RUNE•TOKEN".encode(encoding, "backslashreplace").decode(encoding)
    assert said().count(f"{rune}: started: ") == 1, "a letter of the terminal's was taken for a fault"
    made.down()
