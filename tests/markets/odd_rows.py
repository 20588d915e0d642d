"""The harness of the tables "odd row x verb -> what is left of the answer", one table for each venue.

A table is a text: a line for each odd row, a column for each verb.

    kept      the row is understood, or its odd field is not read
    none      the row is passed over, rightly: it is not an entry, and nothing is unknown because of it
    left      it is left out, counted, and what it is about is unknown; the other rows are read
    foreign   it is left out and counted as one about something else; the other rows are read
    refused   the whole answer is not understood
    -         this verb's rows have no such field
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from markets.base import NotUnderstood
from markets.parse import Unread, noting

GOOD = 3  # rows of each answer in addition to the odd one


@dataclass(frozen=True)
class Verb:
    """One read: `row` returns its n-th good row, `read` the number of entries out of an answer with these rows.

    `names` are the row's names for the common fields.
    """

    row: Callable[[int], dict[str, Any]]
    read: Callable[[list[Any]], int]
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    odd: str
    verb: str
    left: str


def cells(table: str) -> list[Cell]:
    """Returns the cells of a table that say something."""
    head, *lines = [line for line in table.splitlines() if line.strip()]
    verbs = head.split("|")[1:]
    found: list[Cell] = []
    for line in lines:
        odd, *left = [each.strip() for each in line.split("|")]
        found += [Cell(odd, verb.strip(), each) for verb, each in zip(verbs, left, strict=True) if each != "-"]
    return found


def named(cell: Cell) -> str:
    """Returns the cell's name in the list of tests."""
    return f"{cell.odd}-{cell.verb}".replace(" ", "_")


def answer(verb: Verb, odd: Any) -> list[Any]:
    """Returns the good rows and, behind them, the odd one."""
    return [*(verb.row(number) for number in range(GOOD)), odd]


def left_of(verb: Verb, odd: Any) -> tuple[str, tuple[Unread, ...]]:
    """Returns what is left of an answer with this odd row, in a word of the tables, and the rows left out."""
    heard: list[Unread] = []
    try:
        with noting(heard.append):
            count = verb.read(answer(verb, odd))
    except NotUnderstood:
        return "refused", ()
    if heard:
        assert count == GOOD
        return "foreign" if heard[0].is_foreign else "left", tuple(heard)
    return {GOOD: "none", GOOD + 1: "kept"}[count], ()
