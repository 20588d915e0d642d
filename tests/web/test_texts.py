"""Words, money, time and the feed's lines, without a browser."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategy.reasons import Code, FaultCode, LedgerLimit, ListingResult, PlaceResult, Reason, WorkerReason
from tests.examples import part_of
from tests.web.javascript import WEB, Modules, graph

JS = WEB / "js"
KINDS = {"do", "keep", "wait", "limit", "fault", "stop"}
CODES = [code for kind in (Reason, PlaceResult, LedgerLimit, WorkerReason, ListingResult) for code in kind]

# What a trader reads has none of these: words of programs, and shouting.
FORBIDDEN = re.compile(r"\b[a-z]+_[a-z_]+\b|failed to|\berrors?\b|exception|\bstack\b|\bnull\b|undefined|!", re.I)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`')
_NAME = re.compile(r'^\s*"([\w.-]+)":', re.M)
_USED = re.compile(r'\bt\(\s*"([\w.-]+)"')


def test_every_code_has_one_set_of_words_on_the_page(javascript: Modules) -> None:
    shown = [code.value for code in CODES if code.heading]
    assert len(shown) == len({*shown}) == len({code.value for code in CODES}) > 90, "once, whatever kinds share it"
    reasons, marks = (javascript.value("texts/reasons.js", name) for name in ("REASONS", "MARKS"))
    assert {*reasons, *marks} == {*shown} and len(marks) == 7
    assert marks["thin_book"] == [Reason.THIN_BOOK.heading, Reason.THIN_BOOK.why]
    assert reasons["kept"] == [Reason.KEPT.heading, Reason.KEPT.why, "keep"]
    assert {*javascript.value("texts/reasons.js", "FAULTS")} == {code.value for code in FaultCode}


@pytest.mark.parametrize(
    ("code", "params", "words"),
    [
        ("insufficient_funds", {"address": "bc1qone"}, " Send sats to bc1qone."),
        ("no_coins", {"address": "bc1qone", "sendSats": 50_546}, " Send at least 50,546 sats to bc1qone."),
        ("no_coins", None, "."),
    ],
)
def test_a_fault_of_money_names_the_address_to_fund(
    javascript: Modules, code: str, params: dict[str, object] | None, words: str
) -> None:
    told = {"lastErrorCode": code, "lastErrorParams": params}
    assert javascript.call("texts/reasons.js", "faultOf", told)["why"].endswith(words)


def test_a_rung_without_balance_names_the_address_to_fund(javascript: Modules) -> None:
    words = javascript.call("texts/reasons.js", "detailWords", "send at least 26,000 sats to bc1qone")
    assert words == "Send at least 26,000 sats to bc1qone."


def test_a_task_without_balance_wants_sats_at_the_address_to_fund(javascript: Modules) -> None:
    rung = {"isLive": False, "reason": "insufficient_balance", "price": 60_000, "detail": ""}
    fund = {"address": "bc1qone", "missing": 26_000}
    decision = {"rungs": [rung], "unpriced": [], "balance": 50_000, "feeReserve": 1_000, "fund": fund}
    javascript.value("texts/task.js", "")  # the screen's words
    (words,) = javascript.call("screens/task.js", "wantsOf", decision, {"me": None})
    assert words == "26,000 sats more at bc1qone, which holds 50,000 sats."


@pytest.mark.parametrize("code", [*CODES, *FaultCode], ids=lambda code: f"{type(code).__name__}.{code}")
def test_the_words_of_a_code_are_a_short_title_a_sentence_and_a_kind(code: Code) -> None:
    assert code.meaning.strip() and not code.meaning.endswith("."), code
    if not code.heading:
        return
    is_fault, is_mark = isinstance(code, FaultCode), code.kind == "mark"
    assert len(code.heading.split()) <= (6 if is_fault else 3), code
    assert 10 <= len(code.why) <= (150 if is_fault or is_mark else 90) and code.why.endswith("."), f"{len(code.why)}"
    assert code.kind in ({""} if is_fault else {*KINDS, "mark"})
    assert not FORBIDDEN.search(f"{code.heading} {code.why}")


def test_a_code_is_shown_with_its_words(javascript: Modules) -> None:
    found = javascript.call("texts/reasons.js", "reasonOf", "kept")
    assert found == {"title": "Kept", "why": "Close enough to its rung, so it stays.", "kind": "keep"}


def test_a_code_of_tomorrow_is_shown_as_words_all_the_same(javascript: Modules) -> None:
    assert javascript.call("texts/reasons.js", "reasonOf", "not_yet_known")["title"] == "not yet known"


def test_the_docs_explain_the_terms_of_the_page_in_the_same_words(javascript: Modules) -> None:
    rows = re.findall(r"^\| \*\*.*", (WEB.parent / "docs" / "glossary.md").read_text(), re.M)
    terms = javascript.value("texts/glossary.js", "TERMS")
    assert rows == [f"| **{term}** | {meaning} |" for term, meaning in terms.values()]


def test_every_term_that_a_screen_explains_is_in_the_glossary(javascript: Modules) -> None:
    drawn = "".join(file.read_text() for file in JS.rglob("*.js"))
    used = {*re.findall(r'<\$\{Term\} of="(\w+)"', drawn), *javascript.value("parts/why.js", "TERM_OF").values()}
    assert len(used) > 10
    assert used <= {*javascript.value("texts/glossary.js", "TERMS")}


def texts() -> list[Path]:
    return sorted((JS / "texts").glob("*.js"))


@pytest.mark.parametrize("file", texts(), ids=lambda file: file.name)
def test_no_text_has_the_words_of_programs(file: Path) -> None:
    text = re.sub(r"^\s*(//|\*|/\*).*", "", file.read_text(), flags=re.M)
    found = []
    for literal in _STRING.finditer(text):
        words = re.sub(r"\$\{[^}]*\}", "", literal[0][1:-1])
        is_name = text[literal.end() : literal.end() + 1] == ":"
        if not is_name and " " in words and FORBIDDEN.search(words):
            found.append(words)
    assert not found


@pytest.mark.parametrize("file", texts(), ids=lambda file: file.name)
def test_no_text_claims_what_the_page_cannot_know(file: Path) -> None:
    """Without the service nothing runs for sure, and an open bid does not stay as it is: it can be filled."""
    claims = re.compile(r"tasks go on|go on by themselves|bids stay as they are|the brake works", re.I)
    assert claims.findall(file.read_text()) == []


def names_of(file: Path) -> set[str]:
    return set(_NAME.findall(file.read_text()))


def screens() -> list[Path]:
    return [
        JS / "app.js",
        *sorted((JS / "screens").glob("*.js")),
        *(JS / "parts" / name for name in ("shell.js", "help.js")),
    ]


@pytest.mark.parametrize("file", screens(), ids=lambda file: file.name)
def test_every_text_that_a_screen_asks_for_is_loaded_with_it(file: Path) -> None:
    """A name that nobody defined throws in front of a person: the screen stays empty."""
    loaded = {*graph(JS / "app.js"), *graph(file)}
    defined = {name for each in loaded if each.parent.name == "texts" for name in names_of(each)}
    asked = {name for each in graph(file) if each.is_relative_to(JS) for name in _USED.findall(each.read_text())}

    assert asked or file.name != "shell.js"
    assert asked - defined == set()


def test_no_name_is_defined_twice() -> None:
    names = [name for file in texts() for name in _NAME.findall(file.read_text())]
    assert len(names) > 50
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_a_name_that_nobody_defined_is_refused(javascript: Modules) -> None:
    with pytest.raises(RuntimeError, match=r"no text nowhere\.at\.all"):
        javascript.call("page.js", "t", "nowhere.at.all")


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


TOGETHER_S = 10
CLOSED = {"state": "closed", "closeReason": "cancelled"}


@pytest.fixture(scope="module", autouse=True)
def known_texts(javascript: Modules) -> None:
    """Makes the texts of this module known to the others."""
    javascript.value("texts/overview.js", "none")


def order(number: int, second: int, price: int, **more: Any) -> dict[str, Any]:
    """Makes the event that a bid went live, or with a state of its own ended."""
    data = {"slug": "plain-cats", "state": "live", "closeReason": None, "price": price, "dryRun": False} | more
    return {"id": number, "event": "order", "task": 7, "at": f"2026-11-23T07:23:{second:02}Z", "text": "", "data": data}


def lines(javascript: Modules, *events: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the lines of events that came in this order, the newest first."""
    found: list[dict[str, Any]] = javascript.call("feed.js", "linesOf", list(reversed(events)))
    return found


