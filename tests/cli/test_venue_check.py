"""`bidkeeper venue check`: planted oddities are named, good files are clear, other files are refused in words."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.main import main
from cli.probe_check import Replay
from cli.probe_questions import MOST_BYTES
from tests.cli.probe_files import GOOD, address, item
from tests.examples import part_of

Change = Callable[[dict[str, Any]], None]
Check = Callable[[Any], tuple[int, str, str]]


@pytest.fixture
def check(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Check:
    """Checks a file of this content; returns the exit code and both outputs. A connection is a fault of the test."""

    def connects(*_: Any) -> Any:
        raise AssertionError("venue check connects")

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, connects)
    monkeypatch.setattr(socket, "getaddrinfo", connects)

    def run(content: Any) -> tuple[int, str, str]:
        file = tmp_path / "probe.json"
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return main(["venue", "check", str(file)]), *capsys.readouterr()

    return run


class Plant(NamedTuple):
    """An oddity: where it is planted, how, and what a line of the output says of it; * is any text."""

    venue: str
    question: str
    change: Change
    said: str

    def said_in(self, line: str) -> bool:
        """Tells whether a line names the question and says it."""
        return self.question in line and all(part in line for part in self.said.split(" * "))


def rows_of(answer: Any) -> list[Any]:
    """Returns the longest list of an answer."""
    if isinstance(answer, list):
        return answer
    found = [rows_of(part) for part in answer.values() if isinstance(part, dict | list)]
    return max(found, key=len, default=[])


def third(**fields: Any) -> Change:
    """Changes fields of the third row; ... removes one."""

    def change(made: dict[str, Any]) -> None:
        row = rows_of(made["answer"])[2]
        for name, value in fields.items():
            *above, name = name.split("__")
            target = row
            for each in above:
                target = target[each]
            if value is ...:
                del target[name]
            else:
                target[name] = value

    return change


def row(value: Any) -> Change:
    """Puts another value in place of the third row."""

    def change(made: dict[str, Any]) -> None:
        rows_of(made["answer"])[2] = value

    return change


def data(**fields: Any) -> Change:
    """Changes fields of an answer's `data`, or of the answer itself."""

    def change(made: dict[str, Any]) -> None:
        (made["answer"].get("data") or made["answer"]).update(fields)

    return change


def answer(status: int, body: Any) -> Change:
    """Puts another answer in its place; a text is an answer that is not JSON."""

    def change(made: dict[str, Any]) -> None:
        del made["answer"]
        made.update({"status": status, "text" if isinstance(body, str) else "answer": body})

    return change


