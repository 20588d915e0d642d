"""The relays of two hosts, each the real nginx: what they hand on, and what becomes of a question on its way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core import tls
from core.errors import PeerUnavailable
from core.local_server import serve, serve_far
from core.setting_values import HostPort
from tests.authority import Authority
from tests.deploy.house import CHECKOUT, GROUP, STRANGER, interpreter, packages, run_as
from tests.e2e.hosts import Host, need_relay
from tests.e2e.installation import until
from tests.json_lines import Answers, ask
from tests.ports import free_ports

pytestmark = pytest.mark.slow

STATUS = {"op": "status"}
RELAY = STRANGER + 1  # a number that no account has, either


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority") / "ours")
    for role in ("trader", "signer", "other"):
        made.certificate(role, role)
    made.certificate("trader", "expired", days=-1)
    return made


class Signer:
    """A stand-in at the socket of a signer."""

    def __init__(self, path: Path) -> None:
        self.heard: list[dict[str, Any]] = []
        self.path = path
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        answering = serve(path, Answers(self._answer), allowed_uids=frozenset({os.getuid(), RELAY}))
        self._server = asyncio.run_coroutine_threadsafe(answering, self._loop).result(10)

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.heard.append(request)
        await asyncio.to_thread(self.may_answer.wait, 30)
        return {"state": "ready"}

    def close(self) -> None:
        self.may_answer.set()

        async def end() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class Two:
    """A trading host and the signer's, and the relay of each."""

    def __init__(self, directory: Path, authority: Authority) -> None:
        need_relay()
        self.at = HostPort("127.0.0.1", *free_ports(1))
        certificates = authority.directory
        for name in ("trader", "signer"):
            (directory / name / "run").mkdir(parents=True)
        self.trader = Host(
            directory / "trader",
            os.environ | {"BIDKEEPER_SIGNER_HOST": str(self.at), "BIDKEEPER_TLS_DIR": str(certificates / "trader")},
        )
        self.signer = Host(
            directory / "signer",
            os.environ | {"BIDKEEPER_SIGNER_LISTEN": str(self.at), "BIDKEEPER_TLS_DIR": str(certificates / "signer")},
        )
        self.socket = self.trader.data_dir / "relay" / "signer.sock"
        self.stand_in = Signer(self.signer.data_dir / "run" / "signer.sock")

    def start(self) -> None:
        for host in (self.signer, self.trader):
            host.start("relay")
        until(self.answers, "the stand-in answers through both relays")
        self.stand_in.heard.clear()

    def answers(self) -> bool:
        for host in (self.signer, self.trader):
            assert host.processes["relay"].poll() is None, host.said("relay")
        with contextlib.suppress(PeerUnavailable):
            return ask(self.socket, "signer", STATUS, timeout=5) == {"state": "ready"}
        return False

    def nginx_worker(self, host: Host) -> int:
        children = _children(host.processes["relay"].pid)
        [worker] = [child for child in children if b"worker process" in Path(f"/proc/{child}/cmdline").read_bytes()]
        return worker

    def end(self) -> None:
        for host in (self.trader, self.signer):
            if "relay" in host.processes:
                host.end("relay")
        self.stand_in.close()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def two(authority: Authority) -> Iterator[Two]:
    with tempfile.TemporaryDirectory(prefix="bk-") as directory:
        Path(directory).chmod(0o755)
        made = Two(Path(directory), authority)
        try:
            made.start()
            yield made
        finally:
            made.end()


def test_a_relay_whose_socket_was_removed_ends_to_be_started_again(two: Two) -> None:
    relay = two.trader.processes["relay"]
    children = _children(relay.pid)
    two.socket.unlink()
    assert relay.wait(60) == 0
    assert "a socket of the relay was removed or replaced" in two.trader.said("relay")
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children), "the end of its children")
    two.trader.start("relay")
    until(two.answers, "the stand-in answers through a new relay")


def test_only_a_traders_certificate_leads_to_the_signer(two: Two, authority: Authority, tmp_path: Path) -> None:
    ours = authority.directory / "trader" / "ca.pem"
    theirs = tls.client_context(Authority(tmp_path / "theirs").certificate("trader", "trader"))
    none, old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), tls.client_context(authority.directory / "trader")
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    contexts = {
        "of another authority": theirs,
        "none": none,
        "TLS 1.2": old,
        **{name: tls.client_context(authority.directory / name) for name in ("signer", "other", "expired")},
    }
    for what, context in contexts.items():
        context.load_verify_locations(ours)
        with pytest.raises(PeerUnavailable):
            print(what, ask(tls.FarAddress(two.at, context, tls.SIGNER), "signer", STATUS, timeout=10))
    assert two.stand_in.heard == []
    good = tls.FarAddress(two.at, tls.client_context(authority.directory / "trader"), tls.SIGNER)
    assert ask(good, "signer", STATUS, timeout=10)