def test_bids_that_went_live_together_are_one_line_with_the_range_of_their_prices(javascript: Modules) -> None:
    (line,) = lines(javascript, order(1, 10, 80_000), order(2, 10 + TOGETHER_S, 50_000))

    assert (line["name"], line["count"], line["prices"]) == ("placed", 2, [50_000, 80_000])
    told = line | {"low": "50,000 sats", "high": "80,000 sats"}
    words = javascript.call("page.js", "t", "feed.placed", told)
    assert words == "2 bids went live, between 50,000 sats and 80,000 sats"


def test_moves_of_one_task_are_one_line_and_trades_come_first(javascript: Modules) -> None:
    moves = [each for number in range(1, 7, 2) for each in moved(number, 10 * number, 50_000 + 1_000 * number)]
    fill = {"id": 90, "event": "fill", "task": 7, "at": "2026-11-23T07:22:00Z", "text": "", "data": {"price": 40_000}}
    found = lines(javascript, fill, *moves)

    assert [(line["name"], line.get("moves"), line["prices"]) for line in found] == [
        ("moved", 3, [51_000, 55_000]),
        ("fill", None, [40_000, 40_000]),
    ]
    assert [line["name"] for line in javascript.call("feed.js", "ranked", found, 10)] == ["fill", "moved"]
    told = found[0] | {"low": "51,000 sats", "high": "55,000 sats"}
    words = javascript.call("page.js", "t", "feed.moved", told)
    assert words == "Bids moved 3 times, between 51,000 sats and 55,000 sats"


