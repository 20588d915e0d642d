"""`bidkeeper venue check FILE`: checks a probe file with this version's parsers. It opens no connection."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from cli.doctor.questions import About, Exchange, Outcome, Question, VenueAnswer, answer_of, default_about
from cli.probe_masking import Sort, sort_of
from cli.probe_questions import (
    MAY_BE_REFUSED,
    NOTHING_ASKED,
    NotAProbeFile,
    Raw,
    Record,
    Recorded,
    questions,
    read,
    subjects_of,
)
from core.settings import VENUES, Settings, dialect_of
from gateway.app import adapter_of
from gateway.program import Adapters
from markets.base import NotFound, Unavailable
from markets.http import Http, Reply
from markets.mempool import Mempool
from markets.ord import Ord
from markets.orders import SignInTexts
from markets.ordnet.adapter import OrdNet
from markets.parse import first
from markets.unisat.index import Unisat, UnisatIndex

MOST_NAMED = 20  # oddities shown of one answer, and rows shown of one oddity
_MOST_ROWS = 10_000  # of a list that are checked one by one; a venue's answer has at most 2 MB
_MOST_READ = 50_000  # rows read to find the rows for which one answer is refused
_ID_FIELDS = ("_id", "bid_id", "id", "auctionId", "listingId", "saleId", "inscriptionId")
_TOTALS = ("total", "totalCount")
_IN_ROW = re.compile(r"(?:^|: )[a-z][a-z \-']{0,40} (\d{1,5}): (.*)$")
_INSCRIPTION = re.compile(r"[0-9a-f]{64}i[0-9]{1,9}", re.ASCII)
_FIRST_S, _FIRST_YEAR = 10**9, 2001
_ALIKE = Decimal("0.75")  # of the rows: a type that this share of them has is usual
_FEWEST = 4  # rows that a type needs to be usual


class Odd(NamedTuple):
    """An odd row: its number from 1 (0 for the answer as a whole), and the oddity."""

    row: int
    why: str


class _Place(NamedTuple):
    """The longest list of an answer, and the field names that lead to it."""

    names: tuple[str, ...]
    rows: Sequence[Any]


def stumbled(records: Sequence[Recorded], put: Callable[[Sequence[Recorded]], VenueAnswer]) -> tuple[Odd, ...]:
    """Finds the rows for which an answer is refused, by bisection.

    It takes out the last row of the shortest refused beginning, and repeats. `put` asks the question of other records.
    Returns () if the fault is not in a row. Stops at `MOST_NAMED` rows, or once it has read `_MOST_READ`.
    """
    places = [(at, place) for at, record in enumerate(records) if (place := _longest(record.answer)) is not None]
    if not places or len(places[-1][1].rows) > _MOST_ROWS:
        return ()
    (at, place), read = places[-1], 0

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
            break  # the number of rows is the fault, not a row
        found.append(Odd(number + 1, why.why))
    else:
        # The accepted answer also reports rows that its parser left out.
        unread = [_odd(each.why) for each in answer.unread if not each.is_foreign]
        found += [Odd(left[each.row - 1] + 1, each.why) for each in unread if 0 < each.row <= len(left)]
    return tuple(sorted(found))


def strange(records: Sequence[Recorded]) -> Iterator[Odd]:
    """Yields oddities that parsers accept: rows with one id, unusual types, times of 1970, totals below the rows."""
    for record in records:
        place = _longest(record.answer)
        if place is None:
            continue
        parent = record.answer
        for name in place.names[:-1]:
            parent = parent[name]
        for name in _TOTALS if isinstance(parent, dict) else ():
            total = first(parent, name, f"pagination.{name}")
            if isinstance(total, int) and not isinstance(total, bool) and 0 <= total < len(place.rows):
                yield Odd(0, f"{name} is {total}, and there are {len(place.rows)} rows")
        seen: dict[str, int] = {}
        for number, row in enumerate(place.rows[:_MOST_ROWS], 1):
            named = (name for name in _ID_FIELDS if isinstance(row, dict) and isinstance(row.get(name), str))
            if (field := next(named, None)) and (former := seen.setdefault(row[field], number)) != number:
                yield Odd(number, f"{field} is the same as in row {former}")
        yield from _other_types(place.rows[:_MOST_ROWS])
        for number, row in enumerate(place.rows[:_MOST_ROWS], 1):
            for name, value in _fields(row):
                if _is_before_bitcoin(value):
                    yield Odd(number, f"{name} is a time of 1970: a placeholder")


def _odd(why: str) -> Odd:
    """Reads the row's number from a parser's reason."""
    found = _IN_ROW.search(why)
    if found is None:
        return Odd(0, re.sub(r"^failed to understand [^:]{1,40}: ", "", why))
    return Odd(int(found[1]), found[2])


def _other_types(rows: Sequence[Any]) -> Iterator[Odd]:
    types: dict[str, Counter[str]] = {}
    kinds = [dict(_types(row)) for row in rows]
    for each in kinds:
        for name, kind in each.items():
            types.setdefault(name, Counter())[kind] += 1
    for number, each in enumerate(kinds, 1):
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
    """Returns the longest list that is not inside another list; None without a list."""
    return max(_lists(answer, ()), key=lambda place: len(place.rows), default=None)


def _lists(value: Any, names: tuple[str, ...]) -> Iterator[_Place]:
    if isinstance(value, list):
        yield _Place(names, value)
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _lists(part, (*names, name))


def _with(answer: Any, names: Sequence[str], rows: list[Any]) -> Any:
    """Returns the answer with `rows` in place of the list at `names`, and with totals that fit it."""
    if not names:
        return rows
    assert isinstance(answer, Mapping)
    changed = {**answer, names[0]: _with(answer[names[0]], names[1:], rows)}
    if len(names) == 1:
        for name in _TOTALS:
            if isinstance(changed.get(name), int):
                changed[name] = min(changed[name], len(rows))
    return changed


ORIGIN = "https://replayed.invalid"  # a name that never resolves (RFC 2606)
_LEFT_OUT = "its answer was left out of the file, because the file would be too large"


class Replay:
    """Answers questions from a file's records. Call `hook` for each Http first; `put` then asks a question."""

    def __init__(self) -> None:
        self._left: list[Recorded] = []
        self._heard: list[Exchange] = []

    def hook(self, http: Http) -> None:
        """Answers all requests of `http` from the records from now on; closes its connections."""
        http._session.close()
        http._session = None  # type: ignore[assignment]
        http._exchange = self._exchange  # type: ignore[method-assign, assignment]

    def put(self, question: Question, records: Sequence[Recorded]) -> VenueAnswer:
        """Asks one question, answered from `records`. Never raises."""
        self._left, self._heard = list(records), []
        return answer_of(question, self._heard)

    def _exchange(self, how: Any, method: str, path: str, **request: Any) -> Reply:
        made = next((each for each in self._left if (each.method, each.path) == (method, path)), None)
        if made is None:
            recorded = ", ".join(f"{each.method} {each.path}" for each in self._left) or "no further request"
            raise Unavailable(f"this version asks {method} {path}, and the file has {recorded}")
        self._left.remove(made)
        reply = None
        if made.status is not None and (made.is_json or made.text is not None):
            headers = {name.title(): value for name, value in made.headers.items()}
            reply = Reply(made.status, headers, made.reply_body())
        self._heard.append(Exchange(method, path, made.params, made.body, 0, 0, reply))
        if reply is None:
            raise Unavailable("the venue gave no answer" if made.status is None else _LEFT_OUT)
        return reply


