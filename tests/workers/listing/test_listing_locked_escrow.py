"""Items in an escrow that keeps them for some blocks (Ordinals Wallet's): waited for, and then brought home."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from models.tasks import tasks
from strategy.config.listing import ListingConfig
from tests.workers.listing.test_listing_escrow import shop, stranded, ways_home
from tests.worlds.listing import EscrowSigner, ListingWorld
from wallet.signer_client import SignerRefused
from wallet.terms import ESCROW_TERMS
from workers.drains import BLOCK_S
from workers.listing import lister as lister_of

LOCKED = SignerRefused("timelock", "its escrow keeps it until block 900144, about 22 hours")
__all__ = ["shop"]


@pytest.fixture
def locking(shop: ListingWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[ListingWorld]:
    """The venue's form of escrow is Ordinals Wallet's; the signer refuses as often as `judge_script` says."""
    monkeypatch.setattr(lister_of, "escrow_terms_of", lambda settings: {"simulator": ESCROW_TERMS["ordinalswallet"]})
    yield shop


def signer(shop: ListingWorld) -> EscrowSigner:
    assert isinstance(shop.signer, EscrowSigner)
    return shop.signer


def test_the_owner_is_told_until_when_it_stays_and_then_it_comes_home(locking: ListingWorld) -> None:
    task = stranded(locking)
    locking.market.listed.clear()
    signer(locking).judge_script += [LOCKED, LOCKED]
    lister = locking.lister(task)
    while signer(locking).judge_script:
        pause = lister.cycle()
        locking.clock.advance(600)
    row: Any = locking.row(task)
    assert "not free yet to come home" in row.last_cycle_action
    assert "until block 900144, about 22 hours" in row.last_error
    assert pause is not None and pause >= 30, "nothing is down, so no try is hurried or put off"
    assert ways_home() == [], "nothing was reserved, so no coin is held back for a day"
    lister.cycle()
    assert [state for state, _, _ in ways_home()] == ["signed"]


def test_what_the_market_still_shows_comes_home_too(locking: ListingWorld) -> None:
    """A protected listing is of the output that the item has left: nobody can buy it there."""
    task = stranded(locking)
    signer(locking).judge_script.append(LOCKED)
    lister = locking.lister(task)
    lister.cycle()
    assert (locking.rows(), ways_home()) == ([(105_000, "live", None)], [])
    lister.cycle()
    assert [state for state, _, _ in ways_home()] == ["signed"]
    assert "on its way home" in locking.row(task).last_cycle_action


@pytest.mark.parametrize("config", [ListingConfig(dry_run=True), ListingConfig(price_percent=Decimal("1.5"))])
def test_nothing_is_brought_home_in_a_dry_run(locking: ListingWorld, config: ListingConfig) -> None:
    task = stranded(locking)
    locking.change(task, config)
    locking.lister(task).cycle()
    assert bool(ways_home()) is not config.dry_run


def test_a_drain_cancels_at_once_and_waits_from_block_to_block(locking: ListingWorld) -> None:
    task = stranded(locking)
    tasks.mark_deleted(locking.row(task), locking.clock())
    signer(locking).judge_script += [LOCKED, LOCKED]
    drain = locking.listing_drain(task)
    assert drain.cycle() == BLOCK_S
    assert locking.prices == [], "cancelled"
    assert locking.rows() == [(105_000, "cancelling", None)], "its row is open while the item is on the way"
    drain = locking.listing_drain(task)  # so another worker goes on
    assert drain.cycle() == BLOCK_S
    while drain.cycle() is not None:
        locking.clock.advance(30)
    assert [state for state, _, _ in ways_home()] == ["signed"]
    assert locking.rows()[0][1] == "closed"
