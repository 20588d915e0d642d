"""A venue's peculiarities for a lister and its drain: its grid, its floors' history, its way to take a listing back."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from markets.base import NotSupported, Unavailable
from markets.orders import ListingDraft
from models import market_memory
from models.tasks import tasks
from strategy.config.listing import ListingConfig
from tests.worlds.listing import FIRST, ITEM, ListingMarket, ListingSigner, ListingWorld
from tests.worlds.worker import KEYS
from wallet.signer_client import SignerRefused

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
        market_memory.record("ordinals", "cats", "ask", Decimal(200_000), shop.clock() + minute * 60_000)
    shop.clock.advance(600)
    at(shop, UNISAT)
    shop.lister(shop.task(ListingConfig(min_price_sats=1))).cycle()
    assert shop.prices == [105_000], "at the default venue three quarters of 200,000 would be believed"
