"""Several venues behind one gateway, UniSat among them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from gateway import app
from gateway import venue as one_venue
from gateway.quota import Priority
from gateway.venue import Toll
from markets import orders
from markets.adapter import Adapter
from markets.base import BidOrder, NotSupported, OwnBid, RateLimited, Refused, SignInNeeded, Unavailable
from markets.http import Permit
from markets.parse import Cursor, Page
from markets.venues import capabilities
from tests.clock import Monotonic
from tests.gateway.conftest import ORDER, Bench, soon
from tests.gateway.fake_venue import Call

Make = Callable[..., Bench]
SELLERS_FLOOR = 87_570  # of a listing at 90,000 sats, at Ordinals Wallet
ORDNET, WALLET, UNISAT = "simulator-ordnet", "simulator-ordinalswallet", "simulator-unisat"
PAIR = orders.Pair("bc1qpayment", "02" + "ab" * 32, "bc1pvault", "cd" * 32)
ASK = orders.BidToDraft(
    price=500_000,
    quantity=Decimal(1),
    slug="cats",
    kind="ordinals",
    trait=("Hat", "Red"),
    payment=PAIR.payment,
    payment_pubkey=PAIR.payment_pubkey,
    ordinals=PAIR.ordinals,
    ordinals_pubkey=PAIR.ordinals_pubkey,
    valid_hours=1,
    coins=(orders.Coin("ab" * 32 + ":1", 600_000),),
)
DRAFT = orders.BidDraft(
    "ref-1",
    (orders.DraftPsbt("funding", "cHNidP8=", (0, 2), 0x81), orders.DraftPsbt("other", "cHNidP8=", (), None)),
    "51",
)
TEXTS = orders.SignInTexts(
    "auth-1", (orders.SignInText("1", "sign\nme", PAIR.ordinals), orders.SignInText("2", "and me", PAIR.payment))
)
SIGNED = replace(ORDER, signature="", signed_psbts=("cHNidP8=", "cHNidP8="), reference="ref-1")


@dataclass
class Drafting(Adapter):
    """A venue of drafted bids: remembers what it was told, and holds no session until it is signed in to."""

    name: str
    told: list[Any] = field(default_factory=list)
    is_open: bool = False

    def sign_in_texts(self, pair: orders.Pair) -> orders.SignInTexts:
        self.told.append(pair)
        return TEXTS

    def sign_in(self, answer: orders.SignInAnswer) -> None:
        self.told.append(answer)
        self.is_open = True

    def own_bids(self, wallet: str, cursor: Cursor, slugs: Collection[str] = ()) -> Page[OwnBid]:
        if not self.is_open:
            raise SignInNeeded(f"no session of {wallet} is held")
        names = sorted(slugs)
        at = names.index(str(cursor)) if cursor else 0
        self.told.append(names[at])
        bid = OwnBid(f"bid-{names[at]}", names[at], "ordinals", 5_000, Decimal(1), None, None)
        return Page((bid,), names[at + 1] if at + 1 < len(names) else None)

    def draft_bid(self, order: orders.BidToDraft) -> orders.BidDraft:
        self.told.append(order)
        return DRAFT

    def place(self, order: BidOrder, permit: Permit | None = None) -> str:
        if permit is not None:
            permit()
        self.told.append(order)
        return "their-id-7"

    def cancel(self, wallet: str, venue_ids: Sequence[str], signature: str, permit: Permit | None = None) -> bool:
        self.told.append((wallet, tuple(venue_ids), signature))
        return tuple(venue_ids) != ("b",)


@pytest.fixture
def drafting(monkeypatch: pytest.MonkeyPatch) -> Drafting:
    """Puts a stand-in in the place of the practice market's ord.net, in all benches made from now on."""
    made = Drafting(ORDNET)
    monkeypatch.setitem(app._MAKERS, "ordnet", lambda *_: made)  # type: ignore[index, misc]
    return made


def stats(floor: int) -> dict[str, Any]:
    return {"floor_price": floor, "listed": 1, "listed_count": 1, "owners": 1, "slug": "cats"}


