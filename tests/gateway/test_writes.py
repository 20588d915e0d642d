"""Writes through the socket: fences, deadlines, askers that go, and what an outcome means."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gateway import writes
from gateway.quota import Priority
from gateway.venue import Toll
from gateway.writes import LONGEST_WAIT_MS
from markets import base
from markets.verbs import FenceAll
from tests.clock import Monotonic
from tests.gateway.conftest import ORDER, SOON_S, Bench, eventually, soon
from tests.gateway.fake_venue import CUT

PLACE, CANCEL = "/bid/place", "/cancel"


def _place(bench: Bench, *, task: int = 1, token: int = 1, within_s: float = SOON_S) -> None:
    bench.client().place(ORDER, task=task, token=token, deadline_ms=soon(within_s))


def _read_something(bench: Bench) -> None:
    """A read is the least urgent of all: whatever waited before it has been sent or dropped when it returns."""
    bench.venue.answers["/activity/listings"] = {"data": {"items": []}}
    bench.client().asks("goosinals", 0)


def _cancel(bench: Bench) -> bool:
    return bench.client().cancel("bc1qpayment", ["a" * 24], "AkcwRA==", task=1, token=1, deadline_ms=soon())


def test_a_place_sends_the_documented_body_once(bench: Bench) -> None:
    _place(bench)
    (call,) = bench.venue.calls
    assert (call.path, call.key) == (PLACE, "simulator")
    assert call.body == {
        "price": 500_000,
        "quantity": 1,
        "metaType": "ordinals",
        "collectionSlug": "goosinals",
        "bidderAddress": "bc1qpayment",
        "bidderAddressPublicKey": ORDER.payment_pubkey,
        "bidderTokenReceiveAddress": "bc1preceive",
        "bidExpiry": 1_700_000_960_000,
        "timestamp": 1_700_000_000_000,
        "feeRate": "halfHourFee",
        "signedBiddingMessage": "AkcwRA==",
    }


def test_a_cancel_says_whether_all_went(bench: Bench) -> None:
    client = bench.client()
    for failed in (0, 1):
        bench.venue.answers[CANCEL] = {
            "success": True,
            "data": {"success": True, "successCount": 2 - failed, "failedCount": failed},
        }
        done = client.cancel("bc1qpayment", ["a" * 24, "b" * 24], "AkcwRA==", task=1, token=1, deadline_ms=soon())
        assert done is (failed == 0)
    assert bench.venue.calls[0].body == {
        "makerAddress": "bc1qpayment",
        "orderType": "bid",
        "signature": "AkcwRA==",
        "_ids": ["a" * 24, "b" * 24],
        "multiple": True,
    }


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (400, {"error": "Insufficient balance in bidding wallet"}, base.InsufficientFunds),
        (400, {"error": "Price must be a multiple of 1000 sats"}, base.PriceGrid),
        (400, {"error": "Price is below the minimum of 10000 sats"}, base.BelowMinimum),
        (400, {"error": "bidExpiry must be at least 15 minutes away"}, base.Refused),
        (422, {"error": "no"}, base.Refused),
        (400, b"<html>", base.Unavailable),
        (401, {"error": "bad key"}, base.AuthFailed),
        (404, {"error": "no such collection"}, base.NotFound),
        (403, {"error": "invalid signature"}, base.Refused),
        (200, {"success": False, "error": "no"}, base.Refused),
        (200, {"error": "no"}, base.Refused),
        (200, b"not json", base.Unknown),
        (200, [1], base.Unknown),
        (200, {}, base.Unknown),
        (200, b'{"success": NaN}', base.Unknown),
        (301, {}, base.Unknown),
        (500, {"error": "no"}, base.Unknown),
        (502, b"<html>", base.Unknown),
        (408, {}, base.Unknown),
        (200, CUT, base.Unknown),
    ],
)
def test_what_an_answer_to_a_place_means(bench: Bench, status: int, answer: Any, error: type[base.VenueError]) -> None:
    bench.venue.statuses[PLACE], bench.venue.answers[PLACE] = status, answer
    with pytest.raises(base.VenueError) as raised:
        _place(bench)
    assert type(raised.value) is error
    assert len(bench.venue.calls) == 1


def test_a_429_to_a_place_means_nothing_happened(bench: Bench) -> None:
    bench.venue.statuses[PLACE], bench.venue.answers[PLACE] = 429, {"error": "please retry in 2 minutes"}
    with pytest.raises(base.RateLimited) as raised:
        _place(bench)
    assert raised.value.retry_after_s == 120


def test_a_venue_that_is_not_there_is_unavailable(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(satflow_url="http://127.0.0.1:9")
    with pytest.raises(base.Unavailable):
        _place(bench)


def test_runes_go_to_the_practice_market_only(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(market="satflow", satflow_api_key="secret")
    row = {**{name: getattr(ORDER, name) for name in ORDER.__struct_fields__}, "kind": "runes"}
    with pytest.raises(base.NotSupported):
        bench.client().place(type(ORDER)(**row), task=1, token=1, deadline_ms=soon())
    assert bench.venue.calls == []


@pytest.mark.slow
def test_a_fence_drops_what_is_queued_under_lower_tokens(bench: Bench) -> None:
    bench.pause()
    with ThreadPoolExecutor(4) as askers:
        old = [askers.submit(_place, bench, token=4) for _ in range(3)]
        new = askers.submit(_place, bench, token=5)
        eventually(lambda: bench.waiting() == 4)
        bench.client().fence(1, 5)
        for each in old:
            with pytest.raises(base.Refused) as raised:
                each.result(60)
            assert raised.value.code == "stale_token"
        bench.go_on()
        new.result(60)
    assert len(bench.venue.of(PLACE)) == 1
    with pytest.raises(base.Refused, match="fenced"):
        _place(bench, token=4)
    _place(bench, task=2, token=4)


def test_a_fence_says_which_token_it_is_at(bench: Bench) -> None:
    """So that whoever asks for a lower one, out of a database that has gone back, hears of it."""
    assert bench.client().fence(1, 5) == 5
    assert bench.client().fence(1, 3) == 5
    assert bench.client().fence(2, 3) == 3


def test_a_fence_waits_for_what_is_on_the_wire(bench: Bench) -> None:
    bench.venue.closed_gates.add(PLACE)
    with ThreadPoolExecutor(2) as askers:
        place = askers.submit(_place, bench, token=1)
        eventually(lambda: len(bench.venue.of(PLACE)) == 1)
        fence = askers.submit(bench.client().fence, 1, 2)
        eventually(lambda: bench.gateway.fences._least.get(1) == 2)
        assert not fence.done()
        bench.client().fence(2, 9)  # another task's fence has nothing to wait for
        bench.venue.closed_gates.clear()
        place.result(60)
        fence.result(60)


def test_many_tasks_are_fenced_at_once_and_all_of_their_writes_waited_for(bench: Bench) -> None:
    assert bench.client().fence_all({}) == {}
    bench.venue.closed_gates.add(PLACE)
    with ThreadPoolExecutor(2) as askers:
        place = askers.submit(_place, bench, token=1)
        eventually(lambda: len(bench.venue.of(PLACE)) == 1)
        fence = askers.submit(bench.client().fence_all, {1: 2, 2: 9})
        eventually(lambda: bench.gateway.fences._least.get(2) == 9)
        assert not fence.done()
        bench.venue.closed_gates.clear()
        place.result(60)
        fence.result(60)
    for task, token in ((1, 1), (2, 8)):
        with pytest.raises(base.Refused, match="fenced"):
            _place(bench, task=task, token=token)
    _place(bench, task=2, token=9)
    assert bench.client().fence_all({1: 1, 2: 9, 3: 1}) == {1: 2}


@pytest.mark.slow
def test_hold_drops_queued_places_of_its_tasks_and_no_cancels(bench: Bench) -> None:
    bench.pause()
    with ThreadPoolExecutor(4) as askers:
        held = [askers.submit(_place, bench, token=token) for token in (1, 2)]
        other, cancel = askers.submit(_place, bench, task=2), askers.submit(_cancel, bench)
        eventually(lambda: bench.waiting() == 4)
        bench.client().hold([1, 3], 15)
        for each in held:
            with pytest.raises(base.Refused) as raised:
                each.result(60)
            assert raised.value.code == "held"
        assert bench.waiting() == 2
        bench.venue.answers[CANCEL] = {"success": True, "data": {"success": True}}
        bench.go_on()
        other.result(60)
        assert cancel.result(60)
    with pytest.raises(base.Refused, match="holds task 1"):
        _place(bench, token=9)
    assert _cancel(bench)
    assert len(bench.venue.of(PLACE)) == 1


def test_hold_waits_for_a_place_on_the_wire(bench: Bench) -> None:
    bench.venue.closed_gates.add(PLACE)
    with ThreadPoolExecutor(2) as askers:
        place = askers.submit(_place, bench)
        eventually(lambda: len(bench.venue.of(PLACE)) == 1)
        hold = askers.submit(bench.client().hold, [1], 15)
        eventually(lambda: 1 in bench.gateway.fences._held)
        assert not hold.done()
        bench.client().hold([2], 15)  # nothing of another task is waited for
        bench.venue.closed_gates.clear()
        place.result(60)
        hold.result(60)


def test_hold_is_released_by_zero_for_the_named_tasks_only(bench: Bench) -> None:
    bench.client().hold([1, 2], 15)
    bench.client().hold([1], 0)
    _place(bench, task=1)
    with pytest.raises(base.Refused, match="holds task 2"):
        _place(bench, task=2)


def test_hold_ends_by_itself(bench: Bench) -> None:
    clock = Monotonic(1_000.0)
    bench.gateway.fences._clock = clock
    bench.client().hold([1], 15)
    with pytest.raises(base.Refused, match="holds task 1"):
        _place(bench)
    clock.now += 15
    _place(bench)


@pytest.mark.parametrize("hold_s", [-1, 1.5, True, "15", 10**9, None])
def test_misshapen_holds_are_refused(hold_s: Any, bench: Bench) -> None:
    with pytest.raises(base.Refused) as raised:
        bench.client().hold([1], hold_s)
    assert raised.value.code == "bad_request"
    _place(bench)


@pytest.mark.parametrize("tokens", [None, {"1": 2}, [1, 2], [[1]], [[1, -2]], [[1, True]], [["1", 2]]])
def test_misshapen_fences_are_refused(tokens: object, bench: Bench) -> None:
    with pytest.raises(base.Refused, match=r"tokens|task|token"):
        bench.client().call(FenceAll(tokens))  # type: ignore[arg-type]


def test_a_fence_waits_for_a_place_whose_asker_is_gone(bench: Bench) -> None:
    bench.venue.closed_gates.add(PLACE)
    leaver = bench.client()
    with ThreadPoolExecutor(2) as askers:
        place = askers.submit(leaver.place, ORDER, task=1, token=1, deadline_ms=soon())
        eventually(lambda: len(bench.venue.of(PLACE)) == 1)
        leaver._http._socket.shutdown(2)  # type: ignore[union-attr]
        with pytest.raises(base.Unknown):
            place.result(60)
        fence = askers.submit(bench.client().fence, 1, 2)
        eventually(lambda: bench.gateway.fences._least.get(1) == 2)
        bench.client().profile()  # a whole exchange later ...
        assert not fence.done()  # ... it still waits
        bench.venue.closed_gates.clear()
        fence.result(60)


def test_a_task_unseen_since_the_start_is_fenced_by_the_database(bench: Bench) -> None:
    bench.least[7] = 3
    with pytest.raises(base.Refused) as raised:
        _place(bench, task=7, token=2)
    assert raised.value.code == "stale_token"
    _place(bench, task=7, token=3)


def test_a_gateway_that_is_not_the_one_any_more_places_nothing(bench: Bench) -> None:
    """As one on a machine that was frozen with its clocks, while another machine's has taken over."""
    bench.is_the_one = lambda: False
    with pytest.raises(base.Unavailable, match="another gateway has taken over; nothing was sent"):
        _place(bench)
    bench.is_the_one = lambda: bool(1 // 0)  # nobody can tell
    with pytest.raises(base.Unavailable, match="failed to ask whether another gateway has taken over"):
        _place(bench)
    bench.venue.answers[CANCEL] = {"success": True, "data": {"success": True, "successCount": 1, "failedCount": 0}}
    assert _cancel(bench), "what is cancelled twice costs nothing, and must go while the database is away"
    assert bench.venue.of(PLACE) == []


def test_whether_it_is_the_one_is_asked_when_all_else_is_ready(bench: Bench) -> None:
    """Another one may take over while a bid waits for its turn."""
    bench.pause()
    with ThreadPoolExecutor(1) as askers:
        place = askers.submit(_place, bench)
        eventually(lambda: bench.waiting() == 1)
        bench.is_the_one = lambda: False
        bench.go_on()
        with pytest.raises(base.Unavailable, match="another gateway has taken over"):
            place.result(60)
    assert bench.venue.of(PLACE) == []


def test_a_place_whose_asker_has_gone_is_not_sent(bench: Bench) -> None:
    bench.pause()
    leaver = bench.client()
    with ThreadPoolExecutor(1) as askers:
        place = askers.submit(leaver.place, ORDER, task=1, token=1, deadline_ms=soon())
        eventually(lambda: bench.waiting() == 1)
        leaver._http._socket.shutdown(2)  # type: ignore[union-attr]
        with pytest.raises(base.Unknown):
            place.result(60)
    bench.go_on()
    _read_something(bench)
    assert bench.venue.of(PLACE) == []


def test_a_passed_deadline_is_not_sent(bench: Bench) -> None:
    with pytest.raises(base.Unavailable):
        _place(bench, within_s=-1)
    bench.pause()
    with pytest.raises(base.RateLimited):
        _place(bench, within_s=30)
    bench.go_on()
    _read_something(bench)
    assert bench.venue.of(PLACE) == []


def test_a_deadline_is_ten_seconds_away_at_most(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "LONGEST_WAIT_MS", LONGEST_WAIT_MS)  # the gateway's own again
    venue, waits = bench.gateway.venues.markets["simulator"], list[float]()
    turn = venue.turn

    async def noted(priority: Priority, wait_s: float, toll: Toll) -> None:
        waits.append(wait_s)
        await turn(priority, wait_s, toll)

    monkeypatch.setattr(venue, "turn", noted)
    bench.pause()
    with pytest.raises(base.RateLimited):
        _place(bench, within_s=3600)
    [wait_s] = waits
    assert wait_s <= 10


@pytest.mark.slow
def test_a_cancel_goes_before_what_waited_longer(bench: Bench) -> None:
    bench.venue.answers[CANCEL] = {"success": True, "data": {"success": True, "successCount": 1, "failedCount": 0}}
    bench.venue.answers["/address/bids"] = {"data": {"results": []}}
    bench.venue.answers["/activity/listings"] = {"data": {"items": []}}
    bench.venue.answers["/challenge"] = {"data": {"challenge": "sign me"}}
    bench.pause()
    turns = bench.turns()
    with ThreadPoolExecutor(5) as askers:
        asked = []
        for count, (work, args) in enumerate(
            (
                (bench.client().asks, ("goosinals", 0)),
                (lambda: _place(bench), ()),
                (bench.client().own_bids, ("bc1qpayment", 0)),
                (lambda: _cancel(bench), ()),
                (bench.client().challenge, ("bc1qpayment",)),
            ),
            start=1,
        ):
            asked.append(askers.submit(work, *args))
            eventually(lambda count=count: bench.waiting() == count)
        bench.go_on()
        for each in asked:
            each.result(60)
    assert turns == ["cancel", "challenge", "own_bids", "place", "book"]
    assert {call.path for call in bench.venue.calls} == {
        CANCEL,
        "/challenge",
        "/address/bids",
        PLACE,
        "/activity/listings",
    }
    assert len(bench.venue.calls) == 5


def test_a_venue_that_hangs_on_reads_still_hears_a_place_and_a_cancel(bench: Bench) -> None:
    bench.venue.closed_gates.add("/activity/listings")
    bench.venue.answers[CANCEL] = {"success": True, "data": {"success": True, "successCount": 1, "failedCount": 0}}
    with ThreadPoolExecutor(6) as askers:
        hung = [askers.submit(bench.client().asks, f"slug-{n}", 0) for n in range(6)]
        eventually(lambda: len(bench.venue.of("/activity/listings")) == 3)
        _place(bench)
        _cancel(bench)
        bench.venue.answers["/activity/listings"] = {"data": {"items": []}}
        bench.venue.closed_gates.clear()
        for each in hung:
            each.result(60)


def test_no_secret_is_logged(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="gateway"):
        _place(bench)
    assert '"operation": "place"' in caplog.text
    assert "AkcwRA" not in caplog.text
    assert bench.client().status()["venues"]["simulator"]["calls"] == {"place": {"ok": 1}}
