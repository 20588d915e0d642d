"""Every code and every name has words, and the words are those of a trader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strategy.reasons import Code, FaultCode, LedgerLimit, ListingResult, PlaceResult, Reason, WorkerReason
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
    assert words == "26,000 sats more at bc1qone, which has 50,000 sats."


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
    assert found == {"title": "Kept", "why": "Close enough to where it should be.", "kind": "keep"}


def test_a_code_of_tomorrow_is_shown_as_words_all_the_same(javascript: Modules) -> None:
    assert javascript.call("texts/reasons.js", "reasonOf", "not_yet_known")["title"] == "not yet known"


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
