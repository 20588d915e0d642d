"""Logging: one line for each event on stderr, with secrets masked."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from core import files

# Texts that must never be in a log: bearer tokens, addresses with a password, WIF and extended private keys, base64
# signatures and PSBTs.
_SECRETS = re.compile(
    r"(?P<bearer>(?i:bearer)\s+[A-Za-z0-9_\-\.~+/=]{8,})"
    r"|(?P<api>(?i:x-api-key|api[_-]?key|passphrase|secret|token)[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9_\-\.~+/=]{8,})"
    r"|(?P<url>://[^\s:/@]*:[^\s/@]+@)"
    r"|(?P<wif>\b[5KL9c][1-9A-HJ-NP-Za-km-z]{50,51}\b)"
    r"|(?P<xprv>\b[xyzt]prv[1-9A-HJ-NP-Za-km-z]{50,}\b)"
    r"|(?P<webhook>\bwhsec_[A-Za-z0-9+/=]{20,})"
    r"|(?P<blob>\b(?:AkcwRA|AkgwRQ|AUD|AUE|cHNidP)[A-Za-z0-9+/=]{20,})"
)
# A quick test before the search: each secret contains one of these words, `://` or a run of base64 characters. Most
# lines contain none of them, and the test takes a fifth of the time of the search.
_WORDS = ("bearer", "key", "passphrase", "secret", "token")
_RUN = re.compile(r"[A-Za-z0-9+/=]{23}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


def mask(text: str) -> str:
    """Returns `text` without secrets and control characters, except line breaks, which tracebacks need."""
    if _may_have_secrets(text):
        text = _SECRETS.sub(_masked, text)
    return _CONTROL.sub("?", text)


def _may_have_secrets(text: str) -> bool:
    folded = text.casefold()  # as (?i:...) does, which accepts a long s for s and a Kelvin sign for k
    return any(word in folded for word in _WORDS) or "://" in text or _RUN.search(text) is not None


def _masked(found: re.Match[str]) -> str:
    text = found.group(0)
    if found.lastgroup in ("api", "bearer"):
        return re.split(r"[\s:=]", text, maxsplit=1)[0] + " [masked]"
    if found.lastgroup == "url":
        return re.split(r":(?!//)", text, maxsplit=1)[0] + ":[masked]@"
    return "[masked]"


class _MaskingFormatter(logging.Formatter):
    """Writes an event as a line of text: `time level program logger: message`."""

    converter = staticmethod(time.gmtime)
    program = ""
    _known = (-1, "")  # the last second, and its text

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        # Kept because a program may log many lines a second. One assignment replaces the pair because threads share it.
        if int(record.created) != self._known[0]:
            self._known = int(record.created), super().formatTime(record, datefmt)
        return self._known[1]

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _without_line_breaks(record)
        record.program = self.program
        return super().formatMessage(record)


class _JsonFormatter(_MaskingFormatter):
    """Writes an event as a JSON object on one line; each of its texts is masked before it is quoted."""

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        task = _task_of(record)
        fields: dict[str, object] = {
            "time": f"{self.formatTime(record, self.datefmt)}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "program": self.program,
        }
        if self.program.startswith(_OF_TASK):
            fields["program"], task = _WORKER, int(self.program.removeprefix(_OF_TASK))
        if task is not None:
            fields["task"] = task
        fields |= {"logger": record.name, "message": mask(_without_line_breaks(record))}
        if record.exc_info:
            fields["exception"] = mask(self.formatException(record.exc_info))
        if record.stack_info:
            fields["stack"] = mask(self.formatStack(record.stack_info))
        return json.dumps(fields)


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines to stderr. Drops them while the disk of `directory` is short, with a notice at begin and end."""

    directory: Path | None = None
    _is_short = False
    _looked_s = 0.0
    _left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        if self._is_short != self._finds_short():
            self._is_short = not self._is_short
            if self._is_short:
                self._note("the disk of %s is short of room: no lines are written until there is more", self.directory)
            else:
                self._note("the disk of %s has room again: %d lines were left out", self.directory, self._left_out)
            self._left_out = 0
        if self._is_short:
            self._left_out += 1
        else:
            super().emit(record)

    def _finds_short(self) -> bool:
        """Tells whether the disk is short of space; checks it at most once a second."""
        if self.directory is None or time.monotonic() - self._looked_s < 1:
            return self._is_short
        self._looked_s = time.monotonic()
        try:
            return files.is_short(self.directory)
        except OSError:
            return False

    def _note(self, words: str, *values: object) -> None:
        super().emit(logging.LogRecord(__name__, logging.WARNING, "", 0, words, values, None))


