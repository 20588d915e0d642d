"""A task at a moment of its past: the ledger's bids, the journal's cycle, and what is said where that is gone."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import pytest

from core.fields import iso
from core.layout import journal_path, older
from models.database import base
from models.ledger.states import Order
from models.tasks.cycles import Sample, add_sample
from server.replay import journal
from server.replay.journal import moment_of
from strategy.decision import Entry
from strategy.journal import Encoder
from tests.replay.recorded import LOOP, START, carried_out, entry
from tests.server.api import START_MS
from tests.server.conftest import Service
from tests.server.driver import check
from tests.server.running_tasks import open_order
from tests.shapes import replace
from tests.worlds.market import bid
from workers.bidding.moment import Journal

CYCLES = carried_out(entry(number, 100_000 + 1_000 * number, 150_000) for number in range(6))


def write(path: Path, entries: list[Entry]) -> None:
    encoder = Encoder()
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{encoder.line(each)}\n" for each in entries))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A data directory with a journal of task 1: three cycles in the older file, three in the newer."""
    write(older(journal_path(tmp_path, 1)), CYCLES[:3])
    write(journal_path(tmp_path, 1), CYCLES[3:])
    return tmp_path


@pytest.mark.parametrize("number", range(6))
def test_the_newest_cycle_before_the_moment_is_found_in_either_file(kept: Path, number: int) -> None:
    at = START + number * LOOP
    for time_ms in (at, at + LOOP - 1):
        assert moment_of(kept, 1, time_ms) == (CYCLES[number], START, "")


def test_a_moment_before_the_journal_is_not_guessed(kept: Path) -> None:
    assert moment_of(kept, 1, START - 1) == (None, START, "the journal does not reach back that far")
    assert moment_of(kept, 2, START) == (None, None, "the journal is empty: no cycle was written to it")


def test_a_line_whose_beginning_is_gone_is_not_read_as_another(kept: Path) -> None:
    path = journal_path(kept, 1)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    found = moment_of(kept, 1, START + 4 * LOOP)
    assert (found.entry, found.why) == (None, "the journal's line of that moment needs one that is gone")


def test_a_spoilt_line_costs_what_hangs_on_it_and_a_torn_one_itself(kept: Path) -> None:
    path = journal_path(kept, 1)
    first, second, third = path.read_text().splitlines()
    path.write_text(f"{first}\n{second[:-9]}\n{third}\n")
    assert moment_of(kept, 1, START + 3 * LOOP).entry == CYCLES[3]
    assert "cannot be read" in moment_of(kept, 1, START + 5 * LOOP).why
    path.write_text(f"{first}\n{second}\n{third[:-9]}")
    assert moment_of(kept, 1, START + 5 * LOOP).entry == CYCLES[4]


def test_no_more_than_so_much_of_a_file_is_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "READ_BYTES", journal_path(kept, 1).stat().st_size - 1)
    found = moment_of(kept, 1, START + 5 * LOOP)
    assert (found.entry, "needs one that is gone" in found.why) == (None, True)


