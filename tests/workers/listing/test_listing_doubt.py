"""Answers that are lost, late or wrong: a listing is looked for, and never sent again blind."""

from __future__ import annotations

import pytest

from markets.base import InsufficientFunds, Unavailable, Unknown
from tests.worlds.listing import ListingWorld
from wallet.signer_client import SignerUnavailable
from workers.listing.lister import IN_DOUBT_S, Lister


def pass_time(shop: ListingWorld, lister: Lister, cycles: int, seconds: float = 6) -> None:
    shop.later(seconds, lister, times=cycles)


def test_a_lost_answer_is_found_again_by_the_read_that_follows(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "lost")
    shop.lister(task).cycle()
    assert shop.rows() == [(105_000, "live", None)]
    assert shop.market.submitted == [105_000]
    assert shop.action(task) == "listed at 105,000: 1.05 x floor 100,000"
    assert "timed out" in str(shop.row(task).last_error)


def test_a_listing_that_never_arrived_is_sent_again_only_after_three_reads_and_its_time(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "never")
    lister = shop.lister(task)
    lister.cycle()
    assert shop.rows() == [(105_000, "unknown", None)]
    pass_time(shop, lister, 6)
    assert shop.market.submitted == [105_000]
    assert "is looked for" in shop.action(task)
    pass_time(shop, lister, 2)
    assert shop.rows() == [(105_000, "closed", "lost"), (105_000, "live", None)]
    assert shop.market.submitted == [105_000, 105_000]


def test_reads_that_fail_or_come_too_close_prove_nothing(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "never")
    lister = shop.lister(task)
    lister.cycle()
    shop.clock.advance(60)
    shop.market.script["own_listings"] = [Unavailable("down")] * 10
    pass_time(shop, lister, 10)
    assert shop.rows() == [(105_000, "unknown", None)]
    pass_time(shop, lister, 5, seconds=0.5)
    assert shop.rows() == [(105_000, "unknown", None)]


def test_a_new_price_that_never_arrived_leaves_the_former(shop: ListingWorld) -> None:
    _, lister = shop.begun()
    shop.floor(200_000)
    shop.market.fail("list", "never")
    assert shop.later(30, lister) is not None
    assert shop.rows() == [(105_000, "closed", "replaced"), (210_000, "unknown", None)]
    pass_time(shop, lister, 6)
    assert shop.market.submitted == [105_000, 210_000]
    pass_time(shop, lister, 2)
    assert [row[1:] for row in shop.rows()] == [("closed", "replaced"), ("closed", "lost"), ("live", None)]
    assert shop.prices == [210_000]


def test_doubt_is_looked_into_soon(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "never")
    lister = shop.lister(task)
    lister.cycle()
    assert shop.later(6, lister) == IN_DOUBT_S


def test_what_did_not_reach_the_venue_is_tried_anew(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.market.fail("list", Unavailable("no slot before the deadline"))
    lister.cycle()
    assert shop.rows() == [(105_000, "closed", "refused")]
    lister.cycle()
    assert shop.prices == [105_000]


def test_a_draft_that_cannot_be_had_is_no_doubt(shop: ListingWorld) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.market.fail("draft", Unavailable("down"))
    lister.cycle()
    assert (shop.rows(), shop.signer.listings) == ([(105_000, "closed", "refused")], {})
    assert shop.action(task).startswith("failed to list at 105,000 (not_sent)")


@pytest.mark.parametrize(("turn", "reasons"), [(SignerUnavailable("gone"), ["refused"]), ("lost", ["lost"])])
def test_a_signer_that_does_not_answer_is_asked_what_it_did(
    shop: ListingWorld, turn: object, reasons: list[str]
) -> None:
    task = shop.task()
    lister = shop.lister(task)
    shop.signer.listing_script = [turn]
    lister.cycle()
    assert shop.rows() == [(105_000, "reserved", None)]
    assert shop.market.submitted == []
    shop.signer.away = SignerUnavailable("gone")
    pass_time(shop, lister, 2)
    assert shop.rows() == [(105_000, "reserved", None)]
    shop.signer.away = None
    pass_time(shop, lister, 10)
    assert [reason for _, _, reason in shop.rows()] == [*reasons, None]
    assert shop.market.submitted == [105_000]


def test_another_price_at_the_venue_is_believed_after_two_reads(shop: ListingWorld) -> None:
    """Somebody with the same keys, or a signature that came through late."""
    _, lister = shop.begun()
    shop.market.show(103_000)
    pass_time(shop, lister, 1)
    assert shop.rows() == [(105_000, "live", None)]
    pass_time(shop, lister, 1)
    assert shop.rows() == [(105_000, "closed", "replaced"), (103_000, "live", None)]
    assert shop.market.submitted == [105_000]


def test_a_lost_answer_and_a_lagging_read_make_no_second_listing(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", "lost")
    shop.market.fail("own_listings", None, "empty", "empty")
    lister = shop.lister(task)
    lister.cycle()
    assert shop.rows() == [(105_000, "unknown", None)]
    pass_time(shop, lister, 2)
    assert shop.rows() == [(105_000, "live", None)]
    assert shop.market.submitted == [105_000]


def test_an_unknown_answer_of_another_kind_is_unknown_too(shop: ListingWorld) -> None:
    task = shop.task()
    shop.market.fail("list", Unknown("cut"))
    shop.lister(task).cycle()
    assert shop.rows() == [(105_000, "unknown", None)]


@pytest.mark.parametrize("step", ["list", "draft"])
def test_a_listing_that_lacks_sats_names_the_address_to_fund(shop: ListingWorld, step: str) -> None:
    task = shop.task()
    shop.market.fail(step, InsufficientFunds("not enough for the postage"))
    shop.lister(task).cycle()
    assert str(shop.row(task).last_error).endswith("not enough for the postage; send sats to bc1qpayment")
