"""Money out, through the socket: drafts, submits and broadcasts, and what an outcome means."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from markets.base import NotFound, NotSupported, RateLimited, Refused, Unavailable, Unknown
from tests.gateway.conftest import PAUSE_S, SOON_S, Bench, eventually, soon
from tests.gateway.fake_venue import CUT

RAW, TXID, PSBT = "02" * 100, "ab" * 32, "cHNidP8BAA=="
TX, DRAFT, SUBMIT = "/api/tx", "/intent/withdraw", "/withdraw"
FOUND = f"/api/tx/{TXID}"


def broadcast(bench: Bench, within_s: float = SOON_S) -> str:
    return bench.client().broadcast(RAW, deadline_ms=soon(within_s))


def submit(bench: Bench, within_s: float = SOON_S) -> str:
    return bench.client().submit_withdrawal("bc1qpayment", PSBT, deadline_ms=soon(within_s))


def test_a_broadcast_sends_the_hex_once(bench: Bench) -> None:
    bench.venue.answers[TX] = TXID
    assert broadcast(bench) == TXID
    (call,) = bench.venue.of(TX)
    assert call.body == RAW


def test_a_draft_and_a_submit_are_as_the_venue_wants_them(bench: Bench) -> None:
    bench.venue.answers[DRAFT] = {"success": True, "data": {"unsignedPSBTBase64": PSBT, "paymentUtxoCount": 1}}
    bench.venue.answers[SUBMIT] = {"success": True, "data": {"txid": TXID}}
    assert bench.client().draft_withdrawal("bc1qpayment", 5_000) == PSBT
    assert submit(bench) == TXID
    assert bench.venue.of(DRAFT)[0].body == {"userAddress": "bc1qpayment", "amount": 5_000}
    assert bench.venue.of(SUBMIT)[0].body == {"signedWithdrawPSBT": PSBT, "bidderPaymentAddress": "bc1qpayment"}


@pytest.mark.parametrize("path", [TX, SUBMIT])
@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (CUT, 200, Unknown),
        ("", 500, Unknown),
        ("", 502, Unknown),
        ("not a txid", 200, Unknown),
        ("", 200, Unknown),
        ({"success": True, "data": {}}, 200, Unknown),
        ({"error": "slow down"}, 429, RateLimited),
        ('{"error": "bad-txns-inputs-missingorspent"}', 400, Refused),
    ],
)
def test_what_an_outcome_means(bench: Bench, path: str, answer: Any, status: int, error: type[Exception]) -> None:
    bench.venue.answers[path], bench.venue.statuses[path] = answer, status
    with pytest.raises(error) as raised:
        (broadcast if path == TX else submit)(bench)
    assert type(raised.value) is error
    assert len(bench.venue.of(path)) == 1, "nothing is sent twice"


def test_the_nodes_reason_is_told(bench: Bench) -> None:
    bench.venue.answers[TX] = 'sendrawtransaction RPC error: {"code":-26,"message":"dust"}'
    bench.venue.statuses[TX] = 400
    with pytest.raises(Refused, match="dust"):
        broadcast(bench)


@pytest.mark.parametrize("send", [broadcast, submit])
def test_a_deadline_that_has_passed_sends_nothing(bench: Bench, send: Callable[..., str]) -> None:
    with pytest.raises(Unavailable, match="nothing was sent"):
        send(bench, -1)
    assert not bench.venue.calls


def test_an_asker_that_is_gone_sends_nothing(bench: Bench) -> None:
    budget = bench.gateway.venues.mempool.budget
    bench.run(budget.pause, PAUSE_S)
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(str(bench.settings.gateway_socket))
        request = {"verb": "broadcast", "args": {"transaction": RAW}, "deadline_ms": soon()}
        body = json.dumps(request).encode()
        asker.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        eventually(lambda: budget.waiting() == 1)
    eventually(lambda: budget.waiting() == 0, within_s=30)  # before the pause's end
    bench.go_on(budget)
    # A broadcast is more urgent than a read: had it stayed in the queue, it would be sent before.
    bench.venue.answers[FOUND] = {"txid": TXID, "status": {"confirmed": True, "block_height": 900_000}}
    assert bench.client().is_confirmed(TXID, 0) is True
    assert [call.path for call in bench.venue.calls] == [FOUND]


@pytest.mark.parametrize("raw", ["", "02", "zz" * 100, "0" * 121, "AB" * 100, "ab" * 100_001, 5, None])
def test_what_is_no_transaction_is_not_sent(bench: Bench, raw: Any) -> None:
    with pytest.raises(Refused) as refused:
        bench.client().broadcast(raw, deadline_ms=soon())
    assert refused.value.code == "bad_request"
    assert not bench.venue.calls


@pytest.mark.parametrize("amount", [0, -1, 1.5, True, None, "5", 2**60])
def test_what_is_no_amount_is_not_drafted(bench: Bench, amount: Any) -> None:
    with pytest.raises(Refused):
        bench.client().draft_withdrawal("bc1qpayment", amount)
    assert not bench.venue.calls


def test_what_became_of_a_transaction(bench: Bench) -> None:
    bench.venue.answers[FOUND] = {"txid": TXID, "status": {"confirmed": False}}
    assert bench.client().is_confirmed(TXID, 0) is False
    bench.venue.answers[FOUND] = {"txid": TXID, "status": {"confirmed": True, "block_height": 900_000}}
    assert bench.client().is_confirmed(TXID, 0) is True
    bench.venue.answers[FOUND] = {"txid": TXID}
    with pytest.raises(Unavailable):
        bench.client().is_confirmed(TXID, 0)
    with pytest.raises(Refused):
        bench.client().is_confirmed("x", 0)


@pytest.mark.parametrize(
    "said",
    ["Transaction not found", {"error": "No such mempool or blockchain transaction"}],
    ids=["esplora", "mempool"],
)
def test_a_transaction_that_nobody_has_does_not_wait_for_its_block(bench: Bench, said: Any) -> None:
    """Esplora's status of one is `confirmed: false`, as of one that waits."""
    bench.venue.answers[FOUND + "/status"] = {"confirmed": False}
    bench.venue.answers[FOUND], bench.venue.statuses[FOUND] = said, 404
    with pytest.raises(NotFound):
        bench.client().is_confirmed(TXID, 0)
    bench.venue.answers[FOUND] = "<html>"
    with pytest.raises(Unavailable):
        bench.client().is_confirmed(TXID, 0)


