"""Money and time in web/js/format.js, held against Python's integers and Decimal."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import part_of
from tests.web.javascript import Modules

MOST = 2_100_000_000_000_000  # all sats that there will ever be
SATS = st.integers(0, MOST) | st.integers(0, 200_000) | st.sampled_from([0, 1, 999, 1000, 10**8 - 1, 10**8, MOST])
EXAMPLES = settings(max_examples=part_of(400), deadline=None)


@EXAMPLES
@given(amount=SATS | st.integers(-MOST, 0))
def test_amounts_are_shown_to_the_sat(javascript: Modules, amount: int) -> None:
    sats = javascript.call("format.js", "sats", amount)
    btc = javascript.call("format.js", "btc", amount)

    assert sats == f"{amount:,}".replace("-", "−")
    assert btc == f"{Decimal(amount).scaleb(-8):,.8f}".replace("-", "−")


@EXAMPLES
@given(price=st.decimals("0.00000001", 10**9, places=8, allow_nan=False))
def test_a_price_of_a_token_is_within_half_of_its_last_digit(javascript: Modules, price: Decimal) -> None:
    shown = javascript.call("format.js", "perToken", str(price))

    read = Decimal(shown.replace(",", ""))
    digit = Decimal("0.0001") if price >= 1 else Decimal(1).scaleb(price.adjusted() - 3)
    assert abs(read - price) <= digit * Decimal("0.500001")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (89, "89 s"),
        (90, "2 min"),
        (3600, "60 min"),
        (5400, "2 h"),
        (86_400, "24 h"),
        (200_000, "2 d"),
        (-5, "0 s"),
    ],
)
def test_a_span_is_short(javascript: Modules, seconds: float, shown: str) -> None:
    assert javascript.call("format.js", "span", seconds) == shown


@pytest.mark.parametrize("name", ["sats", "btc", "money", "amount", "perToken", "percent", "count", "clock"])
def test_what_is_not_known_is_a_dash_and_not_a_number(javascript: Modules, name: str) -> None:
    assert javascript.call("format.js", name, None) == javascript.value("format.js", "NONE")


def test_the_unit_reaches_amounts_everywhere(javascript: Modules) -> None:
    javascript.set("format.js", "unit", "btc")
    assert javascript.call("format.js", "amount", 2_520_000) == "0.02520000 BTC"
    javascript.set("format.js", "unit", "sats")
    assert javascript.call("format.js", "amount", 2_520_000) == "2,520,000 sats"


@pytest.mark.parametrize(("of", "words"), [(0.25, "0.25"), (1_000, "1,000"), ("1234.5", "1,234.5"), (None, "–")])
def test_parts_of_a_token_are_shown(javascript: Modules, of: object, words: str) -> None:
    assert javascript.call("format.js", "quantity", of) == words


@pytest.mark.parametrize(
    ("month", "day", "tightest"),
    [(100_000, None, 100_000), (60_000, 1_000, 30_000), (60_000, 2_001, 60_000), (None, 10, 300), (None, None, None)],
)
def test_the_tightest_quota_counts_for_a_month(
    javascript: Modules, month: int | None, day: int | None, tightest: int | None
) -> None:
    limits = {"callsPerMonth": month, "callsPerDay": day}
    assert javascript.call("format.js", "monthOf", limits) == tightest
