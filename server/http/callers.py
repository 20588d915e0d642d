"""The caller behind a request's bearer token, and the bounds of an API token."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from models import accounts, users
from models.accounts import ApiToken
from models.users import User

_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9_-]{43})")
_MAX_CLIENT = 60
# Of a browser's User-Agent the first that fits: all of them claim to be several others, too.
_BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
_SYSTEMS = {"Windows": "Windows", "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Mac": "Mac"}
_SYSTEMS |= {"Linux": "Linux"}


@dataclass(frozen=True, slots=True)
class Caller:
    """A user by a session, or by an API token, which may do less.

    `mark` is that of the database's state when the caller was found (models/database/base.py), if it was to be had.
    """

    user: User
    token_hash: str
    api_token: ApiToken | None = None
    mark: Any = None

    def is_good_still(self, now_ms: int) -> bool:
        """Tells whether the session or token has not ended since; asking is no use of it."""
        if self.api_token is None:
            return users.is_open(self.token_hash, now_ms)
        return accounts.token_is_open(self.token_hash, now_ms)


@dataclass(frozen=True, slots=True)
class Openings:
    """The methods of a path that API tokens may use, each with the scopes of which one is needed; no others.

    `names_task`: each request names one task, so a token for one task may come.
    """

    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names_task: bool = False

    def refusal(self, method: str, token: ApiToken) -> str | None:
        """Says why the token may not be used for `method` here, or None."""
        wanted = self.scopes.get("GET" if method == "HEAD" else method, ())
        if not wanted:
            return "API tokens may not do this: sign in."
        if not token.may.intersection(wanted):
            return f"It needs the scope {' or '.join(wanted)}."
        if token.task_id is not None and not self.names_task:
            return "It is for one task only."
        return None


def caller(authorization: str, now_ms: int) -> Caller | None:
    """Finds the caller by an Authorization header; None without a good token."""
    given = _BEARER.fullmatch(authorization)
    if given is None:
        return None
    token_hash = hash_of(given[1])
    signed_in = users.user_and_mark(token_hash, now_ms)
    if signed_in is not None:
        return Caller(signed_in[0], token_hash, mark=signed_in[1])
    found = accounts.token_with_owner(token_hash, now_ms)
    return None if found is None else Caller(found[1], token_hash, found[0])


def hash_of(token: str) -> str:
    """Returns the stored hash of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def client_of(user_agent: str) -> str:
    """Describes a client in a word or two for its owner: browser and system, or a program's first word."""
    browser = next((name for mark, name in _BROWSERS.items() if f"{mark}/" in user_agent), None)
    system = next((name for mark, name in _SYSTEMS.items() if mark in user_agent), None)
    if browser is None or system is None:
        first = user_agent.partition(" ")[0][:_MAX_CLIENT]
        return "".join(letter if letter.isprintable() else "?" for letter in first)
    return f"{browser}, {system}"
