"""A clock that is wrong: learnt from the dates of a venue's answers, and no bid goes out by it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate

import pytest

from gateway.venue import Skew
from markets.base import RateLimited, Refused, Unavailable
from markets.http import made_s
from markets.orders import BidToDraft, Coin
from tests.gateway.conftest import ORDER, Bench, soon

Make = Callable[..., Bench]
EPOCH_S = 1_800_000_000


@dataclass
class Clocks:
    """Ours: `off_s` may be set, `monotonic` cannot. The venue's goes with the monotonic one."""

    monotonic_s: float = 1_000.0
    off_s: float = 0.0

    def monotonic(self) -> float:
        return self.monotonic_s

    def now_ms(self) -> int:
        return round((EPOCH_S + self.monotonic_s + self.off_s) * 1000)

    def venue_s(self) -> int:
        return int(EPOCH_S + self.monotonic_s)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def skew(clocks: Clocks) -> Skew:
    return Skew("satflow", clocks.monotonic, clocks.now_ms)


def answer(skew: Skew, clocks: Clocks, took_s: float = 0.1, venue_off_s: int = 0) -> None:
    """One exchange; the answer is made in its middle."""
    sent = clocks.monotonic_s
    clocks.monotonic_s += took_s / 2
    made = clocks.venue_s() + venue_off_s
    clocks.monotonic_s += took_s / 2
    skew.note(made, sent, clocks.monotonic_s)


class TestWhatIsLearnt:
    def test_nothing_without_a_date(self, skew: Skew) -> None:
        assert skew.seconds() is None
        skew.permit_place()
        assert skew.remark() == ""

    @pytest.mark.parametrize("part", [0.0, 0.3, 0.999])
    @pytest.mark.parametrize("took_s", [0.0, 0.4, 3.0])
    def test_a_right_clock_is_right_whatever_part_of_a_second_it_is(
        self, skew: Skew, clocks: Clocks, part: float, took_s: float
    ) -> None:
        clocks.monotonic_s += part
        for _ in range(7):
            answer(skew, clocks, took_s)
            assert skew.seconds() == 0

    @pytest.mark.parametrize("off_s", [29, -29, 31.5, -31.5, 3600, -86_400 * 365])
    def test_a_wrong_one_at_the_least(self, skew: Skew, clocks: Clocks, off_s: float) -> None:
        clocks.off_s = off_s
        answer(skew, clocks, took_s=0.2)
        found = skew.seconds()
        assert found is not None and abs(off_s) - 1.2 <= abs(found) <= abs(off_s)
        assert (found > 0) == (off_s > 0)

    def test_a_slow_answer_proves_less(self, skew: Skew, clocks: Clocks) -> None:
        clocks.off_s = 35
        answer(skew, clocks, took_s=16)
        assert 0 < (skew.seconds() or 0) < 30
        skew.permit_place()

    def test_a_clock_that_is_set_is_seen_before_the_next_answer(self, skew: Skew, clocks: Clocks) -> None:
        for _ in range(5):
            answer(skew, clocks)
        skew.permit_place()
        clocks.off_s = 60
        with pytest.raises(Refused):
            skew.permit_place()
        clocks.off_s = 0
        skew.permit_place()

    def test_one_odd_answer_of_several_changes_nothing(self, skew: Skew, clocks: Clocks) -> None:
        for venue_off_s in (0, 0, 3_600, 0, -3_600):
            answer(skew, clocks, venue_off_s=venue_off_s)
        assert skew.seconds() == 0

    def test_a_venue_whose_clock_was_set_is_believed_after_three_of_five(self, skew: Skew, clocks: Clocks) -> None:
        for _ in range(5):
            answer(skew, clocks)
        seen = []
        for _ in range(4):
            answer(skew, clocks, venue_off_s=600)
            seen.append(bool(skew.excess_s()))
        assert seen == [False, False, True, True]


@pytest.mark.parametrize(
    ("off_s", "words"), [(61.8, "61 s ahead of"), (-61.2, "61 s behind"), (86_400, "86399 s ahead of")]
)
def test_the_refusal_says_how_far_off_it_is(skew: Skew, clocks: Clocks, off_s: float, words: str) -> None:
    clocks.off_s = off_s
    answer(skew, clocks, took_s=0)
    with pytest.raises(Refused, match=words) as refused:
        skew.permit_place()
    assert refused.value.code == "clock_skew"
    assert skew.remark() == f',"skew_s":{skew.seconds():.0f}'


def test_the_log_says_it_once(skew: Skew, clocks: Clocks, caplog: pytest.LogCaptureFixture) -> None:
    for off_s in (0, 60, 60, 60, 0, 60):
        clocks.off_s = off_s
        answer(skew, clocks)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "satflow: this machine's clock is 5" in caplog.text


