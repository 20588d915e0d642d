"""The grammar of numbers in web/js/amounts.js: four locales, held against Python's integers and Decimal."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import part_of
from tests.web.javascript import Modules
from tests.web.test_texts import MOST, SATS

EXAMPLES = settings(max_examples=part_of(400), deadline=None)
US, DE, CH, IN = LOCALES = ("en-US", "de-DE", "fr-CH", "en-IN")
POINTS, COMMAS, GERMAN = (US, IN), (DE, CH), (DE,)
BTC = 10**8


def read(javascript: Modules, text: str, locale: str, kind: str = "SATS", *made: Any) -> Any:
    """Returns the number that a field reads, None of an empty text, else the readings or the name of the fault."""
    asked = {"of": "amounts.js", "exported": kind, **({"made": made} if made else {})}
    found = javascript.call("amounts.js", "read", text, asked, locale)
    if "fault" not in found:
        return found["value"]
    return found["values"].get("readings") or found["fault"]


def sats_of(readings: Any) -> list[int]:
    """Returns the sats of the readings that a fault names."""
    assert isinstance(readings, list), readings
    return [int(re.sub(r"\D", "", each.split(" sats")[0])) for each in readings]


# Text: what each locale reads. A list names the readings of a fault; None means a fault without a reading.
TABLE: list[tuple[str, dict[tuple[str, ...], int | list[int] | None]]] = [
    ("0,05 btc", {POINTS: [5_000_000, 5 * BTC], COMMAS: 5_000_000}),
    ("0.05 btc", {LOCALES: 5_000_000}),
    ("0,012btc", {POINTS: [1_200_000, 12 * BTC], COMMAS: 1_200_000}),
    ("1,5 btc", {POINTS: [150_000_000, 15 * BTC], COMMAS: 150_000_000}),
    ("1,125 btc", {POINTS: [112_500_000, 1125 * BTC], COMMAS: 112_500_000}),
    ("1.125 btc", {POINTS: 112_500_000, GERMAN: [112_500_000, 1125 * BTC], (CH,): 112_500_000}),
    ("1,234.5 btc", {LOCALES: 123_450_000_000}),
    ("1.234,5 btc", {LOCALES: 123_450_000_000}),
    ("0,05", {LOCALES: [5_000_000, 5]}),
    ("0.05", {LOCALES: [5_000_000, 5]}),
    ("1,50", {LOCALES: [150_000_000, 150]}),
    ("1.5 sats", {LOCALES: [1, 15]}),
    ("2520000,5", {LOCALES: [2_520_000, 25_200_005]}),
    ("20000,00", {LOCALES: [20_000, 2_000_000]}),
    ("20.000,00", {LOCALES: [20_000, 2_000_000]}),
    ("1,500", {POINTS: 1_500, COMMAS: [150_000_000, 1_500]}),
    ("1.500", {POINTS: [150_000_000, 1_500], GERMAN: 1_500, (CH,): [150_000_000, 1_500]}),
    ("2,520,000", {LOCALES: 2_520_000}),
    ("2.520.000", {LOCALES: 2_520_000}),
    ("2\u202f520\u202f000", {LOCALES: 2_520_000}),
    ("2\u00a0520\u00a0000 sats", {LOCALES: 2_520_000}),
    ("2'520'000", {LOCALES: 2_520_000}),
    ("2’520’000", {LOCALES: 2_520_000}),
    ("25,20,000", {(US, DE, CH): None, (IN,): 2_520_000}),
    ("1,00,000", {(US, DE, CH): None, (IN,): 100_000}),
    ("500k", {LOCALES: 500_000}),
    ("500 k sats", {LOCALES: 500_000}),
    ("1.5m", {LOCALES: 1_500_000}),
    ("1,5M", {POINTS: [1_500_000, 15_000_000], COMMAS: 1_500_000}),
    ("1,500k", {POINTS: [1_500, 1_500_000], COMMAS: 1_500}),
    ("1.2345k", {LOCALES: [1_234, 12_345_000]}),
    ("₿0.05", {LOCALES: 5_000_000}),
    ("0.05₿", {LOCALES: 5_000_000}),
    ("5 BTC", {LOCALES: 5 * BTC}),
    ("21000000 btc", {LOCALES: MOST}),
    ("21000001 btc", {LOCALES: None}),
    ("0.123456789 btc", {LOCALES: [12_345_678]}),
    ("2,520,0001", {LOCALES: None}),
    ("12 34", {LOCALES: None}),
    ("0,500.1 btc", {LOCALES: None}),
    ("12,34.5 btc", {LOCALES: None}),
    ("1,2,345.6 btc", {LOCALES: None}),
    ("5.", {LOCALES: None}),
    ("1m btc", {LOCALES: None}),
    ("0.05 eth", {LOCALES: None}),
    *[(text, {LOCALES: None}) for text in ("1e8", "-1", "+1", "0x10", "١٢", "btc", "k", ".", "1/2", "half of it")],
]
ROWS = [(text, locale, wanted) for text, row in TABLE for locales, wanted in row.items() for locale in locales]


@pytest.mark.parametrize(("text", "locale", "wanted"), ROWS)
def test_each_locale_reads_an_amount_or_names_its_readings(
    javascript: Modules, text: str, locale: str, wanted: int | list[int] | None
) -> None:
    found = read(javascript, text, locale)

    if wanted is None:
        assert found == "field.no_sats"
    elif isinstance(wanted, list):
        assert sats_of(found) == wanted
    else:
        assert found == wanted


@pytest.mark.parametrize("locale", LOCALES)
def test_an_empty_text_is_no_fault(javascript: Modules, locale: str) -> None:
    assert read(javascript, "  ", locale) is None


@EXAMPLES
@given(amount=SATS, locale=st.sampled_from(LOCALES))
def test_what_a_field_or_the_page_shows_can_be_typed_again(javascript: Modules, amount: int, locale: str) -> None:
    shown = [
        javascript.call("amounts.js", "writeSats", amount, locale),
        javascript.call("amounts.js", "writeBtc", amount, locale) + " BTC",
        javascript.call("format.js", "btc", amount) + " BTC",
        str(amount),
    ]
    for text in shown:
        assert read(javascript, text, locale) == amount, text
    # A comma between thousands is a decimal one elsewhere, so it is refused there and never taken for another amount.
    pasted = read(javascript, f"{amount:,} sats", locale)
    assert pasted == amount or (locale in COMMAS and isinstance(pasted, list) and amount in sats_of(pasted))


@EXAMPLES
@given(
    whole=st.integers(0, 30_000_000),
    part=st.text("0123456789", max_size=10),
    unit=st.sampled_from([("btc", 8), ("BTC", 8), (" btc", 8), (" ₿", 8), ("k", 3), ("m", 6), ("", 0), (" sats", 0)]),
    locale=st.sampled_from(LOCALES),
)
def test_what_is_typed_is_exact_or_refused(
    javascript: Modules, whole: int, part: str, unit: tuple[str, int], locale: str
) -> None:
    written, places = unit
    text = f"{whole}.{part}" if part else str(whole)
    found = read(javascript, text + written, locale)

    exact = Decimal(text).scaleb(places)
    has_two = locale == DE and len(part) == 3 and 1 <= whole <= 999
    if has_two and not places:
        assert found == whole * 1000 + int(part)
    elif has_two or len(part) > places or exact > MOST:
        assert not isinstance(found, int)
    else:
        assert found == int(exact)


@EXAMPLES
@given(
    text=st.text("0123456789.,_ '\u00a0\u202f-+eEbtcsakmBTC₿x", max_size=14) | st.text(max_size=14),
    locale=st.sampled_from(LOCALES),
)
def test_no_text_is_guessed_at(javascript: Modules, text: str, locale: str) -> None:
    found = read(javascript, text, locale)

    if isinstance(found, int):
        digits = re.sub(r"[^0-9]", "", text)
        assert 0 <= found <= MOST
        assert digits.strip("0") == str(found).strip("0")


@EXAMPLES
@given(
    whole=st.integers(0, 999_999),
    part=st.text("0123456789", min_size=1, max_size=8),
    unit=st.sampled_from(["btc", "₿"]),
    locale=st.sampled_from(LOCALES),
)
def test_a_decimal_comma_is_read_where_the_locale_has_one_and_refused_elsewhere(
    javascript: Modules, whole: int, part: str, unit: str, locale: str
) -> None:
    found = read(javascript, f"{whole},{part} {unit}", locale)

    assert found == int(Decimal(f"{whole}.{part}") * BTC) if locale in COMMAS else isinstance(found, list)


@pytest.mark.parametrize(
    ("text", "points", "commas", "german"),
    [
        ("92,5", ["92.5%", "925%"], 0.925, 0.925),
        ("92.5", 0.925, 0.925, 0.925),
        ("92,5 %", ["92.5%", "925%"], 0.925, 0.925),
        ("1.050", 0.0105, 0.0105, ["1,05%", "1050%"]),
        ("1,050", ["1.05%", "1050%"], 0.0105, 0.0105),
        ("7", 0.07, 0.07, 0.07),
        ("57.07", 0.5707, 0.5707, 0.5707),
        ("0.1234567890123456", "field.no_number", "field.no_number", "field.no_number"),
        ("5 btc", "field.no_number", "field.no_number", "field.no_number"),
    ],
)
def test_percents_are_read_by_the_same_grammar(
    javascript: Modules, text: str, points: Any, commas: Any, german: Any
) -> None:
    for locale, wanted in ((US, points), (IN, points), (CH, commas), (DE, german)):
        assert read(javascript, text, locale, "decimalOf", 2, "%") == wanted, locale


@EXAMPLES
@given(price=st.decimals(0, 10**7, places=8, allow_nan=False), locale=st.sampled_from(LOCALES))
def test_a_decimal_in_a_field_is_read_back_exactly(javascript: Modules, price: Decimal, locale: str) -> None:
    number = float(price)
    text = javascript.call("amounts.js", "writeDecimal", number, 0, locale)
    found = read(javascript, text, locale, "decimalOf", 0)

    assert "e" not in text
    assert found == number


@pytest.mark.parametrize("locale", LOCALES)
def test_a_count_has_no_parts_and_bounds(javascript: Modules, locale: str) -> None:
    def count(text: str) -> Any:
        return read(javascript, text, locale, "countOf", 5, 3600)

    assert count("30") == 30
    assert count("1,5") == count("1.5") == ["1", "15"]
    assert count("4") == count("3601") == "field.between"
    assert count("x") == "field.no_count"


@pytest.mark.parametrize(("fraction", "shown"), [(0.29, "29"), (0.925, "92.5"), (0.07, "7"), (1e-9, "0.0000001")])
def test_a_fraction_is_written_by_its_digits(javascript: Modules, fraction: float, shown: str) -> None:
    assert javascript.call("amounts.js", "writeDecimal", fraction, 2, US) == shown
    assert javascript.call("amounts.js", "writeDecimal", fraction, 2, DE) == shown.replace(".", ",")
