"""`bidkeeper venue probe` saves a file without secrets; `bidkeeper venue check` names oddities in one."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.doctor import questions
from cli.doctor.questions import ADDRESS, FIRST_INSCRIPTION
from cli.main import main
from cli.probe_check import Replay
from cli.probe_questions import DRAFTED_AT, MOST_BYTES
from tests.cli.probe_files import GOOD, address, item
from tests.cli.test_doctor_venues import KEY, SATFLOW
from tests.cli.venue import venue
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


Probe = Callable[..., int]
HELD = "7" * 64 + "i3"
EMPTY_BOOK = SATFLOW | {"/v1/activity/bids": {"data": {"items": []}}}


@pytest.mark.parametrize("action", ["learn", "learnt"])
def test_learning_forms_is_no_command_any_more(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["venue", action, "satflow"])
    assert ended.value.code == 2
    assert f"invalid choice: '{action}'" in capsys.readouterr().err


@pytest.fixture
def probe(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Runs the command for a venue, Satflow being at the given URL, and returns its exit code."""
    monkeypatch.setattr(questions, "PAUSE_S", 0)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BIDKEEPER_MARKET", "satflow")
    monkeypatch.setenv("BIDKEEPER_SATFLOW_API_KEY", KEY)

    def run(name: str, url: str, file: Path, *more: str, inscription: str = FIRST_INSCRIPTION) -> int:
        monkeypatch.setenv("BIDKEEPER_SATFLOW_URL", f"{url}/v1")
        about = ["--collection", "nodemonkes", "--inscription", inscription]
        return main(["venue", "probe", name, "--save", str(file), *about, *more])

    return run


def exchanges(file: Path, question: str) -> list[dict[str, Any]]:
    (found,) = (each for each in json.loads(file.read_text())["questions"] if each["name"] == question)
    made: list[dict[str, Any]] = found["exchanges"]
    return made


