"""Logging: one line an event on stderr, with secrets masked wherever they come from."""

from __future__ import annotations

import logging
import re
import sys
import time

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
# A cheap first look: every secret has one of these words or a run of base64 characters as long as the shortest one.
# Most lines have neither, which takes a fifth of the time to see.
_WORDS = ("bearer", "key", "passphrase", "secret", "token")
_RUN = re.compile(r"[A-Za-z0-9+/=]{23}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


def mask(text: str) -> str:
    """Returns `text` without secrets and control characters, except line breaks, which tracebacks need."""
    if _may_have_secrets(text):
        text = _SECRETS.sub(_masked, text)
    return _CONTROL.sub("?", text)


def _may_have_secrets(text: str) -> bool:
    folded = text.casefold()  # as (?i:...) folds, which takes a long s or a Kelvin sign for the letter
    return any(word in folded for word in _WORDS) or "://" in text or _RUN.search(text) is not None


def _masked(found: re.Match[str]) -> str:
    text = found.group(0)
    if found.lastgroup in ("api", "bearer"):
        return re.split(r"[\s:=]", text, maxsplit=1)[0] + " [masked]"
    if found.lastgroup == "url":
        return re.split(r":(?!//)", text, maxsplit=1)[0] + ":[masked]@"
    return "[masked]"


class _MaskingFormatter(logging.Formatter):
    converter = staticmethod(time.gmtime)
    program = ""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        if record.args:
            # A line break inside an argument would let input forge a log line.
            record.message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        record.program = self.program
        return super().formatMessage(record)


def set_up(program: str, level: str = "INFO") -> None:
    """Sends every log line of this process to stderr as `time level program logger: message`.

    A forked process calls it again to write under its own name.
    """
    # No line shows its place in the code, thread or process; leaving this out is Python's own advice for speed.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    formatter = _own_formatter(root)
    if formatter is None:
        handler = logging.StreamHandler(sys.stderr)
        formatter = _MaskingFormatter(
            "%(asctime)s.%(msecs)03dZ %(levelname)s %(program)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
        )
        handler.setFormatter(formatter)
        root.handlers[:] = [handler]
    formatter.program = program
    root.setLevel(level)


def _own_formatter(root: logging.Logger) -> _MaskingFormatter | None:
    """Returns the formatter of the only handler, if `set_up` made it for the present stderr."""
    if len(root.handlers) != 1:
        return None
    [handler] = root.handlers
    if not isinstance(handler, logging.StreamHandler) or handler.stream is not sys.stderr:
        return None
    return handler.formatter if isinstance(handler.formatter, _MaskingFormatter) else None