_EXPECTED: frozenset[Outcome] = frozenset({"understood", "not known", "not supported", "no session"})
_SIGNATURE = "AA=="  # in place of a session's signatures, which no file contains
_MEANING: dict[Outcome, str] = {
    "not known": "not known there",
    "not supported": "not supported",
    "no session": "not asked, because it needs a session",
    "drifted": "not understood",
    "no access": "access refused",
    "pause": "the venue asks for a pause",
    "silent": "no answer",
    "refused": "refused",
}


class Finding(Struct, frozen=True):
    """The result of one question. `odd` rows are not understood; `notes` are strange rows that are understood."""

    answer: VenueAnswer
    odd: tuple[Odd, ...] = ()
    foreign: tuple[Odd, ...] = ()
    notes: tuple[Odd, ...] = ()

    @property
    def is_clear(self) -> bool:
        """True if the parsers understand the whole answer, or it says nothing about them."""
        outcome = self.answer.outcome
        if outcome in ("refused", "no access") and self.answer.question in MAY_BE_REFUSED:
            return True
        return outcome in _EXPECTED and not self.odd

    def lines(self) -> Iterator[str]:
        """Yields the result, then a line for each oddity with its rows."""
        state = "ok  " if self.is_clear else "odd " if self.answer.outcome == "understood" else "FAIL"
        yield f"{state} {self.answer.question}: {self._said()}"
        for kind, found in (("", self.odd), ("about something else: ", self.foreign), ("strange: ", self.notes)):
            for line in _named(self.answer.question, found):
                yield f"     {kind}{line}"

    def _said(self) -> str:
        answer, value, said = self.answer, self.answer.value, "understood"
        if answer.outcome == "not known" and answer.reason.startswith(NOTHING_ASKED):
            return answer.reason
        if answer.outcome != "understood":
            return f"{_MEANING[answer.outcome]}: {answer.reason}"
        if isinstance(value, Raw):
            rows = f", {len(value.answer)} rows" if isinstance(value.answer, list) else ""
            return f"kept as evidence{rows}; no parser reads it"
        if isinstance(value, dict) or (isinstance(value, tuple) and not any(isinstance(each, str) for each in value)):
            said += f", {len(value)} {'row' if len(value) == 1 else 'rows'}"
        said += f", {len(self.odd)} left out" if self.odd else ""
        return said + (f", {len(self.foreign)} about something else" if self.foreign else "")


