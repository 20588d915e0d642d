"""A gateway whose month is short, over its socket: workers and users share it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from gateway.quota import Quota
from gateway.quota_count import MONTH, QuotaCount, QuotaFile
from markets.base import RateLimited, Refused
from markets.client import AMPLE, MarketClient
from tests.clock import Clock
from tests.gateway.conftest import ORDER, Bench, soon
from tests.gateway.listing_examples import ASK, VAULT
from tests.gateway.listing_examples import ORDER as LISTING
from tests.gateway.test_listings import CONTENTS, INTENT, LIST, TAKEN, _page

CANCELLED = {"success": True, "data": {"success": True, "successCount": 1, "failedCount": 0}}
Make = Callable[..., Bench]


def stand_still(quota: Quota) -> None:
    """Has the month stay as it has begun: one that ended during a test would begin anew, with nothing used."""
    clock = Clock(quota._now_ms())
    quota._now_ms = quota._count._now_ms = clock
    for part in quota._parts:
        part._now_ms = clock


def short(make_bench: Make, used: int, limit: int = 1_000) -> Bench:
    """Returns a bench whose month has begun just now, with so many calls used."""
    bench = make_bench(satflow_monthly_calls=limit)
    quota = bench.gateway.venues.markets["simulator"].quota
    stand_still(quota)
    for _ in range(used):
        quota.count()
    bench.venue.answers["/address/bids"] = {"data": {"results": []}}
    bench.venue.answers["/activity/listings"] = {"data": {"items": []}}
    bench.venue.answers["/challenge"] = {"data": {"challenge": "sign me"}}
    bench.venue.answers["/cancel"] = CANCELLED
    return bench


def place(bench: Bench, rung: int = 0) -> None:
    bench.client().place(ORDER, task=1, token=1, deadline_ms=soon(), rung=rung)


def test_every_call_is_counted_before_it_is_sent(make_bench: Make) -> None:
    bench = short(make_bench, 0)
    place(bench)
    bench.client().own_bids("bc1qpayment", 0)
    bench.venue.statuses["/activity/listings"] = 400
    with pytest.raises(Refused):
        bench.client().asks("goosinals", 0)

    quota = bench.client().status()["venues"]["simulator"]["quota"]
    assert (quota["limit"], quota["used"], quota["left"], quota["stretch_s"]) == (1_000, 3, 997, 0)
    assert "quota" not in bench.client().status()["venues"]["mempool"]
    # As after a crash of this very moment.
    clock = bench.gateway.venues.markets["simulator"].quota._now_ms
    again = QuotaCount(QuotaFile(bench.settings.quota_file), "satflow", "simulator", clock)
    assert again.use(MONTH, 1_000).used >= 3


def test_without_a_quota_nothing_is_counted_or_kept(make_bench: Make) -> None:
    bench = make_bench(satflow_monthly_calls=0)
    place(bench)
    assert "quota" not in bench.client().status()["venues"]["simulator"]
    assert not bench.settings.quota_file.exists()


def test_a_clean_end_keeps_the_exact_count(make_bench: Make) -> None:
    bench = short(make_bench, 0)
    for _ in range(3):
        place(bench)
    bench.run(bench.gateway.stop)
    [kept] = json.loads(bench.settings.quota_file.read_text())["counts"]
    assert kept["used"] == 3


def test_a_short_month_makes_reads_older_and_says_so(make_bench: Make) -> None:
    bench = short(make_bench, 70)
    client = bench.client()
    for _ in range(3):
        client.own_bids("bc1qpayment", 2)
        client.asks("goosinals", 15)
    assert [call.path for call in bench.venue.calls] == ["/address/bids", "/activity/listings"]
    assert 30 < client.scarcity.stretch_s < 600 and client.scarcity.rungs is None
    client.own_bids("bc1qpayment", 0)
    assert len(bench.venue.calls) == 3


def test_the_lowest_rungs_are_refused_and_nothing_is_sent(make_bench: Make) -> None:
    bench = short(make_bench, 98)
    with pytest.raises(Refused) as refused:
        place(bench, rung=9)
    assert refused.value.code == "quota"
    assert bench.venue.calls == []
    place(bench, rung=0)
    assert len(bench.venue.of("/bid/place")) == 1


def test_a_spent_month_still_cancels(make_bench: Make) -> None:
    bench = short(make_bench, 1_000)
    client = bench.client()
    with pytest.raises(Refused) as refused:
        place(bench)
    assert refused.value.code == "quota"
    for read in (lambda: client.asks("goosinals", 0), lambda: client.own_bids("bc1qpayment", 0)):
        with pytest.raises(RateLimited, match="used up"):
            read()
    assert bench.venue.calls == []
    assert client.challenge("bc1qpayment") == "sign me"
    assert client.cancel("bc1qpayment", ["a" * 24], "AkcwRA==", task=1, token=1, deadline_ms=soon())
    assert [call.path for call in bench.venue.calls] == ["/challenge", "/cancel"]


def test_a_spent_day_still_cancels_and_the_status_has_both_periods(make_bench: Make) -> None:
    bench = make_bench(satflow_monthly_calls=60_000, satflow_daily_calls=100)
    quota = bench.gateway.venues.markets["simulator"].quota
    stand_still(quota)
    bench.venue.answers["/address/bids"] = {"data": {"results": []}}
    bench.venue.answers["/challenge"] = {"data": {"challenge": "sign me"}}
    bench.venue.answers["/cancel"] = CANCELLED
    client = bench.client()
    client.own_bids("bc1qpayment", 0)
    assert client.scarcity == AMPLE
    for _ in range(99):
        quota.count(7)

    with pytest.raises(Refused, match="the day's quota of calls runs short"):
        place(bench)
    with pytest.raises(RateLimited, match="the day's quota of calls is used up"):
        client.own_bids("bc1qpayment", 0)
    assert client.challenge("bc1qpayment") == "sign me"
    assert (client.scarcity.stretch_s, client.scarcity.rungs) == (600, 0)
    assert client.cancel("bc1qpayment", ["a" * 24], "AkcwRA==", task=1, token=1, deadline_ms=soon())

    told = client.status()["venues"]["simulator"]["quota"]
    assert (told["limit"], told["used"], told["stretch_s"], told["rungs"]) == (60_000, 102, 600, 0)
    assert (told["day"]["limit"], told["day"]["used"], told["day"]["left"]) == (100, 102, 0)
    assert (told["users"], told["day"]["users"]) == ({"7": 99}, {"7": 99})
    client.user = 7
    [facts] = [each.quota for each in client.venues() if each.capabilities.name == "simulator"]
    assert facts is not None and "users" not in facts and "users" not in facts["day"]
    assert (facts["yours"], facts["day"]["yours"]) == ({"used": 99, "share": 53_997}, {"used": 99, "share": 82})


def test_a_key_with_a_quota_of_a_day_alone_has_no_month(make_bench: Make) -> None:
    bench = make_bench(satflow_monthly_calls=0, satflow_daily_calls=100)
    told = bench.client().status()["venues"]["simulator"]["quota"]
    assert "limit" not in told and told["day"]["limit"] == 100


def test_with_calls_enough_answers_say_nothing_of_it(make_bench: Make) -> None:
    bench = short(make_bench, 10)
    client = bench.client()
    client.asks("goosinals", 15)
    assert client.scarcity == AMPLE


def test_a_call_is_one_line_of_json_without_its_query(make_bench: Make, caplog: pytest.LogCaptureFixture) -> None:
    bench = short(make_bench, 0)
    with caplog.at_level("INFO", logger="gateway.calls"):
        bench.client().own_bids("bc1qpayment", 0)
        bench.venue.statuses["/bid/place"] = 500
        with pytest.raises(Exception, match="500"):
            place(bench)
    lines = [json.loads(record.message) for record in caplog.records if record.name == "gateway.calls"]
    told = [{name: value for name, value in line.items() if name != "ms"} for line in lines]
    assert told == [
        {"venue": "simulator", "verb": "own_bids", "operation": "own_bids", "outcome": "ok", "cost": 1},
        {"venue": "simulator", "verb": "place", "operation": "place", "outcome": "unknown", "cost": 1},
    ]
    assert all(isinstance(line["ms"], int) for line in lines)
    assert "bc1q" not in caplog.text


def test_the_quota_of_the_source_of_runes_is_told_with_their_books_and_nothing_else(make_bench: Make) -> None:
    bench = make_bench(satflow_monthly_calls=1_000, unisat_monthly_calls=1_000)
    stand_still(bench.gateway.venues.unisat.quota)
    for _ in range(90):
        bench.gateway.venues.unisat.quota.count()
    lots = "/v3/market/runes/auction/list"
    bench.venue.answers[lots] = {"code": 0, "msg": "ok", "data": {"list": [], "total": 0}}
    bench.venue.answers["/activity/listings"] = {"data": {"items": []}}
    client = bench.client()
    for _ in range(3):
        client.rune_asks("A•B", 15)
        client.asks("goosinals", 15)
    assert client.rune_scarcity.stretch_s == 600
    assert client.scarcity == AMPLE
    assert len(bench.venue.of(lots)) == 1
    client.rune_asks("A•B", 0)
    assert len(bench.venue.of(lots)) == 2


GREEDY, MODEST = 7, 8


@pytest.fixture
def divided(make_bench: Make) -> Bench:
    """A bench whose month has begun just now; of a thousand calls one user has used a tenth."""
    bench = short(make_bench, 0)
    bench.venue.answers |= {CONTENTS: _page([]), INTENT: {"data": {"seller": {}}}, LIST: TAKEN}
    for user, calls in {GREEDY: 107, MODEST: 1}.items():
        for _ in range(calls):
            bench.gateway.venues.markets["simulator"].quota.count(user)
    return bench


def worker_of(bench: Bench, user: int) -> MarketClient:
    client = bench.client()
    client.user = user
    return client


def test_workers_are_told_the_scarcity_of_their_own_user(divided: Bench) -> None:
    greedy, modest = worker_of(divided, GREEDY), worker_of(divided, MODEST)
    modest.asks("goosinals", 15)
    greedy.asks("goosinals", 15)
    assert (greedy.scarcity.stretch_s, greedy.scarcity.rungs) == (600, 0)
    assert modest.scarcity == AMPLE


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("/address/bids", lambda client: client.own_bids(ORDER.payment, 0)),
        (CONTENTS, lambda client: client.own_listings(VAULT, 0)),
    ],
)
def test_restarts_read_anew_within_the_share_only(
    divided: Bench, path: str, read: Callable[[MarketClient], object]
) -> None:
    for user in (MODEST, GREEDY, GREEDY, GREEDY):
        read(worker_of(divided, user))
    assert len(divided.venue.of(path)) == 1
    read(worker_of(divided, MODEST))
    assert len(divided.venue.of(path)) == 2


def test_after_a_write_what_was_read_before_is_not_good_enough(divided: Bench) -> None:
    greedy = worker_of(divided, GREEDY)
    greedy.own_bids(ORDER.payment, 0)
    greedy.cancel(ORDER.payment, ["a" * 24], "AkcwRA==", task=1, token=1, deadline_ms=soon())
    greedy.own_bids(ORDER.payment, 0)
    assert len(divided.venue.of("/address/bids")) == 2


def test_nothing_is_listed_where_no_bid_would_be_placed(divided: Bench) -> None:
    greedy, modest = worker_of(divided, GREEDY), worker_of(divided, MODEST)
    for list_it in (
        lambda client: client.draft_listing(ASK),
        lambda client: client.list_item(LISTING, task=1, token=1, deadline_ms=soon()),
    ):
        with pytest.raises(Refused) as refused:
            list_it(greedy)
        assert refused.value.code == "quota"
    assert divided.venue.calls == []
    modest.list_item(LISTING, task=2, token=1, deadline_ms=soon())
    assert len(divided.venue.of(LIST)) == 1