def moved(number: int, second: int, price: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Makes the events of a bid that was placed in the stead of another."""
    return order(number, second, price), order(number + 1, second, price - 500, **CLOSED)


def test_bids_that_went_live_far_apart_or_only_on_paper_have_lines_of_their_own(javascript: Modules) -> None:
    apart = lines(javascript, order(1, 10, 80_000), order(2, 11 + TOGETHER_S, 50_000))
    on_paper = lines(javascript, order(1, 10, 80_000), order(2, 10, 50_000, dryRun=True))

    for found in (apart, on_paper):
        assert [(line["name"], line["count"], line["prices"]) for line in found] == [
            ("placed", 1, [50_000, 50_000]),
            ("placed", 1, [80_000, 80_000]),
        ]
    assert [line["isPaper"] for line in on_paper] == [True, False]


@pytest.mark.parametrize("is_placed_first", [True, False])
def test_a_bid_that_took_the_place_of_another_is_one_line(javascript: Modules, is_placed_first: bool) -> None:
    first, last = 10, 10 + TOGETHER_S
    placed = order(1 if is_placed_first else 2, first if is_placed_first else last, 61_500)
    gone = order(2 if is_placed_first else 1, last if is_placed_first else first, 60_000, **CLOSED)

    (line,) = lines(javascript, *sorted([placed, gone], key=lambda each: int(each["id"])))

    assert (line["name"], line["was"], line["prices"]) == ("moved", 60_000, [61_500, 61_500])
    told = line | {"was": "60,000 sats", "high": "61,500 sats"}
    assert javascript.call("page.js", "t", "feed.moved", told) == "A bid moved from 60,000 sats to 61,500 sats"


def test_a_bid_that_ended_long_before_another_came_did_not_move(javascript: Modules) -> None:
    found = lines(javascript, order(1, 10, 60_000, **CLOSED), order(2, 11 + TOGETHER_S, 61_500))

    assert [line["name"] for line in found] == ["placed", "gone.cancelled"]
