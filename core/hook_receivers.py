"""The receivers of events: their kinds and their addresses.

webhook, ntfy, discord   https://...
telegram                 telegram:CHAT, a number or @name; the secret is the bot's token
mail                     mailto:name@example.com

The database has a file's name only, so whoever reads the database, or a copy of it, can send nothing in our name.
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
WHSEC = "whsec_"  # before a secret in the form of Standard Webhooks, which is base64 of its key
_KEY_BYTES = range(24, 65)  # that Standard Webhooks asks for
_BOT = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{20,100}")


def url_problem(kind: str, url: str, networks: Sequence[Network], own_name: str = "") -> str | None:
    """Says why `url` is no address for a hook of this kind, or None. In `networks` hooks may reach private ones."""
    if len(url) > LONGEST:
        return f"must have at most {LONGEST} letters"
    if kind == TELEGRAM:
        return None if _CHAT.fullmatch(url) else "must be telegram: and the chat's number, or @ and its name"
    if kind == MAIL:
        return None if _MAIL.fullmatch(url) else "must be mailto: and one address"
    return public_url_problem(url, networks, own_name)


def secret_problem(kind: str, secret: str) -> str | None:
    """Says why `secret` cannot be one for this kind, or None; it is empty where none is given."""
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
    """Makes a webhook's secret, in the form that the libraries of Standard Webhooks take."""
    return WHSEC + base64.b64encode(secrets.token_bytes(32)).decode()


def standard_key(secret: str) -> bytes:
    """Returns the key of Standard Webhooks' signatures: base64 after `whsec_`, of any other secret its own bytes."""
    return (_decoded(secret) if secret.startswith(WHSEC) else b"") or secret.encode()


def _decoded(secret: str) -> bytes:
    text = secret.removeprefix(WHSEC)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return b""


def would_tell_secret(kind: str, former: str, url: str) -> bool:
    """Tells whether the secret given for `former` would be told to another server when it is sent to `url`.

    A webhook's only signs and never leaves us, Telegram's goes to Telegram whichever the chat, ntfy's to the address.
    """
    return kind == NTFY and shown(url) != shown(former)


def shown(url: str) -> str:
    """Returns the part of `url` that is no secret: an origin, a chat, a mail address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/..." if parts.scheme in ("http", "https") else url


_NAME = re.compile(r"[0-9a-f]{32}")
_YOUNG_S = 3600.0  # a file may be younger than its row


class Receiver(WithSecrets, frozen=True):
    """An address as its owner gave it, and the secret for it, empty without one."""

    hidden = frozenset({"url", "secret"})

    url: str
    secret: str = ""


class NoReceiver(Exception):
    """The file of a receiver is not there, or cannot be read."""


class Receivers:
    """The files in `directory`, for our own user only."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, receiver: Receiver) -> str:
        """Writes the receiver down, on disk when this returns; returns the name of its file."""
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
        """Returns the receiver. Raises NoReceiver."""
        try:
            found = json.loads((self._directory / name).read_text())
            return Receiver(found["url"], found["secret"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NoReceiver(f"the receiver's file cannot be read: {type(error).__name__}") from None

    def forget(self, name: str) -> None:
        """Removes the receiver."""
        (self._directory / name).unlink(missing_ok=True)

    def forget_all_but(self, names: Collection[str]) -> None:
        """Removes the files that no hook names, but for the newest: their hook may be about to be made."""
        for path in self._directory.glob("*"):
            is_ours = _NAME.fullmatch(path.name) is not None and path.name not in names
            if is_ours and time.time() - path.stat().st_mtime > _YOUNG_S:
                path.unlink(missing_ok=True)
