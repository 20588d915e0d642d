"""A task at a venue that drafts bids: signing, coins, collections, and matching by ids."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from msgspec import structs

from markets.base import InsufficientFunds, NotFound, NotSupported, OwnBid, OwnBids, Refused, Unavailable, Utxo
from markets.orders import Coin
from markets.venues import capabilities
from models.ledger import orders
from models.ledger.states import Order
from models.tasks import cycles, tasks
from strategy.config.bid import dump_bid_config
from tests.examples import some_of
from tests.shapes import replace
from tests.workers.bidding import test_crashes
from tests.worlds.drafting import BIDS, HOUR_MS, ONE, VENUE, DraftWorld, outpoint, put
from tests.worlds.worker import CATS, KEYS, LADDER, START_MS, ask, context_at, seconds
from wallet.signer_client import SignerRefused, SignerUnavailable
from workers.bidding.moment import life_ms
from workers.bidding.own_bids import settle


def test_a_ladder_is_drafted_signed_and_known_by_its_ids_at_once(drafts: DraftWorld) -> None:
    task = drafts.task()
    drafts.bidder(task).cycle()
    assert drafts.market.prices == LADDER
    assert drafts.open(task) == dict.fromkeys(LADDER, "live")
    assert {order.venue_id for order in orders.open_orders(task)} == {bid.venue_id for bid in drafts.market.own_}
    assert {order.venue for order in orders.open_orders(task)} == {VENUE}
    [first, *_] = drafts.market.drafted
    assert (first.payment, first.ordinals) == (KEYS.payment, KEYS.vault)
    assert (first.payment_pubkey, first.ordinals_pubkey) == (KEYS.payment_pubkey, KEYS.vault_pubkey)
    assert first.coins == (Coin(outpoint(1), 100_000),)
    offer = next(iter(drafts.signer.offers.values()))
    assert (offer.price, offer.psbts, offer.coins) == (75_000, ("psbt of draft-1",), (outpoint(1),))
    assert drafts.signer.signed == {}


def test_what_is_asked_at_one_venue_is_no_history_of_anothers(drafts: DraftWorld) -> None:
    for minute in range(10):
        cycles.record_reference("ordinals", CATS.slug, "floor", Decimal(10_000), drafts.clock() + minute * 60_000)
    drafts.clock.advance(600)
    drafts.bidder(drafts.task()).cycle()
    assert drafts.market.prices == LADDER, "at the default venue a floor of ten times its median is an alarm"


def test_it_replaces_and_stops_and_nothing_is_left(drafts: DraftWorld) -> None:
    task = drafts.task()
    bidder = drafts.bidder(task)
    bidder.cycle()
    drafts.clock.advance(61)
    drafts.market.asks_ = [ask(70_000)]
    for _ in range(3):
        bidder.cycle()
        drafts.clock.advance(31)
    assert drafts.market.prices == test_crashes.LOWER
    assert (drafts.untracked(), drafts.market.replaced) == ([], [])
    drafts.drain(task).cycle()
    assert drafts.market.own_ == []
    assert drafts.open(task) == {}


@pytest.mark.parametrize("buyer", [KEYS.vault, KEYS.payment])
def test_what_is_sold_to_the_vault_while_a_task_is_stopped_is_filled(drafts: DraftWorld, buyer: str) -> None:
    task = drafts.task()
    drafts.bidder(task).cycle()
    drafts.clock.advance(31)
    drafts.market.sell(60_000, buyer=buyer)
    drafts.drain(task).cycle()
    drafts.clock.advance(31)
    drafts.drain(task).cycle()
    reasons = dict(drafts.closed())
    assert reasons == dict.fromkeys(LADDER, "cancelled") | {60_000: "filled"}


def test_a_sale_to_the_vault_fills_a_bid_of_a_running_task(drafts: DraftWorld) -> None:
    task = drafts.task()
    bidder = drafts.bidder(task)
    bidder.cycle()
    drafts.market.sell(60_000, buyer=KEYS.vault)
    for _ in range(2):
        drafts.clock.advance(31)
        bidder.cycle()
    assert (60_000, "filled") in drafts.closed()


def test_sixteen_minutes_are_six_hours(drafts: DraftWorld) -> None:
    task = drafts.task(replace(ONE, bid_expiry_minutes=16))
    drafts.bidder(task).cycle()
    [order] = orders.open_orders(task)
    assert order.expires_ms - order.created_ms == 6 * HOUR_MS
    assert drafts.market.drafted[0].valid_hours == 6


@pytest.mark.parametrize(("minutes", "hours"), [(16, 6), (360, 6), (361, 12), (7 * 24 * 60, 168)])
def test_life_rounds_up_to_one_that_the_venue_has(minutes: int, hours: int) -> None:
    config = replace(CATS, bid_expiry_minutes=minutes)
    assert life_ms(config, BIDS, capabilities(VENUE)) == hours * HOUR_MS
    at_satflow = structs.replace(BIDS, min_duration_s=900)
    assert life_ms(config, at_satflow, capabilities("simulator")) == minutes * 60_000
    assert life_ms(replace(CATS, bid_expiry_minutes=15), at_satflow, capabilities("simulator")) == 910_000


def test_a_bid_is_renewed_before_its_hours_are_over(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    bidder = drafts.bidder(task)
    bidder.cycle()
    [first] = orders.open_orders(task)
    drafts.clock.advance(6 * 3_600 - 1_800)
    for _ in range(70):
        drafts.clock.advance(30)
        bidder.cycle()
    assert drafts.market.prices == [50_000]
    assert drafts.untracked() == []
    [order] = orders.open_orders(task)
    assert order.id != first.id


def test_what_could_not_be_drafted_is_closed_and_nothing_was_signed(drafts: DraftWorld) -> None:
    task = drafts.task()
    drafts.market.fail("draft", InsufficientFunds("too little"), Unavailable("the venue is away"))
    drafts.bidder(task).cycle()
    assert drafts.closed() == [(75_000, "refused"), (60_000, "refused")]
    assert drafts.signer.offers == {}
    assert "skipped 1 refused, 1 not_sent, 3 put_off" in drafts.action(task)
    address = drafts.market.balance("bc1qpayment", "", "", 0).address
    assert f"too little; send sats to {address}" in str(drafts.row(task).last_error)


def test_a_signer_that_refuses_closes_the_order(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.signer.script = [SignerRefused("inputs-cardinal", "a coin holds an inscription, or that is not known")]
    drafts.bidder(task).cycle()
    assert drafts.closed() == [(50_000, "refused")]
    assert "inputs-cardinal" in str(drafts.row(task).last_error)
    assert drafts.market.placed == []


def test_a_signature_whose_answer_was_lost_counts(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.signer.script = ["lost"]
    drafts.bidder(task).cycle()
    assert drafts.open(task) == {50_000: "unknown"}


def test_a_signer_that_was_not_reached_leaves_it_reserved_and_the_next_cycle_frees_it(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    bidder = drafts.bidder(task)
    drafts.signer.script = [SignerUnavailable("away")]
    bidder.cycle()
    assert drafts.closed() == [(50_000, "refused")]


def test_a_bid_whose_id_was_lost_is_known_by_what_it_is_on_and_for_how_much(drafts: DraftWorld) -> None:
    task = drafts.task()
    drafts.market.fail("place", None, "lost")
    bidder = drafts.bidder(task)
    bidder.cycle()
    assert drafts.open(task) == {75_000: "live", 60_000: "unknown"}
    bidder.cycle()
    assert drafts.open(task) == dict.fromkeys(LADDER, "live")
    assert [price for _, price in drafts.market.done] == LADDER
    assert drafts.untracked() == []


@pytest.mark.parametrize(("point", "turn"), some_of(test_crashes.HITS, __name__))
def test_a_crash_at_each_point_leaves_no_bid_untracked_and_makes_none_twice(
    drafts: DraftWorld, point: str, turn: int
) -> None:
    task = drafts.task()
    lead_up, _ = test_crashes.SCENES[point]
    lead_up(drafts, task)
    test_crashes.crash_in_a_cycle(drafts, task, point, turn)
    bidder = drafts.bidder(task)
    for _ in range(5):
        bidder.cycle()
        assert drafts.untracked() == []
        assert max(Counter(drafts.market.prices).values(), default=1) == 1, "a bid was made twice"
        assert drafts.market.peak_sats <= 225_000
        assert orders.task_exposure(task) >= sum(drafts.market.prices)
        drafts.clock.advance(31)
    wanted = test_crashes.LOWER if lead_up is test_crashes.let_the_floor_fall else LADDER
    missing = [wanted[turn - 1]] if point in test_crashes.IN_DOUBT else []
    assert drafts.market.prices == [price for price in wanted if price not in missing]
    drafts.clock.advance(6 * 3_600 + 100)
    for _ in range(3):
        bidder.cycle()
        drafts.clock.advance(6)
    assert drafts.market.prices == (test_crashes.RENEWED if wanted is test_crashes.LOWER else wanted)
    assert Order.select().where(Order.close_reason == "lost").count() == len(missing)
    assert Order.select().where(Order.close_reason == "filled").count() == (lead_up is test_crashes.sell_one)


def test_a_bid_is_paid_with_the_fewest_coins_on_which_nothing_lies(drafts: DraftWorld) -> None:
    market = drafts.market
    market.coins_ = [
        Utxo(outpoint(1), 30_000, True),
        Utxo(outpoint(2), 40_000, True),
        Utxo(outpoint(3), 90_000, False),
        Utxo(outpoint(4), 80_000, True),
        Utxo(outpoint(5), 70_000, True),
        Utxo(outpoint(6), 60_000, True),
    ]
    market.holds = {outpoint(4): (("ab" * 32 + "i0",), ()), outpoint(5): ((), ("A•RUNE",)), outpoint(6): (None, ())}
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    assert [coin.outpoint for coin in market.drafted[0].coins] == [outpoint(2), outpoint(1)]


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        ((50_000,), 1),
        ((50_546,), 1),
        ((50_545, 10_000), 2),
        ((49_999, 1), 2),
        ((50_545,), 0),
        ((49_999,), 0),
        ((), 0),
        (tuple([2_500] * 20), 20),
        (tuple([2_400] * 21), 0),
    ],
)
def test_no_dust_is_left_over_and_no_more_than_twenty_coins(
    drafts: DraftWorld, values: tuple[int, ...], chosen: int
) -> None:
    drafts.market.coins_ = [Utxo(outpoint(number), sats, True) for number, sats in enumerate(values, 1)]
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    assert [len(ask.coins) for ask in drafts.market.drafted] == [chosen] * bool(chosen)
    if not chosen:
        assert "skipped 1 no_coins" in drafts.action(task)
        assert "that nothing else lies or stands on" in str(drafts.row(task).last_error)
        assert "; send at least 50,546 sats to bc1qpayment" in str(drafts.row(task).last_error), "price and no dust"
        assert (drafts.closed(), drafts.open(task)) == ([], {})


def test_bids_of_one_scope_stand_on_coins_of_their_own(drafts: DraftWorld) -> None:
    task = drafts.task()
    bidder = drafts.bidder(task)
    for _ in range(4):
        bidder.cycle()
        drafts.clock.advance(31)
    used = [order.coins for order in orders.open_orders(task)]
    assert len(set(used)) == len(used) == 5
    assert drafts.market.replaced == []


def test_with_fewer_coins_than_rungs_the_dearest_stand(drafts: DraftWorld) -> None:
    drafts.market.coins_ = drafts.market.coins_[:2]
    task = drafts.task()
    bidder = drafts.bidder(task)
    for _ in range(3):
        bidder.cycle()
        assert drafts.market.prices == [75_000, 60_000]
        drafts.clock.advance(31)
    assert "3 no_coins" in drafts.action(task)
    drafts.market.asks_ = [ask(70_000)]
    drafts.clock.advance(61)
    bidder.cycle()
    assert drafts.market.prices == [52_000, 41_000], "what was cancelled pays for what takes its place"
    assert drafts.market.replaced == []


def test_bids_on_other_things_may_stand_on_the_same_coin(drafts: DraftWorld) -> None:
    drafts.market.coins_ = drafts.market.coins_[:1]
    drafts.market.known.add("dogs")
    for slug in ("cats", "dogs"):
        drafts.bidder(drafts.task(replace(ONE, slug=slug))).cycle()
    assert [bid.slug for bid in drafts.market.own_] == ["cats", "dogs"]
    assert {order.coins for order in Order.select()} == {outpoint(1)}


def test_a_bid_in_doubt_keeps_its_coin(drafts: DraftWorld) -> None:
    drafts.market.coins_ = drafts.market.coins_[:1]
    task = drafts.task(ONE)
    drafts.market.fail("place", "never")
    bidder = drafts.bidder(task)
    for _ in range(3):
        bidder.cycle()
        drafts.clock.advance(31)
    assert drafts.open(task) == {50_000: "unknown"}
    assert drafts.market.placed == []


def test_without_an_index_nothing_is_paid_and_that_is_said(drafts: DraftWorld) -> None:
    drafts.market.fail("outpoint", NotSupported("not set up here: BIDKEEPER_ORD_URL is not set"))
    task = drafts.task(ONE)
    pause = drafts.bidder(task).cycle()
    assert "BIDKEEPER_ORD_URL" in str(drafts.row(task).last_error)
    assert drafts.open(task) == {}
    assert seconds(pause) > 20, "a setting is no outage"


def test_a_bid_whose_coin_another_one_spent_is_over_long_before_its_end(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    bidder = drafts.bidder(task)
    bidder.cycle()
    bidder.cycle()
    drafts.market.own_.clear()
    drafts.market.coins_ = [coin for coin in drafts.market.coins_ if coin.outpoint != outpoint(1)]
    for _ in range(20):
        drafts.clock.advance(31)
        bidder.cycle()
    assert drafts.open(task) == {50_000: "unknown"}, "a sale into it may show yet"
    for _ in range(110):
        drafts.clock.advance(31)
        bidder.cycle()
    assert drafts.closed() == [(50_000, "cancelled")]
    assert drafts.market.prices == [50_000]
    assert drafts.open(task) == {50_000: "live"}


def test_a_bid_that_is_gone_while_its_coin_is_there_stays_in_doubt(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    bidder = drafts.bidder(task)
    bidder.cycle()
    bidder.cycle()
    drafts.market.own_.clear()
    for _ in range(130):
        drafts.clock.advance(31)
        bidder.cycle()
    assert drafts.open(task) == {50_000: "unknown"}
    assert drafts.market.prices == []


def test_the_venue_is_asked_about_the_tasks_collection_and_those_it_still_has_bids_on(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    assert set(drafts.market.asked_slugs) == {("cats",)}
    put(task, "live", slug="dogs")
    drafts.bidder(task).cycle()
    assert drafts.market.asked_slugs[-1] == ("cats", "dogs")


def move(drafts: DraftWorld, task: int, slug: str) -> None:
    """Changes the task to another slug."""
    config = dump_bid_config(replace(ONE, slug=slug))
    tasks.change_bidding_task(drafts.row(task), type="ordinals", slug=slug, slug_key=slug, config=config)


@pytest.mark.parametrize("error", [NotFound("no such collection"), Refused("bad_request", "that is no slug")])
def test_a_task_that_was_changed_to_an_unknown_collection_still_ends_its_bids(
    drafts: DraftWorld, error: Refused
) -> None:
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    move(drafts, task, "catz")
    drafts.market.unknown = {"catz": error}
    drafts.market.fail("draft", error)
    drafts.bidder(task).cycle()
    assert drafts.market.prices == []
    assert drafts.closed() == [(50_000, "cancelled"), (50_000, "refused")]


def test_a_drain_of_a_task_on_an_unknown_collection_comes_to_its_end(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    move(drafts, task, "catz")
    drafts.market.unknown = {"catz": NotFound("no such collection")}
    tasks.mark_deleted(drafts.row(task), drafts.clock())
    assert drafts.drain(task).cycle() is None
    assert drafts.market.prices == []


def test_a_collection_with_bids_of_ours_that_is_unknown_of_a_sudden_is_a_failed_read(drafts: DraftWorld) -> None:
    task = drafts.task(ONE)
    drafts.bidder(task).cycle()
    drafts.market.unknown = {"cats": NotFound("no such collection")}
    for _ in range(4):
        drafts.bidder(task).cycle()
        drafts.clock.advance(31)
    assert drafts.open(task) == {50_000: "live"}
    assert "failed to read our own bids" in str(drafts.row(task).last_error)


def bid(venue_id: str, price: int = 50_000, slug: str = "cats", trait: tuple[str, str] | None = None) -> OwnBid:
    return OwnBid(venue_id, slug, "ordinals", price, Decimal(1), None, trait)


def look(task: int, *bids: OwnBid, at: int = START_MS + 10_000, venue: str = VENUE):  # type: ignore[no-untyped-def]
    return settle(context_at(at + 5, task, venue), KEYS.payment, OwnBids(bids, at))


@pytest.fixture
def task(drafts: DraftWorld) -> int:
    number = drafts.task()
    drafts.context(number)
    return number


def known(order_id: int) -> tuple[str, str | None]:
    order = Order.get_by_id(order_id)
    return str(order.state), order.venue_id


@pytest.mark.parametrize("state", ["signed", "submitted", "unknown"])
def test_the_oldest_order_without_an_id_is_adopted(task: int, state: str) -> None:
    older, newer = put(task, state), put(task, state)
    found = look(task, bid("a"))
    assert known(older) == ("live", "a")
    assert known(newer)[1] is None
    assert (found.strays, found.foreign) == ((), ())


def test_never_two_orders_to_one_bid_nor_two_bids_to_one_order(task: int) -> None:
    first, second = put(task, "unknown"), put(task, "unknown")
    found = look(task, bid("b"), bid("a"), bid("c"))
    assert (known(first), known(second)) == (("live", "a"), ("live", "b"))
    assert found.foreign == (bid("c"),)


def test_an_order_with_an_id_is_no_other_bids(task: int) -> None:
    order = put(task, "live", venue_id="a")
    found = look(task, bid("b"))
    assert known(order)[1] == "a"
    assert found.foreign == (bid("b"),)


def test_the_id_goes_before_the_looks(task: int) -> None:
    nameless, named = put(task, "unknown"), put(task, "live", venue_id="a")
    look(task, bid("a"))
    assert (known(nameless), known(named)) == (("unknown", None), ("live", "a"))


@pytest.mark.parametrize(
    "other", [bid("a", price=55_000), bid("a", slug="dogs"), bid("a", trait=("Hat", "Red")), bid("a", slug="")]
)
def test_another_price_slug_or_trait_is_another_bid(task: int, other: OwnBid) -> None:
    order = put(task, "unknown")
    assert look(task, other).foreign == (other,)
    assert known(order) == ("unknown", None)


def test_a_trait_is_matched_with_its_own(task: int) -> None:
    plain, red = put(task, "unknown"), put(task, "unknown", trait=("Hat", "Red"))
    look(task, bid("a", trait=("Hat", "Red")), bid("b"))
    assert (known(plain), known(red)) == (("live", "b"), ("live", "a"))


def test_the_spelling_of_a_slug_does_not_matter(task: int) -> None:
    order = put(task, "unknown", slug="Cats")
    look(task, bid("a"))
    assert known(order) == ("live", "a")


def test_what_was_never_signed_is_no_bid(task: int) -> None:
    order = put(task, "reserved")
    assert look(task, bid("a")).foreign == (bid("a"),)
    assert known(order) == ("reserved", None)


def test_a_bid_whose_order_is_closed_is_a_stray(task: int) -> None:
    put(task, "closed", venue_id="a")
    later = put(task, "unknown")
    found = look(task, bid("a"))
    assert (found.strays, found.foreign) == ((bid("a"),), ())
    assert known(later) == ("unknown", None)


def test_a_read_from_before_the_end_of_an_order_says_nothing_of_it(task: int) -> None:
    put(task, "closed", venue_id="a")
    assert look(task, bid("a"), at=START_MS).strays == ()


def test_another_tasks_order_takes_its_own_bid(drafts: DraftWorld, task: int) -> None:
    other = drafts.task(replace(CATS, slug="dogs"))
    drafts.context(other)
    theirs = put(other, "unknown", slug="dogs")
    found = look(task, bid("a", slug="dogs"))
    assert (found.strays, found.foreign) == ((), ())
    assert known(theirs) == ("unknown", None), "its own task judges it"


def test_orders_at_other_venues_are_neither_matched_nor_judged(task: int) -> None:
    elsewhere = put(task, "unknown", venue="simulator")
    live = put(task, "live", venue="simulator", venue_id="a")
    for _ in range(5):
        found = look(task, bid("a"), at=START_MS + HOUR_MS + 60_000)
        assert found.foreign == (bid("a"),)
    assert (known(elsewhere), known(live)) == (("unknown", None), ("live", "a"))


def test_where_the_expiry_is_the_fingerprint_looks_do_not_count(task: int) -> None:
    order = put(task, "unknown", venue="simulator")
    assert look(task, bid("a"), venue="simulator").foreign == (bid("a"),)
    assert known(order) == ("unknown", None)
