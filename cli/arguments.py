"""Arguments that several verbs read."""

from __future__ import annotations

import argparse

from wallet.address import AddressError, sign_in_address


def address(text: str) -> str:
    """Reads the address that a user signs in with, for argparse."""
    try:
        return sign_in_address(text)
    except AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
