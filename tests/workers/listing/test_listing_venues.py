"""Listings at each venue, and tasks that only say what they would list."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from markets.base import NotSupported, Unavailable
from markets.orders import ListingDraft
from models.tasks import cycles, tasks
from strategy.config.listing import ListingConfig
from tests.worlds.listing import FIRST, ITEM, ListingMarket, ListingSigner, ListingWorld
from tests.worlds.worker import KEYS
from wallet.protocol import Finding, Judgement
from wallet.signer_client import SignerRefused, SignerUnavailable

UNISAT, ORDINALSWALLET = "simulator-unisat", "simulator-ordinalswallet"


class OtherMarket(ListingMarket):
    """A venue that takes no bids, and takes a listing back by what `proof` says."""

    proof = "signed end of the order"

    def profile(self, kind: str = "ordinals") -> object:  # type: ignore[override]
        raise NotSupported("it takes no bids")

    def challenge(self, wallet: str) -> str:
        raise NotSupported("it has no challenges")

    def draft_delist(self, wallet: str, inscription_id: str) -> ListingDraft:
        self._turn("draft_delist")
        assert (wallet, inscription_id) == (KEYS.vault, ITEM)
        return ListingDraft("end of the order", ())

    def delist(
        self, wallet: str, inscription_ids: Sequence[str], signature: str, *, task: int, token: int, deadline_ms: int
    ) -> bool:
        assert signature == self.proof
        return super().delist(wallet, inscription_ids, "of the vault", task=task, token=token, deadline_ms=deadline_ms)


class OtherSigner(ListingSigner):
    def sign_delist(self, task: int, token: int, secret: str, outpoint: str, psbt: str) -> str:
        self._here()
        assert (outpoint, psbt) == (FIRST, "end of the order")
        return f"signed {psbt}"


def at(shop: ListingWorld, venue: str, proof: str = OtherMarket.proof) -> ListingWorld:
    market = OtherMarket(shop.clock, venue)
    market.proof = proof
    shop.market, shop.signer = market, OtherSigner()
    return shop


def drained(shop: ListingWorld, task: int, rounds: int = 6) -> bool:
    tasks.mark_deleted(shop.row(task), shop.clock())
    drain = shop.listing_drain(task)
    for _ in range(rounds):
        shop.clock.advance(6)
        if drain.cycle() is None:
            return True
    return False


@pytest.mark.parametrize(("venue", "proof"), [(UNISAT, OtherMarket.proof), (ORDINALSWALLET, "")])
def test_a_listing_is_put_up_and_taken_back_as_the_venue_does(shop: ListingWorld, venue: str, proof: str) -> None:
    at(shop, venue, proof)
    shop.floor(100_001)
    task, _ = shop.begun()
    assert shop.prices == [105_002], "to the sat: no grid is known there"
    assert shop.open_row(task).venue == venue
    assert drained(shop, task)
    assert (shop.prices, shop.rows()) == ([], [(105_002, "closed", "cancelled")])


@pytest.mark.parametrize("who", ["market", "signer"])
def test_without_what_the_venue_wants_signed_it_is_tried_again(shop: ListingWorld, who: str) -> None:
    at(shop, UNISAT)
    task, _ = shop.begun()
    if who == "market":
        shop.market.fail("draft_delist", *[Unavailable("away")] * 3)
    else:
        shop.signer.away = SignerRefused("payout", "not all comes back")
    assert not drained(shop, task, 3)
    assert shop.prices == [105_000]
    shop.signer.away = None
    assert drained(shop, task)
    assert shop.rows() == [(105_000, "closed", "cancelled")]


def test_what_others_ask_at_one_venue_is_no_history_of_anothers(shop: ListingWorld) -> None:
    for minute in range(10):
        cycles.record_reference("ordinals", "cats", "ask", Decimal(200_000), shop.clock() + minute * 60_000)
    shop.clock.advance(600)
    at(shop, UNISAT)
    shop.lister(shop.task(ListingConfig(min_price_sats=1))).cycle()
    assert shop.prices == [105_000], "at the default venue three quarters of 200,000 would be believed"


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