def floors(bench: Bench) -> None:
    """Both venues know cats, at different floors."""
    satflow = {"data": [{"slug": "cats", "floor": 70_000, "listedCount": 2}]}
    bench.venue.answers |= {"/collection-stats/floors": satflow, "/ordinalswallet/collection/cats/stats": stats(90_000)}


class TestWhoIsMeant:
    def test_who_names_none_means_the_default(self, bench: Bench) -> None:
        floors(bench)
        assert bench.client().floors(["cats"], "ordinals", 60)["cats"].floor == 70_000
        assert bench.client("simulator").floors(["cats"], "ordinals", 60)["cats"].floor == 70_000
        assert len(bench.venue.calls) == 1  # one snapshot for both

    def test_answers_of_one_venue_are_none_of_another(self, bench: Bench) -> None:
        floors(bench)
        client = bench.client()
        assert client.floors(["cats"], "ordinals", 60)["cats"].floor == 70_000
        assert client.at(WALLET).floors(["cats"], "ordinals", 60)["cats"].floor == SELLERS_FLOOR
        assert client.floors(["cats"], "ordinals", 60)["cats"].floor == 70_000
        assert [call.path for call in bench.venue.calls] == [
            "/collection-stats/floors",
            "/ordinalswallet/collection/cats/stats",
        ]

    def test_floors_are_asked_for_as_many_at_once_as_the_venue_takes(self, bench: Bench) -> None:
        bench.venue.answers |= {
            f"/ordinalswallet/collection/{slug}/stats": stats(90_000) | {"slug": slug} for slug in ("cats", "dogs")
        }
        found = bench.client(WALLET).floors(["cats", "dogs"], "ordinals", 60)
        assert found.keys() == {"cats", "dogs"}
        assert len(bench.venue.calls) == 2

    @pytest.mark.parametrize("name", ["nowhere", "satflow", "ordnet", ""])
    def test_a_venue_that_is_not_of_this_installation(self, bench: Bench, name: str) -> None:
        with pytest.raises(NotSupported, match="there is no venue"):
            bench.client(name).own_bids("bc1qpayment", 0)
        assert bench.venue.calls == []

    @pytest.mark.parametrize("name", [7, ["simulator"]])
    def test_a_misshapen_name_of_a_venue_is_refused(self, bench: Bench, name: Any) -> None:
        with pytest.raises(Refused, match=r"^venue: "):
            bench.client(name).own_bids("bc1qpayment", 0)
        assert bench.venue.calls == []

    def test_a_real_venue_whose_address_is_not_set(self, make_bench: Make) -> None:
        bench = make_bench(market="satflow", satflow_api_key="key", ordnet_url=None)
        with pytest.raises(NotSupported, match="not set up here: BIDKEEPER_ORDNET_URL is not set"):
            bench.client("ordnet").own_bids("bc1qpayment", 0)
        assert bench.client("ordinalswallet").venues()[0].capabilities.name == "satflow"

    def test_fences_and_status_have_no_venue(self, bench: Bench) -> None:
        client = bench.client("nowhere")
        client.fence(1, 2)
        assert client.status()["market"] == "simulator"
        for name in ("simulator", ORDNET):
            with pytest.raises(Refused, match="fenced"):
                bench.client(name).place(ORDER, task=1, token=1, deadline_ms=soon())

    def test_profiles(self, bench: Bench) -> None:
        assert bench.client().profile().tick == 1_000
        profile = bench.client(ORDNET).profile()
        assert (profile.venue, profile.tick, profile.min_duration_s) == (ORDNET, 5_000, 21_600)
        for name, kind in ((ORDNET, "runes"), (UNISAT, "ordinals"), (WALLET, "ordinals")):
            with pytest.raises(NotSupported, match="takes no bids on"):
                bench.client(name).profile(kind)

    def test_what_a_venue_cannot_do_it_says(self, bench: Bench) -> None:
        with pytest.raises(NotSupported, match="draft"):
            bench.client().draft_bid(ASK)
        with pytest.raises(NotSupported, match="sign-in"):
            bench.client().sign_in_texts(PAIR)


