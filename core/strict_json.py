"""JSON and other text from outside, read without mercy: bounds, repeated names, odd characters.

Text with one meaning is taken: UTF-8 with or without a byte order mark, a secret with blanks or a line end around it.
The rest is refused in words that follow the file's or variable's name and never repeat the text, which may be a secret.

Whole numbers come out as int, others as Decimal; a number too large for either is Decimal("Infinity"), which no field
takes, so it is reported with the field's name.
"""

from __future__ import annotations

import codecs
import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

MARK = "\ufeff"  # the byte order mark, which Windows editors write before UTF-8
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_QUOTES = "\"'`"


class NotText(ValueError):
    """The bytes are not text in UTF-8."""


def decoded(content: bytes) -> str:
    """Returns the text of UTF-8 without its byte order mark, line ends as they are. Raises NotText."""
    if content.startswith(_UTF_16):
        raise NotText("is UTF-16: save it as UTF-8")
    if b"\0" in content:
        raise NotText("has a NUL byte in it, as UTF-16 and binary files do: save it as UTF-8 text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotText(f"is not UTF-8 in line {line}: save it as UTF-8") from None


def read_text(path: Path) -> str:
    """Returns a file's text with every line end as a line feed. Raises OSError and NotText."""
    return decoded(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")


def secret(value: str) -> str:
    """Returns an API key without the blanks around it. Raises ValueError for a key that no header can hold."""
    found = value.strip().removeprefix(MARK).strip()
    if any(quote in found for quote in _QUOTES):
        raise ValueError("has a quote in it: write the key alone, without quotes")
    if not all("!" <= letter <= "~" for letter in found):
        raise ValueError("must be one word of printable ASCII: copy the key again, without blanks or other text")
    return found


def variable(value: str) -> str:
    """Returns an environment variable's text without blanks and line ends around it. Raises ValueError.

    Files of variables that a Windows editor wrote leave a carriage return, and some tools keep the quotes.
    """
    found = value.strip()
    if len(found) > 1 and found[0] == found[-1] and found[0] in _QUOTES:
        raise ValueError("has quotes around it: write the value without them")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in found):
        raise ValueError("has a line end or another control character in it: write it on one line")
    if not found.isascii() and any("\ud800" <= letter <= "\udfff" for letter in found):
        raise ValueError("is not UTF-8: write it in UTF-8")
    return found


MAX_DEPTH = 10
MOST_KEYS, MOST_VALUES = 100, 2000  # of one object; of the whole body, at any depth
_MAX_DIGITS = 60
_SHOWN = 60


class BadJson(ValueError):
    """JSON that is refused; the message is ready to be a detail: where the fault is, and what it is."""


def read_object(given: bytes, name: str = "body", most_values: int = MOST_VALUES) -> dict[str, Any]:
    """Reads the JSON object in `given`, which faults call `name`. Raises BadJson."""
    reader = _Reader(name, most_values)
    try:
        value = json.loads(
            given.decode(),
            parse_int=reader.whole,
            parse_float=reader.decimal,
            parse_constant=reader.constant,
            object_pairs_hook=reader.object,
        )
    except BadJson:
        raise
    except (ValueError, RecursionError):
        raise BadJson(f"{name}: is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadJson(f"{name}: must be a JSON object")
    _Checker(name, most_values).check(value, MAX_DEPTH)
    return value


def shown(key: str, most: int = _SHOWN) -> str:
    """Makes a caller's own key, or a text that has it, fit to be repeated in a detail: at most `most` characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in key[:most])


class _Counter:
    """A count of the values. Too many end the reading, because all other requests wait meanwhile."""

    def __init__(self, name: str, most: int) -> None:
        self._most = self._left = most
        self._name = name

    def count(self) -> None:
        """Counts one value. Raises BadJson."""
        self._left -= 1
        if self._left < 0:
            raise self.fault(f"has more than {self._most} values")

    def fault(self, text: str) -> BadJson:
        """Makes the error of a fault that no field has."""
        return BadJson(f"{self._name}: {text}")


class _Reader(_Counter):
    """Numbers and objects as they are read; other values cost nothing before they are checked."""

    def whole(self, text: str) -> int | Decimal:
        self.count()
        return int(text) if len(text) <= _MAX_DIGITS else Decimal("Infinity")

    def decimal(self, text: str) -> Decimal:
        self.count()
        try:
            return Decimal(text)
        except InvalidOperation:
            return Decimal("Infinity")

    def constant(self, text: str) -> Any:
        raise self.fault(f"{text} is not a JSON number")

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self.count()
        if len(pairs) > MOST_KEYS:
            raise self.fault(f"has an object with more than {MOST_KEYS} fields")
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise BadJson(f"{shown(key)}: is given more than once")
            found[key] = value
        return found


class _Checker(_Counter):
    """Every value that has been read."""

    def check(self, value: Any, depth: int) -> None:
        self.count()
        if isinstance(value, str):
            self._check_text(value)
        elif isinstance(value, dict | list):
            if depth == 0:
                raise self.fault("is nested too deeply")
            if isinstance(value, dict):
                for key in value:
                    self._check_text(key)
                value = value.values()
            for item in value:
                self.check(item, depth - 1)

    def _check_text(self, text: str) -> None:
        """Refuses text that is not Unicode (a lone surrogate), which no part behind us can store or send."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.fault("has text that is not valid Unicode") from None
