"""The doctor on venues that answer otherwise than they should."""

from __future__ import annotations

import copy
import time
from contextlib import closing
from decimal import Decimal
from email.utils import formatdate
from typing import Any

import pytest

from cli.doctor import program_check, venue_check
from cli.doctor.questions import ADDRESS, Exchange, Listener
from markets.adapter import TraitedAsk, TraitedBid
from markets.base import Floor, RateLimited, Refused, SignInNeeded
from markets.http import Reply
from markets.ordnet.adapter import OrdNetHttp
from markets.parse import Page, Unread, each_row, sats
from markets.satflow.adapter import Satflow
from strategy.book import Ask, Bid
from tests.cli.conftest import Examine
from tests.cli.venue import Venue, venue

KEY = "a-key-that-must-stay-hidden"
LISTING = {
    "_id": "65a000000000000000000001",
    "price": 500_000,
    "collectionSlug": "nodemonkes",
    "sellerAddress": "bc1qa",
}
BID = {"_id": "65a000000000000000000002", "price": 400_000, "collectionSlug": "nodemonkes", "bidderAddress": "bc1qb"}
BID_TEXT = f"bc1qpay:02{'ab' * 32}:bc1pord:5000:1:1790000960000:nodemonkes:1790000000000"
SATFLOW: dict[str, Any] = {
    "/v1/collection-stats/floors": {"success": True, "data": [{"slug": "nodemonkes", "floor": 500_000}]},
    "/v1/activity/listings": {"success": True, "data": {"items": [LISTING]}},
    "/v1/activity/bids": {"success": True, "data": {"items": [BID]}},
}


@pytest.fixture
def real(environment: dict[str, str]) -> dict[str, str]:
    """The settings of an installation that trades for real money, at a venue of a test's own."""
    environment |= {"BIDKEEPER_MARKET": "satflow", "BIDKEEPER_SATFLOW_API_KEY": KEY}
    return environment


def asked(examine: Examine, real: dict[str, str], made: Venue, ahead_s: float = 0) -> dict[str, Any]:
    real["BIDKEEPER_SATFLOW_URL"] = f"{made.url}/v1"
    return examine("venues", ahead_s=ahead_s, collection="nodemonkes")


def test_what_is_not_set_and_what_will_not_work_without_it(examine: Examine, real: dict[str, str]) -> None:
    with venue(SATFLOW) as made:
        found = asked(examine, real, made)
    for source, missing in {"unisat": "no task can bid on runes", "mempool": "fee rates", "ord": "no listing"}.items():
        assert found[source].status == "warn"
        assert missing in found[source].text
    assert [found[f"satflow {what}"].status for what in ("floors", "listings", "bids", "own bids")] == ["ok"] * 4