@pytest.mark.parametrize("false", ["trader", "other", "expired", "of another authority"])
def test_a_relay_asks_nobody_with_another_certificate(
    two: Two, authority: Authority, tmp_path: Path, false: str
) -> None:
    two.signer.end("relay")
    if false == "of another authority":
        certificates = Authority(tmp_path / "theirs").certificate("signer", "signer")
    else:
        certificates = authority.directory / false
    context = tls.server_context(certificates)
    context.verify_mode = ssl.CERT_NONE
    received: list[bytes] = []

    def listen(listener: socket.socket) -> None:
        with contextlib.suppress(OSError), context.wrap_socket(listener.accept()[0], server_side=True) as connection:
            received.append(connection.recv(1000))

    with socket.create_server(two.at) as listener:
        thread = threading.Thread(target=listen, args=(listener,))
        thread.start()
        with pytest.raises(PeerUnavailable):
            ask(two.socket, "signer", STATUS, timeout=10)
        thread.join(10)
    assert not any(received)


def test_only_who_may_enter_the_directory_may_ask(two: Two) -> None:
    interpreter()
    tried = """
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    print("denied")
else:
    print("connected")
"""
    assert two.socket.stat().st_mode & 0o777 == 0o666
    assert two.socket.parent.stat().st_mode & 0o777 == 0o710
    two.trader.data_dir.chmod(0o755)
    os.chown(two.socket.parent, 0, GROUP)
    assert run_as(STRANGER, tried, two.socket, groups=[]) == "denied"
    assert run_as(STRANGER, tried, two.socket) == "connected"


def test_a_relay_does_not_start_open_or_with_a_loose_key(two: Two, authority: Authority) -> None:
    two.trader.end("relay")
    loose = authority.certificate("trader", "loose")
    (loose / "key.pem").chmod(0o644)
    assert two.trader.start("relay", BIDKEEPER_TLS_DIR=str(loose)).wait(180) == 1
    assert "chmod 600" in two.trader.said("relay")
    (open_to_all := two.trader.data_dir / "open").mkdir()
    open_to_all.chmod(0o755)
    assert two.trader.start("relay", BIDKEEPER_RELAY_DIR=str(open_to_all)).wait(180) == 1
    assert "every user can enter" in two.trader.said("relay")


def test_a_second_relay_is_refused_and_one_that_was_killed_starts_again(two: Two) -> None:
    first = two.trader.processes["relay"]
    assert two.trader.start("relay").wait(180) == 1
    assert "another relay runs" in two.trader.said("relay")
    two.trader.processes["relay"] = first
    until(two.answers, "the first one's answer")
    two.trader.end("relay", signal.SIGKILL)
    assert two.socket.exists()
    two.trader.start("relay")
    until(two.answers, "the relay that came after a killed one hands on")


def test_a_renewed_certificate_is_taken_at_sighup(two: Two, authority: Authority) -> None:
    used = Path(two.trader.environment["BIDKEEPER_TLS_DIR"])
    kept = {name: (used / name).read_bytes() for name in ("cert.pem", "key.pem")}

    def put(files: dict[str, bytes]) -> None:
        for name, content in files.items():
            (used / name).write_bytes(content)
        two.trader.processes["relay"].send_signal(signal.SIGHUP)

    put({name: (authority.directory / "expired" / name).read_bytes() for name in kept})
    until(lambda: not two.answers(), "the expired certificate is shown")
    put(kept)
    until(two.answers, "the good one is shown")


def test_an_authority_is_replaced_without_a_gap(two: Two, authority: Authority, tmp_path: Path) -> None:
    new = Authority(tmp_path / "new")
    both = (authority.directory / "ca.pem").read_text() + (new.directory / "ca.pem").read_text()
    for host, role in ((two.trader, "trader"), (two.signer, "signer")):
        host.end("relay")
        # First every host takes both, then each gets a certificate of the new one, in any order.
        renewed = (new if role == "signer" else authority).certificate(role, f"renewed-{role}")
        (renewed / "ca.pem").write_text(both)
        host.start("relay", BIDKEEPER_TLS_DIR=str(renewed))
    until(two.answers, "the old and the new authority's certificates are both taken")
    context = tls.client_context(new.certificate("trader", "only-new"))
    assert ask(tls.FarAddress(two.at, context, tls.SIGNER), "signer", STATUS, timeout=10)


