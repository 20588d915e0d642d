"""Reads through the socket: shared, aged, and put together from pages."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from gateway.reads.snapshots import Flight, Snapshots
from markets.base import (
    AuthFailed,
    Item,
    NotFound,
    NotSupported,
    RateLimited,
    Refused,
    Unavailable,
)
from tests.gateway.conftest import ORDER, Bench, eventually, soon
from tests.gateway.fake_venue import CUT, Call

LISTINGS, BIDS, OWN, FLOORS = "/activity/listings", "/activity/bids", "/address/bids", "/collection-stats/floors"


def _listings(count: int, page: int = 1, pages: int = 1) -> dict[str, Any]:
    items = [
        {"_id": f"{page:04d}{n:020d}", "inscriptionId": f"{n}i0", "price": 1000 * n + page} for n in range(1, count + 1)
    ]
    return {"success": True, "data": {"items": items, "pagination": {"page": page, "totalPages": pages}}}


def _own(price: int) -> dict[str, Any]:
    bid = {
        "bid_id": "a" * 24,
        "price": price,
        "type": "collection",
        "expiration": 1_700_000_960_000,
        "attribute": None,
        "inscription_metadata": {"collection": {"id": "goosinals"}},
    }
    return {"success": True, "data": {"results": [bid]}}


def _floors(call: Call) -> dict[str, Any]:
    slugs = call.query["slugs"].split(",")
    return {"data": [{"slug": slug, "floor": 1000, "listedCount": 3} for slug in slugs if slug != "nowhere"]}


def test_a_hundred_equal_asks_are_one_call(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _listings(3)
    bench.venue.closed_gates.add(LISTINGS)
    with ThreadPoolExecutor(100) as askers:
        asked = [askers.submit(bench.client().asks, "goosinals", 30) for _ in range(100)]
        eventually(lambda: len(bench.venue.of(LISTINGS)) == 1)
        bench.venue.closed_gates.clear()
        books = [each.result(60) for each in asked]
    assert len(bench.venue.of(LISTINGS)) == 1
    assert {len(book.asks) for book in books} == {3}
    assert len({book.taken_ms for book in books}) == 1


def test_an_answer_is_kept_for_as_long_as_the_asker_accepts(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = _listings(1)
    client = bench.client()
    first = client.asks("goosinals", 60)
    assert client.asks("goosinals", 60) == first
    assert client.asks("goosinals", 0).taken_ms >= first.taken_ms
    assert len(bench.venue.of(LISTINGS)) == 2


def test_max_age_zero_does_not_join_a_reading_that_had_begun(bench: Bench) -> None:
    bench.venue.answers[OWN] = _own(1000)
    bench.venue.closed_gates.add(OWN)
    with ThreadPoolExecutor(2) as askers:
        early = askers.submit(bench.client().own_bids, "bc1qpayment", 0)
        eventually(lambda: len(bench.venue.of(OWN)) == 1)
        late = askers.submit(bench.client().own_bids, "bc1qpayment", 0)
        eventually(lambda: len(bench.venue.of(OWN)) == 2)
        bench.venue.closed_gates.clear()
        assert early.result(60).bids == late.result(60).bids


def test_a_place_makes_the_own_bids_of_its_wallet_old(bench: Bench) -> None:
    bench.venue.answers[OWN] = _own(1000)
    client = bench.client()
    client.own_bids("bc1qpayment", 60)
    client.place(ORDER, task=1, token=1, deadline_ms=soon())
    bench.venue.answers[OWN] = _own(2000)
    assert client.own_bids("bc1qpayment", 60).bids[0].price == 2000


def test_own_bids_read_while_a_place_was_on_the_wire_are_not_kept(bench: Bench) -> None:
    bench.venue.answers[OWN] = _own(1000)
    bench.venue.closed_gates.add("/bid/place")
    reader = bench.client()
    with ThreadPoolExecutor(1) as askers:
        place = askers.submit(bench.client().place, ORDER, task=1, token=1, deadline_ms=soon())
        eventually(lambda: len(bench.venue.of("/bid/place")) == 1)
        reader.own_bids("bc1qpayment", 60)
        bench.venue.closed_gates.clear()
        place.result(60)
    reader.own_bids("bc1qpayment", 60)
    assert len(bench.venue.of(OWN)) == 2


def test_no_own_bids_is_a_404_and_a_failed_read_is_not_empty(bench: Bench) -> None:
    bench.venue.answers[OWN], bench.venue.statuses[OWN] = {"error": "not found"}, 404
    assert bench.client().own_bids("bc1qpayment", 0).bids == ()
    bench.venue.statuses[OWN] = 500
    with pytest.raises(Unavailable):
        bench.client().own_bids("bc1qpayment", 0)


def test_errors_are_not_kept(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = CUT
    with pytest.raises(Unavailable):
        bench.client().asks("goosinals", 60)
    bench.venue.answers[LISTINGS] = _listings(1)
    assert len(bench.client().asks("goosinals", 60).asks) == 1


def test_books_are_the_two_hundred_best_of_two_pages(bench: Bench) -> None:
    bench.venue.answers[LISTINGS] = lambda call: _listings(100, int(call.query["page"]), 7)
    book = bench.client().asks("goosinals", 0)
    assert [call.query["page"] for call in bench.venue.of(LISTINGS)] == ["1", "2"]
    assert len(book.asks) == 200
    assert [ask.price for ask in book.asks[:3]] == [1001, 1002, 2001]


def test_bids_come_best_first(bench: Bench) -> None:
    rows = [{"_id": f"{n}" * 24, "price": price, "bidderAddress": "bc1qrival"} for n, price in ((1, 5000), (2, 7000))]
    bench.venue.answers[BIDS] = {"data": {"bids": rows}}
    assert [bid.price for bid in bench.client().bids("goosinals", "ordinals", 0).bids] == [7000, 5000]


def test_wallets_are_read_to_five_hundred_items(bench: Bench) -> None:
    def page(call: Call) -> dict[str, Any]:
        cursor = int(call.query["cursor"])
        ordinals = [{"token": {"inscription_id": f"{cursor + n}i0", "name": "x"}} for n in range(100)]
        return {"data": {"results": {"ordinals": ordinals}, "nextCursor": cursor + 100}}

    bench.venue.answers["/address/wallet-contents"] = page
    items = bench.client().wallet_contents("bc1pvault", 0)
    assert len({item.id for item in items}) == 500
    assert len(bench.venue.calls) == 5


def test_a_balance_is_the_bidding_wallets_and_its_address_is_asked_once(bench: Bench) -> None:
    bench.venue.answers["/address/bidding-wallet"] = {"data": {"multiSig": {"address": "bc1qmulti"}}}
    sums = {"funded_txo_sum": 900, "spent_txo_sum": 100}
    bench.venue.answers["/api/address/bc1qmulti"] = {"chain_stats": sums, "mempool_stats": sums}
    client = bench.client()
    for _ in range(2):
        found = client.balance("bc1qpayment", "bc1preceive", "02ab", 0)
        assert (found.address, found.sats) == ("bc1qmulti", 1600)
    assert len(bench.venue.of("/address/bidding-wallet")) == 1
    assert len(bench.venue.of("/api/address/bc1qmulti")) == 2


def test_no_bidding_wallet_yet_is_asked_again(bench: Bench) -> None:
    bench.venue.answers["/address/bidding-wallet"] = {"data": {"address": None}}
    for _ in range(2):
        with pytest.raises(NotFound):
            bench.client().balance("bc1qpayment", "bc1preceive", "02ab", 0)
    assert len(bench.venue.of("/address/bidding-wallet")) == 2


def test_floors_asked_while_others_wait_share_a_request(bench: Bench) -> None:
    bench.venue.answers[FLOORS] = _floors
    bench.pause()
    floors_of_all = bench.gateway.markets["simulator"].floors
    with ThreadPoolExecutor(4) as askers:
        asked = [askers.submit(bench.client().floors, [f"slug-{n}"], "ordinals", 0) for n in range(4)]
        eventually(lambda: sum(len(each.flights) for each in list(floors_of_all._open.values())) == 4)
        bench.go_on()
        floors = {slug: floor for each in asked for slug, floor in each.result(60).items()}
    assert len(bench.venue.of(FLOORS)) == 1
    assert sorted(floors) == ["slug-0", "slug-1", "slug-2", "slug-3"]
    assert floors["slug-0"].floor == Decimal(1000)


def test_slugs_asked_lately_ride_along_and_unknown_ones_are_left_out(bench: Bench) -> None:
    bench.venue.answers[FLOORS] = _floors
    client = bench.client()
    assert "nowhere" not in client.floors(["one", "nowhere"], "ordinals", 0)
    client.floors(["two"], "ordinals", 0)
    assert set(bench.venue.of(FLOORS)[1].query["slugs"].split(",")) == {"one", "two"}
    assert client.floors(["one"], "ordinals", 60)["one"].listed_count == 3
    assert len(bench.venue.of(FLOORS)) == 2


def test_one_slug_that_the_venue_refuses_does_not_hide_the_others(bench: Bench) -> None:
    def picky(call: Call) -> dict[str, Any]:
        bad = "bad" in call.query["slugs"].split(",")
        bench.venue.statuses[FLOORS] = 400 if bad else 200
        return {"error": "no"} if bad else _floors(call)

    bench.venue.answers[FLOORS] = picky
    with pytest.raises(Refused):
        bench.client().floors(["bad", "good"], "ordinals", 0)
    assert bench.client().floors(["good"], "ordinals", 60)["good"].listed_count == 3


@pytest.mark.parametrize(
    ("status", "error"), [(401, AuthFailed), (404, NotFound), (400, Refused), (302, Unavailable), (503, Unavailable)]
)
def test_a_reads_status_crosses_the_socket_as_its_leaf(bench: Bench, status: int, error: type[Exception]) -> None:
    bench.venue.answers[LISTINGS], bench.venue.statuses[LISTINGS] = {"error": "no"}, status
    with pytest.raises(error) as raised:
        bench.client().asks("goosinals", 0)
    assert type(raised.value) is error


def test_a_429_pauses_the_whole_key_and_says_how_long(bench: Bench) -> None:
    bench.venue.statuses[LISTINGS] = 429
    bench.venue.headers[LISTINGS] = {"Retry-After": "120"}
    with pytest.raises(RateLimited) as first:
        bench.client().asks("goosinals", 0)
    assert first.value.retry_after_s == 120
    with pytest.raises(RateLimited) as second:
        bench.client().own_bids("bc1qpayment", 0)
    assert second.value.retry_after_s == pytest.approx(120, abs=10)
    assert len(bench.venue.calls) == 1
    assert bench.client().status()["venues"]["simulator"]["paused_s"] > 100


def test_what_is_not_set_up_names_its_setting(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(market="satflow", unisat_url=None, mempool_url=None)
    with pytest.raises(NotSupported, match="BIDKEEPER_UNISAT_URL"):
        bench.client().rune_asks("A•B", 0)
    with pytest.raises(NotSupported, match="BIDKEEPER_MEMPOOL_URL"):
        bench.client().fees(0)


def test_rune_books_fees_items_and_profile(bench: Bench) -> None:
    lot = {"auctionId": "z1", "price": 150, "amount": "100", "unitPrice": "1.5", "tick": "A•B", "address": "bc1pseller"}
    bench.venue.answers["/v3/market/runes/auction/list"] = {"code": 0, "msg": "ok", "data": {"list": [lot], "total": 1}}
    rates = {"fastestFee": 5, "halfHourFee": 4, "hourFee": 3, "economyFee": 2, "minimumFee": 1}
    bench.venue.answers["/api/v1/fees/recommended"] = rates
    bench.venue.answers["/item"] = {"data": {"id": "7i0", "owner": "bc1pvault", "outputValue": 546}}
    client = bench.client()
    assert client.rune_asks("A•B", 0).asks[0].unit_price == Decimal("1.5")
    assert client.fees(60).half_hour == 4
    assert client.item("7i0", 60) == Item("7i0", listed=False, owner="bc1pvault", output_value=546)
    assert (client.profile().tick, client.profile().min_bid, client.profile("runes").tick) == (1000, 10_000, 1)
    assert {call.key for call in bench.venue.of("/item")} == {"simulator"}


def test_an_asker_that_leaves_the_queue_costs_no_call(bench: Bench) -> None:
    bench.pause()
    leaver = bench.client()
    with ThreadPoolExecutor(1) as askers:
        asked = askers.submit(leaver.asks, "goosinals", 0)
        eventually(lambda: bench.waiting() == 1)
        leaver._http._socket.shutdown(2)  # type: ignore[union-attr]
        with pytest.raises(Unavailable):
            asked.result(60)
    eventually(lambda: bench.waiting() == 0, within_s=30)  # before the pause's end
    bench.go_on()
    # A slug of its own, and as urgent: what had stayed in the queue would be sent before it.
    bench.venue.answers[LISTINGS] = _listings(1)
    bench.client().asks("another", 0)
    assert [call.query["collectionSlug"] for call in bench.venue.calls] == ["another"]


@pytest.mark.parametrize(
    "request_",
    [
        {"verb": "nonsense", "args": {}},
        {"verb": "asks", "args": {"slug": "a,b"}},
        {"verb": "asks", "args": {"slug": 7}},
        {"verb": "asks", "args": {"slug": "x"}, "max_age_s": True},
        {"verb": "asks", "args": {"slug": "x"}, "max_age_s": -1},
        {"verb": "own_bids", "args": {"wallet": "../admin"}},
        {"verb": "place", "args": {"order": []}, "task": 1, "token": 1, "deadline_ms": 1},
        {"verb": "fence", "args": {}, "task": "1", "token": 1},
        {"verb": "asks"},
        {"verb": ["asks"], "args": {"slug": "x"}},
    ],
)
def test_a_malformed_request_is_refused_before_anything_is_spent(bench: Bench, request_: dict[str, Any]) -> None:
    with pytest.raises(Refused) as raised:
        bench.ask(request_)
    assert raised.value.code == "bad_request"
    assert bench.venue.calls == []


class Story:
    """Snapshots whose readings begin and end when the test says so."""

    def __init__(self, most: int = 500) -> None:
        self.now = 100.0
        self.snapshots = Snapshots(lambda: self.now, lambda: int(self.now * 1000), most)
        self.flights: list[tuple[Flight, asyncio.Future[str]]] = []

    def ask(self, max_age_s: float, key: str = "key") -> asyncio.Task[str]:
        async def fetch(flight: Flight) -> str:
            answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self.flights.append((flight, answer))
            return await answer

        return asyncio.ensure_future(self.snapshots.get(key, max_age_s, fetch))


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_reading_that_has_not_begun_is_for_everybody() -> None:
    story = Story()
    asked = [story.ask(0), story.ask(30), story.ask(0)]
    await _settle()
    ((flight, answer),) = story.flights
    flight.begin()
    answer.set_result("one")
    assert await asyncio.gather(*asked) == ["one"] * 3


async def test_a_reading_under_way_is_joined_only_by_who_accepts_its_age() -> None:
    story = Story()
    early = story.ask(0)
    await _settle()
    story.flights[0][0].begin()
    story.now += 5
    patient, strict, newest = story.ask(10), story.ask(3), story.ask(0)
    await _settle()
    assert len(story.flights) == 2
    story.flights[1][0].begin()
    story.flights[1][1].set_result("new")
    await _settle()
    story.flights[0][1].set_result("old")
    assert await asyncio.gather(early, patient, strict, newest) == ["old", "old", "new", "new"]
    # The older reading ended last and does not displace the newer.
    assert await story.ask(60) == "new"


async def test_age_counts_from_when_the_reading_began() -> None:
    story = Story()
    first = story.ask(0)
    await _settle()
    story.flights[0][0].begin()
    story.now += 8
    story.flights[0][1].set_result("slow")
    assert await first == "slow"
    again = story.ask(5)
    await _settle()
    assert len(story.flights) == 2
    again.cancel()


async def test_after_a_write_no_earlier_reading_is_an_answer() -> None:
    story = Story()
    reading = story.ask(0)
    await _settle()
    story.flights[0][0].begin()
    story.now += 1
    story.snapshots.forget("key")
    later = story.ask(60)
    await _settle()
    assert len(story.flights) == 2
    story.flights[0][1].set_result("before")
    story.now += 1
    story.flights[1][0].begin()
    story.flights[1][1].set_result("after")
    assert (await reading, await later, await story.ask(60)) == ("before", "after", "after")


async def test_an_error_reaches_all_who_joined_and_is_not_kept() -> None:
    story = Story()
    asked = [story.ask(60), story.ask(60)]
    await _settle()
    story.flights[0][0].begin()
    story.flights[0][1].set_exception(ValueError("no"))
    assert [type(each) for each in await asyncio.gather(*asked, return_exceptions=True)] == [ValueError] * 2
    again = story.ask(60)
    await _settle()
    assert len(story.flights) == 2
    again.cancel()


async def test_a_reading_nobody_waits_for_is_dropped_before_it_begins_and_not_after() -> None:
    story = Story()
    leavers = [story.ask(60), story.ask(60)]
    await _settle()
    for leaver in leavers:
        leaver.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaver
    await _settle()
    assert story.flights[0][1].cancelled()
    begun = story.ask(60)
    await _settle()
    story.flights[1][0].begin()
    begun.cancel()
    await _settle()
    story.flights[1][1].set_result("paid for")
    await _settle()
    assert await story.ask(60) == "paid for"


@pytest.mark.parametrize("most", [1, 3])
async def test_memory_is_bounded_and_the_latest_stay(most: int) -> None:
    story = Story(most)
    for n in range(10):
        asked = story.ask(60, key=str(n))
        await _settle()
        story.flights[-1][0].begin()
        story.flights[-1][1].set_result(str(n))
        await asked
    assert len(story.snapshots) == most
    assert await story.ask(60, key="9") == "9"
    assert len(story.flights) == 10


async def test_answers_forgotten_together_are_those_whose_keys_begin_alike() -> None:
    """However many collections a wallet's bids were asked for, nothing besides the bounded store remembers them."""
    snapshots = Snapshots(lambda: 100.0, lambda: 0)

    async def fetch(flight: Flight) -> str:
        flight.begin()
        return "read"

    keys = [("own_bids", "a", ("x",)), ("own_bids", "a", ()), ("own_bids", "b", ()), "fees"]
    for key in keys:
        await snapshots.get(key, 30, fetch)
    snapshots.forget_all(("own_bids", "a"))
    assert [snapshots.kept(key, 30) is None for key in keys] == [True, True, False, False]
