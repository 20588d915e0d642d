"""Gain and worth over time: the geometry without a browser, and the chart on the history and the overview."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.installation import Installation, until
from tests.web.javascript import Modules
from tests.web.visitor import Person, Stay, Visitor, staying

HOUR = 3_600
TO = 1_795_418_590
FROM = TO - 30 * 24 * HOUR
GAP = 9_000


def series(*rows: tuple[int, int, int | None, int | None, int | None]) -> dict[str, list[int | None]]:
    """Columns of (hours before the end, realized, unrealized, exposure, unknown)."""
    columns = list(zip(*((TO - hours * HOUR, *rest) for hours, *rest in rows), strict=True))
    names = ("time", "realizedSats", "unrealizedSats", "exposureSats", "unknownItems")
    return {name: list(column) for name, column in zip(names, columns or [()] * 5, strict=True)}


def rows_of(javascript: Modules, *rows: Any) -> list[dict[str, Any]]:
    return list(javascript.call("gain_shape.js", "rowsOf", series(*rows), GAP))


def shape(javascript: Modules, rows: list[dict[str, Any]], *, is_small: bool = False) -> dict[str, Any]:
    data = {"rows": rows, "from": FROM, "to": TO, "gap": GAP}
    return dict(javascript.call("gain_shape.js", "gainShape", data, 760, 300, is_small))


def test_the_gain_counts_from_the_first_moment_and_a_sample_holds_until_the_next(javascript: Modules) -> None:
    found = rows_of(javascript, (9, 500, None, None, None), (8, 500, 70, 9, 1), (7, 800, None, None, None))
    assert [row["gained"] for row in found] == [0, 0, 300]
    assert [(row["unrealized"], row["exposure"], row["unknown"]) for row in found] == [
        (None,) * 3,
        (70, 9, 1),
        (70, 9, 1),
    ]
    late = rows_of(javascript, (9, 0, 70, 9, 0), (6, 5, None, None, None))[-1]
    assert (late["gained"], late["unrealized"], late["exposure"]) == (5, None, None), "nothing is known so long after"


def test_lines_break_where_nothing_ran_and_where_no_floor_was_known(javascript: Modules) -> None:
    rows = rows_of(
        javascript, *[(hours, 0, None if hours == 18 else 10, 5, 0) for hours in (20, 19, 18, 17, 16, 9, 8, 0)]
    )
    found = shape(javascript, rows)
    assert found["unrealized"].count("M") == 4
    assert found["exposure"].count("M") == 3
    assert found["area"].count("Z") == 3
    assert found["gained"].count("M") == 1, "the gain is known at any time"
    assert found["exposure"].endswith("h0"), "one sample alone is a dot"


def test_a_loss_is_below_zero_and_zero_is_in_the_picture(javascript: Modules) -> None:
    found = shape(javascript, rows_of(javascript, (3, 0, 0, 5, 0), (2, -40, 20, 5, 0), (0, -40, -10, 5, 0)))
    assert found["least"] < -40 and found["most"] > 20
    heights = [float(each) for each in re.findall(r"V([\d.]+)", found["gained"])]
    assert heights[0] == heights[-1] > found["box"]["top"], "lower is further down"
    for is_small in (False, True):
        flat = shape(javascript, rows_of(javascript, (3, 0, 0, 0, 0), (0, 0, 0, 0, 0)), is_small=is_small)
        assert (flat["least"], flat["most"]) == (-1, 1)


def test_an_empty_series_draws_nothing(javascript: Modules) -> None:
    found = shape(javascript, rows_of(javascript))
    assert [found[name] for name in ("gained", "unrealized", "exposure", "area")] == [""] * 4


@pytest.mark.parametrize(
    ("least", "most", "ticks"),
    [
        (0, 1_000, [0, 500, 1_000]),
        (-1_500_000, 2_600_000, [-1_000_000, 0, 1_000_000, 2_000_000]),
        (0, 1, [0, 1]),
        (-3, 0, [-3, -2, -1, 0]),
    ],
)
def test_the_axis_has_few_round_values_and_zero(javascript: Modules, least: int, most: int, ticks: list[int]) -> None:
    assert javascript.call("gain_shape.js", "ticksOf", least, most, 3) == ticks


@pytest.mark.parametrize("hours", [1, 24, 24 * 7, 24 * 30, 24 * 365])
def test_times_stand_at_round_times_of_the_reader_and_not_too_close(javascript: Modules, hours: int) -> None:
    zone = 19_800
    found = javascript.call("gain_shape.js", "timesOf", TO - hours * HOUR, TO, 6, zone)
    assert 2 <= len(found) <= 7
    assert all((time + zone) % (600 if hours == 1 else HOUR) == 0 for time in found)
    assert TO - hours * HOUR <= found[0] and found[-1] <= TO


LYNXES = "lynxes-of-gain"


@pytest.fixture(scope="module")
def trader(browser: Browser, service: Installation) -> Iterator[Person]:
    """A trader who has bought two items, whose floor is known."""
    person = Person(service).sign_in()
    service.put_collection(LYNXES, [1_000_000, 1_100_000])
    task = person.task(slug=LYNXES, bidCount=2, hardcapSats=900_000, loopSeconds=5, cancelOnStop=True)
    person.start(task)
    until(lambda: len(service.live_prices(LYNXES)) == 2, "the bids")
    for count in (1, 2):
        service.sim("POST", "/sim/sell", {"slug": LYNXES, "networkFee": 600})
        until(lambda: len(person.ok("GET", "/api/fills")["fills"]) == count, "the fill")  # noqa: B023
    yield person


@pytest.fixture(scope="module")
def stay(browser: Browser, service: Installation, trader: Person) -> Iterator[Stay]:
    with staying(browser, service, lambda visitor: visitor.give_token(trader)) as made:
        yield made


@pytest.fixture
def visitor(stay: Stay) -> Visitor:
    """The browser of `trader`, which these tests share."""
    return stay.visitor()


def chart(page: Page) -> Any:
    return page.get_by_role("slider", name="Gain, unrealised gain and open bids over time.")


@pytest.mark.thorough
def test_the_history_shows_it_by_the_servers_figures_and_as_numbers(visitor: Visitor, trader: Person) -> None:
    page = visitor.open("#/history")
    panel = page.get_by_role("region", name="Gain and worth")
    fills = trader.ok("GET", "/api/fills")["fills"]
    unrealized = sum(1_000_000 - fill["price"] - (fill["networkFee"] or 0) for fill in fills)
    expect(panel).to_contain_text(f"+{unrealized:,}")
    expect(chart(page)).to_have_attribute("aria-valuetext", re.compile("^now: gained 0 sats"))

    panel.get_by_role("button", name="As numbers").click()
    row = page.get_by_role("region", name="Gain and worth as numbers").locator("tbody tr").first
    expect(row).to_contain_text(f"{unrealized:,}")
    panel.get_by_role("button", name="As a picture").click()
    panel.get_by_role("button", name="Year").click()
    expect(page).to_have_url(re.compile("gain=1y"))
    expect(chart(page)).to_be_visible()


@pytest.mark.thorough
def test_keys_and_a_pointer_read_an_earlier_moment(visitor: Visitor) -> None:
    page = visitor.open("#/history?gain=1d")
    slider = chart(page)
    slider.focus()
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuenow", "0")
    expect(slider).not_to_have_attribute("aria-valuetext", re.compile("^now"))
    page.keyboard.press("Escape")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("^now"))
    slider.hover(position={"x": 120, "y": 60})
    expect(slider).to_have_attribute("aria-valuenow", "0")


@pytest.mark.thorough
def test_the_overview_has_it_in_one_line(visitor: Visitor, trader: Person) -> None:
    page = visitor.open("#/")
    strip = page.get_by_role("region", name="Gain and worth")
    expect(strip).to_contain_text("Gained, 30 days")
    strip.get_by_role("link").click()
    expect(page).to_have_url(re.compile("#/history"))


@pytest.mark.thorough
def test_a_user_without_a_trade_reads_plain_words(lodger: Visitor, service: Installation) -> None:
    lodger.give_token(Person(service).sign_in())
    page = lodger.open("#/history")
    expect(page.get_by_text("No gain to show yet.")).to_be_visible()
