"""What a cycle reports: its detail, the wallet that receives, unknown slugs and traits."""

from __future__ import annotations

import logging
from decimal import Decimal
from pathlib import Path

import pytest

from core.layout import journal_path
from markets.base import Unavailable
from markets.look import fee_reserve
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import cycles, tasks
from models.tasks.cycles import MINUTE, samples_between
from models.tasks.tasks import Task
from strategy.book import plain
from strategy.config.bid import dump_bid_config
from strategy.journal import Decoder
from strategy.plan_bids import plan_bids
from strategy.reasons import Step
from tests.shapes import replace
from tests.worlds.worker import CATS, KEYS, ONE, World, ask, bid
from workers.bidding.bidder import Bidder
from workers.bidding.moment import Journal
from workers.context import Faults
from workers.drains import BiddingDrain, ListingDrain
from workers.listing.lister import Lister
from workers.process.main import make_job


def test_the_detail_says_what_was_seen_and_why(world: World) -> None:
    world.market.asks_ = [ask(60_000, KEYS.vault), ask(100_000)]
    world.market.balance_sats = 50_500
    task, _ = world.begun()
    detail = world.detail(task)
    assert detail["seen"]["reference"] == "100000"
    assert (detail["seen"]["asks"], detail["seen"]["own_asks"]) == (1, 1)
    assert (detail["seen"]["balance_sats"], detail["seen"]["fee_reserve_sats"]) == (50_500, 500)
    assert [(rung["price_sats"], rung["reason"]) for rung in detail["rungs"]] == [
        (75_000, "insufficient_balance"),
        (60_000, "insufficient_balance"),
        (45_000, "place"),
        (30_000, "place"),
        (15_000, "place"),
    ]
    assert detail["errors"] == []


def test_each_rung_tells_its_quantity_and_the_place_of_its_bid(world: World) -> None:
    world.market.bids_ = [bid(80_000), bid(50_000)]
    watching = replace(CATS, outbid_enabled=True, bid_count=3, bid_mode="fixed", bid_fixed_high=60_000)
    watching = replace(watching, bid_fixed_low=40_000)
    task, bidder = world.begun(watching)

    def shown() -> list[tuple[str, int | None]]:
        return [(rung["quantity"], rung["rank"]) for rung in world.detail(task)["rungs"]]

    assert shown() == [("1", 2), ("1", 4), ("1", 5)]
    world.market.bids_.append(bid(90_000))
    world.later(30, bidder)
    assert shown() == [("1", 3), ("1", 5), ("1", 6)]


def test_the_place_of_a_bid_is_not_told_when_the_others_were_not_read(world: World) -> None:
    task, _ = world.begun()
    assert {(rung["quantity"], rung["rank"]) for rung in world.detail(task)["rungs"]} == {("1", None)}


