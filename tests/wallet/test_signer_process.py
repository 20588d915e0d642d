"""The signer as a process of its own, asked over its socket."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.call import Request
from tests.json_lines import ask
from tests.worlds.signer import USER, intent, tag_of
from tests.worlds.signer_process import DEADLINE_S, SignerProcess, Start, live_bid, live_grant
from wallet import signer_client
from wallet.bip322 import verify_ownership
from wallet.protocol import ControlState, SignerStatus
from wallet.signer.audit import verify_chain

PR_GET_DUMPABLE = 3


class ExportKeys(Request[None], frozen=True, tag="export_keys"):
    """A request that the signer does not know."""


@pytest.mark.slow
def test_grants_and_answers_survive_kill_9(start: Start, tmp_path: Path) -> None:
    signer = start()
    client = signer.client
    keys = client.addresses(USER)
    secret = client.grant(live_grant())
    bid = live_bid()
    first = client.sign_bid(17, 5, secret, bid)
    assert verify_ownership(keys.payment, first.message, first.signature)
    signer.end(signal.SIGKILL)
    with pytest.raises(signer_client.SignerUnavailable):
        client.status()

    start()
    assert client.status() == SignerStatus("ready", play=True)
    assert client.addresses(USER) == keys
    assert client.sign_bid(17, 5, secret, bid) == first
    assert client.was_signed(intent(1))
    assert not client.was_signed(intent(2))
    with pytest.raises(signer_client.SignerRefused) as refused:
        client.grant(live_grant(5))
    assert (refused.value.tag, refused.value.highest) == ("stale-token", 5)
    client.revoke_place(17, 5)
    with pytest.raises(signer_client.SignerRefused, match="op-allowed"):
        client.sign_bid(17, 5, secret, live_bid(2))
    assert verify_ownership(keys.payment, "challenge 1", client.sign_challenge(17, 5, secret, "challenge 1"))
    client.end_rights(17, 5)
    with pytest.raises(signer_client.SignerRefused, match="grant-live"):
        client.sign_challenge(17, 5, secret, "challenge 2")
    assert verify_chain(tmp_path / "signer" / "audit.jsonl") == 2


@pytest.mark.slow
def test_a_halt_survives_kill_9_and_the_halt_file_works_at_once(start: Start, tmp_path: Path) -> None:
    signer = start()
    client, secret = signer.client, signer.client.grant(live_grant())
    client.set_control("task", 17, "halt")
    client.set_control("user", USER, "reduce")
    signer.end(signal.SIGKILL)

    start()
    found = client.controls()
    assert set(found.states) == {ControlState("task", "17", "halt"), ControlState("user", USER, "reduce")}
    assert not found.has_halt_file
    client.set_control("task", 17, "run")
    with pytest.raises(signer_client.SignerRefused, match="the user is on reduce"):
        client.sign_bid(17, 5, secret, live_bid())
    client.set_control("user", USER, "run")
    assert client.sign_bid(17, 5, secret, live_bid())

    halt_file = tmp_path / "signer" / "halt"
    halt_file.touch()
    assert client.controls() == signer_client.SignerControls((), has_halt_file=True)
    with pytest.raises(signer_client.SignerRefused, match="halt file") as refused:
        client.sign_bid(17, 5, secret, live_bid(2))
    assert refused.value.tag == "control-state"
    assert client.sign_challenge(17, 5, secret, "challenge 1")
    halt_file.unlink()
    assert client.sign_bid(17, 5, secret, live_bid(2))
    halt_file.symlink_to(tmp_path / "nowhere")
    with pytest.raises(signer_client.SignerRefused, match="halt file"):
        client.sign_bid(17, 5, secret, live_bid(3))


@pytest.mark.slow
def test_it_keeps_its_files_to_itself(start: Start, tmp_path: Path) -> None:
    signer = start()
    secret = signer.client.grant(live_grant())
    signer.client.sign_bid(17, 5, secret, live_bid())
    directory = tmp_path / "signer"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in directory.iterdir()} >= {"keystore.json", "signer.db", "audit.jsonl"}
    for path in (*directory.iterdir(), tmp_path / "signer.sock"):
        assert path.stat().st_mode & 0o077 == 0, path.name


def test_it_can_neither_be_dumped_nor_traced() -> None:
    code = (
        "import ctypes, resource\nfrom wallet.keystore.keystore import harden\nharden()\n"
        f"print(ctypes.CDLL(None).prctl({PR_GET_DUMPABLE}, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["0", "0", "0"]


HARDENED = "import logging, socket; logging.basicConfig()\nfrom wallet.keystore.keystore import harden\n"


@pytest.mark.slow
def test_it_has_no_network(start: Start) -> None:
    def filters(pid: int | str) -> int:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Seccomp_filters:")).split()[1])

    signer = start()
    assert filters(signer.process.pid) == filters("self") + 1
    assert signer.client.status() == SignerStatus("ready", play=True)
    code = HARDENED + "harden(); socket.socket(socket.AF_UNIX)\nsocket.socket(socket.AF_INET)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.stderr.splitlines()[-1].startswith("PermissionError")


@pytest.mark.slow
def test_it_says_so_where_the_network_cannot_be_taken() -> None:
    code = HARDENED + "from core import process; process.CALLS = {}; harden(); socket.socket(socket.AF_INET)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stderr.startswith("WARNING:wallet.keystore.keystore:the network cannot be taken from this process")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_quietly_when_asked(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    signer = start()
    code, said = signer.end(number)
    assert code == 0
    assert "Traceback" not in said
    assert not (tmp_path / "signer.sock").exists()


@pytest.mark.slow
def test_an_open_connection_does_not_keep_it_from_ending(start: Start, tmp_path: Path) -> None:
    signer = start()
    with socket.socket(socket.AF_UNIX) as idle:
        idle.connect(str(tmp_path / "signer.sock"))
        code, _ = signer.end(signal.SIGTERM)  # the connection stays open: one that waited for it would not end
    assert code == 0


@pytest.mark.slow
def test_it_stays_locked_for_any_market_but_the_simulator(start: Start, tmp_path: Path) -> None:
    client = start("satflow").client
    status = client.status()
    assert (status.state, status.play) == ("locked", False)
    assert "satflow" in status.reason
    with pytest.raises(signer_client.SignerLocked, match="satflow"):
        client.addresses(USER)
    with pytest.raises(signer_client.SignerLocked):
        client.grant(live_grant())
    client.end_rights(17, 5)
    client.set_control("global", "", "halt")
    assert client.controls() == signer_client.SignerControls((ControlState("global", "", "halt"),), has_halt_file=False)
    assert not (tmp_path / "signer" / "keystore.json").exists()


@pytest.mark.slow
def test_a_keystore_for_real_money_leaves_it_locked(start: Start, tmp_path: Path) -> None:
    (tmp_path / "signer").mkdir()
    path = tmp_path / "signer" / "keystore.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"version": 1, "network": "mainnet", "seed": "00" * 32, "users": []}))
    before = path.read_bytes()
    client = start().client
    with pytest.raises(signer_client.SignerLocked, match="not a play keystore"):
        client.addresses(USER)
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_second_signer_on_the_same_files_does_not_start(start: Start, tmp_path: Path) -> None:
    first = start()
    second = SignerProcess(tmp_path, "simulator")
    _, said = second.process.communicate(timeout=DEADLINE_S)
    assert second.process.returncode != 0
    assert "another signer is running" in said
    assert first.client.status().state == "ready"


@pytest.mark.slow
def test_an_answer_that_failed_half_way_is_unavailable_and_not_a_refusal(start: Start, tmp_path: Path) -> None:
    client = start().client
    secret = client.grant(live_grant())
    (tmp_path / "signer").rename(tmp_path / "elsewhere")
    with pytest.raises(signer_client.SignerUnavailable):
        client.addresses("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4")
    with pytest.raises(signer_client.SignerRefused, match="default-deny"):
        client._ask(ExportKeys())
    assert client.sign_challenge(17, 5, secret, "still answering")


def test_a_signer_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    client = signer_client.SignerClient(tmp_path / "nobody.sock", timeout_s=0.5)
    for call in (client.status, lambda: client.was_signed(intent(1)), lambda: client.end_rights(1, 1)):
        with pytest.raises(signer_client.SignerError) as failed:
            call()
        assert isinstance(failed.value, signer_client.SignerUnavailable)


@pytest.mark.slow
def test_raw_requests_of_any_shape_get_an_answer(start: Start, tmp_path: Path) -> None:
    client = start().client
    requests: list[dict[str, Any]] = [{"op": "grant", "grant": {"task": 2**70}}, {"op": "sign_bid"}, {"op": {}}]
    for request in requests:
        assert tag_of(ask, tmp_path / "signer.sock", "signer", request, timeout=DEADLINE_S) in (
            "bad-request",
            "default-deny",
        )
    assert client.status().state == "ready"


def test_the_client_imports_nothing_heavy() -> None:
    heavy = ("embit", "asyncio", "bip322", "requests", "tornado", "ssl", "sqlite3")
    code = f"import sys, wallet.signer_client; print([name for name in {heavy!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
