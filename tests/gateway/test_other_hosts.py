"""Callers of a gateway: other hosts over TLS, and the signer's own user."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core import tls
from core.errors import BidkeeperError
from core.setting_values import HostPort
from gateway.program import Asker
from markets.base import Unavailable, Unknown
from tests.authority import Authority
from tests.e2e.installation import until
from tests.gateway.conftest import ORDER, Bench, soon
from tests.gateway.test_facts_program import ANSWERS, INSCRIPTION, OUTPOINT, FactsBench
from tests.ports import free_ports

WHEREABOUTS = {"verb": "whereabouts", "args": {"inscription_id": INSCRIPTION}, "max_age_s": 0}
FENCE = {"verb": "fence", "args": {}, "task": 1, "token": 1}
OWN_BIDS = {"verb": "own_bids", "args": {"wallet": "bc1qpayment"}, "max_age_s": 0}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority") / "ours")
    for role in ("trader", "signer", "other"):
        made.certificate(role, role)
    return made


class Far:
    """A program that listens for other hosts."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.at = HostPort("127.0.0.1", *free_ports(1))
        bench.venue.answers |= ANSWERS
        self.servers = bench.run(bench.gateway.listen_far, self.at)

    def connect(self, context: ssl.SSLContext) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("gateway")
        connection.sock = tls.FarAddress(self.at, context).connect(10)
        return connection

    def ask(self, certificates: Path, request: dict[str, Any]) -> dict[str, Any]:
        with contextlib.closing(self.connect(tls.client_context(certificates))) as connection:
            connection.request("POST", "/", json.dumps(request))
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer


@pytest.fixture
def make_far(make_bench: Callable[..., Bench], authority: Authority) -> Iterator[Callable[..., Far]]:
    made: list[Far] = []

    def make(kind: type[Bench] = Bench) -> Far:
        made.append(Far(make_bench(kind=kind, with_ord=True, tls_dir=authority.directory / "trader")))
        return made[-1]

    yield make
    for far in made:
        far.bench.run(lambda far=far: [server.stop() for server in far.servers])


def test_traders_may_ask_and_signers_may_not(make_far: Callable[..., Far], authority: Authority) -> None:
    far = make_far()
    assert far.ask(authority.directory / "trader", WHEREABOUTS)["ok"]["address"] == "bc1pvault"
    assert "ok" in far.ask(authority.directory / "trader", FENCE)
    for request in (FENCE, OWN_BIDS, FENCE | {"verb": "place"}, WHEREABOUTS):
        with pytest.raises((OSError, http.client.HTTPException)):
            far.ask(authority.directory / "signer", request)


def test_facts_are_for_both(make_far: Callable[..., Far], authority: Authority) -> None:
    far = make_far(FactsBench)
    for role in ("trader", "signer"):
        found = far.ask(authority.directory / role, {"verb": "outpoint", "args": {"outpoint": OUTPOINT}})
        assert found["ok"]["value"] == 546


def test_a_role_that_may_not_ask_is_closed_unread_and_logged_once(
    make_far: Callable[..., Far], authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    far = make_far()
    with caplog.at_level(logging.WARNING, "gateway.program"):
        for _ in range(3):
            with pytest.raises((OSError, http.client.HTTPException)):
                far.ask(authority.directory / "other", WHEREABOUTS)
    assert [record.getMessage() for record in caplog.records] == [
        "refused a connection of a certificate whose role may not ask, from 127.0.0.1"
    ]
    assert far.bench.venue.calls == []


def test_who_has_no_good_certificate_is_not_heard(
    make_far: Callable[..., Far], authority: Authority, tmp_path: Path
) -> None:
    far, ours = make_far(), authority.directory / "trader" / "ca.pem"
    theirs = tls.client_context(Authority(tmp_path / "theirs").certificate("trader", "trader"))
    none = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    expired = tls.client_context(authority.certificate("trader", "expired", days=-1))
    for context in (theirs, none, expired):
        context.load_verify_locations(ours)
        with (
            pytest.raises((OSError, http.client.HTTPException)),
            contextlib.closing(far.connect(context)) as connection,
        ):
            connection.request("POST", "/", json.dumps(WHEREABOUTS))
            print(connection.getresponse().read())
    assert far.bench.venue.calls == []
    assert far.ask(authority.directory / "trader", WHEREABOUTS)["ok"]


def test_an_asker_that_left_by_tls_sends_nothing(make_far: Callable[..., Far], authority: Authority) -> None:
    far = make_far()
    far.bench.pause()
    connection = far.connect(tls.client_context(authority.directory / "trader"))
    connection.request("POST", "/", json.dumps(OWN_BIDS))
    until(lambda: far.bench.run(far.bench.waiting) == 1, "it waits for its turn")
    connection.close()
    until(lambda: far.bench.run(far.bench.waiting) == 0, "it waits no more")
    assert far.bench.venue.calls == []


def test_a_client_has_left_though_its_last_bytes_are_unread() -> None:
    """Over TLS the last bytes are its goodbye, which nobody reads while its request is worked on."""
    ours, theirs = socket.socketpair()
    with ours:
        asker = Asker(ours)
        assert not asker.is_gone()
        theirs.sendall(b"goodbye")
        assert not asker.is_gone()
        theirs.close()
        assert asker.is_gone()
    assert asker.is_gone()


def test_without_certificates_no_other_host_is_answered(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    with pytest.raises(BidkeeperError, match="BIDKEEPER_TLS_DIR"):
        bench.run(bench.gateway.listen_far, HostPort("127.0.0.1", *free_ports(1)))


ME, OTHER = os.getuid(), os.getuid() + 1


def test_the_gateway_does_not_answer_the_signers_user(make_bench: Callable[..., Bench]) -> None:
    users = {"gateway_clients": frozenset({ME, OTHER}), "signer_clients": frozenset({OTHER})}
    bench = make_bench(with_ord=True, facts_clients=frozenset({ME}), **users)
    client = bench.client()
    for ask in (client.status, lambda: client.place(ORDER, task=1, token=1, deadline_ms=soon())):
        with pytest.raises((Unavailable, Unknown)):
            ask()
    assert bench.venue.calls == []


@pytest.mark.parametrize("signer_clients", [frozenset({ME}), frozenset()])
def test_a_user_who_trades_as_well_gets_all(make_bench: Callable[..., Bench], signer_clients: frozenset[int]) -> None:
    users = {"gateway_clients": frozenset({ME, OTHER}), "signer_clients": signer_clients}
    bench = make_bench(facts_clients=frozenset({ME}), **users)
    bench.client().place(ORDER, task=1, token=1, deadline_ms=soon())
    assert len(bench.venue.of("/bid/place")) == 1
