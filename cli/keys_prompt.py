"""Prompts for secrets: without echo at a terminal, else one line each from standard input. Never from arguments."""

from __future__ import annotations

import getpass
import sys

from core.errors import BidkeeperError
from core.outside_text import NotText, decoded


def secret(question: str) -> str:
    """Reads one line, without its end and a byte order mark. Raises BidkeeperError when there is no more input."""
    try:
        if sys.stdin.isatty():
            return getpass.getpass(f"{question}: ")
        # A locale without UTF-8 keeps bytes that it does not know as they are (surrogateescape).
        line = decoded(sys.stdin.readline().encode("utf-8", "surrogateescape"))
    except EOFError:
        line = ""
    except (NotText, UnicodeError):
        raise BidkeeperError(f"the input is not text in UTF-8: {question}") from None
    if not line:
        raise BidkeeperError(f"no input for: {question}")
    return line.rstrip("\r\n")


def twice(question: str) -> str:
    """Reads the same line twice. Raises BidkeeperError when they differ."""
    first = secret(question)
    if secret(f"{question}, again") != first:
        raise BidkeeperError("the two entries differ")
    return first