class TestSideBySide:
    def test_a_pause_of_one_is_none_of_another(self, bench: Bench) -> None:
        floors(bench)
        bench.pause(1000)
        with pytest.raises(RateLimited):
            bench.client().floors(["cats"], "ordinals", 0)
        assert bench.client(WALLET).floors(["cats"], "ordinals", 0)["cats"].floor == SELLERS_FLOOR
        venues = bench.client().status()["venues"]
        assert venues["simulator"]["paused_s"] > 900 and venues[WALLET]["paused_s"] == 0
        assert list(venues) == ["simulator", ORDNET, "unisat", WALLET, "mempool", "ord"]

    def test_a_venue_that_hangs_holds_up_no_other(self, bench: Bench) -> None:
        floors(bench)
        bench.venue.closed_gates.add("/ordinalswallet/collection/cats/stats")
        asked = bench.run(_begin_asking, bench)
        assert bench.client().floors(["cats"], "ordinals", 0)["cats"].floor == 70_000
        assert not asked.done()

    def test_all_others_that_hang_at_once_hold_up_none(self, bench: Bench) -> None:
        floors(bench)
        answered = threading.Event()
        bench.run(_occupy, bench, answered.wait)
        try:
            assert bench.client().floors(["cats"], "ordinals", 0)["cats"].floor == 70_000
        finally:
            answered.set()

    def test_one_that_is_cut_off_cuts_off_no_other(self, bench: Bench) -> None:
        floors(bench)
        bench.gateway.venues.markets[WALLET].breaker._probe_at = float("inf")
        with pytest.raises(Unavailable, match="no usable answer several times"):
            bench.client(WALLET).floors(["cats"], "ordinals", 0)
        assert bench.client().floors(["cats"], "ordinals", 0)["cats"].floor == 70_000

    def test_unisats_market_and_its_data_are_one_key(self, bench: Bench) -> None:
        venues = bench.gateway.venues
        assert venues.markets[UNISAT] is venues.unisat
        assert venues.all().count(venues.unisat) == 1


def _occupy(bench: Bench, call: Callable[[], object]) -> None:
    """Uses every slot of every venue but Satflow's for `call`."""
    venues = bench.gateway.venues
    for each in set(venues.all()) - {venues.markets["simulator"]}:
        for _ in range(each.budget._slots):
            each.budget._slots -= 1
            each.running.add(asyncio.ensure_future(each._run("floors", "floors", call, Unavailable)))


class TestQuotas:
    def test_counts_of_several_keys_are_kept_side_by_side(self, make_bench: Make) -> None:
        bench = make_bench(satflow_monthly_calls=1_000, unisat_monthly_calls=2_000)
        floors(bench)
        bench.client().floors(["cats"], "ordinals", 0)
        bench.venue.statuses["/v3/market/collection/auction/collection_statistic"] = 502
        for _ in range(2):
            with pytest.raises(Unavailable):
                bench.client(UNISAT).floors(["cats"], "ordinals", 0)

        told = bench.client().status()["venues"]
        assert (told["simulator"]["quota"]["used"], told["unisat"]["quota"]["used"]) == (1, 2)
        by_name = {venue.capabilities.name: venue.quota for venue in bench.client().venues()}
        assert by_name["simulator"] is not None and by_name["simulator"]["left"] == 999
        assert by_name[UNISAT] is not None and by_name[UNISAT]["limit"] == 2_000
        assert by_name[ORDNET] is None
        bench.run(bench.gateway.stop)
        kept = json.loads(bench.settings.quota_file.read_text())["counts"]
        assert {row["of"].partition(" ")[0]: row["used"] for row in kept} == {"satflow": 1, "unisat": 2}

    def test_an_answer_tells_of_the_quota_of_its_venue(self, make_bench: Make) -> None:
        bench = make_bench(satflow_monthly_calls=1_000)
        floors(bench)
        for _ in range(300):
            bench.gateway.venues.markets["simulator"].quota.count()
        client = bench.client()
        client.floors(["cats"], "ordinals", 0)
        assert client.scarcity.stretch_s > 0
        other = client.at(WALLET)
        other.floors(["cats"], "ordinals", 0)
        assert other.scarcity.stretch_s == 0