FORMATTERS = {"text": _MaskingFormatter, "json": _JsonFormatter}
_OF_TASK, _WORKER = "task-", "worker"  # a worker's program name in text, and in JSON, where `task` is a separate field
_NAMED_TASK = re.compile(r"\btask %[ds]")


def _without_line_breaks(record: logging.LogRecord) -> str:
    """Returns the message; escapes line breaks if it has arguments, so that outside input cannot forge a log line."""
    return record.message.replace("\r", "\\r").replace("\n", "\\n") if record.args else record.message


def _task_of(record: logging.LogRecord) -> int | None:
    """Returns the task that the message names: taken from the arguments, because the text may contain outside input."""
    if not isinstance(record.msg, str) or not isinstance(record.args, tuple):
        return None
    found = _NAMED_TASK.search(record.msg)
    place = record.msg[: found.start()].replace("%%", "").count("%") if found else len(record.args)
    value = record.args[place] if place < len(record.args) else None
    return value if isinstance(value, int) else None


def as_text(line: str) -> str:
    """Converts a log line from JSON to the text format; returns any other line unchanged."""
    if not line.startswith('{"time": "'):
        return line
    try:
        fields = json.loads(line)
    except ValueError:
        return line
    program = f"{_OF_TASK}{fields.get('task')}" if fields.get("program") == _WORKER else fields.get("program")
    text = f"{fields['time']} {fields.get('level')} {program} {fields.get('logger')}: {fields.get('message')}"
    for added in ("exception", "stack"):
        if added in fields:
            text += ("" if text.endswith("\n") else "\n") + str(fields[added])
    return text


def set_up(program: str, level: str = "INFO", form: str = "text") -> None:
    """Sends every log line of this process to stderr, in one of the FORMATTERS.

    A forked process calls it again to write under its own name.
    """
    # Log lines show no source position, thread or process, so these are not looked up, as Python's manual advises.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    formatter = _own_formatter(root)
    if type(formatter) is not FORMATTERS[form]:
        handler = _Handler(sys.stderr)
        formatter = FORMATTERS[form](
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(program)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        handler.setFormatter(formatter)
        root.handlers[:] = [handler]
        if form == "json":
            _log_python_errors()
    assert formatter is not None
    formatter.program = program
    if logging.getLevelName(root.level) != level:  # setLevel writes to every logger, so a fork would copy their memory
        root.setLevel(level)


def stop_when_short(directory: Path) -> None:
    """Drops this process's lines while the disk of `directory`, where they are written, is short of space."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Handler):
            handler.directory = directory


def writes_json() -> bool:
    """Tells whether this process writes its log as JSON."""
    return isinstance(_own_formatter(logging.getLogger()), _JsonFormatter)


def _log_python_errors() -> None:
    """Sends uncaught exceptions and Python's warnings to the log."""
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda args: _log_uncaught(args.exc_type, args.exc_value, args.exc_traceback)
    logging.captureWarnings(True)


def _log_uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    error = kind() if error is None else error
    logging.getLogger(__name__).critical("ended by an error", exc_info=(kind, error, trace))


def _own_formatter(root: logging.Logger) -> _MaskingFormatter | None:
    """Returns the formatter that `set_up` made for the present stderr, or None."""
    if len(root.handlers) != 1:
        return None
    [handler] = root.handlers
    if not isinstance(handler, logging.StreamHandler) or handler.stream is not sys.stderr:
        return None
    return handler.formatter if isinstance(handler.formatter, _MaskingFormatter) else None
