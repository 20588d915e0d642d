"""The form of web addresses that users and strangers give us to ask: no private one, nothing hidden in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from core.public_address import may_be_reached, read
from core.setting_values import Network

LONGEST = 1_000
PRINTABLE = re.compile(r"[!-~]+")


def public_url_problem(url: str, networks: Sequence[Network]) -> str | None:
    """Says why `url` is none that we ask, or None. In `networks` it may be private, and plain http.

    Names are judged once more by the addresses to which they lead (`core/public_connection.py`).
    """
    if len(url) > LONGEST:
        return f"must have at most {LONGEST} letters"
    if not PRINTABLE.fullmatch(url):
        return "must have no blanks, and other letters as %XX"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if parts.scheme != "https" and not (parts.scheme == "http" and networks):
        return "must begin with https://"
    if not host or parts.username is not None or parts.password is not None or parts.fragment:
        return "must name a host, without a user name or a fragment"
    try:
        address = read(host)
    except ValueError:
        return None
    return None if may_be_reached(address, networks) else "must not be an address of a private network"
