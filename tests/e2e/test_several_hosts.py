"""A task's whole life where gateway and signer are on other hosts, reached over TLS by the relays alone."""

from __future__ import annotations

import signal
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from core import tls
from core.setting_values import host_port
from tests import postgresql
from tests.authority import Authority
from tests.cli.commands import in_this_process
from tests.e2e.hosts import Host, Hosts, hosts
from tests.e2e.installation import PATIENCE, Trader, until

pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # deploy/test_relay.py


@pytest.fixture(scope="module")
def service() -> Iterator[Hosts]:
    with hosts() as made:
        yield made


def test_a_task_places_outbids_and_cancels(service: Hosts, trader: Trader) -> None:
    slug = "over-tls"
    service.sim("PUT", f"/sim/collections/{slug}", {"asks": [{"price": 100_000}], "bids": [{"price": 62_000}]})
    bids = {"bidMode": "fixed", "bidFixedLow": 50_000, "bidFixedHigh": 80_000, "bidCount": 2, "loopSeconds": 5}
    task = trader.task(slug=slug, **bids, outbidEnabled=True, outbidAmount=1_000)
    trader.start(task)
    until(lambda: 63_000 in trader.bids(task), "a bid above the rival's")
    trader.stop_and_drain(task)
    until(lambda: trader.bids(task) == [], "the service shows none")
    for host in service.hosts:
        for program in host.processes:
            assert "Traceback" not in host.said(program), program


@pytest.mark.skipif(postgresql.is_wanted(), reason="the driver of PostgreSQL imports asyncio, and that imports ssl")
def test_no_worker_has_tls_in_it(service: Hosts, trader: Trader) -> None:
    task = trader.task(slug="no-tls", bidCount=1, hardcapSats=900_000, loopSeconds=5)
    trader.start(task)
    trader.next_cycle(task)
    (worker,) = service.workers(task)
    maps = Path(f"/proc/{worker}/maps").read_text()
    assert "libc." in maps and "/_ssl." not in maps
    trader.stop(task)


DOCTOR = ("doctor", "--only", "programs")


def _well(host: Host) -> str:
    """Returns the doctor's words on a host whose programs have all answered within their five seconds; else nothing."""
    code, said, _ = in_this_process(host.environment, *DOCTOR)
    print(said)
    return said if code == 0 else ""


def test_the_doctor_finds_each_host_well(service: Hosts) -> None:
    for host in service.hosts:
        said = until(lambda host=host: _well(host), "a host that is well")  # type: ignore[misc]
        assert "more days" in said
        assert ("warn signer: does not run on this host" in said) == (host is service.away)
        assert ("warn gateway: does not run on this host" in said) == (host is service.vault)
    older = service.vault.environment | {"BIDKEEPER_GATEWAY_HOSTS": service.listens["gateway"]}
    code, said, _ = in_this_process(older, *DOCTOR)
    assert code == 0 and "warn gateway: BIDKEEPER_GATEWAY_HOSTS is set, but the gateway does not answer" in said
    service.here.end("relay")
    code, said, _ = in_this_process(service.here.environment, *DOCTOR)
    assert code == 1 and "FAIL signer: does not answer" in said
    service.here.start("relay")
    until(service.everything_answers, "everything answers again")


def test_readiness_sees_through_the_relay(service: Hosts) -> None:
    """The relay's socket takes connections whether or not there is a program behind it."""
    for program in ("facts", "gateway"):
        service.away.end(program)
        until(lambda program=program: _missing(service) == [program], f"{program} is missed")
        service.away.start(program)
        until(service.everything_answers, "everything answers again")


def _missing(service: Hosts) -> list[str]:
    answer = requests.get(service.url + "/readyz", timeout=30)
    return list(answer.json().get("missing", []))


def test_a_task_outlives_the_death_of_gateway_signer_and_relays(service: Hosts, trader: Trader) -> None:
    slug = "deaths"
    service.sim("PUT", f"/sim/collections/{slug}", {"asks": [{"price": 1_000_000}], "bids": []})
    task = trader.task(slug=slug, bidCount=3, hardcapSats=900_000, loopSeconds=5, minAgeSeconds=0)
    trader.start(task)
    until(lambda: len(trader.bids(task)) == 3, "three bids")
    for host, program in (
        (service.here, "relay"),
        (service.away, "gateway"),
        (service.vault, "relay"),
        (service.vault, "signer"),
    ):
        host.end(program, signal.SIGKILL)
        service.sim("PUT", f"/sim/collections/{slug}", {"asks": [{"price": 800_000}], "bids": []})
        host.start(program)
        until(service.everything_answers, f"everything answers after the death of the {program}")
        # A bid whose answer dies with the next program would keep its rung until it expires.
        until(lambda: service.live_prices(slug)[:2] == [600_000, 360_000], "the ladder under the new floor")
        trader.next_cycle(task)
    until(lambda: len(trader.bids(task)) == 3, "three bids still")
    trader.stop_and_drain(task)
    assert service.live_prices(slug) == []


