"""Arguments that several verbs read."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from core import fields
from core.errors import BidkeeperError
from wallet.address import pasted_sign_in_address


def address(text: str) -> str:
    """Reads the address that a user signs in with, for argparse."""
    return _read(pasted_sign_in_address, text)


def inscription(text: str) -> str:
    """Reads an inscription's id, for argparse."""
    return _read(fields.inscription, text)


def collection(text: str) -> str:
    """Reads a collection's slug, for argparse."""
    return _read(fields.collection, text)


def ticker(text: str) -> str:
    """Reads a rune's ticker, for argparse."""
    return _read(fields.ticker, text)


def _read(read: Callable[[str], str], text: str) -> str:
    try:
        return read(text)
    except BidkeeperError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def up_to(most: int) -> Callable[[str], int]:
    """Returns an argparse type for whole numbers from 1 to `most`."""

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {most}")

    return read
