"""A dry run of an auto-list task: it decides, has a draft judged, and signs and lists nothing."""

from __future__ import annotations

from typing import Any

from markets.base import Unavailable
from strategy.config.listing import ListingConfig
from tests.worlds.listing import FIRST, ListingWorld
from tests.worlds.worker import KEYS
from wallet.protocol import Finding, Judgement
from wallet.signer_client import SignerUnavailable

DRY = ListingConfig(dry_run=True, min_price_sats=50_000)
JUDGED = Judgement("plain", True, (Finding("payout", True, ""),), (), (), 105_000, 105_000)
REFUSED = Judgement(
    "plain", False, (Finding("payout", False, "too little"), Finding("market", False, "")), (), (), 1, 2
)
UNJUDGED = Judgement("plain", False, (Finding("payout", None, "it waits"),), (), (), None, None)


def judging(shop: ListingWorld, *answers: Any) -> list[Any]:
    """The signer judges so, one after the other, the last for ever; returns the listings that it is asked about."""
    asked: list[Any] = []

    def judge(user: str, venue: str, listing: Any, least: int = 0) -> Any:
        asked.append((user, venue, listing.price, listing.outpoint, listing.psbt, listing.secure, least))
        answer = answers[min(len(asked), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return (answer,)

    shop.signer.judge = judge  # type: ignore[method-assign]
    return asked


def test_it_says_what_it_would_list_and_whether_that_would_be_signed(shop: ListingWorld) -> None:
    asked = judging(shop, JUDGED)
    task, lister = shop.begun(DRY)
    assert shop.action(task) == "dry run: would list at 105,000: 1.05 x floor 100,000; the signer would sign it"
    secure = ("secure draft at 105000",)
    assert asked == [(shop.user.address, "simulator", 105_000, FIRST, "draft at 105000", secure, 50_000)]
    shop.later(30, lister)
    shop.later(30, lister)
    assert len(asked) == 1  # the same price is drafted once
    assert (shop.market.submitted, shop.signer.listings, shop.rows()) == ([], {}, [])
    assert (shop.detail(task)["dry_run"], shop.detail(task)["verdict"]) == (True, "the signer would sign it")


def test_another_price_is_judged_anew(shop: ListingWorld) -> None:
    asked = judging(shop, JUDGED, REFUSED, UNJUDGED)
    task, lister = shop.begun(DRY)
    shop.floor(200_000)
    shop.later(30, lister)
    assert shop.action(task).endswith("; the signer would refuse it (payout: too little)")
    shop.floor(300_000)
    shop.later(30, lister)
    assert shop.action(task).endswith("; the signer cannot judge it")
    assert [price for _, _, price, *_ in asked] == [105_000, 210_000, 315_000]


def test_a_draft_that_fails_is_asked_for_again(shop: ListingWorld) -> None:
    asked = judging(shop, SignerUnavailable("away"), JUDGED)
    shop.market.script["draft"] = [Unavailable("away")]
    task, lister = shop.begun(DRY)
    assert shop.action(task).endswith("; no draft could be judged") and "get a draft" in shop.row(task).last_error
    shop.later(30, lister)
    assert "have a draft of a listing at 105000 judged" in shop.row(task).last_error
    shop.later(30, lister)
    assert shop.action(task).endswith("; the signer would sign it") and len(asked) == 2
    assert shop.row(task).last_error is None


def test_a_listing_that_is_there_stays(shop: ListingWorld) -> None:
    task, lister = shop.begun()
    judging(shop, JUDGED)
    shop.change(task, DRY)
    lister = shop.lister(task)
    lister.cycle()
    assert shop.action(task).startswith("dry run: kept at 105,000")
    shop.floor(200_000)
    shop.later(30, lister)
    assert shop.action(task).startswith("dry run: would reprice 105,000 -> 210,000: 1.05 x floor 200,000; the signer")
    assert shop.market.submitted == [105_000] and next(iter(shop.market.listed.values())).owner == KEYS.vault
