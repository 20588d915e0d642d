"""A gateway on another host, asked through the relay of this one, which stops, dies, or finds it elsewhere."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.setting_values import HostPort
from markets.base import Unavailable, Unknown
from markets.client import MarketClient
from tests.authority import Authority
from tests.e2e.hosts import Host, need_relay
from tests.e2e.installation import until
from tests.gateway.conftest import ORDER, Bench, soon
from tests.ports import free_ports

pytestmark = pytest.mark.slow

PLACE = "/bid/place"


class Relayed:
    """A gateway at the second of two addresses, at the first of which nobody listens, and the relay to it."""

    def __init__(self, bench: Bench, directory: Path, certificates: Path, role: str) -> None:
        need_relay()
        self.bench = bench
        self.places = [HostPort("127.0.0.1", port) for port in free_ports(2)]
        self.servers = bench.run(bench.gateway.listen_far, self.places[1])
        self.host = Host(
            directory,
            os.environ
            | {
                "BIDKEEPER_GATEWAY_HOSTS": ",".join(map(str, self.places)),
                "BIDKEEPER_TLS_DIR": str(certificates / role),
            },
        )
        self.host.start("relay")
        self.socket = directory / "relay" / "gateway.sock"
        if role == "trader":
            until(self.answers, "the gateway answers through the relay")

    def client(self, timeout_s: float = 30) -> MarketClient:
        return MarketClient(self.socket, timeout_s)

    def answers(self) -> bool:
        assert self.host.processes["relay"].poll() is None, self.host.said("relay")
        with self.client(5) as client:
            return answered(client)

    def move(self) -> None:
        """Has the gateway listen at the first address, as another host's would."""
        self.leave()
        self.servers = self.bench.run(self.bench.gateway.listen_far, self.places[0])

    def leave(self) -> None:
        async def end() -> None:
            for server in self.servers:
                server.stop()
                await server.close_all_connections()

        self.bench.run(end)

    def signal_nginx(self, number: int) -> None:
        pid = self.host.processes["relay"].pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # Its other child watches the socket.
        (worker,) = (each for each in children if Path(f"/proc/{each}/comm").read_text().strip() == "nginx")
        os.kill(int(worker), number)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority") / "ours")
    for role in ("trader", "signer"):
        made.certificate(role, role)
    return made


@pytest.fixture
def relay(make_bench: Callable[..., Bench], authority: Authority) -> Iterator[Callable[..., Relayed]]:
    made: list[Relayed] = []
    with tempfile.TemporaryDirectory(prefix="bk-") as directory:

        def make(role: str = "trader") -> Relayed:
            bench = make_bench(tls_dir=authority.directory / "trader")
            made.append(Relayed(bench, Path(directory), authority.directory, role))
            return made[-1]

        yield make
        for each in made:
            each.leave()
            each.host.end("relay")


def answered(client: MarketClient) -> bool:
    """Tells whether the gateway answers, which keeps the connection; a busy one may be too late for the relay's 1 s."""
    try:
        return bool(client.status())
    except Unavailable:
        return False


def place(client: MarketClient) -> None:
    client.place(ORDER, task=1, token=1, deadline_ms=soon())


def test_a_write_whose_relay_dies_is_unknown_and_not_sent_again(relay: Callable[..., Relayed]) -> None:
    relayed = relay()
    relayed.bench.venue.closed_gates.add(PLACE)
    with ThreadPoolExecutor(1) as askers, relayed.client() as client:
        until(lambda: answered(client), "the write goes over a kept connection")
        written = askers.submit(place, client)
        until(lambda: len(relayed.bench.venue.of(PLACE)) == 1, "it has reached the venue")
        relayed.signal_nginx(signal.SIGKILL)
        with pytest.raises(Unknown):
            written.result(60)
        relayed.bench.venue.closed_gates.clear()
        until(relayed.answers, "nginx has a new process")
        until(lambda: answered(client), "the same client goes on")
    assert len(relayed.bench.venue.of(PLACE)) == 1


@pytest.mark.parametrize(("ask", "lost"), [(place, Unknown), (lambda client: client.fence(1, 2), Unavailable)])
def test_a_relay_that_stops_keeps_nobody_longer_than_its_patience(
    relay: Callable[..., Relayed], ask: Callable[[MarketClient], None], lost: type[Exception]
) -> None:
    relayed = relay()
    with relayed.client() as client:
        until(lambda: answered(client), "the question goes over a kept connection")
        relayed.signal_nginx(signal.SIGSTOP)
        patience_s, client._http._timeout_s = client._http._timeout_s, 1
        try:
            with pytest.raises(lost, match="timed out"):
                ask(client)
        finally:
            client._http._timeout_s = patience_s
            relayed.signal_nginx(signal.SIGCONT)
        until(relayed.answers, "it goes on")
        until(lambda: answered(client), "the same client goes on")


def test_a_write_that_waits_is_dropped_when_its_asker_has_left(relay: Callable[..., Relayed]) -> None:
    relayed = relay()
    relayed.bench.pause()
    with ThreadPoolExecutor(1) as askers:
        leaver = relayed.client()
        until(lambda: answered(leaver), "the write goes over a kept connection")
        written = askers.submit(place, leaver)
        until(lambda: relayed.bench.run(relayed.bench.waiting) == 1, "it waits for its turn")
        leaver._http._socket.shutdown(2)  # type: ignore[union-attr]
        with pytest.raises(Unknown):
            written.result(60)
    until(lambda: relayed.bench.run(relayed.bench.waiting) == 0, "it waits no more")
    assert relayed.bench.venue.of(PLACE) == []


def test_a_gateway_that_moves_is_found_and_one_that_is_away_is_unavailable(relay: Callable[..., Relayed]) -> None:
    relayed = relay()
    with relayed.client() as client:
        until(lambda: answered(client), "the gateway answers this client")
        relayed.leave()
        with pytest.raises(Unavailable):
            client.status()
        with pytest.raises((Unknown, Unavailable)):  # once the relay has taken all of it, it cannot be called unsent
            place(client)
        assert relayed.bench.venue.of(PLACE) == []
        relayed.move()
        until(lambda: answered(client), "the relay finds the other host")
        place(client)
    assert len(relayed.bench.venue.of(PLACE)) == 1


def test_the_signers_host_gets_no_write_through(
    relay: Callable[..., Relayed], caplog: pytest.LogCaptureFixture
) -> None:
    relayed = relay("signer")
    with relayed.client() as client:
        until(lambda: not answered(client) and "whose role may not ask" in caplog.text, "the gateway refuses the host")
        with pytest.raises((Unknown, Unavailable)):
            place(client)
    assert relayed.bench.venue.of(PLACE) == []
