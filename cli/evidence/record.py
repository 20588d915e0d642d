"""The form of a probe file: one JSON object with a venue's answers by question. It is read as foreign input."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from core.errors import BidkeeperError
from markets.wire import Unreadable, parse, rows, table, text, whole

FORMAT, VERSION = "bidkeeper-probe", 1
MOST_BYTES = 16_000_000
LONGEST_TEXT = 20_000  # characters of an answer that is not JSON
_MOST_QUESTIONS, _MOST_EXCHANGES, _MOST_HEADERS = 100, 10, 50
_METHODS = frozenset({"GET", "POST"})
_HEADER = re.compile(r"[A-Za-z0-9\-]{1,60}", re.ASCII)
_LAST_MS = 10**13  # in 2286
_DEEPEST = 60  # lists and objects within one another


class NotAProbeFile(BidkeeperError):
    """The file is not a probe file of this version; the message says why."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One exchange. `status` None is no answer; `text` is an answer without JSON, None where it was left out."""

    method: str
    path: str
    params: Mapping[str, str]
    body: Any
    status: int | None
    headers: Mapping[str, str]
    answer: Any = None
    text: str | None = None
    is_json: bool = False

    def reply_body(self) -> bytes:
        """Returns the answer's body."""
        return dumps(self.answer).encode() if self.is_json else (self.text or "").encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Record:
    """A probe file. `about` are the questions' subjects, `questions` the exchanges by question, in their order."""

    venue: str
    bidkeeper: str
    asked_ms: int
    about: Mapping[str, str]
    questions: Mapping[str, tuple[Recorded, ...]]


def written(record: Record) -> bytes:
    """Returns the file's bytes."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "bidkeeper": record.bidkeeper,
        "venue": record.venue,
        "askedMs": record.asked_ms,
        "about": dict(record.about),
        "questions": [
            {"name": name, "exchanges": [_exchange(each) for each in exchanges]}
            for name, exchanges in record.questions.items()
        ],
    }
    return (dumps(content, 0) + "\n").encode("utf-8", "surrogatepass")


def _exchange(made: Recorded) -> dict[str, Any]:
    asked = {"method": made.method, "path": made.path, "params": dict(made.params), "body": made.body}
    answered = {"status": made.status, "headers": dict(made.headers)}
    if made.is_json:
        return asked | answered | {"answer": made.answer}
    return asked | answered | ({} if made.text is None else {"text": made.text})


def dumps(value: Any, indent: int | None = None) -> str:
    """Writes JSON in which a Decimal is the number with its own digits; with `indent`, an entry a line."""
    if isinstance(value, Decimal):
        return str(value)
    if not isinstance(value, Mapping | list | tuple):
        return json.dumps(value)
    inner = None if indent is None else indent + 1
    if isinstance(value, Mapping):
        entries = [f"{json.dumps(name)}: {dumps(part, inner)}" for name, part in value.items()]
    else:
        entries = [dumps(part, inner) for part in value]
    start, end = ("{", "}") if isinstance(value, Mapping) else ("[", "]")
    if inner is None or not entries:
        return start + ", ".join(entries) + end
    margin = "\n" + " " * inner
    return start + margin + ("," + margin).join(entries) + "\n" + " " * (inner - 1) + end


def read(path: Path) -> Record:
    """Reads a probe file. Raises NotAProbeFile, also for one that is too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotAProbeFile(f"{path} is not a file")
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NotAProbeFile(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise NotAProbeFile(f"{path} is too large: a probe file has at most {MOST_BYTES:,} bytes")
    try:
        return _record(parse(content))
    except Unreadable as error:
        raise NotAProbeFile(f"{path} is not a probe file: {error}") from error


def _record(value: Any) -> Record:
    content = table(value, "the file")
    if content.get("format") != FORMAT:
        raise Unreadable(f'"format" is not "{FORMAT}"')
    if (version := content.get("version")) != VERSION or isinstance(version, bool):
        raise Unreadable(f"its version is {str(version)[:20]}, and this Bidkeeper reads version {VERSION}")
    questions: dict[str, tuple[Recorded, ...]] = {}
    for row in rows(content.get("questions"), "questions", most=_MOST_QUESTIONS):
        question = table(row, "question")
        name = text(question.get("name"), "question's name", longest=60)
        if name in questions:
            raise Unreadable(f"the question {name!r} is there twice")
        exchanges = rows(question.get("exchanges"), f"exchanges of {name}", most=_MOST_EXCHANGES)
        questions[name] = tuple(_recorded(table(each, f"exchange of {name}"), name) for each in exchanges)
    if not questions:
        raise Unreadable("it has no questions")
    about = {name: text(each, f"about {name}") for name, each in table(content.get("about"), "about").items()}
    asked_ms = whole(content.get("askedMs"), "askedMs")
    if asked_ms >= _LAST_MS:
        raise Unreadable("askedMs: not a time in milliseconds")
    return Record(
        text(content.get("venue"), "venue", longest=40),
        text(content.get("bidkeeper"), "bidkeeper", longest=100),
        asked_ms,
        about,
        questions,
    )


def _recorded(entry: Mapping[str, Any], name: str) -> Recorded:
    if not isinstance(method := entry.get("method"), str) or method not in _METHODS:
        raise Unreadable(f"{name}: the method is not GET or POST")
    params = table(entry.get("params"), f"{name}: params")
    headers = table(entry.get("headers"), f"{name}: headers")
    if len(headers) > _MOST_HEADERS or not all(map(_HEADER.fullmatch, headers)):
        raise Unreadable(f"{name}: the headers are not headers")
    for each in (*params.values(), *headers.values()):
        if not isinstance(each, str):
            raise Unreadable(f"{name}: a parameter or header is not a text")
    status, told = entry.get("status"), entry.get("text")
    if status is not None and (type(status) is not int or not 100 <= status < 600):
        raise Unreadable(f"{name}: the status is not an HTTP status")
    if told is not None and not isinstance(told, str):
        raise Unreadable(f"{name}: the text is not a text")
    _check_depth(entry.get("answer"), name)
    path = text(entry.get("path"), f"{name}: path", longest=2000)
    is_json = "answer" in entry
    return Recorded(method, path, params, entry.get("body"), status, headers, entry.get("answer"), told, is_json)


def _check_depth(value: Any, name: str, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise Unreadable(f"{name}: the answer is nested too deeply")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(each, name, depth + 1)
