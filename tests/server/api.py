"""A client of the service under test: real HTTP, JSON in and out."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from tornado.httpclient import HTTPRequest, HTTPResponse
from tornado.httputil import HTTPHeaders

from core.subscription_plans import DEFAULT_PLANS
from models import users
from models.users import User
from tests.kept_open import KeptOpen

START_MS = 1_763_640_000_000


@dataclass(frozen=True)
class Answer:
    """Status, headers, text and (where it says that it is that) JSON of an answer."""

    status: int
    headers: HTTPHeaders
    json: Any
    text: str

    @property
    def body(self) -> bytes:
        return self.text.encode(errors="surrogateescape")

    @property
    def details(self) -> list[str]:
        return list(self.json.get("details", []))

    def names(self) -> set[str]:
        """Returns the fields that the details complain of."""
        return {detail.partition(":")[0] for detail in self.details}


def digits(text: str) -> Decimal:
    """Reads a number of an answer, which never has an exponent."""
    assert "e" not in text.lower(), f"{text} is not written digit for digit"
    return Decimal(text)


class Api:
    """Asks the service at `base_url`; a body that is no bytes or text is sent as JSON."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.timeout_s = 120.0
        self._client = KeptOpen(urlsplit(base_url).port or 80)

    async def __call__(
        self, method: str, path: str, body: Any = None, *, token: str = "", headers: dict[str, str] | None = None
    ) -> Answer:
        given = dict(headers or {})
        if token:
            given["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode("utf-8", "surrogatepass")
        request = HTTPRequest(
            self.base_url + path,
            method,
            headers=given,
            body=body,
            allow_nonstandard_methods=True,
            follow_redirects=False,
            request_timeout=self.timeout_s,
        )
        response = await self._client.fetch(request)
        # A picture is no text: its bytes come back out of this one by the same error handler.
        is_picture = response.headers.get("Content-Type", "").startswith("image/")
        text = response.body.decode(errors="surrogateescape" if is_picture else "strict")
        is_json = response.headers.get("Content-Type") == "application/json"
        value = json.loads(text, parse_float=digits) if text and is_json else None
        return Answer(response.code, response.headers, value, text)

    async def raw(self, path: str, headers: dict[str, str]) -> HTTPResponse:
        """Returns the answer to a GET as it comes, packed or not."""
        request = HTTPRequest(
            self.base_url + path, headers=headers, decompress_response=False, request_timeout=self.timeout_s
        )
        return await self._client.fetch(request)

    def close(self) -> None:
        self._client.close()


def new_user(address: str, now_ms: int = START_MS) -> User:
    return users.find_or_create(address, dict(DEFAULT_PLANS), now_ms)


def token_of(user: User, now_ms: int = START_MS) -> str:
    """Returns a bearer token of a session that began at `now_ms`."""
    token = secrets.token_urlsafe(32)
    users.open_session(hashlib.sha256(token.encode()).hexdigest(), user.id, now_ms)
    return token