@pytest.mark.parametrize("block", [1, 100, 1000])
def test_files_are_read_from_the_end_in_growing_parts_with_the_same_outcome(
    kept: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(journal, "BLOCK_BYTES", block)
    for number in range(6):
        assert moment_of(kept, 1, START + number * LOOP) == (CYCLES[number], START, "")
    assert moment_of(kept, 1, START - 1).why == "the journal does not reach back that far"


def test_what_was_decided_last_takes_no_more_than_the_end_of_a_long_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = journal_path(tmp_path, 1)
    entries = [entry(number, *range(100_000 + number, 100_040)) for number in range(40)]
    writer = Journal(path)
    for each in entries * 3:
        writer.write(each)
    monkeypatch.setattr(journal, "BLOCK_BYTES", 10_000)
    read = list[int]()

    def counted(file: BinaryIO, most_bytes: int) -> list[bytes]:
        read.append(most_bytes)
        return last_lines(file, most_bytes)

    last_lines = journal._last_lines
    monkeypatch.setattr(journal, "_last_lines", counted)

    assert moment_of(tmp_path, 1, START + 40 * LOOP).entry == entries[-1]
    assert sum(read) < path.stat().st_size / 4


async def test_bids_and_decision_of_a_moment_are_told_with_their_reasons(service: Service) -> None:
    task = await service.new_task()
    stood, gone, later = (open_order(service, task, number) for number in (3, 4, 5))
    then = START_MS - 60_000
    Order.update(created_ms=then - 1).where(Order.id.in_([stood.id, gone.id])).execute()
    Order.update(closed_ms=then, state="closed", close_reason="cancelled").where(Order.id == gone.id).execute()
    Order.update(created_ms=then + 1).where(Order.id == later.id).execute()
    cycle = next(each for each in CYCLES if each.plan is not None and each.plan.bids)
    assert cycle.plan is not None
    told = cycle.plan.bids[0].reason
    note = replace(cycle.plan.bids[0], order_id=stood.id)
    config = replace(cycle.config, slug=stood.slug)
    decided = replace(cycle, now_ms=then - 5, config=config, plan=replace(cycle.plan, bids=(note,)))
    write(journal_path(service.settings.data_dir, task), [decided])
    with base.transaction():
        add_sample(task, Sample(Decimal(99), open_count=2, exposure_sats=70_000), then)

    answer = await service.ask("GET", f"/api/tasks/{task}/at?time={iso(then)}")

    check("readTaskMoment", answer)
    assert [(order["id"], order["reason"]) for order in answer.json["orders"]] == [(stood.id, told)]
    past = answer.json["cycle"]
    assert (past["time"], past["reference"], answer.json["cycleUnknown"]) == (iso(then - 5), cycle.plan.reference, None)
    assert [rung["reason"] for rung in past["rungs"]] == [note.reason for note in cycle.plan.rungs]
    assert cycle.snapshot is not None
    assert past["book"]["asks"]["levels"][0]["unitPrice"] == min(ask.unit_price for ask in cycle.snapshot.asks)
    assert past["book"]["bidsUnknown"] == "they were not read"
    assert {each["rank"] for each in [*answer.json["orders"], *past["rungs"]]} == {None}
    assert (answer.json["sample"]["floor"], answer.json["sample"]["exposure"]) == (99, 70_000)
    rivals = (bid(40_000, placed_ms=then), bid(30_000, placed_ms=then), bid(20_000, placed_ms=then))
    seen = replace(decided, snapshot=replace(cycle.snapshot, bids=rivals))
    path = journal_path(service.settings.data_dir, task)
    write(path, [seen])
    answer = await service.ask("GET", f"/api/tasks/{task}/at?time={iso(then)}")
    assert [order["rank"] for order in answer.json["orders"]] == [2], "older than its equal"
    own = [order.price_sats for order in sorted(cycle.own, key=lambda order: -order.price_sats)]
    assert (own[2:4], own[4] < 20_000) == ([45_000, 30_000], True)
    assert [rung["rank"] for rung in answer.json["cycle"]["rungs"]] == [1, 2, 3, 6, 8], "younger than its equal"
    assert seen.snapshot is not None
    write(path, [replace(seen, snapshot=replace(seen.snapshot, are_bids_whole=False))])
    answer = await service.ask("GET", f"/api/tasks/{task}/at?time={iso(then)}")
    assert [order["rank"] for order in answer.json["orders"]] == [None], "a bid that is not understood may be ahead"
    assert [rung["rank"] for rung in answer.json["cycle"]["rungs"]] == [1, None, None, None, None]
    write(path, [seen])
    for change in ({"slug": "other"}, {"slug": stood.slug, "trait_type": "Hat", "trait_value": "Red"}):
        Order.update(**change).where(Order.id == stood.id).execute()
        answer = await service.ask("GET", f"/api/tasks/{task}/at?time={iso(then)}")
        assert [order["rank"] for order in answer.json["orders"]] == [None], "it competes in another book"


async def test_what_the_journal_does_not_know_is_said(service: Service) -> None:
    task = await service.new_task()
    answer = await service.ask("GET", f"/api/tasks/{task}/at?time=2025-01-01")
    check("readTaskMoment", answer)
    assert answer.json["cycleUnknown"] == "the journal is empty: no cycle was written to it"
    assert (answer.json["orders"], answer.json["cycle"], answer.json["sample"]) == ([], None, None)


@pytest.mark.parametrize("query", ["", "?time=noon", "?time=0001-01-01T00:00:00%2B14:00", f"?time={iso(START_MS + 1)}"])
async def test_a_moment_has_to_be_named_and_past(service: Service, query: str) -> None:
    task = await service.new_task()
    assert (await service.ask("GET", f"/api/tasks/{task}/at{query}")).status == 400


async def test_another_users_past_is_not_there(service: Service) -> None:
    task = await service.new_task()
    answer = await service.api("GET", f"/api/tasks/{task}/at?time=2025-01-01", token=service.other_token)
    assert answer.status == 404
