"""Recorded days of each kind of task: replayed to the plans of that time, and lived again to the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.replay.journal import read_journal
from strategy.replay import verify
from tests.replay.lived import BIDS, GOLDENS, LISTINGS, bid_plans, listing_plans, paths

DAYS = BIDS | LISTINGS
# Decisions that the journals must keep: a golden without them would prove less.
PLANNED = {
    "bids_ordinals": ["outbid", "kept", "no_reference", "floor_spike", "floor_alarm", "hard:", "at 90000", "max_fills"],
    "bids_runes": ["for 1000.5", "wrong_quantity", "outbid"],
    "bids_trait": ["of Fur=Gold", "of Fur=Silver", "wrong_trait", "trait_floor_missing", "range_empty"],
    "listing_item": [" list ", " reprice ", " keep ", " wait ", " ended "],
    "listing_undercut": [" list ", " reprice ", " keep "],
}
SAID = {
    "bids_ordinals": ["filled 1", "cancelled 3", "halt"],
    "bids_runes": ["filled 1"],
    "bids_trait": ["filled 1"],
    "listing_item": ["sold for ", "floor is not known", "last 3 sales"],
    "listing_undercut": ["below the ask", "trait floor", "ended: the inscription has left the vault"],
}


@pytest.mark.parametrize("name", BIDS)
def test_recorded_bids_replay_to_equal_plans(name: str) -> None:
    journal, plans, _ = paths(name)
    assert bid_plans(journal) == plans.read_text()


@pytest.mark.parametrize("name", BIDS)
def test_recorded_bids_pass_the_commands_own_check(name: str) -> None:
    entries = read_journal([paths(name)[0]]).entries
    verified = verify(entries)
    assert (verified.decided, verified.differences) == (len(entries), [])


@pytest.mark.parametrize("name", LISTINGS)
def test_recorded_listings_replay_to_equal_plans(name: str) -> None:
    journal, plans, _ = paths(name)
    assert listing_plans(journal) == plans.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", DAYS)
def test_days_lived_again_have_the_same_plans_and_words(name: str, database: str) -> None:
    _, plans, words = paths(name)
    lived = DAYS[name]().lived()
    assert lived.words == words.read_text()
    assert lived.plans == plans.read_text()


@pytest.mark.parametrize("name", DAYS)
def test_recorded_days_hold_each_kind_of_decision(name: str) -> None:
    _, plans, words = paths(name)
    assert [each for each in PLANNED[name] if each not in plans.read_text()] == []
    assert [each for each in SAID[name] if each not in words.read_text()] == []


@pytest.mark.parametrize("name", DAYS)
def test_another_config_in_a_journal_changes_its_plans(name: str, tmp_path: Path) -> None:
    journal, plans, _ = paths(name)
    given, other = ('"bid_percent_low":"0.15"', '"bid_percent_low":"0.2"') if name in BIDS else ('"held"', '"pending"')
    changed = tmp_path / "journal"
    assert given in journal.read_text()
    changed.write_text(journal.read_text().replace(given, other))
    again = bid_plans(changed) if name in BIDS else listing_plans(changed)
    assert again != plans.read_text()


def test_every_recorded_journal_is_replayed() -> None:
    assert {path.name for path in GOLDENS.glob("journal_*")} == {path.name for name in DAYS for path in paths(name)}
