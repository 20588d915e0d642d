"""A preview's answer: the plan a worker would make of the same market, and its calls in a month."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from markets.base import AskBook, Balance, BidBook, NotFound, NotSupported, OwnBid, OwnBids, Unavailable
from models import accounts, users
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import cycles, tasks
from models.tasks.tasks import RUNNING, Task
from strategy.book import Ask
from strategy.config.bid import BidConfig
from strategy.monthly import Bidding, CallCosts, fits_from_minutes
from tests.server.ledger_rows import open_order
from tests.shapes import replace
from tests.worlds import service as peers
from tests.worlds.service import OWNER, START_MS, Service, keys_of, token_of, with_settings
from tests.worlds.worker import CATS, KEYS, World, ask, bid

EXAMPLE = {"slug": "goosinals", "hardcapSats": 100_000}


def listed(price: int, maker: str = "seller") -> Ask:
    return Ask(f"ask-{price}", price, Decimal(1), Decimal(price), maker)


def with_floor(service: Service, *prices: int) -> None:
    service.gateway.answers["asks"] = AskBook(tuple(listed(price) for price in prices), START_MS)
    service.gateway.answers["balance"] = Balance("bc1qbidding", 10_000_000, START_MS)


async def preview(service: Service, **config: Any) -> Any:
    return await service.ask("POST", "/api/tasks/preview", config)


def prices(answer: Any) -> list[tuple[int | None, str]]:
    assert answer.status == 200, answer.text
    return [(rung["price"], rung["reason"]) for rung in answer.json["rungs"]]


@with_settings(satflow_monthly_calls=100_000)
async def test_the_first_worked_example(service: Service) -> None:
    with_floor(service, 100_000, 120_000)

    answer = await preview(service, **EXAMPLE)

    assert prices(answer) == [(price, "place") for price in (75_000, 60_000, 45_000, 30_000, 15_000)]
    assert {rung["quantity"] for rung in answer.json["rungs"]} == {1}
    told = {
        name: answer.json[name] for name in ("total", "reference", "rawReference", "marks", "balance", "feeReserve")
    }
    assert told == {
        "total": 225_000,
        "reference": 100_000,
        "rawReference": 100_000,
        "marks": ["cold_start"],
        "balance": 10_000_000,
        "feeReserve": 1_000,
    }
    assert (answer.json["taskId"], answer.json["cancels"], answer.json["errors"]) == (None, [], [])
    assert answer.json["market"] == {
        "takenAt": "2025-11-20T12:00:00.000Z",
        "asks": 2,
        "ownAsks": 0,
        "lowestAsk": 100_000,
        "traitAsks": None,
        "bids": None,
        "highestBid": None,
        "median": None,
        "samples": 0,
    }
    assert answer.json["monthlyCalls"] == {
        "reads": 53_280,
        "writes": 20_160,
        "fits": True,
        "fitsFromExpiryMinutes": 15,
    }
    [hint] = answer.json["hints"]
    assert hint.startswith("a 120-minute bid life needs about ")


async def test_the_balance_is_of_this_moment(service: Service) -> None:
    """Money that was just sent to the wallet must count."""
    with_floor(service, 100_000)

    await preview(service, **EXAMPLE)

    assert [asked["max_age_s"] for asked in service.gateway.asked if asked["verb"] == "balance"] == [0.0]


async def test_nothing_is_placed_or_written(service: Service) -> None:
    with_floor(service, 100_000)

    await preview(service, **EXAMPLE)

    assert (Order.select().count(), Task.select().count()) == (0, 0)
    assert {request["verb"] for request in service.gateway.asked}.isdisjoint({"place", "cancel", "fence", "challenge"})
    assert service.manager.settled == []


async def test_limits_skip_rungs_and_say_so(service: Service) -> None:
    with_floor(service, 100_000)

    total = await preview(service, **EXAMPLE, maxBidTotal=150_000)
    fills = await preview(service, **EXAMPLE, maxFills=2, spendCapSats=200_000)

    assert prices(total) == [
        (75_000, "place"),
        (60_000, "place"),
        (45_000, "task_total"),
        (30_000, "task_total"),
        (15_000, "place"),
    ]
    assert total.json["limits"] == {
        "taskTotal": 150_000,
        "exposure": 50_000_000,
        "bids": 20,
        "fills": None,
        "spend": None,
        "fillsToday": None,
        "spendToday": None,
        "budget": None,
        "hold": None,
        "signed": [
            {"whose": "task", "most": 1_200_000, "signed": 0},
            {"whose": "user", "most": 200_000_000, "signed": 0},
        ],
    }
    assert [reason for _, reason in prices(fills)] == ["place", "place"] + ["max_fills"] * 3
    assert (fills.json["limits"]["fills"], fills.json["limits"]["spend"]) == (2, 200_000)


async def test_levels_of_ones_own_are_capped_last(service: Service) -> None:
    with_floor(service, 100_000)
    levels = [{"at": 0.9, "count": 1}, {"at": 0.85, "count": 2}, {"at": 0.7, "count": 2}]

    answer = await preview(service, **EXAMPLE | {"hardcapSats": 88_000, "bidPercentHigh": 0.9}, bidLevels=levels)

    assert [(rung["price"], rung["reason"], rung["detail"]) for rung in answer.json["rungs"]] == [
        (88_000, "place", "hardcap"),
        *[(85_000, "place", "")] * 2,
        *[(70_000, "place", "")] * 2,
    ]


async def test_a_fallen_floor_leaves_no_bid_until_its_time_is_over(service: Service) -> None:
    rule = {"percent": 0.10, "windowMinutes": 60, "forMinutes": 120}
    fallen_ms = service.clock.now_ms
    for minute in range(1, 41):
        cycles.record_reference("ordinals", "goosinals", "floor", Decimal(100_000), fallen_ms - minute * 60_000)
    with_floor(service, 89_000)
    assert {reason for _, reason in prices(await preview(service, **EXAMPLE, pauseOnFloorDrop=rule))} == {"floor_drop"}
    assert {reason for _, reason in prices(await preview(service, **EXAMPLE))} == {"place"}

    for minutes, expected in ((119, "floor_drop"), (120, "place")):
        slug, before_ms = f"cats-{minutes}", fallen_ms - minutes * 60_000
        cycles.record_reference("ordinals", slug, "floor", Decimal(100_000), before_ms - 60_000)
        cycles.record_reference("ordinals", slug, "floor", Decimal(89_000), before_ms)
        answer = await preview(service, **EXAMPLE | {"slug": slug}, pauseOnFloorDrop=rule)
        assert prices(answer)[0][1] == expected


async def test_guards_by_hour_and_floor_are_told(service: Service) -> None:
    with_floor(service, 100_000)
    outside = await preview(service, **EXAMPLE, onlyWhileFloorBetween=[50_000, 99_999])
    assert {reason for _, reason in prices(outside)} == {"floor_guard"}
    night = {"tz": "Europe/Berlin", "from": "22:00", "to": "06:00"}  # it is noon by UTC
    hours = await preview(service, **EXAMPLE, activeHours=night, maxFillsPerDay=2, spendCapPerDaySats=100_000)
    assert {reason for _, reason in prices(hours)} == {"active_hours"}
    limits = hours.json["limits"]
    assert (limits["hold"], limits["fillsToday"], limits["spendToday"]) == ("active_hours", 2, 100_000)
    unknown = await preview(service, **EXAMPLE, activeHours=night | {"tz": "Mars/Olympus"})
    assert unknown.status == 400 and unknown.names() == {"activeHours"}, unknown.text


async def test_own_listings_are_no_floor(service: Service) -> None:
    with_floor(service, 100_000)
    book = (listed(50_000, keys_of(OWNER)["vault"]), listed(60_000, OWNER), listed(100_000))
    service.gateway.answers["asks"] = AskBook(book, START_MS)

    answer = await preview(service, **EXAMPLE)

    assert (answer.json["reference"], answer.json["market"]["ownAsks"]) == (100_000, 2)


async def test_a_task_on_the_slug_keeps_its_bids(service: Service) -> None:
    with_floor(service, 100_000)
    task_id = await service.new_task()
    order = open_order(service, task_id, 3)

    same = await preview(service, **EXAMPLE)
    other = await preview(service, **EXAMPLE | {"slug": "other"}, bidCount=1)

    assert prices(same)[3] == (30_000, "kept")
    assert (same.json["taskId"], same.json["rungs"][3]["order"], same.json["rungs"][3]["quantity"]) == (
        task_id,
        order.id,
        1,
    )
    assert (same.json["total"], same.json["exposure"]) == (195_000, 30_000)
    assert same.json["limits"]["exposure"] == 50_000_000, "its own bids are not taken off"
    assert (other.json["taskId"], other.json["limits"]["exposure"]) == (None, 50_000_000 - 30_000)


@pytest.mark.parametrize("outbid", [False, True])
async def test_rungs_are_ranked_among_the_bids_of_others_whether_or_not_they_decide(
    service: Service, outbid: bool
) -> None:
    with_floor(service, 100_000)
    open_order(service, await service.new_task(), 3)  # holds the fourth rung, and is older than the rival there
    rivals = (bid(45_000, "a", placed_ms=START_MS - 1), bid(30_000, "b", placed_ms=START_MS + 1))
    service.gateway.answers["bids"] = BidBook(rivals, START_MS)

    answer = await preview(service, **EXAMPLE, outbidEnabled=outbid)
    service.gateway.answers["bids"] = BidBook(rivals, START_MS, 3, 1)
    in_part = await preview(service, **EXAMPLE)
    service.gateway.answers["bids"] = lambda **_: Unavailable("away")
    unknown = await preview(service, **EXAMPLE)

    told = [(rung["price"], rung["rank"]) for rung in answer.json["rungs"]]
    if outbid:
        assert told == [(46_000, 1), (38_000, 3), (30_000, 4), (22_000, 6), (15_000, 7)]
    else:
        assert told == [(75_000, 1), (60_000, 2), (45_000, 4), (30_000, 5), (15_000, 7)]
    assert [rung["rank"] for rung in in_part.json["rungs"]] == [1, None, None, None, None]
    assert (unknown.status, {rung["rank"] for rung in unknown.json["rungs"]}) == (200, {None})


async def test_a_change_of_a_task_is_previewed_on_what_it_has(service: Service) -> None:
    with_floor(service, 100_000)
    task_id = await service.new_task(bidCount=1)
    order = open_order(service, task_id, 3)
    before = await service.ask("GET", f"/api/tasks/{task_id}")

    answer = await preview(service, taskId=task_id, bidMode="fixed", bidFixedLow=20_000, bidFixedHigh=20_000)
    moved = await preview(service, taskId=task_id, slug="elsewhere")

    assert prices(answer) == [(20_000, "place")]
    assert answer.json["cancels"] == [{"order": order.id, "price": 30_000, "reason": "above_range", "hard": True}]
    assert (moved.json["taskId"], moved.json["cancels"]) == (task_id, []), "it counts until it is gone"
    assert (await service.ask("GET", f"/api/tasks/{task_id}")).json == before.json


async def test_a_task_of_somebody_else_or_of_the_other_kind_is_404_before_400(service: Service) -> None:
    task_id = await service.new_task()
    listing = await service.ask("POST", "/api/autolist", {"inscriptionId": "c" * 64 + "i0"})
    body = {"taskId": task_id, "bidCount": 0}

    other = await service.api("POST", "/api/tasks/preview", body, token=service.other_token)
    of_other_kind = await preview(service, taskId=listing.json["id"], bidCount=0)
    owner = await preview(service, **body)

    assert (other.status, of_other_kind.status, owner.status, owner.names()) == (404, 404, 400, {"bidCount"})


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({}, {"slug", "hardcapSats"}),
        ({"slug": "a", "hardcapSats": 1, "taskId": "7"}, {"taskId"}),
        ({"slug": "a", "hardcapSats": 1, "taskId": 0, "more": 1}, {"taskId", "more"}),
        ({"slug": "a", "hardcapSats": 1, "quantity": 2}, {"quantity"}),
        ({"slug": "a b", "bidCount": 101}, {"slug", "bidCount", "hardcapSats"}),
    ],
)
async def test_what_create_or_start_refuse_is_400_without_a_look(
    service: Service, config: dict[str, Any], fields: set[str]
) -> None:
    answer = await preview(service, **config)

    assert (answer.status, answer.names()) == (400, fields)
    assert service.gateway.asked == []


@pytest.mark.parametrize("verb", ["asks", "bids", "own_bids", "profile"])
async def test_a_market_that_cannot_be_read_is_502(service: Service, verb: str) -> None:
    with_floor(service, 100_000)
    service.gateway.answers[verb] = Unavailable("the venue does not answer")

    answer = await preview(service, **EXAMPLE, outbidEnabled=True)

    assert answer.status == 502
    assert answer.json == {"error": "The marketplace cannot be read", "message": "the venue does not answer"}


async def test_an_unknown_slug_is_404_and_an_empty_one_says_no_reference(service: Service) -> None:
    unknown = await preview(service, **EXAMPLE | {"slug": "nobody-knows"})
    empty = await preview(service, **EXAMPLE | {"slug": "empty"}, bidCount=1)

    assert (unknown.status, unknown.json) == (404, {"error": "The marketplace does not know this slug"})
    assert (prices(empty), empty.json["reference"]) == ([(None, "no_reference")], None)


async def test_a_rune_without_a_data_provider_is_502_and_says_why(service: Service) -> None:
    service.gateway.answers["rune_asks"] = NotSupported("BIDKEEPER_UNISAT_URL is not set")

    answer = await preview(service, slug="DOG", type="rune", hardcapSats=1_000)

    assert (answer.status, answer.json["message"]) == (502, "BIDKEEPER_UNISAT_URL is not set")


async def test_what_is_done_without_is_told(service: Service) -> None:
    with_floor(service, 100_000)
    service.gateway.answers["balance"] = NotFound("there is no bidding wallet yet")
    service.gateway.answers["fees"] = Unavailable("down")

    answer = await preview(service, **EXAMPLE, bidCount=1)

    assert [reason for _, reason in prices(answer)] in (["balance_unknown"], ["fee_unknown"])
    assert (answer.json["balance"], answer.json["feeReserve"]) == (None, None)
    assert answer.json["errors"] == [
        "failed to read the balance: there is no bidding wallet yet",
        "failed to read the fee rates: down",
    ]


async def test_control_and_plan_are_told_and_not_planned_in(service: Service) -> None:
    with_floor(service, 100_000)
    users.put_control("user", service.user_id, "halt", None, START_MS)
    accounts.set_plan(service.user_id, "beta", START_MS, START_MS)

    answer = await preview(service, **EXAMPLE, bidCount=1)

    assert prices(answer) == [(75_000, "place")]
    assert answer.json["control"] == {"state": "halt", "scope": "user"}
    assert answer.json["refusal"] == "plan expired"


async def test_bids_of_the_wallet_that_nobody_explains_count(service: Service) -> None:
    with_floor(service, 100_000)
    task_id = await service.new_task(slug="other")
    order = open_order(service, task_id, 3)
    Order.update(wallet=keys_of(OWNER)["payment"]).execute()
    known = OwnBid("v1", "other", "ordinals", 30_000, None, order.expires_ms, None)
    stray = OwnBid("v2", "other", "ordinals", 500_000, None, 7, None)
    service.gateway.answers["own_bids"] = OwnBids((known, stray), START_MS)

    answer = await preview(service, **EXAMPLE)

    assert answer.json["limits"]["exposure"] == 50_000_000 - 30_000 - 500_000


async def test_an_own_bid_whose_id_was_lost_counts_once(service: Service) -> None:
    """The venue keeps no expiry to the millisecond, so it is known by what it is on and for how much."""
    with_floor(service, 100_000)
    order = open_order(service, await service.new_task(slug="other", venue="simulator-ordnet"), 3, "unknown")
    Order.update(wallet=keys_of(OWNER)["payment"], venue="simulator-ordnet").execute()
    lost = OwnBid("v1", order.slug, "ordinals", 30_000, Decimal(1), None, None)
    service.gateway.answers["own_bids"] = OwnBids((lost, structs.replace(lost, venue_id="v2")), START_MS)

    answer = await preview(service, **EXAMPLE, venue="simulator-ordnet")

    assert answer.json["limits"]["exposure"] == 50_000_000 - 30_000 - 30_000, "the second is nobody's"


async def test_a_rivals_bid_at_the_price_of_one_of_ours_elsewhere_is_a_rivals(service: Service) -> None:
    with_floor(service, 100_000)
    service.gateway.answers["bids"] = BidBook((bid(30_000, maker=""),), START_MS)
    open_order(service, await service.new_task(slug="other"), 3)
    for venue, rivals in (("simulator", None), ("simulator-ordnet", 30_000)):
        Order.update(wallet=keys_of(OWNER)["payment"], venue=venue).execute()

        answer = await preview(service, **EXAMPLE, outbidEnabled=True)

        assert answer.json["market"]["highestBid"] == rivals


LIVE: dict[str, tuple[BidConfig, dict[str, Any]]] = {
    "a ladder": (CATS, {}),
    "outbid": (replace(CATS, outbid_enabled=True, bid_count=3), {"outbidEnabled": True, "bidCount": 3}),
    "only the highest": (replace(CATS, only_bid_if_highest=True), {"onlyBidIfHighest": True}),
    "a trait": (
        replace(CATS, bid_type="trait", trait_type="Hat", trait_value="Red"),
        {"bidType": "trait", "traitType": "Hat", "traitValue": "Red"},
    ),
    "little room": (replace(CATS, max_bid_total=130_000), {"maxBidTotal": 130_000}),
    "a dry run": (replace(CATS, dry_run=True), {"dryRun": True}),
}


@pytest.mark.parametrize("case", LIVE)
async def test_a_worker_plans_what_the_preview_said(
    service: Service, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    config, fields = LIVE[case]
    world = World()
    market = world.market
    market.asks_ = [ask(100_000), ask(101_000)]
    market.bids_, market.trait_bids_ = [bid(52_000), bid(61_500)], [bid(57_000, "bc1qthird")]
    market.trait_asks_ = [ask(140_000)]
    service.clock.now_ms = world.clock.now_ms
    token = token_of(world.user, service.clock.now_ms)
    monkeypatch.setattr(peers, "keys_of", lambda user: structs.asdict(KEYS))
    for verb in ("asks", "bids", "own_bids", "balance", "fees", "floors", "profile"):
        service.gateway.answers[verb] = _answering(getattr(market, verb), verb)
    body = {"slug": "cats", "hardcapSats": 100_000} | fields

    before = await service.api("POST", "/api/tasks/preview", body, token=token)
    task = world.task(config)
    world.bidder(task).cycle()
    service.clock.now_ms = world.clock.now_ms
    after = await service.api("POST", "/api/tasks/preview", body, token=token)

    live = world.detail(task)
    assert prices(before) == [(rung["price_sats"], rung["reason"]) for rung in live["rungs"]]
    assert before.json["total"] == sum(order.price_sats for order in orders.open_orders(task)) > 0
    assert str(before.json["reference"]) == live["seen"]["reference"]
    assert (after.json["taskId"], after.json["total"], after.json["cancels"]) == (task, 0, [])
    assert [reason for _, reason in prices(after)].count("kept") == len(orders.open_orders(task))


def _answering(ask_market: Any, verb: str) -> Any:
    def answer(**args: Any) -> Any:
        given = args | ({"trait": tuple(args["trait"])} if "trait" in args else {})
        return ask_market(**given, **({} if verb == "profile" else {"max_age_s": 0}))

    return answer


MINE = Bidding(BidConfig(slug="goosinals", hardcap_sats=100_000), 5, "me")
COSTS = CallCosts()


async def calls(service: Service, **changes: Any) -> Any:
    with_floor(service, 100_000)
    answer = await preview(service, **EXAMPLE, **changes)
    assert answer.status == 200, answer.text
    return answer.json["monthlyCalls"]


@with_settings(satflow_monthly_calls=40_000)
async def test_what_does_not_fit_says_from_which_expiry_on_it_would(service: Service) -> None:
    told = await calls(service)
    minutes = fits_from_minutes(MINE, [], 40_000, COSTS)
    assert minutes is not None and minutes > 16
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, minutes)

    assert (await calls(service, bidExpiryMinutes=minutes))["fits"] is True
    assert (await calls(service, bidExpiryMinutes=minutes - 1))["fits"] is False


@with_settings(satflow_monthly_calls=100_000, satflow_daily_calls=1_300)
async def test_a_day_that_is_tighter_than_the_month_is_what_has_to_be_fitted(service: Service) -> None:
    told = await calls(service)
    minutes = fits_from_minutes(MINE, [], 30 * 1_300, COSTS)
    assert minutes is not None and minutes > 16
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, minutes)
    assert (await calls(service, bidExpiryMinutes=minutes))["fits"] is True


@with_settings(satflow_monthly_calls=50_000)
async def test_other_tasks_that_run_take_their_part(service: Service) -> None:
    assert (await calls(service))["fits"] is True
    made = await service.ask("POST", "/api/tasks", {**EXAMPLE, "slug": "puppets", "bidCount": 1})
    assert (await calls(service))["fits"] is True  # it does not run
    tasks.set_desired(Task.get_by_id(made.json["id"]), RUNNING)

    told = await calls(service)

    other = Bidding(replace(MINE.config, slug="puppets"), 1, "me")
    minutes = fits_from_minutes(MINE, [other], 50_000, COSTS)
    assert minutes is not None
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, minutes)
    mine = await calls(service, taskId=made.json["id"], bidCount=5)
    assert mine["fits"] is True  # itself is none of the others


@with_settings(satflow_monthly_calls=1_000)
async def test_a_quota_for_nothing_fits_nothing(service: Service) -> None:
    told = await calls(service)
    assert (told["fits"], told["fitsFromExpiryMinutes"]) == (False, None)


@with_settings(satflow_monthly_calls=0)
async def test_without_a_quota_everything_fits(service: Service) -> None:
    assert (await calls(service, bidCount=20))["fits"] is True


async def test_a_dry_run_places_nothing(service: Service) -> None:
    assert (await calls(service, dryRun=True))["writes"] == 0


async def test_what_waits_for_a_clock_or_a_quota_is_reckoned_all_the_same(service: Service) -> None:
    with_floor(service, 100_000)
    usual = await preview(service, **EXAMPLE)
    for remark, reason in (
        ({"skew_s": 61}, "clock_skew"),
        ({"quota": {"stretch_s": 600, "rungs": 0}}, "quota"),
    ):
        service.gateway.remark = remark
        answer = await preview(service, **EXAMPLE)
        assert [rung["reason"] for rung in answer.json["rungs"]] == [reason] * 5
        assert answer.json["limits"]["hold"] == ("clock_skew" if reason == "clock_skew" else None)
        assert answer.json["monthlyCalls"] == usual.json["monthlyCalls"]