ROW = "listings, row 3: "
HTML = "<html><body>Just a moment...</body></html>"
PLANTS = {
    "null-row": Plant("satflow", "listings", row(None), ROW + "listing is missing or null"),
    "missing-price": Plant("satflow", "listings", third(price=...), ROW + "listing price is missing"),
    "price-null": Plant("ordnet", "listings", third(priceSats=None), ROW + "price of a listing is missing"),
    "letters": Plant("satflow", "listings", third(price="5e5"), ROW + "listing price: '5e5' is not a whole number"),
    "negative": Plant("satflow", "listings", third(price=-5), ROW + "listing price: -5 is not"),
    "boolean": Plant("satflow", "listings", third(price=True), ROW + "listing price: True is not"),
    "fraction-of-a-sat": Plant("unisat", "listings", third(price=500_000.5), ROW + "listing price: "),
    "2-to-the-53": Plant("satflow", "listings", third(price=2**53 + 1), ROW + "listing price: 9007199254740993 "),
    "huge-number": Plant("ordinalswallet", "listings", third(satoshi_price=10**30), ROW + "price: "),
    "nan": Plant("satflow", "listings", answer(200, '{"data": {"items": [{"price": NaN}]}}'), "NaN is not a number"),
    "id-missing": Plant("satflow", "listings", third(_id=..., inscriptionId=...), ROW + "listing id is missing"),
    "id-a-number": Plant("ordinalswallet", "listings", third(id=17), ROW + "listing id: 17 is not an id"),
    "epoch-zero": Plant(
        "satflow", "listings", third(cancelledAt="1970-01-01T00:00:00.000Z"), "cancelledAt is a time of 1970"
    ),
    "sale-of-1970": Plant("ordnet", "sales", third(soldAt="1970-01-01T00:00:00.000Z"), "sales, row 3: time of a sale"),
    "foreign-collection": Plant("satflow", "listings", third(collectionSlug="cats"), ROW),
    "bundle": Plant("ordnet", "listings", third(collection={"slug": None}), ROW),
    "another-collection": Plant("unisat", "sales", third(collectionId="cats"), "sales, row 3: "),
    "seller-a-number": Plant("satflow", "listings", third(sellerOrdAddress=17), ROW + "sellerOrdAddress"),
    "seller-an-object": Plant("unisat", "listings", third(address={"a": 1}), ROW + "seller: "),
    "id-of-no-inscription": Plant(
        "unisat",
        "listings",
        third(inscriptionId="ab" * 32),
        ROW + "inscriptionId is a text, in the other rows an inscr",
    ),
    "same-ids": Plant("satflow", "bids", third(_id=f"65a0{1:020x}"), "bids, row 3: _id is the same as in row 1"),
    "total-below-rows": Plant("unisat", "listings", data(total=2), "listings: total is 2, and there are 6 rows"),
    "more-than-shown": Plant("ordnet", "bids", data(totalCount=7), "bids: "),
    "list-missing": Plant("satflow", "sales", data(items=None), "sales is missing or null"),
    "list-an-object": Plant("satflow", "listings", data(items={}), "listings: {} is not a list"),
    "list-a-text": Plant("unisat", "sales", data(list="none"), "sales: 'none' is not a list"),
    "nested-list-null": Plant("ordnet", "bids", third(target__traits=None), "bids, row 3: traits is missing"),
    "unknown-kind-of-sale": Plant("ordnet", "sales", third(saleType="raffle"), "sales, row 3: "),
    "unknown-state": Plant("ordnet", "bids", third(status="dreaming"), "bids, row 3: an offer is in a state"),
    "unknown-own-bid": Plant("satflow", "bids of a bidder", third(type="raffle"), "row 3: own bid: unknown type"),
    "own-bid-of-no-price": Plant("satflow", "bids of a bidder", third(price=None), "row 3: own bid price is missing"),
    "another-seller": Plant(
        "satflow", "listings of a seller", third(listing__sellerOrdAddress=address(3)), "row 3: * another seller"
    ),
    "another-seller-there": Plant(
        "unisat", "listings of a seller", third(address=address(3)), "seller, row 3: * another seller"
    ),
    "another-inscription": Plant("satflow", "item", data(id=item(2)), "item: not understood"),
    "sale-without-time": Plant(
        "satflow", "sales", third(fillCompletedAt=...), "sales, row 3: time of a sale is missing"
    ),
    "unit-price-disagrees": Plant("satflow", "bids", third(unitPrice=7), "bids, row 3: 1 at 7 each cannot cost"),
    "lot-disagrees": Plant(
        "unisat", "rune listings", third(unitPrice=15_000), "row 3: lot of 1000 at 15000 cannot cost"
    ),
    "cursor-missing": Plant("ordnet", "listings", data(pagination={"hasNext": True, "nextCursor": None}), "cursor"),
    "empty-404": Plant("ordinalswallet", "listings", answer(404, ""), "listings: "),
    "403-too-fast": Plant(
        "unisat",
        "floors",
        answer(403, {"code": -2006, "msg": "exceeds rate limit", "data": None}),
        "exceeds rate limit",
    ),
    "500-statistic": Plant("unisat", "floors", answer(500, {"code": -1, "msg": "error"}), "floors: "),
    "200-with-an-error": Plant("unisat", "listings", answer(200, {"code": -1, "msg": "no luck"}), "no luck"),
    "200-without-success": Plant("satflow", "listings", answer(200, {"success": False}), "an error in an answer"),
    "html": Plant("satflow", "listings", answer(200, HTML), "listings: not understood: failed to read"),
}
# These answers are understood all the same, or are an answer of their own kind.
CLEAR = {"epoch-zero", "id-of-no-inscription", "same-ids", "total-below-rows"}


def planted(plant: Plant) -> dict[str, Any]:
    """Returns a good file with this oddity."""
    found = GOOD[plant.venue]()
    (question,) = (each for each in found["questions"] if each["name"] == plant.question)
    plant.change(question["exchanges"][0])
    return found