def test_the_relay_needs_nothing_but_its_sockets_and_certificates(two: Two) -> None:
    """On the signer's host it is a user of its own, and the one whom the signer answers."""
    python = interpreter()
    two.signer.end("relay")
    data = two.signer.data_dir
    certificates = data / "certificates"
    shutil.copytree(two.signer.environment["BIDKEEPER_TLS_DIR"], certificates)
    shutil.rmtree(data / "relay")
    (data / "relay").mkdir(mode=0o710)
    for path in (certificates, *certificates.iterdir(), data / "relay"):
        os.chown(path, RELAY, GROUP)
    data.chmod(0o755)
    os.chown(two.stand_in.path, 0, GROUP)
    environment = two.signer.environment | {
        "PYTHONPATH": packages(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "BIDKEEPER_TLS_DIR": str(certificates),
    }
    with (data / "logs" / "relay.log").open("ab") as log:
        two.signer.processes["relay"] = subprocess.Popen(
            [python, "-m", "cli.main", "relay"],
            user=RELAY,
            group=GROUP,
            extra_groups=[],
            env=environment,
            cwd=CHECKOUT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    until(two.answers, "the relay that is not root's hands on")
    assert (data / "relay" / "relay.pid").stat().st_uid == RELAY


def test_a_silent_relay_or_host_keeps_an_asker_no_longer_than_its_patience(two: Two) -> None:
    """A host that vanishes sends nothing either: its relay's process is stopped, not ended."""
    for host in (two.trader, two.signer):
        worker = two.nginx_worker(host)
        os.kill(worker, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(PeerUnavailable):
                ask(two.socket, "signer", STATUS, timeout=2)
            assert time.monotonic() - began < 30
        finally:
            os.kill(worker, signal.SIGCONT)
        until(two.answers, "it answers again")


@pytest.mark.parametrize("which", ["trader", "signer"])
def test_a_relay_that_dies_on_the_way_leaves_the_outcome_unknown_at_once(two: Two, which: str) -> None:
    two.stand_in.may_answer.clear()
    with ThreadPoolExecutor(1) as askers:
        asked = askers.submit(ask, two.socket, "signer", STATUS, timeout=60)
        until(lambda: two.stand_in.heard, "the question has arrived")
        os.kill(two.nginx_worker(getattr(two, which)), signal.SIGKILL)
        with pytest.raises(PeerUnavailable):
            asked.result(30)
    two.stand_in.may_answer.set()
    until(two.answers, "nginx has a new process")


def test_one_slow_handshake_does_not_close_the_way_to_the_only_gateway(authority: Authority) -> None:
    """The other host stands by and refuses, so that nginx has nobody else."""
    need_relay()
    at, standby = (HostPort("127.0.0.1", port) for port in free_ports(2))
    certificates = authority.directory / "trader"
    settings = {"BIDKEEPER_GATEWAY_HOSTS": f"{at},{standby}", "BIDKEEPER_TLS_DIR": str(certificates)}
    with tempfile.TemporaryDirectory(prefix="bk-") as directory, contextlib.ExitStack() as stack:
        host = Host(Path(directory), os.environ | settings)
        host.start("relay")
        stack.callback(host.end, "relay")
        path = host.data_dir / "relay" / "gateway.sock"
        until(path.exists, "the relay's socket")
        asyncio.run(_slow_once(at, path, certificates))


async def _slow_once(at: HostPort, path: Path, certificates: Path) -> None:
    async def answer(request: dict[str, Any]) -> dict[str, Any]:
        return {"state": "ready"}

    began = time.monotonic()
    # It takes the connection and says nothing.
    with socket.create_server((at.host, at.port)), pytest.raises(PeerUnavailable):
        await asyncio.to_thread(ask, path, "gateway", STATUS, timeout=10)
    assert time.monotonic() - began > 0.9, "nginx has not waited for the handshake"
    async with await serve_far(at, Answers(answer), context=tls.server_context(certificates)):
        assert await asyncio.to_thread(ask, path, "gateway", STATUS, timeout=10) == {"state": "ready"}
