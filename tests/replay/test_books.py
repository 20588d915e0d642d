"""The command on order books that others recorded."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.replay.recorded import START, replay

CONFIG = {"slug": "quiet-cats", "hardcapSats": 100_000, "bidCount": 2}
MINUTE = 60_000


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BIDKEEPER_DATA_DIR", str(tmp_path))
    return tmp_path


def line(minute: int, **values: Any) -> dict[str, Any]:
    return {"time": START + minute * MINUTE, "slug": "quiet-cats", "asks": [[100_000], [104_000]], **values}


def recorded(tmp_path: Path, lines: list[Any], config: dict[str, Any] = CONFIG) -> list[str]:
    """Returns the arguments for these lines (text is written as it is)."""
    texts = [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in lines]
    (tmp_path / "books.jsonl").write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "config.json").write_text(json.dumps(config))
    return [str(tmp_path / "books.jsonl"), "--config", str(tmp_path / "config.json")]


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert replay(*arguments, "--json") == 0, capsys.readouterr()
    return json.loads(capsys.readouterr().out, parse_float=Decimal)


def test_a_config_is_tried_on_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = recorded(
        tmp_path,
        [
            line(0, bids=[[70_000, 1, "bc1qrival"]], sales=[]),
            line(1, bids=[[70_000]], sales=[[70_000, 1, START + 30_000]]),
            {"time": START, "slug": "loud-dogs", "asks": []},
            line(30, time="2027-01-15T08:30:00Z", bids=[], sales=[]),
        ],
    )

    result = found(capsys, *arguments)

    assert result["cycles"] == 3
    assert result["decisions"][0]["placed"] == [
        {"price": 75_000, "quantity": 1},
        {"price": 15_000, "quantity": 1},
    ]
    assert [(fill["time"], fill["price"]) for fill in result["fills"]] == [("2027-01-15T08:00:30.000Z", 75_000)]
    assert result["verified"] is None
    assert result["summary"]["topBidderSeconds"] == 60


def test_two_runs_print_the_same_bytes(tmp_path: Path, capfdbinary: Any) -> None:
    arguments = recorded(tmp_path, [line(minute, sales=[[60_000]]) for minute in range(30)])
    printed = []
    for _ in range(2):
        assert replay(*arguments) == 0
        printed.append(capfdbinary.readouterr().out)

    assert printed[0] == printed[1]
    assert b"fills:" in printed[0]


def test_equal_price_needs_a_known_younger_rival(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    placed = [START + 1, START - 1, None]
    prices = [
        found(capsys, *recorded(tmp_path, [line(0), line(1, sales=[[75_000, 1, START + 500, each]])]))["fills"]
        for each in placed
    ]

    assert [len(fills) for fills in prices] == [1, 0, 0]


def test_runes_have_prices_of_whole_orders_and_quantities_in_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"slug": "QUIET•CATS", "type": "rune", "hardcapSats": 100_000, "quantity": 100.5, "bidCount": 1}
    books = [{"time": START, "slug": "QUIETCATS", "asks": [[3_000, "1000.50"], [2_000, "1000"]], "divisibility": 2}]

    result = found(capsys, *recorded(tmp_path, books, config))

    assert result["decisions"][0]["placed"] == [{"price": 150, "quantity": Decimal("100.5")}]  # 0.75 of 2 x 100.5


def test_what_books_do_not_tell_can_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = recorded(tmp_path, [line(0)])

    finer = found(capsys, *arguments, "--tick", "7", "--min-bid", "20000", "--balance", "75000", "--fee-reserve", "5")

    assert finer["decisions"][0]["placed"] == [{"price": 20_006, "quantity": 1}]
    assert finer["summary"]["skipped"] == {"insufficient_balance": 1}


def test_cycles_are_at_least_a_loop_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = recorded(tmp_path, [line(0, time=START + each * 10_000) for each in range(13)])

    assert found(capsys, *arguments)["summary"]["cycles"] == 5  # every 30 s of 120


def test_spike_is_clamped_by_the_history_that_the_books_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line(minute) for minute in range(20)] + [line(20, asks=[[180_000]])]

    result = found(capsys, *recorded(tmp_path, lines, CONFIG | {"hardcapSats": 1_000_000}))

    assert result["decisions"][-1]["reference"] == 125_000
    assert "floor_spike" in result["decisions"][-1]["marks"]


def test_prices_of_more_than_an_hour_ago_are_no_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line(minute) for minute in range(20)] + [line(80, asks=[[180_000]])]

    result = found(capsys, *recorded(tmp_path, lines, CONFIG | {"hardcapSats": 1_000_000}))

    assert result["decisions"][-1]["reference"] == 180_000
    assert "cold_start" in result["decisions"][-1]["marks"]


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "the line: [] is not an object"),
        ('{"time": 1e999, "slug": "quiet-cats", "asks": []}', "a number is out of bounds"),
        ('{"time": NaN, "slug": "quiet-cats", "asks": []}', "NaN is not a number"),
        ('{"time": 1800000060000, "slug": "quiet-cats", "asks": [[Infinity]]}', "Infinity is not a number"),
        (line(1, asks=[[100_000.5]]), "asks[0] price: "),
        (line(1, asks=[[100_000], [0]]), "asks[1] price: 0 is no amount of sats"),
        (line(1, asks=[[-1]]), "asks[0] price: -1 is not a whole number"),
        (line(1, asks=[[True]]), "asks[0] price: True is not a whole number"),
        (line(1, asks=[[1, "NaN"]]), "asks[0] quantity: 'NaN' is not a number above 0"),
        (line(1, asks=[[1, "1e3"]]), "asks[0] quantity: "),
        (line(1, asks=[[1, "1", "maker", 5]]), "asks[0]: not a list of 1 to 3 values"),
        (line(1, asks=[100_000]), "asks[0]: not a list"),
        (line(1, asks=None), "asks is missing or null"),
        (line(1, bids=7), "bids: 7 is not a list"),
        (line(1, sales=[[70_000, 1, START + 10 * MINUTE]]), "sales[0] time: is later than the line's"),
        (line(1, slug=7), "slug: 7 is not a text"),
        (line(1, ask=[]), "unknown field 'ask'"),
        (line(1, time=1_800_000_060), "time: 1800000060 is no time in milliseconds"),
        (line(1, time="2027-01-15T08:00:00"), "is no ISO 8601 time with its zone"),
        (line(0), "time: is not later than that of the line before it"),
        (line(1, complete="yes"), "complete: must be true or false"),
    ],
)
def test_bad_line_is_named(bad: Any, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(*recorded(tmp_path, [line(0), "", bad])) == 1

    error = capsys.readouterr().err
    assert "books.jsonl line 3: " in error
    assert complaint in error


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"slug": "quiet-cats"}, "hardcapSats: is required in percent mode"),
        ({"hardcapSats": 100_000}, "slug: is required"),
        (CONFIG | {"slug": "loud-dogs"}, "books.jsonl holds no book of loud-dogs, but of quiet-cats"),
    ],
)
def test_bad_config(config: dict[str, Any], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(*recorded(tmp_path, [line(0)], config)) == 1
    assert complaint in capsys.readouterr().err


def test_books_have_no_decisions_to_verify_and_no_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, *config = recorded(tmp_path, [line(0)])

    assert replay(path, *config, "--verify") == 1
    assert "no decisions to verify" in capsys.readouterr().err
    assert replay(path) == 1
    assert "order books have no config" in capsys.readouterr().err


def test_documented_lines_can_be_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "replay.md").read_text()
    lines = page.split("```json\n")[1].split("```")[0].splitlines()
    rune = {"slug": "QUIET•CATS", "type": "rune", "hardcapSats": 100_000}

    assert found(capsys, *recorded(tmp_path, lines))["cycles"] == 1
    assert found(capsys, *recorded(tmp_path, lines, rune))["cycles"] == 1
