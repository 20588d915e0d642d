"""The addresses of hooks: the forms that each kind takes, and the part that is shown again.

webhook, ntfy, discord   https://...
telegram                 telegram:CHAT, a number or @name; the secret is the bot's token
mail                     mailto:name@example.com
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from core.public_address import Address, is_public, read
from core.setting_values import Network

WEBHOOK, NTFY, TELEGRAM, DISCORD, MAIL = KINDS = ("webhook", "ntfy", "telegram", "discord", "mail")
_LONGEST = 1_000
_CHAT = re.compile(r"telegram:(-?[0-9]{1,20}|@[A-Za-z0-9_]{4,32})")
_MAIL = re.compile(r"mailto:([A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+)")
_BOT = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{20,100}")
_PRINTABLE = re.compile(r"[!-~]+")


def url_problem(kind: str, url: str, networks: Sequence[Network]) -> str | None:
    """Says why `url` is no address for a hook of this kind, or None. In `networks` hooks may reach private ones."""
    if len(url) > _LONGEST:
        return f"must have at most {_LONGEST} letters"
    if kind == TELEGRAM:
        return None if _CHAT.fullmatch(url) else "must be telegram: and the chat's number, or @ and its name"
    if kind == MAIL:
        return None if _MAIL.fullmatch(url) else "must be mailto: and one address"
    if not _PRINTABLE.fullmatch(url):
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


def may_be_reached(address: Address, networks: Sequence[Network]) -> bool:
    """Tells whether a hook may connect to `address`: a public one, or one of the operator's `networks`."""
    return is_public(address) or is_within(address, networks)


def is_within(address: Address, networks: Sequence[Network]) -> bool:
    """Tells whether `address` is in one of `networks`."""
    return any(address in network for network in networks)


def secret_problem(kind: str, secret: str) -> str | None:
    """Says why `secret` cannot be one for this kind, or None; it is empty where none is given."""
    if kind == TELEGRAM:
        return None if _BOT.fullmatch(secret) else "must be the bot's token"
    if kind in (DISCORD, MAIL):
        return f"is of no use for {kind}" if secret else None
    if secret and not (_PRINTABLE.fullmatch(secret) and len(secret) <= 200):
        return "must have 1 to 200 printable letters and no blanks"
    return None


def shown(url: str) -> str:
    """Returns the part of `url` that is no secret: an origin, a chat, a mail address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/..." if parts.scheme in ("http", "https") else url
