"""The errors an operation answers with: `{"error": text, "message"?: text, "details"?: [text]}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tornado.web import HTTPError

MOST_DETAILS = 50


class ApiError(HTTPError):
    """An answer other than success; its handler stops here.

    `details` read `field: what is wrong`; the first MOST_DETAILS of them are told.
    """

    def __init__(
        self,
        status: int,
        error: str,
        *,
        message: str | None = None,
        details: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status)
        self.error = error
        self.message = message
        self.details = list(details)[:MOST_DETAILS]
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The JSON object that says it."""
        body: dict[str, Any] = {"error": self.error}
        if self.message:
            body["message"] = self.message
        if self.details:
            body["details"] = self.details
        return body


def unauthorized() -> ApiError:
    """The one answer to a bearer token that is missing, malformed, unknown or over."""
    return ApiError(401, "Unauthorized", headers={"WWW-Authenticate": "Bearer"})


def not_found(error: str = "Not found") -> ApiError:
    """Also for what belongs to somebody else: the two must not be told apart."""
    return ApiError(404, error)


def invalid(details: Sequence[str], error: str = "Validation failed") -> ApiError:
    """The request itself is wrong."""
    return ApiError(400, error, details=details)


def too_many(error: str, retry_after_s: int, message: str | None = None) -> ApiError:
    """Come back in `retry_after_s` seconds."""
    return ApiError(429, error, message=message, headers={"Retry-After": str(max(1, retry_after_s))})
