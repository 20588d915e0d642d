"""Odd rows of a recorded answer: those that a parser stumbles over, and strange ones that it reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from cli.doctor.questions import VenueAnswer
from cli.evidence.masking import Sort, sort_of
from cli.evidence.questions import Recorded
from markets.wire import first

MOST_NAMED = 20  # oddities of one answer, and rows of one oddity
_MOST_ROWS = 10_000  # of a list that are looked at one by one; a venue's answer has at most 2 MB
_MOST_READ = 50_000  # rows that are read to find those for which one answer is refused
_ID_FIELDS = ("_id", "bid_id", "id", "auctionId", "listingId", "saleId", "inscriptionId")
_TOTALS = ("total", "totalCount")
_IN_ROW = re.compile(r"(?:^|: )[a-z][a-z \-']{0,40} (\d{1,5}): (.*)$")
_INSCRIPTION = re.compile(r"[0-9a-f]{64}i[0-9]{1,9}", re.ASCII)
_FIRST_S, _FIRST_YEAR = 10**9, 2001
_ALIKE = Decimal("0.75")  # of the rows: a value that this many have is usual
_FEWEST = 4  # rows by which something can be usual


class Odd(NamedTuple):
    """An odd row: its number from 1, 0 for the answer as a whole, and what is odd about it."""

    row: int
    why: str


class _Place(NamedTuple):
    """The longest list of an answer, and the names that lead to it."""

    names: tuple[str, ...]
    rows: Sequence[Any]


def left_out(answer: VenueAnswer, *, foreign: bool = False) -> Iterator[Odd]:
    """Yields the rows that the parser has left out of an answer: odd ones, or those about something else."""
    for each in answer.unread:
        if each.is_foreign == foreign:
            yield _odd(each.why)


def stumbled(records: Sequence[Recorded], put: Callable[[Sequence[Recorded]], VenueAnswer]) -> tuple[Odd, ...]:
    """Finds the rows for which an answer is refused: the last row of the shortest refused beginning, then the next.

    `put` asks the question of other records. Returns () when the fault is not in a row. The search ends at `MOST_NAMED`
    rows, or once it has read `_MOST_READ`.
    """
    at = next((at for at in reversed(range(len(records))) if _longest(records[at].answer) is not None), None)
    place = None if at is None else _longest(records[at].answer)
    if at is None or place is None or len(place.rows) > _MOST_ROWS:
        return ()

    read = 0

    def asked(numbers: Sequence[int]) -> VenueAnswer:
        nonlocal read
        read += len(numbers)
        kept = _with(records[at].answer, place.names, [place.rows[number] for number in numbers])
        return put([*records[:at], replace(records[at], answer=kept), *records[at + 1 :]])

    left = list(range(len(place.rows)))
    found: list[Odd] = []
    if asked([]).outcome == "drifted":
        return ()
    while len(found) < MOST_NAMED and read < _MOST_READ and (answer := asked(left)).outcome == "drifted":
        good, bad = 0, len(left)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if asked(left[:middle]).outcome == "drifted" else (middle, bad)
        number = left.pop(bad - 1)
        alone = asked([number])
        why = _odd((alone if alone.outcome == "drifted" else asked([*left[: bad - 1], number])).reason)
        if not why.row and alone.outcome != "drifted":
            break  # it is the number of rows
        found.append(Odd(number + 1, why.why))
    else:
        # Rows that no longer spoil the answer are left out of it.
        places = [each for each in left_out(answer) if each.row]
        found += [Odd(left[each.row - 1] + 1, each.why) for each in places if each.row <= len(left)]
    return tuple(sorted(found))


def strange(records: Sequence[Recorded]) -> Iterator[Odd]:
    """Yields what no parser minds: rows with one id, other types than usual, times of 1970, a total below the rows."""
    for record in records:
        place = _longest(record.answer)
        if place is None:
            continue
        parent = _at(record.answer, place.names[:-1])
        for name in _TOTALS if isinstance(parent, dict) else ():
            total = first(parent, name, f"pagination.{name}")
            if isinstance(total, int) and not isinstance(total, bool) and 0 <= total < len(place.rows):
                yield Odd(0, f"{name} is {total}, and there are {len(place.rows)} rows")
        looked_at = place.rows[:_MOST_ROWS]
        yield from _same_ids(looked_at)
        yield from _other_types(looked_at)
        yield from _no_times(looked_at)


def _odd(why: str) -> Odd:
    """Reads the row's number out of a parser's reason."""
    found = _IN_ROW.search(why)
    if found is None:
        return Odd(0, re.sub(r"^failed to understand [^:]{1,40}: ", "", why))
    return Odd(int(found[1]), found[2])


def _same_ids(rows: Sequence[Any]) -> Iterator[Odd]:
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        for name in _ID_FIELDS if isinstance(row, dict) else ():
            if isinstance(row.get(name), str):
                if (former := seen.setdefault(row[name], number)) != number:
                    yield Odd(number, f"{name} is the same as in row {former}")
                break


def _other_types(rows: Sequence[Any]) -> Iterator[Odd]:
    types: dict[str, Counter[str]] = {}
    told = [dict(_types(row)) for row in rows]
    for each in told:
        for name, kind in each.items():
            types.setdefault(name, Counter())[kind] += 1
    for number, each in enumerate(told, 1):
        for name, kind in each.items():
            (usual, count), total = types[name].most_common(1)[0], types[name].total()
            if kind != usual and total >= _FEWEST and count >= _ALIKE * total:
                yield Odd(number, f"{name or 'the row'} is {kind}, in the other rows {usual}")


def _types(row: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(row, dict):
        yield name, "an object"
        for each, part in row.items() if depth < 3 else ():
            yield from _types(part, f"{name}.{each}" if name else each, depth + 1)
    elif row is None and not name:
        yield name, "null"
    elif isinstance(row, bool):
        yield name, "a yes or no"
    elif isinstance(row, int | Decimal):
        yield name, "a number"
    elif isinstance(row, str):
        yield name, "an inscription id" if _INSCRIPTION.fullmatch(row) else "a text"
    elif row is not None:
        yield name, "a list"


def _no_times(rows: Sequence[Any]) -> Iterator[Odd]:
    for number, row in enumerate(rows, 1):
        for name, value in _fields(row):
            if _is_before_bitcoin(value):
                yield Odd(number, f"{name} is a time of 1970: a placeholder")


def _fields(row: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for each, part in row.items() if isinstance(row, dict) and depth < 3 else ():
        yield from _fields(part, each, depth + 1)
        if sort_of(each, name, row) is Sort.TIME:
            yield each, part


def _is_before_bitcoin(value: Any) -> bool:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).year < _FIRST_YEAR
        except ValueError:
            return value.isdecimal() and len(value) < 10
    return isinstance(value, int) and not isinstance(value, bool) and value < _FIRST_S


def _longest(answer: Any) -> _Place | None:
    """Returns the longest list that is not inside another one; None without any."""
    found = list(_lists(answer, ()))
    return max(found, key=lambda place: len(place.rows), default=None)


def _lists(value: Any, names: tuple[str, ...]) -> Iterator[_Place]:
    if isinstance(value, list):
        yield _Place(names, value)
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _lists(part, (*names, name))


def _at(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        value = value[name]
    return value


def _with(answer: Any, names: Sequence[str], rows: list[Any]) -> Any:
    """Returns the answer with another list there, and with totals that fit it."""
    if not names:
        return rows
    assert isinstance(answer, Mapping)
    changed = {**answer, names[0]: _with(answer[names[0]], names[1:], rows)}
    if len(names) == 1:
        for name in _TOTALS:
            if isinstance(changed.get(name), int):
                changed[name] = min(changed[name], len(rows))
    return changed
