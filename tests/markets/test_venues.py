"""Facts of venues by name: what they can, and the calls that a bid costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.settings import DIALECTS, VENUES, Settings, dialect_of
from gateway.app import market_adapters
from markets import client, venues, verbs
from markets.base import NotSupported
from markets.venues import Capabilities, call_costs
from tests.shapes import replace

REAL = Settings(
    data_dir=Path("nowhere"),
    market="ordnet",
    satflow_url="https://satflow.example/v1",
    unisat_url="https://unisat.example",
    ordnet_url="https://ord.example/api/v1",
    ordinalswallet_url="https://wallet.example",
)
PLAY = Settings(data_dir=Path("nowhere"))


def test_names() -> None:
    assert REAL.venues == ("ordnet", "satflow", "unisat", "ordinalswallet")  # the default one first
    assert PLAY.venues == ("simulator", "simulator-ordnet", "simulator-unisat", "simulator-ordinalswallet")
    assert set(VENUES) == {*REAL.venues, *PLAY.venues}
    assert [dialect_of(name) for name in PLAY.venues] == list(DIALECTS)
    assert dialect_of("mempool") is None and not venues.is_known("mempool")


def test_what_keeps_a_venue_from_being_traded_at() -> None:
    some = Settings(data_dir=Path("nowhere"), market="satflow", satflow_url="https://satflow.example/v1")
    assert some.why_no_venue("satflow") is None
    assert some.why_no_venue("ordnet") == "not set up here: BIDKEEPER_ORDNET_URL is not set"
    for settings, name in ((some, "simulator-ordnet"), (PLAY, "ordnet"), (some, "magiceden"), (PLAY, "")):
        assert f"there is no venue {name!r} here" in (settings.why_no_venue(name) or "")


@pytest.mark.parametrize("settings", [REAL, PLAY], ids=["real", "play"])
def test_every_adapter_is_what_is_known_of_its_name(settings: Settings) -> None:
    found = market_adapters(settings)
    assert tuple(found) == settings.venues
    for name, adapter in found.items():
        can = adapter.capabilities()
        assert adapter.name == can.name == name
        assert can == venues.capabilities(name)
        for kind in ("ordinals", "runes"):
            if kind in can.kinds:
                assert adapter.profile(kind) == venues.profile(name, kind)
                assert adapter.profile(kind).venue == name
            else:
                with pytest.raises(NotSupported, match="takes no bids on"):
                    adapter.profile(kind)


def test_play_money_has_no_quota_and_the_documented_lives() -> None:
    assert (REAL.monthly_calls("unisat"), REAL.monthly_calls("ordnet")) == (60_000, 0)
    assert PLAY.key_calls("unisat") == (0, 0)
    assert [REAL.key_calls(venue) for venue in ("unisat", "satflow", "ordnet")] == [
        (60_000, 2_000),
        (100_000, 0),
        (0, 0),
    ]


@pytest.mark.parametrize(
    ("given", "calls"),
    [
        ({"unisat_daily_calls": 0}, (60_000, 0)),
        ({"unisat_daily_calls": 50}, (60_000, 50)),
        ({"unisat_monthly_calls": 30_000}, (30_000, 2_000)),
        ({"unisat_monthly_calls": 600_000}, (600_000, 0)),  # another plan
        ({"unisat_monthly_calls": 0}, (0, 0)),
        ({"unisat_monthly_calls": 0, "unisat_daily_calls": 2_000}, (0, 2_000)),
    ],
)
def test_the_usual_day_is_of_the_usual_plan(given: dict[str, int], calls: tuple[int, int]) -> None:
    assert replace(REAL, **given).key_calls("unisat") == calls
    real, play = venues.capabilities("ordnet"), venues.capabilities("simulator-ordnet")
    for venue in (real, play):
        assert [venue.life_hours(least) for least in (1, 6, 7, 25, 2160, 2161)] == [6, 6, 12, 168, 2160, None]
        assert venues.profile(venue.name, "ordinals").min_duration_s == 21_600


def test_no_venue_of_this_name() -> None:
    for ask in (venues.capabilities, lambda name: venues.facts(name, is_default=False)):
        with pytest.raises(NotSupported, match="there is no venue"):
            ask("magiceden")


@pytest.mark.parametrize("name", VENUES)
def test_what_is_known_crosses_the_socket(name: str) -> None:
    known = venues.facts(name, is_default=True)
    assert client.read_answer(verbs.text({"ok": [known]}).encode(), verbs.Venues).ok == (known,)
    assert all(isinstance(getattr(known.capabilities, each), tuple) for each in ("kinds", "bid_types", "lives_hours"))
    assert isinstance(known.capabilities, Capabilities)


MINUTE, HOUR = 60, 3600


def test_satflow_takes_one_call_for_a_place_and_two_for_all_cancels() -> None:
    costs = call_costs("satflow")
    assert (costs.round(1), costs.round(5), costs.round(100)) == (3, 7, 102)
    assert not costs.own_bids_by_slug
    assert [costs.life_s(minutes * MINUTE) for minutes in (15, 16, 90)] == [15 * MINUTE, 16 * MINUTE, 90 * MINUTE]


def test_ordnet_drafts_each_place_and_ends_each_bid_alone() -> None:
    costs = call_costs("ordnet")
    assert (costs.round(1), costs.round(5)) == (3, 15)
    assert costs.own_bids_by_slug


@pytest.mark.parametrize("venue", ["ordnet", "simulator-ordnet"])
def test_lives_are_what_the_venue_has(venue: str) -> None:
    """Six hours at the least; a life that is longer than any stays as it is and is refused there."""
    wanted = [16 * MINUTE, 6 * HOUR, 6 * HOUR + 1, 24 * HOUR + 1, 2_161 * HOUR]
    assert [call_costs(venue).life_s(each) // HOUR for each in wanted] == [6, 6, 12, 168, 2_161]


def test_a_venue_without_bids_has_costs_all_the_same() -> None:
    assert call_costs("unisat").round(0) == 0


def test_no_such_venue() -> None:
    with pytest.raises(NotSupported):
        call_costs("magiceden")