@pytest.mark.parametrize(
    "said",
    [
        'sendrawtransaction RPC error: {"code":-27,"message":"Transaction outputs already in utxo set"}',
        {"error": 'sendrawtransaction RPC error: {"code":-27}'},
        'sendrawtransaction RPC error: {"code":-28,"message":"Loading block index..."}',
        "sendrawtransaction RPC error -28: Loading block index...",
        {"error": 'sendrawtransaction RPC error: {"code":"ECONNREFUSED"}'},
    ],
    ids=["esplora, in a block", "mempool, in a block", "esplora, the node starts", "newer", "mempool, no node"],
)
def test_what_is_no_verdict_on_a_transaction_does_not_refuse_it(bench: Bench, said: Any) -> None:
    bench.venue.answers[TX], bench.venue.statuses[TX] = said, 400
    with pytest.raises(Unknown, match="RPC error"):
        broadcast(bench)


@pytest.mark.parametrize("code", [-22, -25, -26])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_nodes_verdicts(bench: Bench, code: int, wrapped: bool) -> None:
    said = f'sendrawtransaction RPC error: {{"code":{code}}}'
    bench.venue.answers[TX], bench.venue.statuses[TX] = {"error": said} if wrapped else said, 400
    with pytest.raises(Refused, match=str(code)):
        broadcast(bench)


def test_real_satflow_takes_the_same(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(market="satflow", satflow_api_key="k")
    bench.venue.answers[SUBMIT] = {"success": True, "data": {"txid": TXID}}
    assert submit(bench) == TXID


def test_other_venues_have_no_bidding_wallet(bench: Bench) -> None:
    for venue in ("simulator-ordnet", "simulator-unisat", "simulator-ordinalswallet"):
        with pytest.raises(NotSupported):
            bench.client().at(venue).draft_withdrawal("bc1qpayment", 5_000)


def test_without_a_mempool_server_nothing_is_broadcast(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(mempool_url=None, market="satflow", satflow_api_key="k")
    with pytest.raises(NotSupported, match="BIDKEEPER_MEMPOOL_URL"):
        broadcast(bench)
