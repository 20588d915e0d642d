"""Entries of a journal become lines and the same entries again."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import fields

from strategy.book import NO_HISTORY, Ask, Bid, History, Snapshot, VenueProfile
from strategy.config.bid import BidConfig
from strategy.decision import (
    BidNote,
    BidPlan,
    BudgetRoom,
    Entry,
    Limits,
    Memory,
    OwnOrder,
    PlannedBid,
    PlannedCancel,
    Rules,
    RungNote,
    SaleIntoBid,
    SignedRoom,
)
from strategy.journal import Decoder, Encoder, unpack
from strategy.plan_bids import plan_bids
from strategy.reasons import Reason
from tests.examples import part_of
from tests.shapes import replace
from tests.strategy.random_cycles import random_cycle

ENTRY = Entry(
    now_ms=1,
    config=BidConfig(slug="cats", hardcap_sats=100_000),
    profile=VenueProfile("simulator", 1_000, 10_000, 900, True, "per_bid"),
    snapshot=Snapshot(1, ()),
    own=(),
    limits=Limits(0, 1, 1, None, None),
    rules=Rules(),
    memory=Memory(),
)


def ask(number: int) -> Ask:
    return Ask(f"ask-{number}", 1_000 + number, Decimal(number), Decimal("0.1") * number, "bc1qseller")


def bid(number: int) -> Bid:
    return Bid(f"bid-{number}", 1_000 + number, Decimal(number), Decimal(7), "bc1q•", number if number % 2 else None)


def with_asks(*numbers: int) -> Entry:
    return replace(ENTRY, snapshot=Snapshot(1, tuple(ask(number) for number in numbers)))


def encoded(entries: Sequence[Entry]) -> list[str]:
    encoder = Encoder()
    return [encoder.line(each) for each in entries]


def decoded(lines: Sequence[str]) -> list[Entry]:
    decoder = Decoder()
    return [decoder.read(line) for line in lines]


def random_value(rng: random.Random, kind: str) -> Any:
    """Returns something of the type that a field declares, whichever field it is."""
    number = Decimal(rng.randint(-(10**30), 10**30)).scaleb(-rng.randint(0, 20))
    values = {
        "int": rng.randint(-(2**60), 2**60),
        "bool": rng.random() < 0.5,
        "str": "".join(rng.choices('ab"\\\n•\u2028😀 ', k=rng.randint(0, 8))),
        "Decimal": number,
        "Reason": rng.choice(list(Reason)),
        "History": History(number, rng.randint(0, 60)),
        "Memory": Memory(rng.choice([None, 5]), tuple(rng.choices(range(100), k=rng.randint(0, 4)))),
        "BudgetRoom": BudgetRoom(rng.randint(1, 99), "both •", rng.choice([None, 7]), rng.choice([None, 0])),
        "tuple[str, str]": ("Hat", "Red •"),
        "tuple[int, ...]": tuple(rng.choices(range(100), k=rng.randint(0, 4))),
    }
    choices = [part.strip() for part in kind.split("|")]
    chosen = rng.choice(choices)
    if chosen == "None":
        return None
    if chosen.startswith("tuple[") and chosen not in values:
        several = {"Ask": Ask, "Bid": Bid, "Reason": None, "PlannedCancel": PlannedCancel, "PlannedBid": PlannedBid,
                   "RungNote": RungNote, "BidNote": BidNote, "SignedRoom": SignedRoom}  # fmt: skip
        name = chosen.removeprefix("tuple[").removesuffix(", ...]")
        of = several[name]
        return tuple(
            random_value(rng, name) if of is None else random_record(rng, of) for _ in range(rng.randint(0, 4))
        )
    return values[chosen]


def random_record(rng: random.Random, kind: Any) -> Any:
    return kind(**{name: random_value(rng, str(kind.__annotations__[name])) for name in kind.__struct_fields__})


def random_entry(rng: random.Random, former: Entry | None) -> Entry:
    """Any values at all, some of them those of the entry before."""
    made = Entry(
        now_ms=rng.randint(0, 2**41),
        config=replace(ENTRY.config, bid_percent_low=Decimal(rng.randint(1, 10**9)).scaleb(-9), fee_rate="hourFee"),
        profile=random_record(rng, VenueProfile),
        snapshot=None if rng.random() < 0.1 else random_record(rng, Snapshot),
        own=tuple(random_record(rng, OwnOrder) for _ in range(rng.randint(0, 4))),
        limits=random_record(rng, Limits),
        rules=random_record(rng, Rules),
        memory=random_value(rng, "Memory"),
        restraint=rng.choice([None, Reason.HALT, Reason.REDUCE]),
        sales=rng.choice([None, (), (replace(random_record(rng, SaleIntoBid), sale_id=str(rng.random())),)]),
        plan=rng.choice([None, random_record(rng, BidPlan)]),
    )
    if former is None:
        return made
    names = [field.name for field in fields(Entry) if field.name != "sales"]
    kept = {name: getattr(former, name) for name in names if rng.random() < 0.5}
    made = replace(made, **kept)
    if former.snapshot is not None and made.snapshot is not None:
        # A book of which some orders went, and some came.
        asks = [each for each in (*former.snapshot.asks, *made.snapshot.asks) if rng.random() < 0.8]
        rng.shuffle(asks)
        made = replace(made, snapshot=replace(made.snapshot, asks=tuple(asks)))
    return made


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(part_of(60, dear=True)))
def test_round_trip(seed: int) -> None:
    rng, entries = random.Random(seed), list[Entry]()
    for _ in range(20):
        entries.append(random_entry(rng, entries[-1] if entries else None))

    lines = encoded(entries)

    assert decoded(lines) == entries
    assert not any("\n" in line for line in lines)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(part_of(30, dear=True)))
def test_every_recorded_cycle_decides_to_the_same_plan(seed: int) -> None:
    rng, entries = random.Random(seed), list[Entry]()
    for number in range(10):
        cycle = random_cycle(rng)
        restraint = rng.choice([None, None, Reason.REDUCE, Reason.OWN_BIDS_UNKNOWN, Reason.HALT])
        entry = cycle.entry(1_700_000_000_000 + number, restraint)
        entries.append(replace(entry, plan=plan_bids(entry)))

    for entry in decoded(encoded(entries)):
        assert plan_bids(entry) == entry.plan


def test_unchanged_parts_are_not_written_again() -> None:
    entries = [replace(with_asks(*range(200)), now_ms=now_ms) for now_ms in (1, 2)]

    first, second = encoded(entries)

    assert len(first) > 5_000
    assert json.loads(second) == {"n": 1, "now_ms": 2}


def test_book_refers_to_the_former_one_for_rows_that_stayed() -> None:
    lines = encoded([with_asks(0, 1, 2, 3, 4), with_asks(0, 2, 3, 9, 4), with_asks()])

    row = msgspec.to_builtins(ask(9))
    assert json.loads(lines[1])["asks"] == [{"at": 0, "n": 1}, {"at": 2, "n": 2}, [*row], {"at": 4, "n": 1}]
    assert json.loads(lines[2])["asks"] == []


def test_bids_that_were_not_read_are_not_an_empty_book() -> None:
    book = Snapshot(1, (), bids=())
    entries = [replace(ENTRY, snapshot=each) for each in (book, replace(book, bids=None), book, None, book)]

    assert decoded(encoded(entries)) == entries


def test_sale_that_was_told_before_is_not_written_again() -> None:
    sales = [SaleIntoBid(f"sale-{number}", 70_000, None, number) for number in range(4)]
    entries = [replace(ENTRY, sales=tuple(sales[start : start + 2])) for start in (0, 1, 2, 2)]

    told = [each.sales for each in decoded(encoded(entries))]

    assert told == [tuple(sales[:2]), (sales[2],), (sales[3],), ()]


def test_forgetting_writes_everything_again() -> None:
    encoder = Encoder()
    encoder.line(with_asks(1, 2))
    encoder.forget()
    line = encoder.line(with_asks(1, 2))

    assert decoded([line]) == [with_asks(1, 2)]


def test_line_whose_predecessor_is_missing_is_refused_and_so_is_what_follows() -> None:
    lines = encoded([with_asks(1), with_asks(2), with_asks(3), with_asks(4)])
    decoder = Decoder()
    decoder.read(lines[0])

    for line in lines[2:]:
        with pytest.raises(ValueError, match="the line before it is missing"):
            decoder.read(line)
    assert decoder.read(lines[0]) == with_asks(1)


@pytest.mark.parametrize(
    "change",
    [
        {"n": None},
        {"n": 0.5},
        {"now_ms": "soon"},
        {"now_ms": True},
        {"now_ms": 1.5},
        {"limits": None},
        {"limits": []},
        {"limits": {"task_total": 1}},
        {"memory": {"raises_ms": [1, "2"]}},
        {"rules": {"tolerance": 0.01}},
        {"rules": {"tolerance": "NaN"}},
        {"rules": {"tolerance": "Infinity"}},
        {"rules": {"tolerance": "one"}},
        {"config": {"slug": 7}},
        {"config": {}},
        {"own": [{}]},
        {"asks": [{"at": 0, "n": 5}]},
        {"asks": [{"at": -1, "n": 1}]},
        {"asks": [["too", "short"]]},
        {"asks": 7},
        {"snapshot": {"complete": True}},
        {"columns": {}, "asks": [[1]]},
    ],
)
def test_what_no_encoder_writes_is_a_value_error(change: dict[str, Any]) -> None:
    line = json.loads(encoded([with_asks(1)])[0]) | change

    with pytest.raises(ValueError, match=r"."):
        Decoder().read(json.dumps(line))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", '{"n": NaN}', '{"n": 1e999}', "{}", "[" * 100_000])
def test_what_is_no_line_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Decoder().read(text)


class TestOtherVersions:
    def test_keys_they_have_and_we_do_not_are_ignored(self) -> None:
        line = json.loads(encoded([with_asks(1)])[0])
        for part in ("config", "profile", "limits", "rules", "memory", "snapshot"):
            line[part]["of_another_version"] = {"deep": [1]}
        line["columns"]["asks"].append("of_another_version")
        line["asks"][0].append(None)
        line["of_another_version"] = 1

        assert decoded([json.dumps(line)]) == [with_asks(1)]

    def test_keys_we_have_and_they_do_not_have_their_defaults(self) -> None:
        line = json.loads(encoded([with_asks(1)])[0])
        del line["rules"]["min_age_ms"], line["limits"]["hold"], line["snapshot"]["history"], line["bids"]
        del line["config"]["use_vwap"], line["plan"], line["restraint"]

        assert decoded([json.dumps(line)]) == [with_asks(1)]

    def test_reason_we_do_not_know_stays_text(self) -> None:
        assert unpack(Reason, "moon_is_full", "reason") == "moon_is_full"
        assert unpack(Reason, "kept", "reason") is Reason.KEPT


class Later(Struct, frozen=True):
    """A value as some version to come may have it."""

    name: str
    price: Decimal | None
    pairs: tuple[tuple[str, int], ...] = ()
    inner: History = NO_HISTORY


def test_fields_need_no_naming() -> None:
    value = Later("a", Decimal("1.50"), (("b", 1), ("c", 2)), History(Decimal(3), 4))

    assert unpack(Later, json.loads(msgspec.json.encode(value)), "later") == value
    assert unpack(Later, {"name": "a", "price": None, "unheard": 1}, "later") == Later("a", None)


def test_doubts_about_a_book_are_written_only_where_there_are_some() -> None:
    sure = with_asks(1)
    unsure = replace(ENTRY, snapshot=Snapshot(1, (), is_floor_sure=False, is_depth_sure=False, are_bids_whole=False))
    lines = encoded([sure, unsure, sure])
    assert decoded(lines) == [sure, unsure, sure]
    assert ["_sure" in line for line in lines] == [False, True, False]
    assert ["_whole" in line for line in lines] == [False, True, False]
