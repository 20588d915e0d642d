"""The receivers of events: their kinds and their addresses.

webhook, ntfy, discord   https://...
telegram                 telegram:CHAT, a number or @name; the secret is the bot's token
mail                     mailto:name@example.com

The database holds only the name of a receiver's file, so that a reader of the database or of a copy of it cannot send
messages in our name.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from core.fields import WithSecrets
from core.files import sync_directory
from core.public_connection import LONGEST, PRINTABLE, public_url_problem
from core.setting_values import Network

WEBHOOK, NTFY, TELEGRAM, DISCORD, MAIL = KINDS = ("webhook", "ntfy", "telegram", "discord", "mail")
_CHAT = re.compile(r"telegram:(-?[0-9]{1,20}|@[A-Za-z0-9_]{4,32})")
_MAIL = re.compile(r"mailto:([A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+)")
WHSEC = "whsec_"  # prefix of a secret of Standard Webhooks, before the key in base64
_KEY_BYTES = range(24, 65)  # lengths of a key that Standard Webhooks allows
_BOT = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{20,100}")


def url_problem(kind: str, url: str, networks: Sequence[Network], own_name: str = "") -> str | None:
    """Returns why `url` is not valid for this kind of hook, or None. Private addresses in `networks` are allowed."""
    if len(url) > LONGEST:
        return f"must have at most {LONGEST} letters"
    if kind == TELEGRAM:
        return None if _CHAT.fullmatch(url) else "must be telegram: and the chat's number, or @ and its name"
    if kind == MAIL:
        return None if _MAIL.fullmatch(url) else "must be mailto: and one address"
    return public_url_problem(url, networks, own_name)


def secret_problem(kind: str, secret: str) -> str | None:
    """Returns why `secret` is not valid for this kind of hook, or None. An empty text stands for no secret."""
    if kind == TELEGRAM:
        return None if _BOT.fullmatch(secret) else "must be the bot's token"
    if kind in (DISCORD, MAIL):
        return f"is of no use for {kind}" if secret else None
    if kind == WEBHOOK and secret.startswith(WHSEC) and len(_decoded(secret)) not in _KEY_BYTES:
        return f"must have base64 of {_KEY_BYTES[0]} to {_KEY_BYTES[-1]} bytes after {WHSEC}"
    if secret and not (PRINTABLE.fullmatch(secret) and len(secret) <= 200):
        return "must have 1 to 200 printable letters and no blanks"
    return None


def new_secret() -> str:
    """Makes a webhook's secret in the format of Standard Webhooks."""
    return WHSEC + base64.b64encode(secrets.token_bytes(32)).decode()


def standard_key(secret: str) -> bytes:
    """Returns the key that signs by Standard Webhooks: decoded after `whsec_`, otherwise the secret's own bytes."""
    return (_decoded(secret) if secret.startswith(WHSEC) else b"") or secret.encode()


def _decoded(secret: str) -> bytes:
    text = secret.removeprefix(WHSEC)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return b""


def would_tell_secret(kind: str, former: str, url: str) -> bool:
    """Tells whether a change from `former` to `url` would send the stored secret to another server.

    A webhook's secret only signs and is never sent. Telegram's is sent to Telegram whatever the chat, ntfy's to `url`.
    """
    return kind == NTFY and shown(url) != shown(former)


def shown(url: str) -> str:
    """Returns the part of `url` that is not secret: an origin, a chat or a mail address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/..." if parts.scheme in ("http", "https") else url


_NAME = re.compile(r"[0-9a-f]{32}")
_YOUNG_S = 3600.0  # age up to which a file is kept although no hook names it


class Receiver(WithSecrets, frozen=True):
    """A receiver's address as its owner gave it, and its secret, "" if there is none."""

    hidden = frozenset({"url", "secret"})

    url: str
    secret: str = ""


class NoReceiver(Exception):
    """The file of a receiver is missing or cannot be read."""


class Receivers:
    """The receivers' files in `directory`, which only our own user can read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, receiver: Receiver) -> str:
        """Stores the receiver durably; returns the name of its file."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = secrets.token_hex(16)
        handle = os.open(self._directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"url": receiver.url, "secret": receiver.secret}, file)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._directory)
        return name

    def read(self, name: str) -> Receiver:
        """Returns the receiver in the file `name`. Raises NoReceiver."""
        try:
            found = json.loads((self._directory / name).read_text())
            return Receiver(found["url"], found["secret"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NoReceiver(f"the receiver's file cannot be read: {type(error).__name__}") from None

    def forget(self, name: str) -> None:
        """Removes the receiver."""
        (self._directory / name).unlink(missing_ok=True)

    def forget_all_but(self, names: Collection[str]) -> None:
        """Removes files that no hook names, except young ones, because a file is written before its hook's row."""
        for path in self._directory.glob("*"):
            is_ours = _NAME.fullmatch(path.name) is not None and path.name not in names
            if is_ours and time.time() - path.stat().st_mtime > _YOUNG_S:
                path.unlink(missing_ok=True)
