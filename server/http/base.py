"""The base handlers: who you are, how bodies come in, how answers and errors look."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from http.client import responses
from typing import Any, TypeVar

from pydantic import ValidationError
from tornado.web import HTTPError, RequestHandler

from markets.base import VenueError
from markets.market_client import MarketClient
from models.users import User
from server.http import blocking, callers, json_out
from server.http.api_errors import ApiError, invalid, not_found, unauthorized
from server.http.bodies import Body, details_of
from server.http.callers import Caller, Openings
from server.http.client_ip import client_ip
from server.http.json_in import BadBody, read_object
from server.http.services import Services
from wallet.signer_client import SignerClient, SignerError

log = logging.getLogger("server.access")

_METHODS = ("get", "post", "put", "patch", "delete")
MAX_ID = 2**63 - 1

_CLOSED = Openings()

Shape = TypeVar("Shape", bound=Body)
Value = TypeVar("Value")


class Handler(RequestHandler):
    """What all handlers share. Without a rule of its own it answers nobody in particular."""

    @property
    def services(self) -> Services:
        found: Services = self.application.settings["services"]
        return found

    @property
    def now_ms(self) -> int:
        return self.services.clock_ms()

    @property
    def client_ip(self) -> str:
        return client_ip(str(self.request.remote_ip), self.request.headers)

    def initialize(self, openings: Openings = _CLOSED) -> None:
        self.openings = openings
        self.services.in_flight.add(self)

    def on_finish(self) -> None:
        self.services.in_flight.discard(self)

    def set_default_headers(self) -> None:
        self.set_header("Content-Type", "application/json")
        self.set_header("X-Content-Type-Options", "nosniff")
        if self.request.path.startswith("/api"):
            self.set_header("Cache-Control", "no-store")

    def prepare(self) -> None:
        if self.request.method not in self.allowed():
            raise HTTPError(405)

    @classmethod
    @cache
    def allowed(cls) -> list[str]:
        """The methods this path has."""
        return [name.upper() for name in _METHODS if getattr(cls, name) is not getattr(RequestHandler, name)]

    def decode_argument(self, value: bytes, name: str | None = None) -> str:
        # Bad UTF-8 is not found or not valid, as any other text that nothing is called; never an error of its own.
        return value.decode("utf-8", "replace")

    def compute_etag(self) -> None:
        return None

    def answer(self, value: Any, status: int = 200) -> None:
        """Sends `value` as JSON."""
        self.send(json_out.encoded(value), status)

    def send(self, body: bytes, status: int = 200) -> None:
        """Sends JSON that is written already."""
        self.set_status(status)
        self.finish(body)

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object. Raises ApiError (400)."""
        try:
            return read_object(self.request.body)
        except BadBody as error:
            raise invalid([str(error)]) from None

    def body(self, shape: type[Shape], error: str = "Validation failed") -> Shape:
        """The body as `shape`. Raises ApiError (400) with all its faults."""
        value = self.json_object()
        try:
            return shape.model_validate(value)
        except ValidationError as faults:
            raise invalid(details_of(faults), error) from None

    def query(self, *names: str) -> dict[str, str]:
        """Those of these parameters that the query has. Raises ApiError (400) for one that is given twice."""
        given = {name: self.get_query_arguments(name) for name in names}
        if twice := [f"{name}: is given more than once" for name, values in given.items() if len(values) > 1]:
            raise invalid(twice)
        return {name: values[0] for name, values in given.items() if values}

    def whoever_calls(self) -> Caller | None:
        """Whose bearer token came with the request, if it is good."""
        return callers.caller(self.request.headers.get("Authorization", ""), self.now_ms)

    async def ask_market(self, question: Callable[[MarketClient], Value]) -> Value:
        """Asks in a thread. Raises ApiError: 404, or 502 when the venue cannot be read."""
        try:
            return await self.services.market(question)
        except VenueError as error:
            raise blocking.answer_to(error) from error

    async def ask_signer(self, question: Callable[[SignerClient], Value]) -> Value:
        """Asks in a thread. Raises ApiError (503)."""
        try:
            return await self.services.signer(question)
        except SignerError as error:
            raise blocking.answer_to(error) from error

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        raised = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(raised, ApiError):
            for name, value in raised.headers.items():
                self.set_header(name, value)
            self.answer(raised.body(), status_code)
            return
        if status_code == 405:
            self.set_header("Allow", ", ".join(self.allowed()))
        self.answer({"error": responses.get(status_code, "Error")}, status_code)

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        # Tornado's own line repeats the query, where a caller may have put a secret.
        if not isinstance(value, HTTPError):
            log.error("failed at %s %s", self.request.method, self.request.path, exc_info=(typ, value, tb))  # type: ignore[arg-type]


class SignedIn(Handler):
    """A handler for the owner of a bearer token."""

    caller: Caller

    def prepare(self) -> None:
        super().prepare()
        found = self.whoever_calls()
        if found is None:
            raise unauthorized()
        self.caller = found
        if found.api_token is not None:
            refusal = self.openings.refusal(str(self.request.method), found.api_token)
            if refusal:
                raise ApiError(403, "Not allowed to this token", message=refusal)

    @property
    def user(self) -> User:
        """Who calls, or whose program."""
        return self.caller.user

    @property
    def is_admin(self) -> bool:
        """Whether an administrator calls. No program of theirs is one."""
        return self.caller.api_token is None and self.services.entitlements.is_admin(self.user.address)

    def may_name(self, task_id: int) -> bool:
        """Whether the caller's token is good for this task, be it theirs or not."""
        token = self.caller.api_token
        return token is None or token.task_id in (None, task_id)

    def path_id(self, text: str) -> int:
        """An id in a path. Raises ApiError (404) for what no row can have as its id."""
        if len(text) > 19 or int(text) > MAX_ID or not self.may_name(int(text)):
            raise not_found()
        return int(text)


class UnknownRoute(Handler):
    """Answers for every path that is nothing."""

    def prepare(self) -> None:
        raise not_found()


def log_request(handler: RequestHandler) -> None:
    """One line a request, without its query."""
    request = handler.request
    level = logging.INFO if handler.get_status() < 500 else logging.WARNING
    log.log(level, "%s %s %d %.1fms", request.method, request.path, handler.get_status(), 1000 * request.request_time())
