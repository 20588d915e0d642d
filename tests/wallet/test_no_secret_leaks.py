"""Planted secrets turn up nowhere: not in what programs say, not in /proc, not in any file, keystores included."""

from __future__ import annotations

import base64
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from core.errors import PeerRefused, PeerUnavailable
from tests.json_lines import ask
from tests.worlds.signer import OTHER_USER, USER
from tests.worlds.signer_process import DEADLINE_S, live_bid, live_grant
from wallet.keystore import keystore
from wallet.keystore.keys import from_wif, seed_of
from wallet.signer_client import SignerClient, SignerUnavailable

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

PASSPHRASE = "canary-passphrase-Kq7vTz"
NEW_PASSPHRASE = "canary-successor-Wm3xRb"
WRONG_PASSPHRASES = ("canary-mistyped-Jd9sLp", "canary-mistyped-Hf2nGc")
WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"
OTHER_WORDS = "letter advice cage absurd amount doctor acoustic avoid letter advice cage above"
WIF = "L4rK1yDtCWekvXuE6oXD9jCYfFNV2cWRpVuPLBcCU2z8TrisoyY1"


def everywhere_written(secret: bytes) -> set[bytes]:
    """Returns a secret raw, in hex, and in base64 wherever it starts in a longer text."""
    hidden = {secret, secret.hex().encode(), secret.hex().upper().encode()}
    for shift in range(3):
        coded = base64.b64encode(bytes(shift) + secret)
        hidden.add(coded[4 if shift else 0 : len(coded) - 4])
        hidden.add(coded[4 if shift else 0 : len(coded) - 4].translate(bytes.maketrans(b"+/", b"-_")))
    return hidden


def planted(user_keys: Iterable[bytes]) -> dict[str, set[bytes]]:
    texts = [
        PASSPHRASE,
        NEW_PASSPHRASE,
        *WRONG_PASSPHRASES,
        WIF,
        "thank year wave sausage",
        "absurd amount doctor acoustic",
    ]
    raws = [seed_of(WORDS), seed_of(WORDS)[:32], seed_of(OTHER_WORDS), from_wif(WIF), *user_keys]
    named = [(text, text.encode()) for text in texts] + [(f"key {at}", raw) for at, raw in enumerate(raws)]
    return {name: everywhere_written(secret) for name, secret in named}


def found(secrets: dict[str, set[bytes]], where: str, content: bytes) -> list[str]:
    return [f"{name} in {where}" for name, forms in secrets.items() if any(form in content for form in forms)]


class Watched:
    """`bidkeeper` in one data directory; everything said or shown in /proc is kept."""

    def __init__(self, directory: Path, log_format: str) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.seen: list[tuple[str, bytes]] = []
        self.environment = {
            **os.environ,
            "BIDKEEPER_DATA_DIR": str(self.data),
            "BIDKEEPER_MARKET": "satflow",
            "BIDKEEPER_SATFLOW_URL": "https://127.0.0.1/v1",
            "BIDKEEPER_SATFLOW_API_KEY": "none",
            "BIDKEEPER_LOG_LEVEL": "DEBUG",
            "BIDKEEPER_LOG_FORMAT": log_format,
            "PYTHONFAULTHANDLER": "1",
        }
        self.socket = self.data / "run" / "signer.sock"
        self.client = SignerClient(self.socket, timeout_s=DEADLINE_S)

    def keys(self, *arguments: str, given: tuple[str, ...] = (), code: int = 0) -> None:
        process = self._start("keys", *arguments)
        self.look_at(process)
        said = process.communicate("".join(f"{line}\n" for line in given).encode(), timeout=DEADLINE_S)
        assert process.returncode == code, said
        self.seen += [(f"keys {arguments[0]} says", text) for text in said]

    def signer(self) -> subprocess.Popen[bytes]:
        process = self._start("signer")
        end = time.monotonic() + DEADLINE_S
        while True:
            try:
                self.client.status()
                return process
            except SignerUnavailable:
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.01)

    def look_at(self, process: subprocess.Popen[bytes]) -> None:
        for name in ("cmdline", "environ"):
            self.seen.append((f"/proc of {process.args!r}", Path(f"/proc/{process.pid}/{name}").read_bytes()))

    def end(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        self.look_at(process)
        process.send_signal(number)
        said = process.communicate(timeout=DEADLINE_S)
        self.seen += [("the signer says", text) for text in said]

    def unlock(self, passphrase: str) -> str:
        """ "", or the code of the refusal."""
        try:
            ask(self.socket, "signer", {"op": "unlock", "passphrase": passphrase}, timeout=DEADLINE_S)
        except PeerRefused as refused:
            self.seen.append(("the answer to unlock", str(refused).encode()))
            return refused.code
        return ""

    def leaks(self, secrets: dict[str, set[bytes]]) -> list[str]:
        files = [(str(path), path.read_bytes()) for path in self.directory.rglob("*") if path.is_file()]
        return [leak for where, content in [*self.seen, *files] for leak in found(secrets, where, content)]

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "cli.main", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environment, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            cwd=self.directory,
            preexec_fn=_allow_core,
        )