def test_answers_are_saved_in_one_file_for_its_owner_alone(
    probe: Probe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    strange = b'{"success": true, "data": {"items": [{"price": "5e5"}]}}'
    with venue(SATFLOW | {"/v1/activity/listings": strange}, {"RateLimit-Remaining": "99000"}) as made:
        assert probe("satflow", made.url, file) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    saved = json.loads(file.read_text())
    assert (saved["format"], saved["version"], saved["venue"]) == ("bidkeeper-probe", 1, "satflow")
    assert saved["bidkeeper"].startswith("0.1.0 (")
    (asked,) = exchanges(file, "listings")
    assert (asked["method"], asked["path"], asked["status"]) == ("GET", "/activity/listings", 200)
    assert asked["params"]["collectionSlug"] == "nodemonkes" and asked["params"]["sortBy"] == "price"
    assert asked["headers"]["RateLimit-Remaining"] == "99000" and "Date" in asked["headers"]
    (row,) = asked["answer"]["data"]["items"]
    assert isinstance(row["price"], str) and row["price"] != "5e5" and "e" in row["price"]
    said = capsys.readouterr().out
    assert "FAIL listings: not understood: failed to understand the venue: " in said and "listings, row 1: " in said
    assert "cancel: not asked" in said


def test_keys_cookies_and_unknown_headers_are_left_out(probe: Probe, tmp_path: Path) -> None:
    echo = f'{{"error": "the key {KEY} is strange"}}'.encode()
    headers = {"Set-Cookie": "session=0123456789", "X-Your-Key": KEY, "Server": f"nginx for {KEY}"}
    with venue(SATFLOW | {"/v1/activity/bids": echo}, headers) as made:
        probe("satflow", made.url, tmp_path / "report.json")
    kept = (tmp_path / "report.json").read_text()
    assert KEY not in kept and "0123456789" not in kept and "X-Your-Key" not in kept
    assert "the key [hidden] is strange" in kept and "nginx for [hidden]" in kept


def test_key_in_the_address_of_a_server_is_left_out(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = "provider.key.of.ann"
    with venue({f"/{hidden}/api/blocks/tip/height": f'"no block at /{hidden}/api"'.encode()}) as made:
        monkeypatch.setenv("BIDKEEPER_MEMPOOL_URL", f"{made.url}/{hidden}")
        probe("mempool", made.url, tmp_path / "report.json")
    kept = (tmp_path / "report.json").read_text()
    assert hidden not in kept and "no block at /[hidden]/api" in kept


def test_rune_price_unit_of_the_installation_goes_along(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIDKEEPER_SATFLOW_RUNE_PRICE", "token")
    file = tmp_path / "report.json"
    row = {"_id": "65a000000000000000000009", "price": "0.5", "quantity": "10", "collectionSlug": "DOG•GO•TO•THE•MOON"}
    with venue(SATFLOW) as made:
        made.answers["/v1/activity/bids?sortBy=unitPrice"] = {"data": {"bids": [row]}}
        probe("satflow", made.url, file)
    monkeypatch.delenv("BIDKEEPER_SATFLOW_RUNE_PRICE")
    assert json.loads(file.read_text())["about"]["rune_price"] == "token"
    main(["venue", "check", str(file)])


def test_fault_of_an_adapter_is_a_result_and_no_traceback(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("no such field")

    monkeypatch.setattr("markets.satflow.adapter.Satflow.floors", broken)
    with venue(SATFLOW) as made:
        assert probe("satflow", made.url, tmp_path / "report.json") == 1
    said = capsys.readouterr().out
    assert "FAIL floors: not understood: KeyError" in said and "ok   listings: understood, 1 row" in said


def test_key_with_a_byte_order_mark_is_asked_with(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "key"
    monkeypatch.delenv("BIDKEEPER_SATFLOW_API_KEY")
    monkeypatch.setenv("BIDKEEPER_SATFLOW_API_KEY_FILE", str(file))
    file.write_bytes(b"\xef\xbb\xbf" + KEY.encode() + b"\r\n")
    with venue(SATFLOW) as made:
        probe("satflow", made.url, tmp_path / "report.json")
    assert made.asked
    file.write_text(f'"{KEY}"\n')
    assert probe("satflow", made.url, tmp_path / "again.json") == 2
    assert f"{file} (BIDKEEPER_SATFLOW_API_KEY_FILE) has a quote in it" in capsys.readouterr().err


def test_nothing_is_overwritten_and_nothing_asked(
    probe: Probe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("mine")
    with venue(SATFLOW) as made:
        assert probe("satflow", made.url, file) == 1
    assert made.asked == [] and file.read_text() == "mine"
    assert "is there already" in capsys.readouterr().err


def test_venue_that_is_not_set_leaves_no_file(probe: Probe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in {
        "ord": "BIDKEEPER_ORD_URL is not set",
        "unisat": "BIDKEEPER_UNISAT_URL is not set",
        "simulator": "no venue 'simulator' here",
    }.items():
        assert probe(name, "https://venue.test", tmp_path / "report.json") == 1
        assert said in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()


@pytest.mark.parametrize(("draft", "code"), [({"seller": {"unsignedListingPSBTBase64": 7}}, 1), (400, 0)])
def test_listing_is_drafted_for_its_holder_and_nothing_is_signed(
    probe: Probe, tmp_path: Path, draft: Any, code: int
) -> None:
    answers: dict[str, Any] = {
        "/v1/address/bidding-wallet": {"data": {"multiSig": {"address": "bc1qmulti"}}},
        "/v1/item": {"data": {"id": HELD, "owner": "bc1pholder"}},
        "/v1/intent/sell": draft if isinstance(draft, int) else {"data": draft},
    }
    file = tmp_path / "report.json"
    with venue(EMPTY_BOOK | answers) as made:
        assert probe("satflow", made.url, file, inscription=HELD) == code
    (asked,) = made.posted
    assert asked == {
        "price": DRAFTED_AT,
        "inscriptionId": HELD,
        "sellerOrdAddress": "bc1pholder",
        "sellerReceiveAddress": ADDRESS,
    }
    (kept,) = exchanges(file, "listing draft")
    assert kept["body"]["price"] == DRAFTED_AT and kept["body"]["sellerReceiveAddress"] == ADDRESS
    assert kept["body"]["sellerOrdAddress"] != "bc1pholder" and HELD not in file.read_text()
    assert exchanges(file, "item")[0]["answer"]["data"]["owner"] == kept["body"]["sellerOrdAddress"]


def test_without_a_holder_nothing_is_drafted(probe: Probe, tmp_path: Path) -> None:
    with venue(EMPTY_BOOK) as made:
        assert probe("satflow", made.url, tmp_path / "report.json") == 0
    assert made.posted == []
    assert len(made.asked) == 17


def test_bids_of_the_first_bidder_in_the_book_are_asked_for_unless_one_is_named(probe: Probe, tmp_path: Path) -> None:
    for number, more in enumerate([(), ("--bidder", ADDRESS)]):
        with venue(SATFLOW) as made:
            probe("satflow", made.url, tmp_path / f"{number}.json", *more)
        asked = [each for each in made.asked if "/address/bids" in each]
        assert asked[1] == f"/v1/address/bids?address={more[1] if more else 'bc1qb'}"
