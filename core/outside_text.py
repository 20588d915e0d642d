"""Text that an operator wrote: files, keys, environment variables.

Text with one meaning is taken: UTF-8 with or without a byte order mark, a secret with blanks or a line end around it.
The rest is refused in words that follow the file's or variable's name and never repeat the text, which may be a secret.
"""

from __future__ import annotations

import codecs
from pathlib import Path

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