def _allow_core() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)


@pytest.fixture(params=["text", "json"])
def watched(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    yield Watched(tmp_path, request.param)


def test_no_secret_is_to_be_found_anywhere(watched: Watched, tmp_path: Path) -> None:
    path = watched.data / "signer" / "keystore.json"
    watched.keys("init", "--words", given=(WORDS, PASSPHRASE, PASSPHRASE))
    watched.keys("init", given=(PASSPHRASE, PASSPHRASE), code=1)
    watched.keys("import", "--user", USER, given=(PASSPHRASE, WIF, WIF[:-1]), code=1)
    watched.keys("import", "--user", USER, given=(PASSPHRASE, OTHER_WORDS + " above", ""), code=1)
    watched.keys("import", "--user", USER, given=(PASSPHRASE, WIF, ""))
    watched.keys("import", "--user", OTHER_USER, given=(PASSPHRASE, OTHER_WORDS, PASSPHRASE))
    watched.keys("list", given=(WRONG_PASSPHRASES[0],), code=1)
    watched.keys("list", given=(PASSPHRASE,))
    watched.keys("backup", str(tmp_path / "backup.json"))
    watched.keys("change-passphrase", given=(PASSPHRASE, NEW_PASSPHRASE, NEW_PASSPHRASE))

    signer = watched.signer()
    assert [watched.unlock(wrong) for wrong in WRONG_PASSPHRASES] == ["wrong-passphrase"] * 2
    watched.keys("unlock", given=(NEW_PASSPHRASE,))
    client = watched.client
    secret = client.grant(live_grant(venue="satflow"))
    client.sign_bid(17, 5, secret, live_bid())
    client.sign_challenge(17, 5, secret, "challenge 1")
    with socket.socket(socket.AF_UNIX) as cut_short:
        cut_short.connect(str(watched.socket))
        cut_short.sendall(b'{"op": "unlock", "passphrase": "' + NEW_PASSPHRASE.encode())
    limits = Path(f"/proc/{signer.pid}/limits").read_text().splitlines()
    assert [line.split()[4:6] for line in limits if line.startswith("Max core file size")] == [["0", "0"]]
    watched.end(signer, signal.SIGSEGV)
    assert signer.returncode == -signal.SIGSEGV

    signer = watched.signer()  # with an exception in the midst of an unlock
    tries = watched.data / "signer" / "unlock-tries.json"
    tries.mkdir()
    assert watched.unlock(NEW_PASSPHRASE) == "internal"
    tries.rmdir()
    assert watched.unlock(NEW_PASSPHRASE) == ""
    (watched.data / "signer").rename(watched.data / "elsewhere")
    (watched.data / "signer").touch()  # else the signer makes its directory anew, and its door there
    with pytest.raises(SignerUnavailable):  # a user that cannot be written
        client.addresses("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
    (watched.data / "signer").unlink()
    (watched.data / "elsewhere").rename(watched.data / "signer")
    watched.end(signer, signal.SIGABRT)
    with pytest.raises(PeerUnavailable):
        watched.unlock(NEW_PASSPHRASE)

    said = b"".join(content for _, content in watched.seen)
    assert b"Traceback" in said
    assert b"Fatal Python error" in said
    opened = keystore.unlock(path, NEW_PASSPHRASE)
    assert set(opened.users) == {USER, OTHER_USER}
    users = [opened.secrets_of(user) for user in opened.users]
    secrets = planted(key.secret for user in users for key in (user.payment, user.vault))
    assert watched.leaks(secrets) == []
    assert not list(tmp_path.rglob("core*"))

    # The search itself finds what is there.
    for hidden in (
        PASSPHRASE.encode(),
        b"x" + from_wif(WIF),
        base64.b64encode(b"ab" + seed_of(WORDS)),
        WIF.encode().hex().encode(),
    ):
        (tmp_path / "planted").write_bytes(b"before " + hidden + b" after")
        assert len(watched.leaks(secrets)) >= 1, hidden
