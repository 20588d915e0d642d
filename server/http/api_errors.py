"""The errors an operation answers with: `{"error": text, "message"?: text, "details"?: [text]}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET
from tornado.web import HTTPError

from server.http.answers import Error

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

    def body(self) -> Error:
        """Returns the answer's body."""
        return Error(error=self.error, message=self.message or UNSET, details=self.details or UNSET)


def unauthorized() -> ApiError:
    """Makes the one answer to a bearer token that is missing, malformed, unknown or over."""
    return ApiError(401, "Unauthorized", headers={"WWW-Authenticate": "Bearer"})


def not_found(error: str = "Not found") -> ApiError:
    """Makes a 404, also for another user's row: the two must not be told apart."""
    return ApiError(404, error)


def invalid(details: Sequence[str], error: str = "Validation failed") -> ApiError:
    """Makes the answer to a bad request."""
    return ApiError(400, error, details=details)


def disk_full(
    message: str = "The installation's disk has no room to store this. Make room, then try again.",
) -> ApiError:
    """Makes the answer to what cannot be stored."""
    return ApiError(507, "The disk is full", message=message)


def away(part: str, message: str) -> ApiError:
    """Makes the answer that a part of the installation cannot be asked: the database, the gateway, the manager."""
    return ApiError(503, f"The {part} cannot be asked", message=message)


def too_many(error: str, retry_after_s: int, message: str | None = None) -> ApiError:
    """Makes the answer to try again in `retry_after_s` seconds."""
    return ApiError(429, error, message=message, headers={"Retry-After": str(max(1, retry_after_s))})
