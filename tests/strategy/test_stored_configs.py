"""Configs as the first version stored them: each is read, and what it had is written again as the same text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strategy.config.bid import dump_bid_config, load_bid_config
from strategy.config.bid import problems as problems_of_bids
from strategy.config.listing import dump_listing_config, load_listing_config
from strategy.config.listing import problems as problems_of_listing

STORED = [
    json.loads(line) for line in Path(__file__).with_name("stored_configs_5c2b9fa7.jsonl").read_text().splitlines()
]


def stored_part(text: str, written: str) -> str:
    """Returns `written` without the fields that the first version did not have."""
    return json.dumps({name: json.loads(written)[name] for name in json.loads(text)}, sort_keys=True)


BIDS = [text for kind, text in STORED if kind == "bid"]
LISTINGS = [text for kind, text in STORED if kind == "listing"]


@pytest.mark.parametrize("text", BIDS)
def test_a_stored_bidding_config_is_read_and_written_the_same(text: str) -> None:
    config = load_bid_config(text)
    assert stored_part(text, dump_bid_config(config)) == text
    assert problems_of_bids(config) == []
    if config.on_fill is not None:
        assert problems_of_listing(load_listing_config(config.on_fill.autolist)) == []


@pytest.mark.parametrize("text", LISTINGS)
def test_a_stored_listing_config_is_read_and_written_the_same(text: str) -> None:
    config = load_listing_config(text)
    assert stored_part(text, dump_listing_config(config)) == text
    assert problems_of_listing(config) == []


def test_every_field_has_another_value_than_its_default_somewhere() -> None:
    """A field that always had its default would be read right without being read."""
    for texts, load in ((BIDS, load_bid_config), (LISTINGS, load_listing_config)):
        configs = [load(text) for text in texts]
        same = {name for name in json.loads(texts[0]) if len({repr(getattr(each, name)) for each in configs}) == 1}
        assert same == set()


def test_a_part_with_a_key_of_a_later_version_is_refused() -> None:
    text = BIDS[-1].replace('"for_minutes"', '"most_sats": 5, "for_minutes"')
    assert text != BIDS[-1]
    with pytest.raises(ValueError, match="pause_on_floor_drop"):
        load_bid_config(text)
