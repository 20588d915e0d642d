"""The inscription leaves, moves or is about to: sold, gone, signed anew, or waited for."""

from __future__ import annotations

import pytest
from msgspec import structs

from core.settings import Settings
from markets.base import NotSupported, Unavailable
from models import users
from models.ledger import fills, listings
from models.ledger.fills import Wanted
from models.ledger.states import Listing, Order
from strategy.config.listing import ListingConfig
from tests.worlds.listing import FIRST, ITEM, SECOND, ListingWorld
from tests.worlds.worker import KEYS, Crash, CrashAt
from wallet.signer_client import SignerUnavailable
from wallet.terms import ESCROW_TERMS
from workers.listing import moment


def test_a_sale_ends_the_task_with_its_proceeds(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.buy(105_000)
    assert shop.later(30, lister) is None
    row = shop.row(task)
    assert (row.desired, row.last_error, row.last_cycle_action) == ("stopped", None, "sold for 105,000")
    assert shop.rows() == [(105_000, "closed", "sold")]
    assert Listing.get().proceeds_sats == 105_000
    assert shop.detail(task)["listing"]["proceeds_sats"] == 105_000


@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.parametrize("fee_ppm", [0, 20_000])
def test_a_sale_stays_on_record(
    shop: ListingWorld, fee_ppm: int, in_block: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The practice market keeps what the signer lets it; a transaction is known only once it is in a block."""
    monkeypatch.setattr(Settings, "seller_fee_ppm", lambda self, venue: fee_ppm)
    task, lister = shop.begun()
    shop.market.buy(105_000)
    shop.market.facts[FIRST] = structs.replace(shop.market.facts[FIRST], is_spent_in_block=in_block)
    shop.later(30, lister)
    (fill,) = fills.newest(int(shop.user.id), Wanted(), 5)
    assert (fill.place.side, fill.task_id, fill.price_sats, fill.inscription_id) == ("sell", task, 105_000, ITEM)
    assert (fill.sale_id, fill.place.filled_ms) == ("sale-0", shop.market.sales_[0].sold_ms)
    assert fill.venue_fee_sats == (2_100 if fee_ppm else 0)
    assert fill.txid == ("33" * 32 if in_block else None)


@pytest.mark.parametrize("txid", [None, "44" * 32])
def test_the_spend_of_the_listed_output_is_no_sale_where_items_pass_through_an_escrow(
    shop: ListingWorld, monkeypatch: pytest.MonkeyPatch, txid: str | None
) -> None:
    """There the transaction is the one that the marketplace names."""
    monkeypatch.setattr(moment, "escrow_terms_of", lambda settings: {"simulator": ESCROW_TERMS["ordnet"]})
    _, lister = shop.begun()
    shop.market.buy(105_000)
    shop.market.sales_[0] = structs.replace(shop.market.sales_[0], txid=txid)
    shop.market.facts[FIRST] = structs.replace(shop.market.facts[FIRST], is_spent_in_block=True)
    shop.later(30, lister)
    (fill,) = fills.newest(int(shop.user.id), Wanted(), 5)
    assert (fill.price_sats, fill.txid) == (105_000, txid)


def test_the_sale_of_our_listing_is_the_first_one_whoever_sells_it_on(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.buy(105_000)
    shop.clock.advance(20)
    shop.market.tell_sale(400_000)
    shop.later(10, lister)
    assert shop.action(task) == "sold for 105,000"


@pytest.mark.parametrize(("bought_s", "end"), [(24, "sold for 105,000"), (40, "waiting: the inscription has left")])
def test_a_sale_soon_after_the_listing_may_have_an_earlier_time(shop: ListingWorld, bought_s: int, end: str) -> None:
    """The venue's clock is behind ours, further than it may be in the other case."""
    task, lister = shop.begun()
    shop.market.buy(105_000)
    listed_ms = Listing.get().created_ms
    shop.market.sales_[0] = structs.replace(shop.market.sales_[0], sold_ms=listed_ms - bought_s * 1_000)
    shop.later(30, lister)
    assert shop.action(task).startswith(end)


def test_the_sale_by_which_our_bid_bought_it_a_moment_before_is_not_that_of_our_listing(shop: ListingWorld) -> None:
    shop.market.tell_sale(80_000)
    Order.create(
        **dict.fromkeys(("task_id", "user_id", "token", "created_ms", "updated_ms", "expires_ms"), 1),
        intent="f" * 32,
        venue=shop.settings.market,
        wallet="w",
        slug="cats",
        quantity="1",
        price_sats=80_000,
        state="closed",
        close_reason="filled",
        sale_id="sale-0",
    )
    shop.clock.advance(10)
    task, lister = shop.begun()
    shop.clock.advance(60)
    shop.market.buy(105_000)
    shop.later(30, lister)
    assert shop.action(task) == "sold for 105,000"


def test_a_sale_by_an_older_cheaper_signature_is_told_at_its_price(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.floor(200_000)
    shop.later(30, lister)
    shop.market.buy(105_000)
    shop.later(30, lister)
    assert shop.action(task) == "sold for 105,000"
    assert shop.rows()[-1] == (210_000, "closed", "sold")
    assert listings.newest(task).proceeds_sats == 105_000  # type: ignore[union-attr]


def test_a_sale_that_is_told_late_is_waited_for(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.buy(105_000, is_told=False)
    assert shop.later(30, lister) is not None
    assert "whether it was sold is looked for" in shop.action(task)
    assert shop.rows() == [(105_000, "live", None)]
    shop.market.tell_sale(105_000)
    assert shop.later(30, lister) is None
    assert shop.action(task) == "sold for 105,000"


def test_what_was_gone_from_another_output_before_is_waited_for_anew(shop: ListingWorld) -> None:
    """It moved within the vault while the index was away; much later it is sold, and that is told late."""
    task, lister = shop.begun()
    shop.market.move()
    shop.market.script["whereabouts"] = [NotSupported("no index")]
    assert shop.later(30, lister) is not None
    assert "whether it was sold is looked for" in shop.action(task)
    shop.later(30, lister)
    assert shop.rows() == [(105_000, "closed", "gone"), (105_000, "live", None)]

    shop.later(3_600, lister)
    shop.market.listed.clear()
    shop.market.chain(SECOND, is_unspent=False)
    shop.market.chain(third := "44" * 32 + ":0")
    shop.market.where, shop.market.owner = third, "bc1pbuyer"
    assert shop.later(30, lister) is not None
    assert "whether it was sold is looked for" in shop.action(task)
    shop.market.tell_sale(105_000)
    assert shop.later(30, lister) is None
    assert shop.action(task) == "sold for 105,000"


def test_sales_that_cannot_be_read_decide_nothing(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.buy(105_000)
    shop.market.script["sales"] = [Unavailable("down")] * 10
    for _ in range(10):
        assert shop.later(30, lister) is not None
    assert shop.row(task).desired == "running"
    lister.cycle()
    assert shop.action(task) == "sold for 105,000"


def test_the_sale_by_which_we_came_by_it_is_not_ours(shop: ListingWorld) -> None:
    shop.market.tell_sale(50_000, ITEM)
    shop.clock.advance(60)
    task, lister = shop.begun()
    shop.market.move("bc1pelsewhere")
    shop.later(30, lister, times=6)
    assert shop.action(task) == "ended: the inscription has left the vault"
    assert shop.rows() == [(105_000, "closed", "gone")]


def test_an_inscription_that_was_sent_away_ends_the_task_with_a_word(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.move("bc1pelsewhere")
    delays = []
    for _ in range(6):
        shop.clock.advance(30)
        delays.append(lister.cycle())
    assert delays[-1] is None
    assert shop.row(task).desired == "stopped"
    assert "left the vault" in str(shop.row(task).last_error)
    assert Listing.get().proceeds_sats is None


def test_a_venue_that_tells_no_sales_does_not_hold_the_end_up_for_ever(shop: ListingWorld) -> None:
    _, lister = shop.begun()
    shop.market.buy(105_000)
    shop.market.script["sales"] = [NotSupported("no sales")] * 10
    shop.later(30, lister, times=6)
    assert shop.rows() == [(105_000, "closed", "gone")]


def test_a_move_within_the_vault_is_signed_anew(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.move()
    shop.later(30, lister)
    assert shop.rows() == [(105_000, "closed", "gone"), (105_000, "live", None)]
    assert shop.open_row(task).outpoint == SECOND
    assert shop.market.submitted == [105_000, 105_000]
    assert listings.lowest_outstanding(SECOND) == 105_000


def test_what_the_venue_still_shows_of_a_moved_inscription_is_not_adopted(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.move()
    shop.market.fail("list", Unavailable("busy"))
    shop.later(30, lister)
    assert shop.rows() == [(105_000, "closed", "gone"), (105_000, "closed", "refused")]
    shop.later(30, lister)
    assert shop.market.submitted == [105_000, 105_000]
    assert shop.open_row(task).outpoint == SECOND


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_pending_spend_is_waited_for(shop: ListingWorld, is_listed: bool) -> None:
    task = shop.task()
    lister = shop.lister(task)
    if is_listed:
        lister.cycle()
    before = shop.rows()
    shop.market.chain(FIRST, is_unspent=False)  # the index has not seen it: no block has
    shop.market.listed.clear()
    shop.later(30, lister, times=5)
    assert shop.action(task) == "waiting: an unconfirmed transaction moves the inscription"
    assert shop.rows() == before


def test_an_inscription_that_is_not_confirmed_yet_is_not_listed(shop: ListingWorld) -> None:
    shop.market.chain(FIRST, is_confirmed=False)
    _, lister = shop.begun()
    assert shop.market.submitted == []
    shop.market.chain(FIRST)
    lister.cycle()
    assert shop.prices == [105_000]


def test_doubt_about_where_it_is_lists_nothing_and_keeps_what_is_listed(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.market.chain(FIRST, is_unspent=None)
    lister.cycle()
    assert shop.prices == []
    assert shop.row(task).last_error is not None
    shop.market.chain(FIRST)
    lister.cycle()
    shop.market.script["whereabouts"] = [Unavailable("down")] * 3
    shop.market.script["outpoint"] = [Unavailable("down")] * 3
    shop.floor(200_000)
    shop.later(30, lister, times=3)
    assert (shop.prices, shop.market.submitted) == ([105_000], [105_000])
    assert shop.action(task).startswith("kept at 105,000")


def test_an_index_and_a_chain_that_contradict_each_other_are_doubt(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.where, shop.market.owner = SECOND, "bc1pthief"
    shop.market.chain(SECOND)
    shop.later(30, lister, times=8)
    assert shop.rows() == [(105_000, "live", None)]
    assert shop.row(task).desired == "running"


def test_without_an_index_the_chain_alone_keeps_a_listing_and_the_sales_end_it(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    shop.market.script["whereabouts"] = [NotSupported("no index")] * 9
    shop.later(30, lister)
    assert shop.action(task).startswith("kept at 105,000")
    shop.market.chain(FIRST, is_unspent=False)
    for _ in range(6):
        assert shop.later(30, lister) is not None
    assert shop.rows() == [(105_000, "live", None)]
    shop.market.tell_sale(105_000)
    assert lister.cycle() is None
    assert shop.rows() == [(105_000, "closed", "sold")]


def test_an_item_that_was_never_in_the_vault_ends_the_task(shop: ListingWorld) -> None:
    shop.market.owner = "bc1pmywallet"
    task = shop.task(ListingConfig(price_mode="fixed", price_sats=50_000))
    assert shop.lister(task).cycle() is None
    assert shop.row(task).desired == "stopped"
    assert "send it there" in str(shop.row(task).last_error)


def test_a_sale_of_a_listing_whose_answer_was_lost(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "lost")
    shop.market.fail("own_listings", None, "empty")
    lister = shop.lister(task)
    lister.cycle()
    assert shop.rows() == [(105_000, "unknown", None)]
    shop.market.buy(105_000)
    assert shop.later(30, lister) is None
    assert shop.rows() == [(105_000, "closed", "sold")]


def test_a_price_is_not_changed_on_an_old_word_of_the_chain(shop: ListingWorld) -> None:
    """While the venue shows the listing the chain is asked seldom, but before anything is signed it is."""
    task, lister = shop.begun()
    shop.floor(200_000)
    shop.clock.advance(30)
    asked: list[str] = []

    def spend(operation: str) -> None:
        if operation == "asks":
            shop.market.chain(FIRST, is_unspent=False)
        asked.append(operation)

    shop.market.witness = spend
    lister.cycle()
    assert asked.count("outpoint") == 2
    assert shop.market.submitted == [105_000]
    assert shop.action(task) == "waiting: the inscription is pending, so nothing is signed"


def test_what_was_reserved_and_never_signed_is_closed_when_the_item_is_gone(shop: ListingWorld) -> None:
    task = shop.task()
    with pytest.raises(Crash):
        shop.lister(task, CrashAt("listing-reserved")).cycle()
    shop.signer.away = SignerUnavailable("gone")
    lister = shop.lister(task)
    assert lister.cycle() is not None
    shop.signer.away = None
    shop.market.move("bc1pelsewhere")
    assert lister.cycle() is None
    assert shop.rows() == [(105_000, "closed", "refused")]
    assert shop.row(task).desired == "stopped"


def test_a_sale_after_the_venue_had_dropped_the_listing(shop: ListingWorld) -> None:
    """Its signature was good as long as the output was there."""
    task, lister = shop.begun()
    shop.market.listed.clear()
    users.put_control("task", task, "halt", None, shop.clock())
    shop.later(30, lister, times=3)
    assert shop.rows() == [(105_000, "closed", "lost")]
    shop.market.buy(105_000)
    assert shop.later(30, lister) is None
    assert shop.action(task) == "control halt (task): sold for 105,000"
    assert shop.row(task).desired == "stopped"


@pytest.mark.parametrize("buyer", [KEYS.vault, KEYS.payment, "bc1quser", None])
@pytest.mark.parametrize("is_sold", [True, False])
def test_a_purchase_by_hand_a_moment_before_is_not_the_sale_of_our_listing(
    shop: ListingWorld, buyer: str | None, is_sold: bool
) -> None:
    shop.market.tell_sale(80_000)
    shop.market.sales_[0] = structs.replace(shop.market.sales_[0], buyer=buyer)
    shop.clock.advance(10)
    task, lister = shop.begun()
    shop.clock.advance(60)
    if is_sold:
        shop.market.buy(105_000)
    else:
        shop.market.move("bc1qelsewhere")
    shop.later(30, lister)
    if is_sold:
        assert shop.action(task) == "sold for 105,000"
    elif buyer is not None:  # else nobody can tell
        assert not shop.action(task).startswith("sold")
