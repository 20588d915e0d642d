"""Cycles of a listing task: what is listed, kept, repriced and adopted, and what is written down of it."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from msgspec import structs

from markets.base import NotSupported, Refused, Unavailable
from models import users
from models.ledger import listings
from models.tasks import cycles, tasks
from models.tasks.cycles import MINUTE, cycles_of, samples_between
from models.tasks.tasks import STOPPED
from strategy.config.listing import DEFAULT_LOOP_SECONDS, ListingConfig, PriceStep
from tests.worlds.listing import FIRST, ITEM, ListingWorld
from tests.worlds.worker import KEYS, ask
from wallet.signer_client import SignerLocked, SignerRefused
from workers.context import BadConfig
from workers.listing.lister import IN_DOUBT_S

FIXED = ListingConfig(price_mode="fixed", price_sats=150_000)


def test_a_task_lists_its_item_and_says_so(shop: ListingWorld) -> None:
    task = shop.task()
    assert shop.lister(task).cycle() == DEFAULT_LOOP_SECONDS
    assert shop.prices == [105_000]
    row = shop.open_row(task)
    assert (row.state, row.price_sats, row.outpoint, row.wallet) == ("live", 105_000, FIRST, KEYS.vault)
    assert (row.inscription_id, row.slug, row.revision) == (ITEM, "cats", 1)
    assert row.venue_id == "listing-105000"
    assert shop.action(task) == "listed at 105,000: 1.05 x floor 100,000"
    assert (shop.row(task).cycles, shop.row(task).last_error) == (1, None)
    [cycle] = cycles_of(task)
    assert (cycle.task_id, cycle.error) == (task, None)
    assert shop.detail(task)["planned"] == {"action": "list", "price_sats": 105_000, "reason": "list"}
    assert shop.detail(task)["listing"]["state"] == "live"


def test_a_second_cycle_finds_nothing_to_do(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.later(30, lister)
    assert shop.market.submitted == [105_000]
    assert shop.action(task) == "kept at 105,000: wanted 105,000 (1.05 x floor 100,000)"


def test_what_is_signed_is_the_draft_for_the_output_where_the_inscription_is(shop: ListingWorld) -> None:
    shop.lister(shop.task()).cycle()
    [signed] = shop.signer.listings.values()
    assert (signed.inscription_id, signed.outpoint, signed.price) == (ITEM, FIRST, 105_000)
    assert (signed.psbt, signed.secure) == ("draft at 105000", ("secure draft at 105000",))
    assert len(signed.intent) == 64


def test_a_risen_floor_raises_the_price_with_one_listing_in_place_of_the_other(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.floor(120_000)
    shop.later(30, lister)
    assert shop.action(task) == "repriced 105,000 -> 126,000: 1.05 x floor 120,000"
    assert shop.prices == [126_000]
    assert shop.rows() == [(105_000, "closed", "replaced"), (126_000, "live", None)]
    assert listings.lowest_outstanding(FIRST) == 105_000


def test_prices_fall_by_a_tenth_an_hour_at_most_and_a_restart_is_no_way_around(shop: ListingWorld) -> None:
    task, _ = shop.begun()
    shop.floor(80_000)
    shop.clock.advance(60)
    shop.lister(task).cycle()
    assert "kept at 105,000" in shop.action(task)
    for _ in range(8):
        shop.clock.advance(301)
        shop.lister(task).cycle()
    assert shop.market.submitted == [105_000, 95_000]
    for _ in range(12):
        shop.clock.advance(301)
        shop.lister(task).cycle()
    assert shop.market.submitted == [105_000, 95_000, 86_000]


def test_own_asks_are_not_the_floor(shop: ListingWorld) -> None:
    shop.market.asks_ = [ask(95_000, maker=KEYS.vault), ask(100_000)]
    shop.lister(shop.task()).cycle()
    assert shop.prices == [105_000]


@pytest.mark.parametrize(
    ("config", "price"),
    [
        (FIXED, 150_000),
        (ListingConfig(price_mode="undercut"), 99_000),
        (ListingConfig(min_price_sats=120_000), 120_000),
        (ListingConfig(cost_sats=110_000, min_margin=Decimal("0.1")), 121_000),
        (ListingConfig(reference="purchase", cost_sats=200_000), 210_000),
        (ListingConfig(reference="lastSale"), 84_000),  # 1.05 x 80,000, the median of four
        (ListingConfig(reference="traitFloor", trait_type="Hat", trait_value="Red"), 315_000),
    ],
)
def test_modes_and_references(shop: ListingWorld, config: ListingConfig, price: int) -> None:
    shop.market.trait_asks_ = [ask(300_000)]
    for sats in (90_000, 81_000, 79_000, 1):
        shop.market.tell_sale(sats, "cd" * 32 + "i0")
        shop.clock.advance(1)
    shop.lister(shop.task(config)).cycle()
    assert shop.prices == [price]


def test_a_price_over_time_counts_from_the_first_listing_and_survives_a_restart(shop: ListingWorld) -> None:
    steps = tuple(PriceStep(hours, Decimal(percent)) for hours, percent in ((0, "1.30"), (48, "1.15"), (96, "1.00")))
    task = shop.task(ListingConfig(cost_sats=80_000, min_margin=Decimal("0.10"), price_schedule=steps))
    shop.clock.advance(100 * 3_600)
    shop.lister(task).cycle()
    assert shop.prices == [130_000]
    for hours, floor, price in ((47, 100_000, 130_000), (1, 100_000, 117_000), (1.1, 100_000, 115_000)):
        shop.floor(floor)
        shop.clock.advance(hours * 3_600)
        shop.lister(task).cycle()
        assert shop.prices == [price]
    for hours, floor, price in (
        (47, 100_000, 104_000),
        (1.1, 100_000, 100_000),
        (1.1, 85_000, 90_000),
        (1.1, 85_000, 88_000),
    ):
        shop.floor(floor)
        shop.clock.advance(hours * 3_600)
        shop.lister(task).cycle()
        assert shop.prices == [price]


def test_sellers_to_ignore_set_no_price_and_keep_a_history_of_their_own(shop: ListingWorld) -> None:
    shop.market.asks_ = [structs.replace(ask(50_000), maker="b" * 26), ask(100_000)]
    task = shop.task(ListingConfig(ignore_addresses=("b" * 26,)))
    shop.lister(task).cycle()
    assert shop.prices == [105_000]
    assert cycles.history("ordinals", "cats", f"ask without {'b' * 26}", shop.clock()).median == 100_000
    assert cycles.history("ordinals", "cats", "ask", shop.clock()).samples == 0


def test_sales_that_are_few_or_long_ago_set_no_price(shop: ListingWorld) -> None:
    lister = shop.lister(task := shop.task(ListingConfig(reference="lastSale")))
    for _ in range(3):
        shop.market.tell_sale(80_000)
    shop.clock.advance(31 * 86_400)
    for _ in range(2):
        shop.market.tell_sale(90_000)
    lister.cycle()
    assert (shop.prices, "the last sales are not known: fewer than 3" in shop.action(task)) == ([], True)
    shop.market.tell_sale(90_000)
    shop.later(61, lister)
    assert shop.prices == [95_000]


def test_a_floor_that_collapses_is_held_against_its_median(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    for _ in range(20):
        lister.cycle()
        shop.clock.advance(60)
    shop.floor(20_000)
    for _ in range(6):
        lister.cycle()
        shop.clock.advance(60)
    assert shop.prices == [95_000]
    assert "three quarters of its median" in shop.action(task)


def test_what_is_not_believed_is_no_sample(shop: ListingWorld) -> None:
    """Else a floor held down for half an hour would be the median."""
    lister = shop.lister(shop.task())
    for minute in range(60):
        shop.floor(100_000 if minute < 20 else 20_000)
        lister.cycle()
        shop.clock.advance(60)
    median = cycles.history("ordinals", "cats", "ask", shop.clock()).median
    assert median is not None and median > 50_000


def test_a_first_listing_is_held_against_what_bidders_saw(shop: ListingWorld) -> None:
    for minute in range(15):
        cycles.record_reference("ordinals", "cats", "floor", Decimal(100_000), shop.clock() - minute * 60_000)
    shop.floor(20_000)
    shop.lister(shop.task()).cycle()
    assert shop.prices == [79_000]


def test_without_a_reference_nothing_is_listed_and_what_is_listed_stays(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.floor()
    lister.cycle()
    assert shop.prices == []
    assert "floor is not known" in str(shop.row(task).last_error)
    shop.floor(100_000)
    lister.cycle()
    assert shop.prices == [105_000]
    shop.market.fail("asks", Unavailable("down"))
    shop.later(30, lister)
    assert shop.prices == [105_000]
    assert shop.action(task).startswith("kept at 105,000")


def test_fixed_mode_needs_no_market_and_no_collection(shop: ListingWorld) -> None:
    shop.market.script["asks"] = [Unavailable("down")] * 5
    shop.lister(shop.task(FIXED, collection=None)).cycle()
    assert shop.prices == [150_000]


def test_a_collection_that_nobody_stored_is_asked_for(shop: ListingWorld) -> None:
    shop.market.collection = "cats"
    task, _ = shop.begun(collection=None)
    assert shop.prices == [105_000]
    assert shop.open_row(task).slug == "cats"


def test_an_unknown_collection_is_reported(shop: ListingWorld) -> None:
    task, _ = shop.begun(collection=None)
    assert shop.prices == []
    assert "collection is not known" in str(shop.row(task).last_error)


def test_a_venue_that_tells_no_traits_is_no_trait_floor(shop: ListingWorld) -> None:
    shop.market.fail("trait_asks", NotSupported("no traits"))
    task, _ = shop.begun(ListingConfig(reference="traitFloor", trait_type="Hat", trait_value="Red"))
    assert shop.prices == []
    assert "trait floor is not known" in str(shop.row(task).last_error)


def test_a_listing_that_is_there_already_is_adopted(shop: ListingWorld) -> None:
    shop.market.show(105_000)
    task, _ = shop.begun()
    assert shop.market.submitted == []
    assert shop.action(task).startswith("adopted the listing at 105,000; kept at 105,000")
    assert shop.rows() == [(105_000, "live", None)]


def test_an_adopted_listing_is_signed_again_only_beyond_the_threshold(shop: ListingWorld) -> None:
    shop.market.show(90_000)
    task, _ = shop.begun()
    assert shop.action(task).startswith("adopted the listing at 90,000; repriced 90,000 -> 105,000")
    assert shop.prices == [105_000]
    assert listings.lowest_outstanding(FIRST) == 90_000


def test_anothers_listing_of_the_inscription_is_not_adopted(shop: ListingWorld) -> None:
    shop.market.show(90_000, owner="bc1psomebody")
    shop.lister(shop.task(FIXED)).cycle()
    assert shop.rows() == [(150_000, "live", None)]


@pytest.mark.parametrize("state", ["reduce", "halt"])
def test_control_keeps_the_listing_and_signs_nothing(shop: ListingWorld, state: str) -> None:
    task = shop.task()
    lister = shop.lister(task)
    users.put_control("user", shop.user.id, state, None, shop.clock())
    lister.cycle()
    assert shop.prices == []
    assert shop.action(task).startswith(f"control {state} (user): nothing signed; wanted at 105,000")
    users.put_control("user", shop.user.id, "run", None, shop.clock())
    lister.cycle()
    users.put_control("task", task, state, None, shop.clock())
    shop.floor(200_000)
    shop.later(30, lister)
    assert shop.prices == [105_000]
    assert shop.action(task).startswith(f"control {state} (task)")


def test_a_plan_that_is_over_signs_nothing_and_leaves_the_listing(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.clock.advance(366 * 86_400)
    shop.floor(200_000)
    lister.cycle()
    assert shop.prices == [105_000]
    assert "plan expired" in str(shop.row(task).last_error)


@pytest.mark.parametrize(
    "error", [SignerRefused("psbt-mismatch", "pays somebody else"), SignerLocked("the signer is locked")]
)
def test_what_the_signer_refuses_is_not_listed(shop: ListingWorld, error: Exception) -> None:
    task = shop.task()
    shop.signer.listing_script = [error]
    shop.lister(task).cycle()
    assert (shop.prices, shop.market.submitted) == ([], [])
    assert shop.rows() == [(105_000, "closed", "refused")]
    assert str(error) in str(shop.row(task).last_error)
    assert shop.action(task) == "failed to list at 105,000 (not_signed): 1.05 x floor 100,000"


def test_a_refused_new_price_leaves_the_former_as_old_as_it_is(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    listed_ms = shop.open_row(task).listed_ms
    shop.floor(200_000)
    shop.signer.listing_script = [SignerRefused("velocity", "too often")]
    shop.later(30, lister)
    row = shop.open_row(task)
    assert (row.price_sats, row.state, row.listed_ms) == (105_000, "live", listed_ms)
    assert shop.prices == [105_000]
    lister.cycle()
    assert shop.prices == [210_000]


def test_our_own_listings_unread_change_nothing(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.market.fail("own_listings", Unavailable("down"))
    lister.cycle()
    assert (shop.prices, shop.rows()) == ([], [])
    assert "failed to read our own listings" in str(shop.row(task).last_error)


def test_a_config_that_cannot_be_carried_out_ends_the_worker(shop: ListingWorld) -> None:
    task = shop.task(ListingConfig(reference="traitFloor"))
    with pytest.raises(BadConfig):
        shop.lister(task).cycle()
    assert "trait_type" in str(shop.row(task).last_error)


def test_a_task_that_is_stopped_deleted_or_overtaken_is_left_alone(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    newer = shop.lister(task)
    assert lister.cycle() is None
    tasks.set_desired(shop.row(task), STOPPED)
    assert newer.cycle() is None
    assert shop.rows() == []


def test_a_task_that_is_stopped_while_it_is_priced_lists_nothing(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.market.witness = lambda operation: tasks.set_desired(shop.row(task), STOPPED) if operation == "asks" else None
    lister.cycle()
    assert (shop.prices, shop.rows()) == ([], [])


def test_a_deleted_tasks_open_listing_of_the_item_is_waited_for(shop: ListingWorld) -> None:
    first = shop.task()
    shop.lister(first).cycle()
    tasks.mark_deleted(shop.row(first), shop.clock())
    shop.market.listed.clear()
    second = shop.task()
    shop.lister(second).cycle()
    assert shop.market.submitted == [105_000]
    assert "another task" in str(shop.row(second).last_error)


def test_the_venues_refusal_is_told_and_tried_again_later(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.market.fail("list", Refused("bad_listing", "no"))
    delay = lister.cycle()
    assert delay is not None and delay < DEFAULT_LOOP_SECONDS
    assert shop.rows() == [(105_000, "closed", "refused")]
    assert json.loads(str(shop.row(task).last_error_params)) == {"step": "list", "priceSats": 105_000}
    lister.cycle()
    assert shop.prices == [105_000]


def test_books_and_facts_are_read_no_more_than_needed(shop: ListingWorld) -> None:
    _, lister = shop.begun()
    shop.market.asked.clear()
    assert shop.later(30, lister) == DEFAULT_LOOP_SECONDS
    assert shop.market.asked == [("own_listings", 15.0), ("whereabouts", 600.0)]
    assert IN_DOUBT_S < DEFAULT_LOOP_SECONDS


def test_the_pause_is_the_configs(shop: ListingWorld) -> None:
    assert shop.lister(shop.task(ListingConfig(loop_seconds=7))).cycle() == 7


def test_a_cycle_leaves_a_sample_of_price_floor_and_guard(shop: ListingWorld) -> None:
    task = shop.task(ListingConfig(price_percent=Decimal("1.05"), cost_sats=80_000, min_margin=Decimal("0.1")))
    shop.lister(task).cycle()
    minute = shop.clock.now_ms // 60_000 * 60_000
    [(_, floor, _, _, top, low, guard_sats, *_)] = samples_between(task, MINUTE, minute, minute + 60_000)
    assert (floor, top, low, guard_sats) == ("100000", "105000", "105000", 88_000)
