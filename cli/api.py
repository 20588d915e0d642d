"""Calls to an installation's own HTTP API, made as any client makes them."""

from __future__ import annotations

import http.client
import json
from typing import Any

from core.errors import BidkeeperError

PATIENCE_S = 30.0


class Unauthorized(BidkeeperError):
    """The session has ended, or the proof was not accepted."""


def ask(
    host: str, port: int, method: str, path: str, body: Any = None, token: str = "", patience_s: float = PATIENCE_S
) -> str:
    """Returns the text of the answer.

    Raises OSError or HTTPException when there is none, Unauthorized for 401, and BidkeeperError with the text of
    another refusal.
    """
    connection = http.client.HTTPConnection(host, port, timeout=patience_s)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        connection.close()
    if answer.status == 401:
        raise Unauthorized(f"{method} {path}: {_words(text) or 'the session is over'}")
    if answer.status >= 300:
        raise BidkeeperError(f"{method} {path}: {answer.status} {_words(text)}")
    return text


def _words(text: str) -> str:
    """Returns the words of an error's body, or its beginning when it is not one of ours."""
    try:
        told = json.loads(text)
        parts = [told["error"], told.get("message"), *told.get("details", [])]
        return "; ".join(part for part in parts if isinstance(part, str))[:600]
    except (ValueError, TypeError, KeyError, AttributeError):
        return text[:300]