@pytest.mark.parametrize(
    ("headers", "made"),
    [
        ({"Date": formatdate(EPOCH_S, usegmt=True)}, EPOCH_S),
        ({"Date": formatdate(EPOCH_S)}, EPOCH_S),  # -0000
        ({"Date": formatdate(EPOCH_S, usegmt=True), "Age": "0"}, EPOCH_S),
        ({"Date": formatdate(EPOCH_S, usegmt=True), "Age": "7"}, None),
        ({"Date": "tomorrow"}, None),
        ({"Date": "Mon, 99 Nov 2026 20:00:00 GMT"}, None),
        ({}, None),
    ],
)
def test_dates(headers: dict[str, str], made: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert made_s(headers) == made
    finally:
        monkeypatch.undo()
        time.tzset()


class TestAtTheGateway:
    """The venue's clock is off: over its socket, with real HTTP behind it."""

    def off(self, bench: Bench, seconds: float | None, *paths: str) -> None:
        def date() -> str:
            return "" if seconds is None else formatdate(time.time() + seconds, usegmt=True)

        for path in paths:
            bench.venue.headers[path] = {"Date": date}
            bench.venue.answers.setdefault(path, {"data": {"results": [], "items": [], "challenge": "sign me"}})

    def place(self, bench: Bench, venue: str | None = None) -> None:
        bench.client(venue).place(ORDER, task=1, token=1, deadline_ms=soon())

    @pytest.mark.parametrize("seconds", [-90, 90])
    def test_places_are_refused_before_anything_is_sent_and_the_rest_goes_on(
        self, bench: Bench, seconds: float
    ) -> None:
        self.off(bench, seconds, "/address/bids", "/challenge", "/cancel")
        bench.venue.answers["/cancel"] = {
            "success": True,
            "data": {"success": True, "successCount": 1, "failedCount": 0},
        }
        client = bench.client()
        client.own_bids("bc1qpayment", 0)
        assert 85 < -client.skew_s * seconds / 90 < 91

        with pytest.raises(Refused) as refused:
            self.place(bench)
        assert refused.value.code == "clock_skew"
        assert ("ahead of" if seconds < 0 else "behind") in str(refused.value)
        assert bench.venue.of("/bid/place") == []

        client.own_bids("bc1qpayment", 0)
        assert client.challenge("bc1qpayment") == "sign me"
        assert client.cancel("bc1qpayment", ["a" * 24], "AkcwRA==", task=1, token=1, deadline_ms=soon())
        assert len(bench.venue.of("/cancel")) == 1

    def test_a_bid_that_has_waited_is_looked_at_again_before_its_first_byte(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        venue = bench.gateway.venues.markets["simulator"]
        monkeypatch.setattr(venue, "permit_place", lambda rung: self.note(venue.skew))
        with pytest.raises(Refused) as refused:
            self.place(bench)
        assert refused.value.code == "clock_skew"
        assert bench.venue.calls == []

    @staticmethod
    def note(skew: Skew) -> None:
        now = time.monotonic()
        skew.note(int(time.time()) - 300, now, now)

    @pytest.mark.parametrize("seconds", [None, -25, 25, 0])
    def test_without_a_date_and_within_thirty_seconds_nothing_changes(
        self, bench: Bench, seconds: float | None
    ) -> None:
        self.off(bench, seconds, "/address/bids", "/bid/place")
        client = bench.client()
        client.own_bids("bc1qpayment", 0)
        assert client.skew_s == 0
        del bench.venue.answers["/bid/place"]
        self.place(bench)
        shown = bench.client().status()["venues"]["simulator"]["skew_s"]
        assert shown is None if seconds is None else abs(shown + seconds) < 4

    @pytest.mark.parametrize(("status", "error"), [(500, Unavailable), (429, RateLimited), (400, Refused)])
    def test_the_date_of_a_fault_counts_as_well(self, bench: Bench, status: int, error: type[Exception]) -> None:
        self.off(bench, 90, "/address/bids")
        bench.venue.statuses["/address/bids"] = status
        with pytest.raises(error):
            bench.client().own_bids("bc1qpayment", 0)
        assert bench.client().status()["venues"]["simulator"]["skew_s"] < -85

    def test_it_is_over_when_the_clocks_agree_again(self, bench: Bench) -> None:
        self.off(bench, 90, "/address/bids")
        client = bench.client()
        client.own_bids("bc1qpayment", 0)
        with pytest.raises(Refused):
            self.place(bench)
        self.off(bench, 0, "/address/bids")
        for _ in range(2):
            client.own_bids("bc1qpayment", 0)
        self.place(bench)
        assert len(bench.venue.of("/bid/place")) == 1

    def test_each_venue_has_a_clock_of_its_own(self, bench: Bench) -> None:
        self.note(bench.gateway.venues.markets["simulator-ordnet"].skew)
        self.place(bench)
        asked = len(bench.venue.calls)
        ask = BidToDraft(
            price=500_000,
            quantity=ORDER.quantity,
            slug="goosinals",
            kind="ordinals",
            trait=None,
            payment="bc1qpayment",
            payment_pubkey="02" + "ab" * 32,
            ordinals="bc1preceive",
            ordinals_pubkey="ab" * 32,
            valid_hours=6,
            coins=(Coin("aa" * 32 + ":0", 1_000_000),),
        )
        with pytest.raises(Refused) as refused:
            bench.client("simulator-ordnet").draft_bid(ask)
        assert refused.value.code == "clock_skew"
        assert len(bench.venue.calls) == asked
