"""An adapter's declared abilities are its real ones: each method is one request, or NotSupported and none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest

from markets.adapter import Adapter
from markets.base import Kind, NotFound, NotSupported
from tests.markets.contract.parties import each, having
from tests.markets.contract.town import METHODS, NOTHING, Town, prepared
from tests.simulator.desk import PUPPETS


def test_every_method_of_the_contract_is_tried() -> None:
    own = {name for name, value in vars(Adapter).items() if callable(value) and not name.startswith("_")}
    assert set(METHODS) | {"capabilities", "profile"} == own


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_one_request_or_not_supported(town: Town, method: str) -> None:
    call = prepared(town, method)
    if town.has(method):
        call()
        assert len(town.gate.seen) == (0 if method in town.party.silent else 1)
        return
    with pytest.raises(NotSupported):
        call()
    assert not town.gate.seen


@having("asks")
def test_several_threads_may_ask_at_once(town: Town) -> None:
    wanted = town.adapter.asks(PUPPETS, None)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: town.adapter.asks(PUPPETS, None), range(8)))
    assert found == [wanted] * 8


def test_capabilities_tell_what_is_missing(town: Town) -> None:
    can = town.can
    assert can.name == town.adapter.name == town.party.name
    assert can.title and can.verified
    assert bool(can.kinds) == bool(can.bid_types) == town.has("place") == town.has("cancel") == town.has("own_bids")
    assert can.bids_are_psbt == town.has("draft_bid")
    assert can.needs_sign_in == town.has("sign_in") == town.has("sign_in_texts")
    assert can.listings == all(map(town.has, ("draft_listing", "list_item", "delist", "own_listings")))
    assert (can.delist_proof == "psbt") == town.has("draft_delist")
    assert not (can.cancel_needs_signature or can.delist_proof == "challenge") or town.has("challenge")
    assert can.rate_per_s > 0 and can.burst >= 1


@pytest.mark.parametrize("kind", get_args(Kind))
def test_profiles_are_of_the_kinds_of_goods_that_are_bid_on(town: Town, kind: Kind) -> None:
    if kind not in town.can.kinds:
        with pytest.raises(NotSupported):
            town.adapter.profile(kind)
        return
    profile = town.adapter.profile(kind)
    assert profile.venue == town.party.name
    assert profile.tick >= 1 and profile.min_bid >= profile.tick and profile.min_duration_s > 0


@each(["floors", "bids", "sales"])
def test_reads_of_goods_that_are_not_traded_find_nothing(town: Town, method: str) -> None:
    read = getattr(town.adapter, method)
    try:
        found = read(["A•B"], "runes") if method == "floors" else read("A•B", "runes", None)
    except (NotSupported, NotFound):
        return
    assert found in ({}, NOTHING)
