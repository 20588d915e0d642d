"""The grants of workers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert, to_builtins

from core.settings import load
from core.subscription_plans import SubscriptionPlan
from models.tasks import tasks
from models.tasks.tasks import Task
from models.users import User
from strategy.config.bid import BidConfig
from strategy.config.listing import ListingConfig
from tests.worlds.manager import Installation
from wallet.protocol import Grant
from wallet.signer_client import SignerClient
from workers.manager.rights import Right, Rights, bidder_grant, drain_grant, lister_grant
from workers.spawning.spawner import PopenSpawner

PLAN = SubscriptionPlan("Beta", 20, 20, 50_000_000, 0, 365)
USER = User(id=1, address="bc1qsign", ordinals_address="bc1preceive")
ROW = Task(id=17, kind="bidding", venue="simulator", slug="Cats", user=USER)
ITEM = "ab" * 32 + "i0"
LISTING = Task(id=18, kind="listing", venue="simulator", inscription_id=ITEM, collection_id="cats", user=USER)


def test_a_dry_runs_lister_may_cancel_only() -> None:
    grant = lister_grant(LISTING, ListingConfig(dry_run=True, min_price_sats=70_000), 9, ends_ms=5_000, fee_ppm=0)
    assert (grant.operations, grant.inscription_id, grant.min_price_sats) == (("cancel",), ITEM, 0)


def test_the_secret_of_a_right_is_not_shown() -> None:
    assert repr(Right("a" * 64, 5_000, 7)) == "Right(ends_ms=5000, token=7)"


def test_a_bidder_may_bid_and_cancel_within_its_config() -> None:
    config = BidConfig(slug="Cats", hardcap_sats=70_000, bid_expiry_minutes=20)
    grant = bidder_grant(ROW, config, PLAN, 9, ends_ms=5_000, spent_sats=0)
    assert (grant.task, grant.token, grant.user, grant.slug) == (17, 9, "bc1qsign", "Cats")
    assert grant.operations == ("bid", "cancel")
    assert grant.receive == "bc1preceive"
    assert grant.hardcap_sats == 70_000
    assert (grant.outstanding_sats, grant.outstanding_task_sats) == (200_000_000, 20 * 70_000)
    assert grant.max_expiry_ms == 22 * 60_000
    assert grant.expires_ms == 5_000


@pytest.mark.parametrize(
    ("venue", "config", "to_vault"),
    [
        ("simulator", BidConfig(slug="Cats", hardcap_sats=70_000), False),
        ("simulator", BidConfig(slug="Cats", hardcap_sats=70_000, deliver_to="vault"), True),
        ("simulator-ordnet", BidConfig(slug="Cats", hardcap_sats=70_000), True),
    ],
)
def test_goods_go_to_the_vault_where_config_or_venue_say_so(venue: str, config: BidConfig, to_vault: bool) -> None:
    row = Task(id=17, kind="bidding", venue=venue, slug="Cats", user=USER)
    assert bidder_grant(row, config, PLAN, 9, ends_ms=5_000, spent_sats=0).to_vault is to_vault
    assert not drain_grant(row, 9, 0).to_vault


@pytest.mark.parametrize(
    ("limits", "spent_sats", "most"),
    [
        ({}, 0, 2_000_000),
        ({"max_bid_total": 300_000}, 0, 1_200_000),
        ({"max_bid_total": 10_000_000}, 0, 2_000_000),
        ({"spend_cap_sats": 900_000}, 0, 2_000_000),
        ({"spend_cap_sats": 900_000}, 500_000, 1_600_000),
        ({"spend_cap_sats": 900_000}, 810_000, 12 * 90_000),
        ({"spend_cap_sats": 900_000}, 900_001, 0),
        ({"max_fills": 4}, 0, 1_600_000),
        ({"max_fills": 1}, 0, 1_200_000),
        ({"max_fills_per_day": 4}, 0, 1_600_000),
        ({"spend_cap_per_day_sats": 300_000}, 500_000, 1_200_000),
        ({"bid_count": 1}, 0, 1_200_000),
        ({"bid_count": 1, "max_bid_total": 60_000}, 0, 720_000),
        ({"bid_count": 20, "hardcap_sats": 10_000_000}, 0, 200_000_000),
        ({"bid_count": 1, "hardcap_sats": 40_000_000}, 0, 200_000_000),
        ({"bid_mode": "fixed", "bid_fixed_high": 33_000}, 0, 660_000),
    ],
)
def test_a_task_may_have_signed_a_multiple_of_what_its_limits_let_be_live(
    limits: dict[str, Any], spent_sats: int, most: int
) -> None:
    config = BidConfig(**{"slug": "Cats", "hardcap_sats": 100_000, "bid_count": 5} | limits)
    grant = bidder_grant(ROW, config, PLAN, 9, ends_ms=5_000, spent_sats=spent_sats)
    assert grant.outstanding_task_sats == most


@pytest.mark.parametrize(
    "config",
    [
        BidConfig(slug="Cats", bid_mode="fixed", bid_fixed_high=33_000),
        BidConfig(slug="CATS", type="rune", bid_mode="fixed", bid_fixed_high=33_000, quantity=Decimal("2.5")),
    ],
)
def test_without_a_hard_cap_the_high_end_is_the_cap_of_the_whole_order(config: BidConfig) -> None:
    assert bidder_grant(ROW, config, PLAN, 9, ends_ms=5_000, spent_sats=0).hardcap_sats == 33_000


def test_a_drain_worker_may_only_cancel_and_the_signer_understands_its_grant() -> None:
    grant = drain_grant(ROW, 9, now_ms=1_000)
    assert grant.operations == ("cancel",)
    assert (grant.hardcap_sats, grant.outstanding_sats, grant.outstanding_task_sats) == (0, 0, 0)
    assert convert(to_builtins(grant), Grant) == grant


@pytest.mark.parametrize(
    ("config", "least"),
    [
        (ListingConfig(), 0),
        (ListingConfig(min_price_sats=70_000), 70_000),
        (ListingConfig(min_price_sats=70_000, cost_sats=80_000, min_margin=Decimal("0.1")), 88_000),
        (ListingConfig(price_mode="fixed", price_sats=500_000, cost_sats=80_001), 80_001),
    ],
)
def test_a_lister_may_list_its_inscription_for_what_its_config_asks_at_least(config: ListingConfig, least: int) -> None:
    grant = lister_grant(LISTING, config, 9, ends_ms=5_000, fee_ppm=0)
    assert (grant.task, grant.token, grant.operations) == (18, 9, ("list", "cancel"))
    assert (grant.inscription_id, grant.min_price_sats) == (ITEM, least)
    assert (grant.hardcap_sats, grant.outstanding_sats, grant.expires_ms) == (0, 0, 5_000)
    assert convert(to_builtins(grant), Grant) == grant


def test_a_deleted_listings_drain_worker_may_only_cancel_that_listing() -> None:
    grant = drain_grant(LISTING, 9, now_ms=1_000)
    assert (grant.operations, grant.inscription_id, grant.min_price_sats) == (("cancel",), ITEM, 0)
    assert convert(to_builtins(grant), Grant) == grant


def test_venue_keys_are_not_in_a_workers_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """... but settings that need one can still be read there."""
    key = tmp_path / "key"
    key.write_text("0123456789-key-of-the-venue")
    environment = {
        "BIDKEEPER_DATA_DIR": str(tmp_path),
        "BIDKEEPER_CONFIG": "/dev/null",
        "BIDKEEPER_MARKET": "satflow",
        "BIDKEEPER_SATFLOW_URL": "https://api.example/v1",
        "BIDKEEPER_SATFLOW_API_KEY_FILE": str(key),
        "BIDKEEPER_UNISAT_API_KEY": "0123456789-another-key",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = load()
    assert settings.satflow_api_key == "0123456789-key-of-the-venue"
    workers_own = PopenSpawner(settings)._environment
    assert not any("0123456789" in value or value == str(key) for value in workers_own.values())
    assert load(workers_own).market == "satflow"


def test_a_bid_may_live_as_long_as_its_venue_has_it() -> None:
    config = BidConfig(slug="Cats", hardcap_sats=70_000, bid_expiry_minutes=361)
    row = Task(id=17, kind="bidding", venue="simulator-ordnet", slug="Cats", user=USER)
    grant = bidder_grant(row, config, PLAN, 9, ends_ms=5_000, spent_sats=0)
    assert grant.venue == "simulator-ordnet"
    assert grant.max_expiry_ms == 722 * 60_000


async def test_the_signer_is_given_the_users_own_ceilings_where_they_are_lower(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = Installation(tmp_path)
    task_id = installation.task(hardcap_sats=70_000, bid_count=5)
    given: list[Grant] = []
    rights = Rights(installation.settings, 1.0, 1.0)

    def grant_asked(signer: SignerClient, grant: Grant) -> str:
        given.append(grant)
        return "secret"

    monkeypatch.setattr(SignerClient, "grant", grant_asked)
    for exposure, hardcap in ((None, None), (90_000, None), (None, 20_000)):
        User.update(max_exposure=exposure, max_hardcap=hardcap).execute()
        row = tasks.with_owner(task_id)
        assert row is not None
        await rights.give(row, "bidder", 9, 5_000)

    figures = [(grant.hardcap_sats, grant.outstanding_sats, grant.outstanding_task_sats) for grant in given]
    assert figures == [(50_000, 200_000_000, 1_000_000), (50_000, 360_000, 360_000), (20_000, 200_000_000, 400_000)]
