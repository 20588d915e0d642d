"""Oddities of real answers: reads, bids and listings stay right at all four venues, whatever scenes a market has."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from markets.base import AuthFailed, Unavailable
from markets.ordinalswallet.adapter import OrdinalsWallet
from markets.parse import Page
from markets.satflow.adapter import Satflow
from markets.unisat.adapter import UnisatMarket
from simulator.scenes import SCENES
from tests.scenes.run import faults
from workers.context import BadCredentials
from workers.listing.lister import Lister

pytestmark = pytest.mark.slow

NAMES = [scene.name for scene in SCENES]
ODD = [scene.name for scene in SCENES if scene.odd is not None and not scene.last]
# A book that is longer than what one answer holds, where the oddity is one of pages.
LONG = {"unisat_unit_price": 240, "ordinalswallet_paged_escrows": 130}


@pytest.mark.parametrize("seed", [1, 2])
def test_market_without_scenes_is_read_and_traded_right(seed: int) -> None:
    assert faults(seed, []) == []


@pytest.mark.parametrize("name", NAMES)
def test_scene_by_itself_changes_no_read_and_ends_no_task(name: str) -> None:
    """Satflow's form is the documented one at odd seeds, the seen one at even ones."""
    assert faults(1 + NAMES.index(name) % 2, [name], asks=LONG.get(name)) == []


@pytest.mark.parametrize("seed", range(3, 6))
def test_seed_with_drawn_scenes_is_read_and_traded_right(seed: int) -> None:
    assert faults(seed) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 130))
def test_thirty_more_seeds_with_drawn_scenes(seed: int) -> None:
    assert faults(seed) == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ODD)
def test_odd_row_before_the_best_is_refused_and_never_misread(name: str, seed: int) -> None:
    assert faults(seed, [name], ahead=True) == []


def _empty(*_: Any, **__: Any) -> Page[Any]:
    return Page((), None)


def _cheaper(read: Any) -> Any:
    def floors(*args: Any) -> Any:
        return {slug: replace(floor, floor=floor.floor - 1) for slug, floor in read(*args).items() if floor.floor}

    return floors


def _raises(error: Exception) -> Any:
    def ask(*_: Any, **__: Any) -> Any:
        raise error

    return ask


@pytest.mark.parametrize(
    ("adapter", "verb", "planted", "words"),
    [
        (Satflow, "own_bids", _empty, "satflow: own_bids"),
        (Satflow, "sales", _empty, "satflow: sales of"),
        (UnisatMarket, "own_listings", _empty, "unisat: own_listings"),
        (UnisatMarket, "list_item", _raises(AuthFailed("no")), "unisat: listing: is not at the venue"),
        (Lister, "cycle", _raises(BadCredentials("no")), "satflow: task: ended"),
        (OrdinalsWallet, "floors", _cheaper(OrdinalsWallet.floors), "ordinalswallet: floor of"),
        (UnisatMarket, "_ask", _raises(Unavailable("away")), "unisat: breaker: opened"),
    ],
)
def test_planted_mistake_of_an_adapter_is_found(adapter: type, verb: str, planted: Any, words: str) -> None:
    with patch.object(adapter, verb, planted):
        found = faults(1, [])

    assert any(each.startswith(words) for each in found), found