def test_fault_in_one_section_is_a_line_and_the_others_continue(
    examine: Examine, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise UnicodeEncodeError("latin-1", "\ufeffkey", 0, 1, "no\nsuch letter")

    for module in (
        "machine_check.examine",
        "data_check.examine",
        "program_check.examine_months",
        "venue_check.make_adapters",
    ):
        with monkeypatch.context() as patch:
            lazily = (lambda *_: (broken() for _ in "1")) if "examine" in module else broken
            patch.setattr(f"cli.doctor.{module}", lazily)
            found = examine("machine", "settings", "data", "programs", "venues")
        faults = [check for check in found.values() if "check itself failed: UnicodeEncodeError" in check.text]
        assert len(faults) == 1 and "\n" not in faults[0].line(), module
        assert {"settings", "programs", "sockets"} <= found.keys(), module


def test_fault_at_one_venue_leaves_the_others(
    examine: Examine, real: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.doctor.venue_check.understood", lambda *_: 1 / 0)
    with venue(SATFLOW) as made:
        found = asked(examine, real, made)
    assert found["satflow"].text.startswith("the check itself failed: ZeroDivisionError")
    assert {"unisat", "mempool", "ord", "calls"} <= found.keys()


def test_key_file_in_quotes_is_a_fault_that_is_named(examine: Examine, real: dict[str, str], tmp_path: Any) -> None:
    del real["BIDKEEPER_SATFLOW_API_KEY"]
    file = tmp_path / "key"
    file.write_text(f'"{KEY}"')
    real |= {"BIDKEEPER_SATFLOW_API_KEY_FILE": str(file), "BIDKEEPER_SATFLOW_URL": "https://venue.test/v1"}
    found = examine("settings", "data")
    assert found["settings"].status == "FAIL" and "quote" in found["settings"].text
    assert str(file) in found["settings"].text and KEY not in found["settings"].text
    assert "database" in found


def test_missing_key_file_is_not_taken_for_the_gateways(examine: Examine, real: dict[str, str], tmp_path: Any) -> None:
    del real["BIDKEEPER_SATFLOW_API_KEY"]
    real |= {"BIDKEEPER_SATFLOW_API_KEY_FILE": str(tmp_path / "none"), "BIDKEEPER_SATFLOW_URL": "https://venue.test/v1"}
    found = examine("venues")["satflow"]
    assert found.text.endswith("no gateway runs here") and found.remedy.startswith("put the key into its file")


def test_what_it_spent(examine: Examine, real: dict[str, str]) -> None:
    with venue(SATFLOW) as made:
        found = asked(examine, real, made)
    assert len(made.asked) == 9
    assert found["calls"].text.startswith("9 to satflow made by the doctor;")


@pytest.mark.parametrize(
    ("text", "status"),
    [("sign me: 17", "ok"), (BID_TEXT, "FAIL"), ("x" * 600, "FAIL"), ("for Bidkeeper", "FAIL")],
)
def test_whether_a_challenge_would_be_signed(examine: Examine, real: dict[str, str], text: str, status: str) -> None:
    with venue(SATFLOW | {"/v1/challenge": {"success": True, "data": {"challenge": text}}}) as made:
        check = asked(examine, real, made)["satflow challenge"]
    assert (check.status, "no bid can be cancelled" in check.text) == (status, status != "ok")


SALE = {"_id": "65a000000000000000000003", "price": 5000, "inscriptionId": "1i0", "timestamp": 1_790_000_000_000}
OLDER = {**SALE, "_id": "65a000000000000000000004", "timestamp": 1_780_000_000_000}


@pytest.mark.parametrize(
    ("asked_for", "unasked", "status"),
    [([SALE, OLDER], [SALE], "ok"), ([SALE], [OLDER], "ok"), ([OLDER], [SALE], "FAIL"), ([], [OLDER], "FAIL")],
)
def test_sales_that_are_hidden_from_who_asks_for_them(
    examine: Examine, real: dict[str, str], asked_for: list[Any], unasked: list[Any], status: str
) -> None:
    with venue(SATFLOW) as made:
        made.answers["/v1/activity/sales"] = {"data": {"items": unasked}}
        made.answers["/v1/activity/sales?active=false"] = {"data": {"items": asked_for}}
        check = asked(examine, real, made)["satflow fills"]
    assert check.status == status


def test_unread_sales_are_not_called_complete(examine: Examine, real: dict[str, str]) -> None:
    with venue(SATFLOW | {"/v1/activity/sales": {"data": {"items": []}}}) as made:
        assert "satflow fills" not in asked(examine, real, made)


@pytest.mark.parametrize(
    ("path", "name", "value", "said"),
    [
        ("/v1/activity/listings", "price", "5e5", "listing price: '5e5' is not a whole number"),
        ("/v1/activity/bids", "price", None, "bid price"),
        ("/v1/activity/bids", "collectionSlug", "puppets", "another collection"),
    ],
)
def test_a_drifted_field_is_named(
    examine: Examine, real: dict[str, str], path: str, name: str, value: Any, said: str
) -> None:
    answers = copy.deepcopy(SATFLOW)
    answers[path]["data"]["items"][0][name] = value
    with venue(answers) as made:
        check = asked(examine, real, made)[f"satflow {path.rsplit('/', 1)[1]}"]
    assert check.status == "FAIL"
    assert said in check.text
    assert check.remedy == "bidkeeper venue probe satflow --save FILE, and report what it saves"


def test_bids_that_do_not_say_whose_they_are(examine: Examine, real: dict[str, str]) -> None:
    answers = copy.deepcopy(SATFLOW)
    del answers["/v1/activity/bids"]["data"]["items"][0]["bidderAddress"]
    with venue(answers) as made:
        check = asked(examine, real, made)["satflow bids"]
    assert check.status == "warn"
    assert "none names its bidder" in check.text


def test_a_venue_that_is_not_there(examine: Examine, real: dict[str, str]) -> None:
    with venue({}) as made:
        pass
    found = asked(examine, real, made)
    assert found["satflow floors"].status == "FAIL"
    assert "does not answer" in found["satflow floors"].text
    assert "satflow listings" not in found, "what comes after it would fare no better"
    assert "satflow rows" not in found, "no row was read"


@pytest.mark.parametrize(("ahead_s", "status"), [(0, "ok"), (6, "warn"), (-6, "warn"), (60, "FAIL"), (-60, "FAIL")])
def test_a_skewed_clock(examine: Examine, real: dict[str, str], ahead_s: float, status: str) -> None:
    with venue(SATFLOW) as made:
        check = asked(examine, real, made, ahead_s)["clock against satflow"]
    assert check.status == status
    assert ("set the clock by NTP" in check.remedy) == (status != "ok")


@pytest.mark.parametrize(
    ("date_s", "sent_ms", "received_ms", "skew_s"),
    [
        (1000, 1_000_000, 1_000_100, 0),
        (1000, 1_000_900, 1_003_000, 0),  # slow, and nothing is proven
        (1000, 1_004_000, 1_004_100, 3),
        (1000, 995_000, 995_500, -4.5),
    ],
)
def test_the_least_skew_that_is_proven(date_s: int, sent_ms: int, received_ms: int, skew_s: float) -> None:
    reply = Reply(200, {"Date": formatdate(date_s, usegmt=True)}, b"")
    assert Exchange("GET", "/", {}, None, sent_ms, received_ms, reply).skew_s() == skew_s


@pytest.mark.parametrize("headers", [{}, {"Date": "soon"}, {"Date": formatdate(1000, usegmt=True), "Age": "600"}])
def test_a_date_that_proves_nothing(headers: dict[str, str]) -> None:
    now_ms = int(time.time() * 1000)
    assert Exchange("GET", "/", {}, None, now_ms, now_ms, Reply(200, headers, b"")).skew_s() is None


@pytest.mark.parametrize(
    ("floor", "bid", "statuses"),
    [
        ("2.5", "2.1", ["ok", "ok", "ok"]),
        ("250", "2.1", ["ok", "FAIL", "ok"]),  # a floor per hundred tokens
        ("2.5", "210000", ["ok", "ok", "FAIL"]),
        ("2.5", "0.0001", ["ok", "ok", "warn"]),
    ],
)
def test_the_unit_of_rune_prices(floor: str, bid: str, statuses: list[str]) -> None:
    ask = Ask("1", 2500, Decimal(1000), Decimal("2.5"), "bc1qa")
    offer = TraitedBid(Bid("2", 2100, Decimal(1000), Decimal(bid), "bc1qb", None), frozenset())
    answers = {
        ("unisat", "rune listings"): (ask,),
        ("satflow", "rune floors"): {"DOG": Floor("DOG", Decimal(floor), 1)},
        ("satflow", "rune bids"): (offer,),
    }
    assert [check.status for check in venue_check.rune_unit(answers)] == statuses


FEES = {"fastestFee": 12, "halfHourFee": 8, "hourFee": 5, "economyFee": 3, "minimumFee": 1}
STATS = {"funded_txo_sum": 0, "spent_txo_sum": 0}
STATUS = {"chain": "mainnet", "height": 900_000, "inscription_index": True, "rune_index": True}
CHAIN: dict[str, Any] = {
    "/mempool/api/v1/fees/recommended": FEES,
    "/mempool/api/blocks/tip/height": b"900003",
    f"/mempool/api/address/{ADDRESS}": {"address": ADDRESS, "chain_stats": STATS, "mempool_stats": STATS},
    "/ord/status": STATUS,
}


@pytest.mark.parametrize(
    ("status", "name", "line"),
    [
        ({}, "ord index", "ok   ord index: understood"),
        (
            {"height": 899_999},
            "ord index",
            "warn ord index: ord is at block 899999, the chain at 900003",
        ),
        ({"rune_index": False}, "ord index", "FAIL ord index: it has no index of runes: no listing is signed"),
        ({"chain": "signet"}, "ord index", "FAIL ord index: its answer is not understood"),
    ],
)
def test_an_index_that_does_not_serve(
    examine: Examine, real: dict[str, str], status: dict[str, Any], name: str, line: str
) -> None:
    with venue(SATFLOW | CHAIN | {"/ord/status": STATUS | status}) as made:
        real |= {f"BIDKEEPER_{source.upper()}_URL": f"{made.url}/{source}" for source in ("mempool", "ord")}
        found = asked(examine, real, made)
    assert found[name].line().startswith(line)
    assert {found[f"mempool {what}"].status for what in ("fees", "height", "balance")} == {"ok"}


@pytest.mark.parametrize(
    ("left", "rungs", "status"), [(90_000, None, "ok"), (9_000, None, "warn"), (50_000, 4, "warn"), (0, 0, "FAIL")]
)
def test_what_is_left_of_the_month(left: int, rungs: int | None, status: str) -> None:
    told = {"limit": 100_000, "used": 100_000 - left, "left": left, "projected": 120_000, "rungs": rungs}
    [check] = program_check.quota("satflow", told)
    assert check.status == status
    assert check.text.startswith(
        f"{100_000 - left:,} of 100,000 calls at satflow used this month, {left:,} left; "
        "120,000 by its end at the rate of the last hour"
    )


def test_a_spent_day_fails_and_names_its_setting() -> None:
    day = {"limit": 2_000, "used": 2_000, "left": 0, "projected": 2_400}
    [check] = program_check.quota("unisat", {"stretch_s": 600, "rungs": 0, "day": day})
    assert check.line().startswith(
        "FAIL quota: 2,000 of 2,000 calls at unisat used today (UTC), 0 left; "
        "2,400 by its end at the rate of the last hour"
    )
    assert check.remedy == "wait for the next day, or get a larger quota (BIDKEEPER_UNISAT_DAILY_CALLS)"


@pytest.mark.parametrize(("floor", "status"), [(500_000, "ok"), (499_000, "warn"), (None, None)])
def test_a_floor_is_held_against_the_cheapest_listing(floor: int | None, status: str | None) -> None:
    """By an unchanged floor asks are not read: where the two disagree, that saves nothing."""
    asks = [Ask(str(price), price, Decimal(1), Decimal(price), "bc1qa") for price in (510_000, 500_000)]
    answers = {
        ("satflow", "listings"): tuple(TraitedAsk(ask, None) for ask in asks),
        ("satflow", "floors"): {"nodemonkes": Floor("nodemonkes", None if floor is None else Decimal(floor), 2)},
    }
    assert [check.status for check in venue_check.floors(answers, "nodemonkes")] == ([status] if status else [])


@pytest.mark.parametrize(("status", "error"), [(401, SignInNeeded), (409, Refused), (429, RateLimited)])
def test_status_with_a_meaning_at_ordnet_is_heard(status: int, error: type[Exception]) -> None:
    """The fault is raised after the exchange, so that a probe file has the answer that led to it."""
    with venue({"/listings": status}) as made:
        http = OrdNetHttp(made.url, "a token of a test")
        listener = Listener(lambda: 0)
        listener.listen(http)
        with closing(listener), pytest.raises(error):
            http.read("/listings")
    (heard,) = listener.heard
    assert heard.reply is not None and heard.reply.status == status
    assert listener.credentials() == ["a token of a test"]


def test_rows_that_are_left_out_are_a_warning_with_the_first_reason(
    examine: Examine, real: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(self: Satflow, slug: str, cursor: object) -> Page[TraitedAsk]:
        def read(row: Any) -> TraitedAsk:
            price = sats(row["price"], "price", least=1)
            return TraitedAsk(Ask("a", price, Decimal(1), Decimal(price), "m"), None)

        return Page(*each_row([LISTING, {"price": f"{KEY}?"}, LISTING], "listing", read)[:1], None)

    monkeypatch.setattr(Satflow, "asks", odd)
    with venue(SATFLOW) as made:
        found = asked(examine, real, made)
    rows = found["satflow rows"]
    assert (rows.status, found["satflow listings"].text) == ("warn", "2 understood")
    assert rows.text.startswith(
        "1 rows of these answers are not understood, and left out; the first is listing 2: price:"
    )
    assert KEY not in rows.line() and "venue probe satflow" in rows.remedy


def test_venue_without_a_row_left_out_is_well(examine: Examine, real: dict[str, str]) -> None:
    with venue(SATFLOW) as made:
        found = asked(examine, real, made)
    assert found["satflow rows"].line() == "ok   satflow rows: every row of these answers is understood"
    only_others = venue_check.rows_read("ordnet", [Unread("a bundle", is_foreign=True)], [])
    assert (only_others.status, "1 were about something else" in only_others.text) == ("ok", True)