def _named(question: str, found: Sequence[Odd]) -> Iterator[str]:
    """Yields each oddity once with its rows, at most `MOST_NAMED` of both."""
    rows: dict[str, list[int]] = {}
    for odd in found:
        rows.setdefault(odd.why, []).append(odd.row)
    for why, numbers in islice(rows.items(), MOST_NAMED):
        named = ", ".join(map(str, numbers[:MOST_NAMED]))
        named += f" and {more} more" if (more := len(numbers) - MOST_NAMED) > 0 else ""
        where = "" if numbers == [0] else f", {'row' if len(numbers) == 1 else 'rows'} {named}"
        yield f"{question}{where}: {why}"


def run(settings: Settings, file: Path) -> int:
    """Returns 0 if all answers are understood, 1 if any is not, 2 if the file is not a probe file."""
    try:
        record = read(file)
        findings = check(record, settings)
    except NotAProbeFile as error:
        print(f"bidkeeper: {error}", file=sys.stderr)
        return 2
    asked = datetime.fromtimestamp(record.asked_ms / 1000, UTC).isoformat(" ", "seconds")
    print(_printable(f"{record.venue}, asked at {asked} by Bidkeeper {record.bidkeeper}"))
    return shown(findings)


def shown(findings: Sequence[Finding]) -> int:
    """Prints the findings; returns 0 if all are clear, else 1."""
    for finding in findings:
        for line in finding.lines():
            print(_printable(line), flush=True)
    unclear = [finding for finding in findings if not finding.is_clear]
    print(f"{len(findings)} questions, {len(findings) - len(unclear)} clear, {len(unclear)} not")
    return 1 if unclear else 0


def _printable(line: str) -> str:
    """Returns a line of a venue's text without characters that could control a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def check(record: Record, settings: Settings) -> list[Finding]:
    """Asks the file's questions again, answered from the file. Raises NotAProbeFile if the venue is unknown."""
    replay = Replay()
    if "rune_price" in record.about:
        settings = replace(settings, satflow_rune_price=record.about["rune_price"])
    adapters = _adapters(record, settings, replay)
    usual = default_about("simulator" if "simulator" in record.venue else "")
    subjects = subjects_of(record.about, About(usual.collection, usual.rune))

    def sign(texts: SignInTexts) -> Mapping[str, str]:
        if not record.questions["sign-in"]:
            raise NotFound(f"{NOTHING_ASKED}: no signature was given")
        return {text.id: _SIGNATURE for text in texts.texts}

    signing = sign if "sign-in" in record.questions else None
    known = {each.name: each for each in questions(record.venue, adapters, subjects, replay.hook, signing)}
    return [_finding(known.get(name), name, exchanges, replay) for name, exchanges in record.questions.items()]


def _finding(question: Question | None, name: str, records: Sequence[Recorded], replay: Replay) -> Finding:
    if question is None:
        return Finding(VenueAnswer(name, "drifted", None, "this version of Bidkeeper has no such question"))
    answer = replay.put(question, records)
    odd = tuple(_odd(each.why) for each in answer.unread if not each.is_foreign)
    foreign = tuple(_odd(each.why) for each in answer.unread if each.is_foreign)
    if answer.outcome == "drifted":
        odd = stumbled(records, lambda others: replay.put(question, others))
    named = {each.row for each in (*odd, *foreign)} - {0}
    notes = tuple(each for each in strange(records) if each.row not in named)
    return Finding(answer, odd, foreign, notes)


def _adapters(record: Record, settings: Settings, replay: Replay) -> Adapters:
    """Makes the adapters of the file's venue; `replay` answers them."""
    venue = record.venue
    if venue not in (*VENUES, "mempool", "ord"):
        raise NotAProbeFile(f"its venue {venue!r} is not one that this Bidkeeper knows")
    if dialect_of(venue) is None:
        source = Mempool(ORIGIN) if venue == "mempool" else Ord(ORIGIN)
        replay.hook(source._http)
        return Adapters(mempool=source) if isinstance(source, Mempool) else Adapters(ord=source)
    adapter = adapter_of(venue, ORIGIN, "", settings)
    if isinstance(adapter, OrdNet):
        adapter = OrdNet(ORIGIN, venue, clock=lambda: record.asked_ms / 1000)
    replay.hook(adapter._http)  # type: ignore[attr-defined]
    if dialect_of(venue) != "unisat":
        return Adapters({venue: adapter})
    runes, index = Unisat(ORIGIN, None), UnisatIndex(ORIGIN, None)
    replay.hook(runes._http)
    replay.hook(index._http)
    return Adapters({venue: adapter}, runes, index)
