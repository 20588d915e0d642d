"""The addresses of hooks: the forms that each kind takes, and the part that is shown again.

webhook, ntfy, discord   https://...
telegram                 telegram:CHAT, a number or @name; the secret is the bot's token
mail                     mailto:name@example.com
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from core.public_urls import LONGEST, PRINTABLE, public_url_problem
from core.setting_values import Network

WEBHOOK, NTFY, TELEGRAM, DISCORD, MAIL = KINDS = ("webhook", "ntfy", "telegram", "discord", "mail")
_CHAT = re.compile(r"telegram:(-?[0-9]{1,20}|@[A-Za-z0-9_]{4,32})")
_MAIL = re.compile(r"mailto:([A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+)")
_BOT = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{20,100}")


def url_problem(kind: str, url: str, networks: Sequence[Network]) -> str | None:
    """Says why `url` is no address for a hook of this kind, or None. In `networks` hooks may reach private ones."""
    if len(url) > LONGEST:
        return f"must have at most {LONGEST} letters"
    if kind == TELEGRAM:
        return None if _CHAT.fullmatch(url) else "must be telegram: and the chat's number, or @ and its name"
    if kind == MAIL:
        return None if _MAIL.fullmatch(url) else "must be mailto: and one address"
    return public_url_problem(url, networks)


def secret_problem(kind: str, secret: str) -> str | None:
    """Says why `secret` cannot be one for this kind, or None; it is empty where none is given."""
    if kind == TELEGRAM:
        return None if _BOT.fullmatch(secret) else "must be the bot's token"
    if kind in (DISCORD, MAIL):
        return f"is of no use for {kind}" if secret else None
    if secret and not (PRINTABLE.fullmatch(secret) and len(secret) <= 200):
        return "must have 1 to 200 printable letters and no blanks"
    return None


def would_tell_secret(kind: str, former: str, url: str) -> bool:
    """Tells whether the secret given for `former` would be told to another server when it is sent to `url`.

    A webhook's only signs and never leaves us, Telegram's goes to Telegram whichever the chat, ntfy's to the address.
    """
    return kind == NTFY and shown(url) != shown(former)


def shown(url: str) -> str:
    """Returns the part of `url` that is no secret: an origin, a chat, a mail address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/..." if parts.scheme in ("http", "https") else url