@pytest.mark.parametrize("venue", GOOD)
def test_good_file_is_clear_and_nothing_is_named(check: Check, venue: str) -> None:
    code, said, complained = check(GOOD[venue]())
    assert (code, complained) == (0, ""), said
    assert "FAIL" not in said and "strange" not in said and "row 3" not in said and "left out" not in said
    assert "listings: understood, 6 rows" in said


@pytest.mark.parametrize("name", PLANTS)
def test_planted_oddity_is_named_with_its_question_and_row(check: Check, name: str) -> None:
    plant = PLANTS[name]
    code, said, _ = check(planted(plant))
    lines = said.splitlines()
    usual = check(GOOD[plant.venue]())[1].splitlines()
    assert any(plant.said_in(line) and line not in usual for line in lines), said
    if name in CLEAR:
        assert code == 0, said
    others = [line for line in lines if ", row " in line and (plant.question not in line or "row 3" not in line)]
    assert others == [], said
    clear = [line for line in lines if line.startswith("ok ")]
    assert len(clear) >= len(GOOD[plant.venue]()["questions"]) - 1, said


def test_table_has_more_than_thirty_oddities_at_all_marketplaces() -> None:
    assert len(PLANTS) >= 30 and {plant.venue for plant in PLANTS.values()} == GOOD.keys()


def test_several_odd_rows_of_a_refused_answer_are_all_named(check: Check) -> None:
    found = GOOD["satflow"]()
    rows = rows_of(found["questions"][3]["exchanges"][0]["answer"])
    rows[0], rows[1]["price"], rows[3]["type"], rows[4] = 7, "x", "raffle", None
    code, said, _ = check(found)
    assert code == 1
    named = [line.strip() for line in said.splitlines() if ", row " in line]
    assert named == [
        "bids of a bidder, row 1: own bid: 7 is not an object",
        "bids of a bidder, row 2: own bid price: 'x' is not a whole number",
        "bids of a bidder, row 4: own bid: unknown type 'raffle'",
        "bids of a bidder, row 5: own bid is missing or null",
    ]


def with_listings(count: int, change: Callable[[int, dict[str, Any]], None]) -> dict[str, Any]:
    """Returns a good file with this many listings, each changed with its number."""
    found = GOOD["satflow"]()
    data = found["questions"][1]["exchanges"][0]["answer"]["data"]
    usual = data["items"][0]
    data["items"] = [usual | {"_id": f"65a0{number:020x}"} for number in range(1, count + 1)]
    for number, each in enumerate(data["items"], 1):
        change(number, each)
    return found


def test_oddity_of_many_rows_is_one_line_and_hides_no_other(check: Check) -> None:
    def change(number: int, listing: dict[str, Any]) -> None:
        listing["cancelledAt"] = 0
        listing["rank"] = "high" if number == 30 else number
        listing["price"] = "much" if number in (7, 11) else listing["price"]

    _, said, _ = check(with_listings(30, change))
    lines = [line.strip() for line in said.splitlines() if "listings, row" in line]
    assert lines[0] == "listings, rows 7, 11: listing price: 'much' is not a whole number"
    numbers = ", ".join(str(number) for number in range(1, 23) if number not in (7, 11))
    assert lines[1:] == [
        "strange: listings, row 30: rank is a text, in the other rows a number",
        f"strange: listings, rows {numbers} and 8 more: cancelledAt is a time of 1970: a placeholder",
    ]


def test_answer_of_too_many_rows_names_no_row(check: Check) -> None:
    code, said, _ = check(with_listings(1200, lambda number, listing: None))
    assert code == 1 and "FAIL listings: not understood" in said and "1200 are more than the 1000" in said
    assert "listings, row" not in said


