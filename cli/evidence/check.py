"""`bidkeeper venue check FILE`: a probe file held against the parsers of this version. Nothing connects."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from cli.doctor.questions import About, Outcome, Question, VenueAnswer, default_about
from cli.evidence import oddities
from cli.evidence.oddities import MOST_NAMED, Odd
from cli.evidence.questions import (
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
from cli.evidence.replay import ORIGIN, Replay
from core.settings import VENUES, Settings, dialect_of
from gateway.adapters import Adapters
from gateway.registry import adapter_of
from markets.base import NotFound
from markets.mempool import Mempool
from markets.offers import SignInTexts
from markets.ord import Ord
from markets.ordnet.adapter import OrdNet
from markets.unisat.adapter import Unisat
from markets.unisat.index import UnisatIndex

_EXPECTED: frozenset[Outcome] = frozenset({"understood", "not known", "not supported", "no session"})
_SIGNATURE = "AA=="  # in place of a session's signatures, which no file has
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


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one question. `odd` rows are not understood, `notes` are strange and understood."""

    answer: VenueAnswer
    odd: tuple[Odd, ...] = ()
    foreign: tuple[Odd, ...] = ()
    notes: tuple[Odd, ...] = ()

    @property
    def is_clear(self) -> bool:
        """Whether the parsers understand all of it, or it says nothing about them."""
        outcome = self.answer.outcome
        if outcome in ("refused", "no access") and self.answer.question in MAY_BE_REFUSED:
            return True
        return outcome in _EXPECTED and not self.odd

    def lines(self) -> Iterator[str]:
        """Writes the result, then a line for each oddity with its rows."""
        state = "ok  " if self.is_clear else "odd " if self.answer.outcome == "understood" else "FAIL"
        yield f"{state} {self.answer.question}: {self._said()}"
        for kind, found in (("", self.odd), ("about something else: ", self.foreign), ("strange: ", self.notes)):
            for line in _named(self.answer.question, found):
                yield f"     {kind}{line}"

    def _said(self) -> str:
        answer = self.answer
        if answer.outcome == "not known" and answer.reason.startswith(NOTHING_ASKED):
            return answer.reason
        if answer.outcome != "understood":
            return f"{_MEANING[answer.outcome]}: {answer.reason}"
        if isinstance(answer.value, Raw):
            rows = f", {len(answer.value.answer)} rows" if isinstance(answer.value.answer, list) else ""
            return f"kept as evidence{rows}; no parser reads it"
        value = answer.value
        is_list = isinstance(value, dict) or (isinstance(value, tuple) and not any(isinstance(x, str) for x in value))
        many = len(value) if is_list else None
        said = "understood" if many is None else f"understood, {many} {'row' if many == 1 else 'rows'}"
        said += f", {len(self.odd)} left out" if self.odd else ""
        return said + (f", {len(self.foreign)} about something else" if self.foreign else "")


def _named(question: str, found: Sequence[Odd]) -> Iterator[str]:
    """Writes each oddity once with the rows that have it, `MOST_NAMED` of both at most."""
    rows: dict[str, list[int]] = {}
    for odd in found:
        rows.setdefault(odd.why, []).append(odd.row)
    for why, numbers in islice(rows.items(), MOST_NAMED):
        named = ", ".join(map(str, numbers[:MOST_NAMED]))
        named += f" and {more} more" if (more := len(numbers) - MOST_NAMED) > 0 else ""
        where = "" if numbers == [0] else f", {'row' if len(numbers) == 1 else 'rows'} {named}"
        yield f"{question}{where}: {why}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds FILE."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a file that venue probe has saved")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Returns 0 when everything is understood, 1 when something is not, 2 when the file is not a probe file."""
    try:
        record = read(options.file)
        findings = check(record, settings)
    except NotAProbeFile as error:
        print(f"bidkeeper: {error}", file=sys.stderr)
        return 2
    asked = datetime.fromtimestamp(record.asked_ms / 1000, UTC).isoformat(" ", "seconds")
    print(_printable(f"{record.venue}, asked at {asked} by Bidkeeper {record.bidkeeper}"))
    return shown(findings)


def shown(findings: Sequence[Finding]) -> int:
    """Prints the findings; returns 0 when all are clear, else 1."""
    for finding in findings:
        for line in finding.lines():
            print(_printable(line), flush=True)
    unclear = [finding for finding in findings if not finding.is_clear]
    print(f"{len(findings)} questions, {len(findings) - len(unclear)} clear, {len(unclear)} not")
    return 1 if unclear else 0


def _printable(line: str) -> str:
    """Returns a line of foreign words without what could steer a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def check(record: Record, settings: Settings) -> list[Finding]:
    """Asks the file's questions again, answered from the file. Raises NotAProbeFile for an unknown venue."""
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
    odd, foreign = tuple(oddities.left_out(answer)), tuple(oddities.left_out(answer, foreign=True))
    if answer.outcome == "drifted":
        odd = oddities.stumbled(records, lambda others: replay.put(question, others))
    named = {each.row for each in (*odd, *foreign)} - {0}
    notes = tuple(each for each in oddities.strange(records) if each.row not in named)
    return Finding(answer, odd, foreign, notes)


def _adapters(record: Record, settings: Settings, replay: Replay) -> Adapters:
    """Makes the adapters of the file's venue, which ask `replay`."""
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