class TestDraftedBids:
    def test_a_session_is_asked_for_and_opened(self, drafting: Drafting, bench: Bench) -> None:
        client = bench.client(ORDNET)
        with pytest.raises(SignInNeeded, match="no session of bc1qpayment"):
            client.own_bids(PAIR.payment, 0, ["cats"])
        assert client.sign_in_texts(PAIR) == TEXTS
        answer = orders.SignInAnswer(PAIR, TEXTS.reference, {"1": "AkcwRA==", "2": "AkcwRQ=="})
        client.sign_in(answer)
        assert drafting.told == [PAIR, answer]
        assert not bench.gateway.venues.markets[ORDNET].breaker.is_open
        client.own_bids(PAIR.payment, 0, ["cats"])

    def test_a_bid_is_drafted_and_placed_and_its_id_told(self, drafting: Drafting, bench: Bench) -> None:
        client = bench.client(ORDNET)
        assert client.draft_bid(ASK) == DRAFT
        assert client.place(SIGNED, task=1, token=1, deadline_ms=soon()) == "their-id-7"
        assert drafting.told == [ASK, SIGNED]

    def test_own_bids_of_several_collections(self, drafting: Drafting, bench: Bench) -> None:
        drafting.is_open = True
        client = bench.client(ORDNET)
        read = client.own_bids(PAIR.payment, 60, ["dogs", "cats", "dogs"])
        assert [bid.venue_id for bid in read.bids] == ["bid-cats", "bid-dogs"]
        client.own_bids(PAIR.payment, 60, ["cats", "dogs"])
        assert drafting.told == ["cats", "dogs"]  # the second was answered from what had been read
        client.own_bids(PAIR.payment, 60, ["cats"])
        client.place(SIGNED, task=1, token=1, deadline_ms=soon())
        client.own_bids(PAIR.payment, 60, ["cats"])
        client.own_bids(PAIR.payment, 60, ["cats", "dogs"])
        assert drafting.told == ["cats", "dogs", "cats", SIGNED, "cats", "cats", "dogs"]

    def test_bids_are_cancelled_as_many_at_once_as_the_venue_takes(self, drafting: Drafting, bench: Bench) -> None:
        fencing = {"task": 1, "token": 1, "deadline_ms": soon()}
        client = bench.client(ORDNET)
        assert client.cancel(PAIR.payment, ["a", "c"], "", **fencing)
        assert not client.cancel(PAIR.payment, ["b", "c"], "", **fencing)
        assert drafting.told == [(PAIR.payment, (each,), "") for each in "acbc"]

    def test_a_full_minute_refuses_at_once_and_leaves_room_for_cancels(
        self, drafting: Drafting, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.gateway.venues.markets[ORDNET].windows._clock = Monotonic()  # the minute stays full
        monkeypatch.setattr("gateway.venue.READ_WAIT_S", 20.0)
        client = bench.client(ORDNET)
        for _ in range(3):
            client.draft_bid(ASK)
            client.place(SIGNED, task=1, token=1, deadline_ms=soon())
        sent = len(drafting.told)
        with pytest.raises(RateLimited, match="nothing was sent") as raised:
            client.draft_bid(ASK)
        assert raised.value.retry_after_s is not None and 50 < raised.value.retry_after_s < 62
        with pytest.raises(RateLimited):
            client.place(SIGNED, task=1, token=1, deadline_ms=soon(30))
        assert len(drafting.told) == sent
        assert client.cancel(PAIR.payment, ["a"], "", task=1, token=1, deadline_ms=soon())

    def test_a_sign_in_makes_one_profile_of_its_addresses(self, drafting: Drafting, bench: Bench) -> None:
        bench.client(ORDNET).sign_in(orders.SignInAnswer(PAIR, "auth-1", {"1": "AkcwRA=="}))
        windows = bench.gateway.venues.markets[ORDNET].windows
        can = capabilities(ORDNET)
        for _ in range(can.writes_per_minute_per_wallet or 0):
            windows.enter(Toll("write", PAIR.ordinals))
        assert windows.wait_s(Toll("write", PAIR.payment), Priority.CANCEL) > 0

    def test_bids_are_paid_from_the_payment_address_where_they_spend_its_coins(
        self, drafting: Drafting, bench: Bench
    ) -> None:
        mempool = {"funded_txo_sum": 5_000, "spent_txo_sum": 0}
        bench.venue.answers["/api/address/bc1qpayment"] = {"chain_stats": mempool, "mempool_stats": mempool}
        balance = bench.client(ORDNET).balance(PAIR.payment, PAIR.ordinals, PAIR.payment_pubkey, 0)
        assert (balance.address, balance.sats) == (PAIR.payment, 10_000)


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("draft_bid", {"ask": []}),
        ("draft_bid", {"ask": ["x"] * 12}),
        ("sign_in_texts", {"pair": ["bc1q", "02", "bc1p", "cd"]}),
        ("sign_in_texts", {}),
        ("sign_in", {"answer": [["a", "b", "c", "d"], "r", {}]}),
        ("sign_in", {"answer": [[PAIR.payment, PAIR.payment_pubkey, PAIR.ordinals, PAIR.ordinals_pubkey], "r", {}]}),
        ("own_bids", {"wallet": "bc1qpayment", "slugs": "cats"}),
        ("own_bids", {"wallet": "bc1qpayment", "slugs": ["a,b"]}),
    ],
)
def test_what_is_not_as_agreed_reaches_no_venue(
    drafting: Drafting, bench: Bench, verb: str, args: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as raised:
        bench.ask({"verb": verb, "args": args, "venue": ORDNET})
    assert raised.value.code == "bad_request"
    assert drafting.told == []


@pytest.mark.parametrize(
    "changed",
    [
        {"price": 0},
        {"price": 1.5},
        {"valid_hours": 0},
        {"valid_hours": 24 * 400},
        {"quantity": Decimal(0)},
        {"slug": "a,b"},
        {"kind": "things"},
        {"trait": ("Hat", "")},
        {"payment": "bc1q payment"},
        {"payment_pubkey": "04" + "ab" * 32},
        {"ordinals_pubkey": "ab"},
        {"coins": (orders.Coin("ab:1", 5),)},
        {"coins": (orders.Coin("ab" * 32 + ":1", 0),)},
        {"coins": (orders.Coin("ab" * 32 + ":1", 5),) * 101},
    ],
)
def test_a_draft_is_asked_for_what_its_fields_say_only(
    drafting: Drafting, bench: Bench, changed: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as raised:
        bench.client(ORDNET).draft_bid(replace(ASK, **changed))
    assert raised.value.code == "bad_request"
    assert drafting.told == []


@pytest.mark.parametrize(
    "changed",
    [
        {"signature": "AkcwRA=="},
        {"signed_psbts": ()},
        {"signed_psbts": ("cHNidP8=",) * 9},
        {"signed_psbts": ("not base64!",)},
        {"reference": "two words"},
    ],
)
def test_an_order_is_signed_in_one_of_two_ways(drafting: Drafting, bench: Bench, changed: dict[str, Any]) -> None:
    with pytest.raises(Refused) as raised:
        bench.client(ORDNET).place(replace(SIGNED, **changed), task=1, token=1, deadline_ms=soon())
    assert raised.value.code == "bad_request"
    assert drafting.told == []


def test_the_venues_that_are_there(bench: Bench) -> None:
    venues = bench.client().venues()
    assert [venue.capabilities.name for venue in venues] == ["simulator", ORDNET, UNISAT, WALLET]
    assert [venue.is_default for venue in venues] == [True, False, False, False]
    assert venues[1].capabilities == capabilities(ORDNET)
    assert venues[1].profiles["ordinals"].tick == 5_000
    assert bench.venue.calls == []


async def _begin_asking(bench: Bench) -> Any:
    floors = bench.gateway.markets[WALLET].floors
    return asyncio.ensure_future(floors.read(["cats"], "ordinals", 0))


UNISAT_URL = "simulator-unisat"
AUCTION = "/v3/market/collection/auction"


@pytest.fixture
def no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_venue, "SPAN_S", 0.0)


def _failing(bench: Bench, *steps: str) -> None:
    """The list of statistics has every collection; these `steps` fail."""

    def listed(call: Call) -> dict[str, Any]:
        rows = [{"collectionId": slug, "floorPrice": 80_000} for slug in call.body["filter"]["collections"]]
        return {"code": 0, "msg": "ok", "data": {"list": rows, "total": len(rows)}}

    bench.venue.answers[f"{AUCTION}/collection_statistic_list"] = listed
    for step in steps:
        bench.venue.statuses[f"{AUCTION}/{step}"] = 500


def _is_cut_off(bench: Bench) -> bool:
    return bool(bench.client().status()["venues"]["unisat"]["is_cut_off"])


@pytest.mark.usefixtures("no_span")
def test_each_source_is_a_call_that_counts_and_the_one_that_fails_is_remembered(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(unisat_monthly_calls=2_000)
    _failing(bench, "collection_statistic")
    for _ in range(3):
        assert bench.client(UNISAT_URL).floors(["cats"], "ordinals", 0)["cats"].floor == 80_000
    asked = [call.path.rpartition("/")[2] for call in bench.venue.calls]
    assert asked == ["collection_statistic"] + ["collection_statistic_list"] * 3
    assert bench.client().status()["venues"]["unisat"]["quota"]["used"] == 4


@pytest.mark.usefixtures("no_span")
def test_source_that_fails_for_many_collections_does_not_cut_the_venue_off(bench: Bench) -> None:
    _failing(bench, "collection_statistic")
    for number in range(2 * one_venue.FAILURES):
        assert bench.client(UNISAT_URL).floors([f"cats-{number}"], "ordinals", 0)
    assert not _is_cut_off(bench)


@pytest.mark.usefixtures("no_span")
def test_venue_whose_every_source_fails_is_cut_off(bench: Bench) -> None:
    _failing(bench, "collection_statistic", "collection_statistic_list", "list")
    for number in range(one_venue.FAILURES):
        assert not _is_cut_off(bench)
        with pytest.raises(Unavailable, match="status 500"):
            bench.client(UNISAT_URL).floors([f"cats-{number}"], "ordinals", 0)
    assert _is_cut_off(bench)


@pytest.mark.usefixtures("no_span")
def test_book_of_a_trait_is_picked_from_the_listings_that_show_it(bench: Bench) -> None:
    def row(number: int, *traits: str) -> dict[str, Any]:
        attrs = [{"traitType": "Hat", "value": each, "listingCount": 1, "floorPrice": 1} for each in traits]
        return {"auctionId": f"a{number}", "collectionId": "cats", "price": 1_000 * number, "attrs": attrs or None}

    rows = [row(1), row(2, "Red"), row(3, "Blue"), row(4, "Red"), {**row(5), "price": "x"}]
    bench.venue.answers[f"{AUCTION}/list"] = {"code": 0, "msg": "ok", "data": {"list": rows, "total": 5}}
    client = bench.client(UNISAT_URL)
    assert [ask.price for ask in client.asks("cats", 60, ("Hat", "Red")).asks] == [2_000, 4_000]
    book = client.asks("cats", 60)
    assert ([ask.price for ask in book.asks], book.unread) == ([1_000, 2_000, 3_000, 4_000], 1)
    assert len(bench.venue.calls) == 1
    assert bench.client().status()["venues"]["unisat"]["unread_rows"] == {"book": 1}


@pytest.mark.usefixtures("no_span")
def test_rune_book_counts_the_lots_that_are_left_out(bench: Bench) -> None:
    lot = {"auctionId": "z1", "price": 150, "tick": "A•B", "amount": 100, "unitPrice": 1.5}
    data = {"list": [lot, {**lot, "auctionId": "z2", "price": 160}, {**lot, "auctionId": "z3"}], "total": 3}
    bench.venue.answers["/v3/market/runes/auction/list"] = {"code": 0, "msg": "ok", "data": data}
    book = bench.client().rune_asks("A•B", 60)
    assert ([ask.order_id for ask in book.asks], book.unread) == (["z1", "z3"], 1)