@postgresql.only
def test_the_relays_find_the_gateway_that_stood_by(service: Hosts, trader: Trader) -> None:
    for slug in ("before", "after"):
        service.sim("PUT", f"/sim/collections/{slug}", {"asks": [{"price": 1_000_000}], "bids": []})
    before, after = (
        trader.task(slug=slug, bidCount=2, hardcapSats=900_000, loopSeconds=5) for slug in ("before", "after")
    )
    trader.start(before)
    until(lambda: len(trader.bids(before)) == 2, "two bids")
    with tempfile.TemporaryDirectory(prefix="bk-") as directory:
        spare = Host(Path(directory), service.away.environment | {"BIDKEEPER_GATEWAY_LISTEN": service.standby})
        spare.start("gateway")
        try:
            until(lambda: "stands by" in spare.said("gateway"), "the second gateway stands by")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(host_port(service.standby), 10)
            service.away.end("gateway", signal.SIGKILL)
            until(service.ready_again, "the second gateway answers through the relays")
            trader.next_cycle(before)
            trader.start(after)
            until(lambda: len(trader.bids(after)) == 2, "two bids by the second gateway")
        finally:
            spare.end("gateway")
    service.away.start("gateway")
    until(service.everything_answers, "the first one answers again")
    for task in (before, after):
        trader.stop_and_drain(task)


@pytest.mark.parametrize("program", ["gateway", "facts", "manager"])
def test_a_program_with_a_loose_key_neither_listens_nor_stands_by(service: Hosts, program: str) -> None:
    loose = service.authority.certificate("trader", f"loose-{program}")
    (loose / "key.pem").chmod(0o644)
    with tempfile.TemporaryDirectory(prefix="bk-") as directory:
        environment = (service.trading if program == "manager" else service.away).environment
        other = Host(Path(directory), environment | {"BIDKEEPER_SLOT": "0" if postgresql.is_wanted() else ""})
        try:
            assert other.start(program, BIDKEEPER_TLS_DIR=str(loose)).wait(PATIENCE) == 1
        finally:
            other.end(program)
        assert "chmod 600" in other.said(program)


def test_every_certificate_but_the_right_one_is_refused_everywhere(service: Hosts, tmp_path: Path) -> None:
    ours = service.authority.directory / "trader" / "ca.pem"
    none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    contexts = {
        "of another authority": tls.client_context(Authority(tmp_path / "theirs").certificate("trader", "trader")),
        "none": none,
        "expired": tls.client_context(service.authority.certificate("trader", "expired", days=-1)),
        "of an unknown role": tls.client_context(service.authority.certificate("other", "other")),
    }
    roles = {"gateway": tls.TRADER, "facts": tls.TRADER, "signer": tls.SIGNER, "manager": tls.TRADER}
    for program, address in service.listens.items():
        for what, context in contexts.items():
            context.load_verify_locations(ours)
            assert _heard(program, address, context, roles[program]) == b"", f"{program}: {what}"
        good = tls.client_context(service.authority.directory / "trader")
        assert b'"ok"' in _heard(program, address, good, roles[program])
    signers = tls.client_context(service.authority.directory / "signer")
    for program in ("gateway", "signer", "manager"):
        assert _heard(program, service.listens[program], signers, roles[program]) == b"", program


def _heard(program: str, address: str, context: ssl.SSLContext, role: str) -> bytes:
    """Returns the answer to a question for the status; empty where the connection is closed."""
    question = b'{"op": "status"}\n'
    if program in ("gateway", "facts"):
        body = b'{"verb": "status", "args": {}}'
        question = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    try:
        with tls.FarAddress(host_port(address), context, role).connect(30) as connection:
            connection.sendall(question)
            received = b""
            while b"}" not in received and (more := connection.recv(65536)):
                received += more
            return received
    except OSError:
        return b""
