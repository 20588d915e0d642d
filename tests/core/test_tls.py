"""One JSON line each way between hosts: who has no certificate for it is told nothing and not heard."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import tls
from core.errors import BidkeeperError, PeerRefused, PeerUnavailable
from core.local_server import serve_far
from core.setting_values import HostPort
from tests.authority import Authority
from tests.core.test_local import answer
from tests.json_lines import Answers, ask
from tests.ports import free_ports


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority") / "ours")
    made.certificate("trader", "trader")
    made.certificate("signer", "signer")
    return made


@pytest.fixture
def trader(authority: Authority) -> Path:
    return authority.directory / "trader"


@pytest.fixture
def heard(trader: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[HostPort, list[object]]]:
    """A manager for other hosts, on its own thread, and what it has been asked."""
    monkeypatch.setattr(tls, "HANDSHAKE_S", 60.0)  # on a busy machine ten seconds may be short
    at = HostPort("127.0.0.1", *free_ports(1))
    asked: list[object] = []
    loop = asyncio.new_event_loop()

    def hear(request: dict[str, object]) -> dict[str, object]:
        asked.append(request)
        return answer(request)

    async def begin() -> asyncio.Server:
        return await serve_far(at, Answers(hear), context=tls.server_context(trader))

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
    yield at, asked

    async def end() -> None:
        server.close()
        await server.wait_closed()

    asyncio.run_coroutine_threadsafe(end(), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


def far(at: HostPort, directory: Path, role: str = "trader") -> tls.FarAddress:
    return tls.FarAddress(at, tls.client_context(directory), role)


def test_another_host_asks_and_is_answered(heard: tuple[HostPort, list[object]], trader: Path) -> None:
    at, asked = heard
    assert ask(far(at, trader), "peer", {"op": "yes"}, timeout=60) == {"echo": {"op": "yes"}}
    with pytest.raises(PeerRefused, match="come back tomorrow"):
        ask(far(at, trader), "peer", {"op": "no"}, timeout=60)
    assert len(asked) == 2


def test_who_lacks_the_certificate_is_not_heard(
    heard: tuple[HostPort, list[object]], authority: Authority, trader: Path, tmp_path: Path
) -> None:
    at, asked = heard
    strangers = Authority(tmp_path / "theirs").certificate("trader", "trader")
    theirs = tls.client_context(strangers)
    theirs.load_verify_locations(trader / "ca.pem")  # they take ours, but we do not take theirs
    none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    none.load_verify_locations(trader / "ca.pem")
    unknown = authority.certificate("other", "other")
    expired = authority.certificate("trader", "expired", days=-1)
    contexts = {
        "of another authority": theirs,
        "none": none,
        "of an unknown role": tls.client_context(unknown),
        "of the signer": tls.client_context(authority.directory / "signer"),
        "expired": tls.client_context(expired),
    }
    for what, context in contexts.items():
        with pytest.raises(PeerUnavailable):
            print(what, ask(tls.FarAddress(at, context), "peer", {"op": "yes"}, timeout=60))
    assert asked == []
    assert ask(far(at, trader), "peer", {"op": "yes"}, timeout=60)


def test_an_answer_is_taken_from_the_right_role_and_authority_alone(
    heard: tuple[HostPort, list[object]], trader: Path, tmp_path: Path
) -> None:
    at, asked = heard
    with pytest.raises(PeerUnavailable, match="ostname mismatch"):
        ask(far(at, trader, role="signer"), "peer", {"op": "yes"}, timeout=60)
    strangers = Authority(tmp_path / "theirs").certificate("trader", "trader")
    with pytest.raises(PeerUnavailable, match="certificate verify failed"):
        ask(far(at, strangers), "peer", {"op": "yes"}, timeout=60)
    assert asked == []


def test_nothing_older_than_tls_1_3_is_spoken(heard: tuple[HostPort, list[object]], trader: Path) -> None:
    at, asked = heard
    context = tls.client_context(trader)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(PeerUnavailable):
        ask(tls.FarAddress(at, context), "peer", {"op": "yes"}, timeout=60)
    assert asked == []


def test_a_host_that_is_not_there_or_silent_is_unavailable(trader: Path) -> None:
    (port,) = free_ports(1)
    at = HostPort("127.0.0.1", port)
    with pytest.raises(PeerUnavailable, match=f"cannot be asked at 127.0.0.1:{port}: Connection refused"):
        ask(far(at, trader), "peer", {"op": "yes"}, timeout=60)
    with socket.create_server(at), pytest.raises(PeerUnavailable, match="timed out"):
        ask(far(at, trader), "peer", {"op": "yes"}, timeout=0.2)


def test_a_key_that_others_may_read_is_refused(authority: Authority) -> None:
    directory = authority.certificate("trader", "loose")
    assert tls.server_context(directory)
    (directory / "key.pem").chmod(0o644)
    for make in (tls.server_context, tls.client_context):
        with pytest.raises(BidkeeperError, match="chmod 600"):
            make(directory)


@pytest.mark.parametrize("file", ["ca.pem", "cert.pem", "key.pem"])
def test_a_missing_or_broken_file_is_named(authority: Authority, file: str) -> None:
    directory = authority.certificate("trader", f"broken-{file}")
    (directory / file).write_text("not a certificate")
    with pytest.raises(BidkeeperError, match=str(directory)):
        tls.server_context(directory)
    (directory / file).unlink()
    with pytest.raises(BidkeeperError, match=str(directory)):
        tls.server_context(directory)


@pytest.mark.parametrize("file", ["ca.pem", "cert.pem", "key.pem"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_certificate_file_of_a_windows_editor_is_refused_by_its_name(
    authority: Authority, file: str, encoding: str
) -> None:
    directory = authority.certificate("trader", f"{encoding}-{file}")
    text = (directory / file).read_text()
    (directory / file).write_bytes(text.encode(encoding))
    with pytest.raises(BidkeeperError, match=f"{directory / file} is UTF-16 or begins with a byte order mark"):
        tls.client_context(directory)


def test_without_certificates_nothing_is_asked_or_answered() -> None:
    with pytest.raises(BidkeeperError, match="BIDKEEPER_TLS_DIR"):
        tls.server_context(None)
