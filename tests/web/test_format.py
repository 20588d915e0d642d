"""Money and time in web/js/format.js, held against Python's integers and Decimal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import part_of
from tests.web.javascript import Modules, modules

MOST = 2_100_000_000_000_000  # all sats that there will ever be
SATS = st.integers(0, MOST) | st.integers(0, 200_000) | st.sampled_from([0, 1, 999, 1000, 10**8 - 1, 10**8, MOST])
EXAMPLES = settings(max_examples=part_of(400), deadline=None)


@pytest.fixture(scope="module")
def javascript() -> Iterator[Modules]:
    with modules() as made:
        yield made


@EXAMPLES
@given(amount=SATS | st.integers(-MOST, 0))
def test_amounts_are_shown_to_the_sat(javascript: Modules, amount: int) -> None:
    sats = javascript.call("format.js", "sats", amount)
    btc = javascript.call("format.js", "btc", amount)

    assert sats == f"{amount:,}".replace("-", "−")
    assert btc == f"{Decimal(amount).scaleb(-8):,.8f}".replace("-", "−")


@EXAMPLES
@given(amount=SATS)
def test_what_is_shown_can_be_typed_again(javascript: Modules, amount: int) -> None:
    for name, unit in (("sats", ""), ("sats", " sats"), ("btc", " BTC")):
        typed = javascript.call("format.js", name, amount) + unit
        assert javascript.call("format.js", "parseSats", typed) == amount, typed


@EXAMPLES
@given(
    whole=st.integers(0, 30_000_000),
    part=st.text("0123456789", max_size=10),
    unit=st.sampled_from(["btc", "BTC", " btc", " ₿", "", " sats", "sat"]),
)
def test_what_is_typed_is_exact_or_nothing(javascript: Modules, whole: int, part: str, unit: str) -> None:
    text = f"{whole}.{part}" if part else str(whole)
    found = javascript.call("format.js", "parseSats", text + unit)

    is_btc = unit.strip().lower() in ("btc", "₿")
    exact = Decimal(text) * (10**8 if is_btc else 1)
    if part and (len(part) > 8 or not is_btc):
        assert found is None
    else:
        assert found == (int(exact) if exact <= MOST else None)


@EXAMPLES
@given(text=st.text("0123456789.,_ \u00a0-+eEbtcsaBTC₿x", max_size=14) | st.text(max_size=14))
def test_no_text_is_guessed_at(javascript: Modules, text: str) -> None:
    found = javascript.call("format.js", "parseSats", text)

    assert found is None or (type(found) is int and 0 <= found <= MOST)
    if found is not None:
        digits = re.sub(r"[^0-9]", "", text)
        assert digits.strip("0") == str(found).strip("0")


@EXAMPLES
@given(
    whole=st.integers(0, 999_999),
    part=st.text("0123456789", min_size=1, max_size=8),
    unit=st.sampled_from(["btc", "₿"]),
)
def test_a_comma_that_may_be_a_point_is_refused(javascript: Modules, whole: int, part: str, unit: str) -> None:
    """Half of the world writes a twentieth "0,05": read as groups it would be a hundred times as much."""
    assert javascript.call("format.js", "parseSats", f"{whole},{part} {unit}") is None


@pytest.mark.parametrize(
    "text", ["0,05", "12,34.5 btc", "0,500.1 btc", "1,2,345.6 btc", ",5 btc", "1e8", "-1", "0x10", "١٢"]
)
def test_what_is_no_amount_is_refused(javascript: Modules, text: str) -> None:
    assert javascript.call("format.js", "parseSats", text) is None


def test_an_amount_may_be_changed_in_its_middle(javascript: Modules) -> None:
    """The groups of what stands in a field do not fit any more while somebody types."""
    assert javascript.call("format.js", "parseSats", "2,520,0001") == 25_200_001


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


def test_bounds_of_a_runes_floor_are_prices_of_a_token(javascript: Modules) -> None:
    def bounds(kind: str, *ends: float) -> str:
        config = {"type": kind}
        return str(javascript.call("screens/edit/words.js", "valueWords", "onlyWhileFloorBetween", ends, config))

    assert bounds("rune", 0.35, 0.95) == "0.35 – 0.95"
    assert bounds("ordinals", 35_000, 95_000) == "35,000 – 95,000"
