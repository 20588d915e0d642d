"""Prompts for secrets: without echo at a terminal, else one line each from standard input. Never from arguments."""

from __future__ import annotations

import getpass
import sys

from core.errors import BidkeeperError


def secret(question: str) -> str:
    """Reads one line, without its end. Raises BidkeeperError when there is no more input."""
    try:
        if sys.stdin.isatty():
            return getpass.getpass(f"{question}: ")
        line = sys.stdin.readline()
    except EOFError:
        line = ""
    except UnicodeDecodeError:
        raise BidkeeperError(f"what was given is no text: {question}") from None
    if not line:
        raise BidkeeperError(f"no input for: {question}")
    return line.rstrip("\r\n")


def twice(question: str) -> str:
    """Reads the same line twice. Raises BidkeeperError when they differ."""
    first = secret(question)
    if secret(f"{question}, again") != first:
        raise BidkeeperError("the two entries differ")
    return first
