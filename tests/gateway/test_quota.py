"""A month's calls: counted on disk, made to last, and what that means for reads, bids and cancels."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.errors import BidkeeperError
from gateway.quota import Priority, Quota, QuotaRestraint
from gateway.quota_count import (
    BLOCK,
    DAY,
    LONGEST_STRETCH_S,
    MONTH,
    PERIODS,
    Period,
    QuotaCount,
    QuotaFile,
    Use,
    pressure,
    rungs,
    stretch_s,
)
from markets.base import RateLimited, Refused
from markets.verbs import BY_NAME
from tests.clock import Clock

DAY_MS = 86_400_000
NOVEMBER = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * 1000
DECEMBER = int(datetime(2026, 12, 1, tzinfo=UTC).timestamp()) * 1000


@pytest.fixture
def clock() -> Clock:
    return Clock(NOVEMBER)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "quota.json"


def counted(path: Path, clock: Clock, *, key: str = "key", calls: int = 0) -> QuotaCount:
    count = QuotaCount(QuotaFile(path), "satflow", key, clock)
    for _ in range(calls):
        count.count()
    return count


def used(count: QuotaCount) -> int:
    return count.use(MONTH, 1_000).used


def quota(path: Path, clock: Clock, used: int, limit: int = 1_000) -> Quota:
    return Quota({MONTH: limit}, counted(path, clock, calls=used), clock)


class TestTheCount:
    def test_survives_a_clean_end_exactly(self, path: Path, clock: Clock) -> None:
        counted(path, clock, calls=37).close()
        assert used(counted(path, clock)) == 37

    def test_is_never_too_low_after_a_crash(self, path: Path, clock: Clock) -> None:
        for calls in (1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7):
            path.unlink(missing_ok=True)
            counted(path, clock, calls=calls)
            assert calls <= used(counted(path, clock)) < calls + BLOCK

    def test_crash_after_crash_it_counts_on(self, path: Path, clock: Clock) -> None:
        before = 0
        for _ in range(5):
            now = used(counted(path, clock, calls=3))
            assert now >= before + 3
            before = now

    def test_begins_anew_with_the_month_in_utc(self, path: Path, clock: Clock) -> None:
        clock.now_ms = DECEMBER - 1
        count = counted(path, clock, calls=5)
        assert used(count) == 5
        clock.now_ms = DECEMBER
        assert used(count) == 0
        count.count()
        count.close()
        assert used(counted(path, clock)) == 1
        assert count.use(MONTH, 1_000).end_ms == MONTH.end_ms("2026-12")

    def test_a_month_that_ended_while_nobody_counted_is_over(self, path: Path, clock: Clock) -> None:
        counted(path, clock, calls=5).close()
        clock.now_ms = DECEMBER + DAY_MS
        assert used(counted(path, clock)) == 0

    def test_a_clock_that_is_set_back_gives_no_second_quota(self, path: Path, clock: Clock) -> None:
        clock.now_ms = DECEMBER
        count = counted(path, clock, calls=5)
        clock.now_ms = NOVEMBER
        assert used(count) == 5
        count.close()
        assert used(counted(path, clock)) == 5

    def test_belongs_to_one_key_and_does_not_hold_it(self, path: Path, clock: Clock) -> None:
        counted(path, clock, key="very-secret", calls=5).close()
        assert "very-secret" not in path.read_text()
        assert used(counted(path, clock, key="another")) == 0
        assert used(counted(path, clock, key="very-secret")) == 5

    def test_a_file_of_one_venue_alone_is_read(self, path: Path, clock: Clock) -> None:
        """As it was written before several venues had a count."""
        counted(path, clock, calls=5).close()
        [kept] = json.loads(path.read_text())["counts"]
        path.write_text(json.dumps(kept))
        assert used(counted(path, clock)) == 5

    def test_the_counts_of_several_venues_stand_side_by_side(self, path: Path, clock: Clock) -> None:
        file = QuotaFile(path)
        satflow, unisat = (QuotaCount(file, venue, "key", clock) for venue in ("satflow", "unisat"))
        with ThreadPoolExecutor(4) as threads:
            for count in [satflow] * 50 + [unisat] * 70:
                threads.submit(count.count)
        satflow.close()
        again = QuotaFile(path)
        assert used(QuotaCount(again, "satflow", "key", clock)) == 50
        assert 70 <= used(QuotaCount(again, "unisat", "key", clock)) < 70 + BLOCK  # as after a crash
        assert used(QuotaCount(again, "ordnet", "key", clock)) == 0
        unisat.close()
        assert used(QuotaCount(QuotaFile(path), "unisat", "key", clock)) == 70

    def test_another_key_of_one_venue_leaves_the_counts_of_others(self, path: Path, clock: Clock) -> None:
        file = QuotaFile(path)
        for venue in ("satflow", "unisat"):
            QuotaCount(file, venue, "key", clock).count()
        QuotaCount(QuotaFile(path), "satflow", "another", clock).count()
        assert used(QuotaCount(QuotaFile(path), "unisat", "key", clock)) >= 1
        assert used(QuotaCount(QuotaFile(path), "satflow", "key", clock)) == 0

    def test_has_a_day_that_begins_anew_at_midnight_in_utc(self, path: Path, clock: Clock) -> None:
        clock.now_ms = NOVEMBER + DAY_MS - 1
        count = counted(path, clock, calls=5)
        clock.now_ms = NOVEMBER + DAY_MS
        for calls in (1, BLOCK, 7):
            for _ in range(calls):
                count.count(8)
            after_a_crash = counted(path, clock)
            for period in PERIODS:
                exact, stored = (each.use(period, 1_000).used for each in (count, after_a_crash))
                assert exact <= stored < exact + BLOCK, period.name
        assert [count.use(period, 1_000).used for period in PERIODS] == [33, 28]
        assert [count.by_user(period) for period in PERIODS] == [{8: 28}, {8: 28}]
        assert count.use(DAY, 1_000).end_ms == NOVEMBER + 2 * DAY_MS
        count.close()
        clock.now_ms += DAY_MS
        assert [counted(path, clock).use(period, 1_000).used for period in PERIODS] == [33, 0]

    def test_a_clean_end_after_midnight_keeps_the_exact_month(self, path: Path, clock: Clock) -> None:
        count = counted(path, clock, calls=5)
        clock.now_ms += DAY_MS
        assert count.use(DAY, 1_000).used == 0
        count.close()
        assert used(counted(path, clock)) == 5

    def test_a_clock_that_is_set_back_gives_no_second_day(self, path: Path, clock: Clock) -> None:
        clock.now_ms += DAY_MS
        count = counted(path, clock, calls=5)
        clock.now_ms -= DAY_MS
        assert count.use(DAY, 1_000).used == 5
        count.close()
        assert counted(path, clock).use(DAY, 1_000).used == 5

    @pytest.mark.parametrize("is_restarted", [False, True])
    @pytest.mark.parametrize("period", PERIODS)
    def test_calls_of_a_clock_that_was_far_ahead_count_until_the_present_period_ends(
        self, path: Path, clock: Clock, period: Period, *, is_restarted: bool
    ) -> None:
        real_ms, clock.now_ms = clock.now_ms, clock.now_ms + 400 * DAY_MS
        count = counted(path, clock, calls=5)
        clock.now_ms = real_ms
        if is_restarted:
            count.close()
            count = counted(path, clock)
        use = count.use(period, 1_000)
        assert (use.used, use.since_ms, use.end_ms) == (5, real_ms, period.end_ms(period.of(real_ms)))
        clock.now_ms = use.end_ms
        assert count.use(period, 1_000).used == 0

    @pytest.mark.parametrize(("days", "today"), [(0, 5), (1, 0)])
    def test_a_file_without_a_day_is_read_and_its_month_kept(
        self, path: Path, clock: Clock, days: int, today: int
    ) -> None:
        """As it was written before days were counted: if its month began today, its calls are today's."""
        counted(path, clock, calls=5).close()
        [kept] = json.loads(path.read_text())["counts"]
        del kept["day"]
        path.write_text(json.dumps({"counts": [kept]}))
        clock.now_ms += days * DAY_MS
        assert [counted(path, clock).use(period, 1_000).used for period in PERIODS] == [5, today]

    def test_a_program_from_before_days_were_counted_reads_the_file(self, path: Path, clock: Clock) -> None:
        """Its month is where it always was."""
        counted(path, clock, calls=5).close()
        [kept] = json.loads(path.read_text())["counts"]
        assert (kept["month"], kept["used"], kept["day"]["day"], kept["day"]["used"]) == ("2026-11", 5, "2026-11-01", 5)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{",
            '{"of": "x"',
            '{"counts": 5}',
            '{"counts": [{"of": "x"}]}',
            "{}",
            '{"counts": [{"of": "satflow x", "month": "November", "since_ms": 1, "used": 1}]}',
            '{"counts": [{"of": "satflow x", "month": "2026-11", "since_ms": 1, "used": 1, "day": {"day": 5}}]}',
        ],
    )
    def test_a_file_that_cannot_be_read_is_no_empty_one(self, path: Path, clock: Clock, text: str) -> None:
        path.write_text(text)
        with pytest.raises(BidkeeperError, match="begins anew"):
            counted(path, clock)

    def test_a_file_that_cannot_be_written_stops_no_call(
        self, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        path.with_suffix(".new").mkdir()
        assert used(counted(path, clock, calls=3)) == 3
        assert "a crash now would forget calls" in caplog.text


class TestThePace:
    @pytest.mark.parametrize(
        ("period", "date", "end"),
        [
            (MONTH, "2026-11", DECEMBER),
            (MONTH, "2026-12", DECEMBER + 31 * DAY_MS),
            (MONTH, "2026-10", NOVEMBER),
            (MONTH, "2027-02", DECEMBER + 90 * DAY_MS),
            (DAY, "2026-11-01", NOVEMBER + DAY_MS),
            (DAY, "2026-11-30", DECEMBER),
            (DAY, "2026-12-31", DECEMBER + 31 * DAY_MS),
        ],
    )
    def test_periods_end_where_the_next_one_begins(self, period: Period, date: str, end: int) -> None:
        assert period.end_ms(date) == end
        assert (period.of(end - 1), period.of(end) > date) == (date, True)

    def test_what_is_done_grows_with_what_use_is_ahead(self) -> None:
        halfway = NOVEMBER + 15 * DAY_MS
        table = [
            (pressure(Use(MONTH, 100_000, used, NOVEMBER, DECEMBER), halfway), used)
            for used in (0, 42_500, 47_400, 48_000, 50_000, 50_600, 51_500, 52_400, 52_600, 100_000)
        ]
        done = [(round(stretch_s(at)), rungs(at)) for at, _ in table]
        assert done == [
            (0, None),
            (0, None),
            (0, None),
            (11, None),
            (270, None),
            (600, 26),
            (600, 5),
            (600, 1),
            (600, 0),
            (600, 0),
        ]

    def test_the_pace_counts_from_the_first_call(self) -> None:
        begun = DECEMBER - DAY_MS
        assert pressure(Use(MONTH, 100_000, 4_000, begun, DECEMBER), begun) < 0
        assert pressure(Use(MONTH, 100_000, 50_000, begun, DECEMBER), begun + DAY_MS // 2) > 0
        assert pressure(Use(MONTH, 100_000, 50_000, NOVEMBER, DECEMBER), DECEMBER) < 0


class TestWhatIsRefused:
    def test_cancels_never(self, path: Path, clock: Clock) -> None:
        spent = quota(path, clock, 1_000)
        spent.permit(Priority.CANCEL)
        for priority in (Priority.OWN_BIDS, Priority.PLACE, Priority.REST):
            with pytest.raises(RateLimited, match="used up"):
                spent.permit(priority)

    def test_other_reads_before_own_bids(self, path: Path, clock: Clock) -> None:
        nearly = quota(path, clock, 985)
        nearly.permit(Priority.OWN_BIDS)
        with pytest.raises(RateLimited):
            nearly.permit(Priority.REST)

    def test_the_lowest_rungs_first(self, path: Path, clock: Clock) -> None:
        allowed = []
        for ahead in range(80, 110):
            path.unlink(missing_ok=True)
            short = quota(path, clock, ahead)
            allowed.append(0)
            for rung in range(40):
                try:
                    short.permit_place(rung)
                except Refused as error:
                    assert error.code == "quota"
                    break
                allowed[-1] += 1
        assert allowed == sorted(allowed, reverse=True)
        assert (allowed[0], allowed[-1]) == (40, 0) and {16, 1} < set(allowed)

    def test_nothing_on_a_busy_first_day(self, path: Path, clock: Clock) -> None:
        early = quota(path, clock, 50)
        early.permit_place(99)
        assert (early.stretch_s(), QuotaRestraint(early).remark()) == (0, "")


class TestReads:
    def test_get_older_but_not_where_age_matters(self, path: Path, clock: Clock) -> None:
        short = QuotaRestraint(quota(path, clock, 100))

        def age(verb: str, max_age_s: float) -> object:
            return short.stretched_s(BY_NAME[verb], max_age_s)

        assert (age("asks", 15), age("own_bids", 15), age("floors", 10)) == (600, 600, 600)
        assert age("traits", 3_600) == 3_600
        assert age("own_bids", 0) == 0  # what was just written is looked for
        assert age("own_bids", 2) == 600
        assert (age("asks", 3), age("bids", 3)) == (8, 8)  # a bid is signed on it
        assert (age("fees", 60), age("balance", 60), age("rune_asks", 15)) == (60, 60, 15)  # not of this key

    def test_of_runes_get_older_by_the_quota_of_their_source(self, path: Path, clock: Clock) -> None:
        short = QuotaRestraint(quota(path, clock, 100), "runes")

        def age(verb: str, max_age_s: float) -> object:
            return short.stretched_s(BY_NAME[verb], max_age_s)

        assert (age("rune_asks", 15), age("rune", 60), age("asks", 15)) == (600, 600, 15)
        assert age("rune_asks", 3) == 8  # a bid is signed on it

    def test_every_answer_says_so(self, path: Path, clock: Clock) -> None:
        remark = QuotaRestraint(quota(path, clock, 94)).remark()
        assert json.loads('{"ok":1' + remark + "}") == {"ok": 1, "quota": {"stretch_s": LONGEST_STRETCH_S, "rungs": 2}}


def test_the_status_projects_the_month(path: Path, clock: Clock) -> None:
    count = quota(path, clock, 0, 100_000)
    clock.now_ms += 60 * 60_000  # an hour in
    for _ in range(60):
        count.count()
        count.note()
        clock.now_ms += 60_000
    status = count.status()
    assert (status["limit"], status["used"], status["left"]) == (100_000, 60, 99_940)
    assert 42_000 < status["projected"] < 44_500  # one a minute makes 43,200 in thirty days


def test_many_threads_lose_no_call(path: Path, clock: Clock) -> None:
    count = counted(path, clock)
    with ThreadPoolExecutor(8) as threads:
        for _ in range(400):
            threads.submit(count.count)
    assert used(count) == 400
    assert 400 <= used(counted(path, clock)) < 400 + BLOCK