def test_search_for_odd_rows_of_a_huge_answer_ends(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    put, read = Replay.put, []

    def counted(self: Replay, question: Any, records: Any) -> Any:
        read.append(sum(len(rows_of(each.answer)) for each in records))
        return put(self, question, records)

    monkeypatch.setattr(Replay, "put", counted)
    code, said, _ = check(with_listings(9000, lambda number, listing: listing.update(price="much")))
    assert code == 1 and "FAIL listings: not understood" in said
    assert sum(read) < 200_000


def test_answer_that_is_asked_for_otherwise_is_not_taken_for_another(check: Check) -> None:
    found = GOOD["satflow"]()
    found["questions"][1]["exchanges"][0]["path"] = "/activity/auctions"
    code, said, _ = check(found)
    assert code == 1
    assert "this version asks GET /activity/listings, and the file has GET /activity/auctions" in said


def test_unknown_question_is_named(check: Check) -> None:
    found = GOOD["satflow"]()
    found["questions"][0]["name"] = "dreams"
    code, said, _ = check(found)
    assert code == 1 and "FAIL dreams: not understood: this version of Bidkeeper has no such question" in said


def changed(**fields: Any) -> dict[str, Any]:
    return GOOD["unisat"]() | fields


def with_exchange(**fields: Any) -> dict[str, Any]:
    found = GOOD["unisat"]()
    found["questions"][0]["exchanges"][0] |= fields
    return found


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a probe file: not JSON"),
        (b"\xff\xfe", "not a probe file: not JSON"),
        (b"[" * 100_000, "not a probe file: not JSON"),
        (b"[]", "the file: [] is not an object"),
        (b'{"version": 1}', '"format" is not "bidkeeper-probe"'),
        (b" " * (MOST_BYTES + 1), "is too large: a probe file has at most 16,000,000 bytes"),
        (changed(version=2), "its version is 2, and this Bidkeeper reads version 1"),
        (changed(version=True), "its version is True"),
        (changed(venue="moonmarket"), "its venue 'moonmarket' is not one that this Bidkeeper knows"),
        (changed(questions=None), "questions is missing or null"),
        (changed(questions=[]), "it has no questions"),
        (changed(questions=[{"name": "floors", "exchanges": []}] * 2), "'floors' is there twice"),
        (changed(questions=[{"name": "floors", "exchanges": []}] * 101), "101 are more than the 100"),
        (changed(askedMs=10**18), "askedMs: not a time"),
        (changed(about={"rune": 7}), "about rune: 7 is not a text"),
        (with_exchange(method="DELETE"), "the method is not GET or POST"),
        (with_exchange(status=9000), "the status is not an HTTP status"),
        (with_exchange(status="200"), "the status is not an HTTP status"),
        (with_exchange(headers={"a\nb": "c"}), "the headers are not headers"),
        (with_exchange(params={"a": 1}), "a parameter or header is not a text"),
        (with_exchange(text=7), "the text is not a text"),
    ],
)
def test_other_file_is_refused_with_code_2_and_the_reason(check: Check, content: Any, said: str) -> None:
    code, out, complained = check(content)
    assert (code, out) == (2, "")
    assert complained.startswith("bidkeeper: ") and said in complained, complained


def test_answer_that_is_nested_too_deeply_is_refused(check: Check) -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    code, _, complained = check(with_exchange(answer=deep))
    assert code == 2 and "nested too deeply" in complained


def test_directory_pipe_and_missing_file_are_refused(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["venue", "check", str(tmp_path)]) == 2
    os.mkfifo(tmp_path / "pipe")
    assert main(["venue", "check", str(tmp_path / "pipe")]) == 2
    assert main(["venue", "check", str(tmp_path / "none")]) == 2
    assert "none cannot be read: No such file" in capsys.readouterr().err


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=20),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=8), part, max_size=4),
    max_leaves=12,
)


def spoilt(value: Any, junk: Any, path: list[int]) -> Any:
    """Returns JSON with junk somewhere in it: `path` are the places on the way down."""
    if not path or not isinstance(value, dict | list) or not value:
        return junk
    names = list(value) if isinstance(value, dict) else list(range(len(value)))
    name = names[path[0] % len(names)]
    part = spoilt(value[name], junk, path[1:])
    return {**value, name: part} if isinstance(value, dict) else [*value[:name], part, *value[name + 1 :]]


@pytest.mark.slow
@pytest.mark.sampled
@settings(
    max_examples=part_of(300, dear=True), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(sorted(GOOD)), JUNK, st.lists(st.integers(0, 20), min_size=1, max_size=9))
def test_any_file_is_checked_or_refused_and_never_a_fault(check: Check, venue: str, junk: Any, path: list[int]) -> None:
    code, said, complained = check(spoilt(GOOD[venue](), junk, path))
    assert (code in (0, 1) and said and not complained) or (code == 2 and complained.startswith("bidkeeper: "))
    assert all(letter.isprintable() or letter == "\n" for letter in said)