def test_too_small_a_balance_names_the_address_to_fund(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.market.balance_sats = 50_500
    with caplog.at_level(logging.INFO):
        task, _ = world.begun()
    address = world.market.balance(KEYS.payment, "", "", 0).address
    backed = f"these bids are backed by {address}, which lacks 25,000 sats"  # 75,000 and 500 for the fee, less 50,500
    assert f"skipped 2 insufficient_balance; {backed}" in caplog.text
    detail = world.detail(task)
    assert {rung.get("detail") for rung in detail["rungs"][:2]} == {f"send at least 25,000 sats to {address}"}
    assert (detail["seen"]["funded_at"], detail["seen"]["missing_sats"]) == (address, 25_000)


def test_one_line_a_cycle_and_one_a_bid_without_signatures(world: World, caplog: pytest.LogCaptureFixture) -> None:
    task = world.task(ONE)
    bidder = world.bidder(task)
    with caplog.at_level(logging.INFO):
        bidder.cycle()
        world.market.asks_ = [ask(40_000)]
        bidder.cycle()
    assert [record.getMessage() for record in caplog.records] == [
        f"task {task}: placed 1, kept 0, cancelled 0",
        f"task {task}: placed 52000 of cats, order 1",
        f"task {task}: placed 1, kept 0, cancelled 1 (at_ask)",
        f"task {task}: cancelled 52000 of cats, order 1 (at_ask)",
        f"task {task}: placed 39000 of cats, order 2",
    ]
    assert "c2lnbmF0dXJl" not in caplog.text


def test_the_memory_goes_from_cycle_to_cycle_and_worker_to_worker(world: World) -> None:
    task, _ = world.begun()
    world.market.asks_ = []
    world.bidder(task).cycle()
    assert len(world.market.own_) == 5, "the floor has only just gone"
    world.clock.advance(301)
    world.bidder(task).cycle()
    assert world.market.own_ == []


def test_unreadable_memory_is_no_memory(world: World) -> None:
    task = world.task()
    Task.update(memory="[").execute()
    world.bidder(task).cycle()
    assert len(world.market.own_) == 5


def test_a_hostile_text_is_tamed(world: World) -> None:
    task = world.task()
    world.market.fail("own_bids", Unavailable("x\nfake line\x1b[2J Bearer abcdefghijklmnop " + "y" * 500))
    world.bidder(task).cycle()
    error = str(world.row(task).last_error)
    assert "\n" not in error and "\x1b" not in error
    assert "abcdefghijklmnop" not in error
    assert len(error) <= 200


def test_many_faults_make_one_line() -> None:
    faults = Faults()
    for number in range(8):
        faults.add(Step.PLACE, f"place {number}", "no", backs_off=False)
        faults.add(Step.PLACE, f"place {number}", "no", backs_off=False)
    assert str(faults.text).count(";") == 5
    assert str(faults.text).endswith("and 3 more")
    assert Faults().text is None


@pytest.mark.parametrize(("rate", "sats"), [("1", 250), ("2.5", 625), ("2.001", 501)])
def test_the_fee_reserve_is_rounded_up(rate: str, sats: int) -> None:
    assert fee_reserve(Decimal(rate)) == sats


@pytest.mark.parametrize(
    ("number", "text"),
    [("1", "1"), ("1000", "1000"), ("1E+3", "1000"), ("0.50", "0.5"), ("1.000", "1"), ("1E-8", "0.00000001")],
)
def test_numbers_are_signed_in_one_way_only(number: str, text: str) -> None:
    assert plain(Decimal(number)) == text


def test_a_quantity_keeps_every_digit() -> None:
    number = "34028236692093846346337460743176821145.5"
    assert plain(Decimal(number)) == number


def test_each_decision_is_in_the_journal_as_it_was_made(world: World, tmp_path: Path) -> None:
    task = world.task()
    journal = Journal(journal_path(tmp_path, task))
    bidder = Bidder(world.context(task), rng=world.rng, new_intent=lambda: next(world.intents), journal=journal)
    bidder.cycle()
    world.market.asks_ = [ask(70_000)]
    bidder.cycle()
    decoder = Decoder()
    lines = journal_path(tmp_path, task).read_text().splitlines()
    entries = [decoder.read(line) for line in lines]
    assert len(entries) == 2
    assert [plan_bids(entry) for entry in entries] == [entry.plan for entry in entries]
    assert next(len(entry.plan.to_place) for entry in entries if entry.plan) == 5


def test_the_sales_that_were_read_are_in_the_journal(world: World, tmp_path: Path) -> None:
    task = world.task(replace(CATS, bid_mode="fixed", bid_count=1, bid_fixed_high=52_000))
    path = journal_path(tmp_path, task)
    bidder = Bidder(world.context(task), rng=world.rng, new_intent=lambda: next(world.intents), journal=Journal(path))
    bidder.cycle()
    bidder.cycle()
    sale = world.market.sell(52_000, tells_bid=True)
    world.later(30, bidder)
    decoder = Decoder()
    entries = [decoder.read(line) for line in path.read_text().splitlines()]
    assert [entry.sales for entry in entries[:2]] == [None, None]
    (told,) = entries[-1].sales or ()
    assert (told.sale_id, told.price, told.is_own) == (sale.sale_id, 52_000, True)


def test_made_up_settings_leave_no_journal(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_job("bidder", world.context(world.task())).cycle()
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_jobs_by_kind(world: World) -> None:
    bids = world.context(world.task())
    sells = tasks.create_autolist_task(
        world.user.id, inscription_id="a", collection_id=None, config="{}", venue="simulator", now_ms=1
    )
    listing = replace(bids, task_id=sells.id)
    assert [type(make_job(kind, bids)) for kind in ("bidder", "drain")] == [Bidder, BiddingDrain]
    assert [type(make_job(kind, listing)) for kind in ("lister", "drain")] == [Lister, ListingDrain]
    with pytest.raises(ValueError, match="no such kind"):
        make_job("sweeper", bids)


def test_a_cycle_leaves_a_sample(world: World) -> None:
    task, _ = world.begun()
    start_ms = world.clock.now_ms - 60_000
    [(_, floor, reference, best_bid, top, low, guard_sats, count, exposure)] = samples_between(
        task, MINUTE, start_ms, start_ms + 180_000
    )
    own = [order.price_sats for order in orders.open_orders(task)]
    assert (floor, reference, best_bid, guard_sats) == ("100000", "100000", None, None)
    assert (top, low, count, exposure) == (str(max(own)), str(min(own)), len(own), sum(own))


def test_a_cycle_that_saw_nothing_leaves_a_sample_of_our_own_bids(world: World) -> None:
    task, bidder = world.begun()
    world.market.fail("asks", Unavailable("away"))
    world.later(60, bidder)
    at = world.clock.now_ms // 60_000
    [(minute, floor, *_, count, exposure)] = samples_between(task, MINUTE, at * 60_000, (at + 1) * 60_000)
    assert (minute, floor, count, exposure > 0) == (at, None, 5, True)


OF_LADDER = replace(CATS, bid_count=1)
TO_VAULT = replace(OF_LADDER, deliver_to="vault")


@pytest.mark.parametrize(("config", "receive"), [(OF_LADDER, "bc1quser"), (TO_VAULT, KEYS.vault)])
def test_text_bid_and_order_name_one_address(world: World, config: object, receive: str) -> None:
    world.begun(config)  # type: ignore[arg-type]
    (signed,) = world.signer.signed.values()
    (placed,) = world.market.placed
    assert {signed.receive, placed.receive, Order.get().receive} == {receive}


@pytest.mark.parametrize("vault_first", [True, False])
def test_of_two_bids_at_one_price_the_sale_is_the_ones_that_delivers_there(world: World, vault_first: bool) -> None:
    """One task each way, on one collection: the market does not tell which of the bids was sold into."""
    configs = [TO_VAULT, OF_LADDER] if vault_first else [OF_LADDER, TO_VAULT]
    _, first = world.begun(configs[0])
    Task.update(slug_key="of another task").execute()
    _, second = world.begun(configs[1])
    world.later(30, first)
    world.later(1, second)
    # The market has cancelled the other one meanwhile, so both are gone, and one sale is told.
    to_vault = next(order for order in world.market.placed if order.receive == KEYS.vault)
    world.market.own_.sort(key=lambda bid: bid.expires_ms != to_vault.expires_ms)
    world.market.sell(75_000, buyer=KEYS.vault)
    world.market.own_.clear()
    for bidder in (first, second):
        world.later(20, bidder)
        world.later(20, bidder)
    filled = list(Order.select().where(Order.close_reason == "filled"))
    assert [order.receive for order in filled] == [KEYS.vault]


def test_a_drain_knows_a_delivery_to_the_vault_without_asking_the_signer(world: World) -> None:
    task, bidder = world.begun(TO_VAULT)
    world.later(30, bidder)
    world.clock.advance(10)
    world.market.sell(75_000, buyer=KEYS.vault)
    tasks.set_desired(world.row(task), "stopped")
    drain = world.drain(task)
    for _ in range(5):
        world.clock.advance(10)
        if drain.cycle() is None:
            break
    assert world.closed() == [(75_000, "filled")]


def test_an_unknown_collection_is_told_in_last_error_until_it_is_known(world: World) -> None:
    task = world.task(replace(CATS, slug="nobodys"))
    bidder = world.bidder(task)
    world.market.asks_, there = [], world.market.asks_

    bidder.cycle()
    assert world.row(task).last_error == "failed to find the market: it knows no collection named nobodys"

    world.market.asks_ = there
    bidder.cycle()
    assert world.row(task).last_error is None


def test_an_empty_collection_is_no_fault(world: World) -> None:
    task = world.task()
    world.market.asks_ = []
    world.bidder(task).cycle()
    assert world.row(task).last_error is None


def test_not_being_able_to_ask_is_not_taken_for_unknown(world: World) -> None:
    task = world.task(replace(CATS, slug="nobodys"))
    world.market.asks_ = []
    world.market.script["floors"] = [Unavailable("down")]
    world.bidder(task).cycle()
    assert world.row(task).last_error is None


GOLD = replace(CATS, bid_type="trait", trait_type="Fur", trait_value="Gold", hardcap_sats=1_000_000)
KEY = ("ordinals", "cats", "trait:Fur=Gold")


def test_the_ladder_hangs_from_the_traits_floor_and_each_bid_says_which_trait(world: World) -> None:
    world.market.trait_asks_ = [ask(150_000, KEYS.vault), ask(200_000), ask(300_000)]
    task, _ = world.begun(GOLD)
    assert world.market.prices == [150_000, 120_000, 90_000, 60_000, 30_000]
    assert {order.trait for order in world.market.placed} == {("Fur", "Gold")}
    assert {order.trait for order in orders.open_orders(task)} == {("Fur", "Gold")}
    assert cycles.history(*KEY, world.clock()).median == 200_000


def test_without_a_known_trait_floor_the_collections_stands_in_and_is_no_sample(world: World) -> None:
    for asks in ([], None):
        world.market.trait_asks_ = asks
        task, _ = world.begun(replace(GOLD, slug=f"cats{asks is None}"))
        assert "trait_floor_missing" in world.action(task)
    assert max(world.market.prices) == 75_000
    assert cycles.FloorSample.select().count() == 0


def test_bids_on_the_collection_and_on_the_trait_compete(world: World) -> None:
    world.market.trait_asks_ = [ask(200_000)]
    world.market.bids_, world.market.trait_bids_ = [bid(62_000)], [bid(70_000, "bc1qother")]
    world.begun(replace(GOLD, bid_count=1, outbid_enabled=True))
    assert world.market.prices == [71_000]


def test_bids_on_another_trait_are_replaced(world: World) -> None:
    world.market.trait_asks_ = [ask(200_000)]
    task, _ = world.begun(GOLD)
    silver = replace(GOLD, trait_value="Silver")
    tasks.change_bidding_task(
        world.row(task), type="ordinals", slug="cats", slug_key="cats", config=dump_bid_config(silver)
    )
    world.bidder(task).cycle()
    assert {order.trait for order in orders.open_orders(task)} == {("Fur", "Silver")}
    assert "cancelled 5 (wrong_trait)" in world.action(task)
    assert len(world.market.prices) == 5
