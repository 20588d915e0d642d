"""Handlers: sign-in, bodies, answers and errors; and operations, each declared above the method that answers it.

Each resource is a class, and its operations are methods with `@route`. Paths, scopes, checks, bodies and the
description derive from the declaration and the method's signature. `given` is annotated with the body's shape, `asked`
with the query's, the return value with the answer's. The docstring's first line is the summary, its rest the
description. The method's name is the operation's id.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from http.client import responses
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct, structs
from tornado.http1connection import HTTP1Connection
from tornado.iostream import StreamClosedError
from tornado.web import Finish, HTTPError, RequestHandler

from core.fields import BadJson, read_object, shown
from core.subscription_plans import SubscriptionPlan
from markets.base import VenueError
from markets.client import MarketClient
from models.ledger.closing import Closing, closing
from models.users import HALT, User, subscription_of
from server.http import blocking, gate, shapes
from server.http.answers import ApiError, Error, Tagged, invalid, not_found, tag_of, unauthorized
from server.http.blocking import UserMarket
from server.http.gate import Caller, Openings, client_ip
from server.http.services import Services
from server.http.shapes import Asked, camel, encoded
from wallet.signer_client import SignerClient, SignerError

log = logging.getLogger(__name__)

_METHODS = ("get", "post", "put", "patch", "delete")
MAX_ID = 2**63 - 1
SENDING_S = 30.0  # a client that receives nothing for this long is disconnected
PIECE = 100  # rows of a long answer that are written in one turn, which takes some milliseconds

Given = TypeVar("Given", bound=shapes.Body)
Parameters = TypeVar("Parameters", bound=shapes.Asked)
Value = TypeVar("Value")
Row = TypeVar("Row")


class Handler(RequestHandler):
    """Base of all handlers. It requires no sign-in; `SignedIn` does."""

    has_etag = False
    is_of_interface = True  # False for the page's files
    takes_query = False  # whether GET takes a query; other methods never do
    answers_s = 4.5  # the longest time for which a request waits for marketplaces

    @property
    def services(self) -> Services:
        found: Services = self.application.settings["services"]
        return found

    @property
    def now_ms(self) -> int:
        return self.services.clock_ms()

    @property
    def client_ip(self) -> str:
        return client_ip(str(self.request.remote_ip), self.request.headers, self.services.settings.trusted_proxies)

    openings = Openings()  # what API tokens may do here
    bodies: frozenset[str] = frozenset()  # the methods that take a body

    def initialize(self) -> None:
        self.until = time.monotonic() + self.answers_s
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
        self.admit()
        if self.is_of_interface:
            self._refuse_unread()

    def admit(self) -> None:
        """Hook: raises ApiError for a caller who may not use this handler."""

    def _refuse_unread(self) -> None:
        """Raises ApiError (400) for fields and parameters that the operation does not read."""
        method = self.request.method
        if method not in self.bodies and self.request.body.strip() and (fields := self.json_object()):
            raise invalid([f"{shown(name)}: unknown field" for name in fields])
        if self.request.query and not (self.takes_query and method in ("GET", "HEAD")):
            self.query()

    @classmethod
    @cache
    def described(cls) -> list[str]:
        """Returns the methods that the description of this path has."""
        return [name.upper() for name in _METHODS if getattr(cls, name) is not getattr(RequestHandler, name)]

    @classmethod
    @cache
    def allowed(cls) -> list[str]:
        """Returns the methods that this path answers; HEAD is one of them if GET is."""
        return [*(["HEAD"] if "GET" in cls.described() else []), *cls.described()]

    def head(self, *parts: str) -> Awaitable[None] | None:
        """Answers as GET does; Tornado leaves the body out."""
        return self.get(*parts)

    def decode_argument(self, value: bytes, name: str | None = None) -> str:
        # Bad UTF-8 gives the same errors as any other unknown text (not found, not valid) and no special one.
        return value.decode("utf-8", "replace")

    def compute_etag(self) -> str | None:
        """Returns an entity tag for answers that clients poll."""
        if not self.has_etag:
            return None
        body = self._write_buffer
        return body[0].tag if len(body) == 1 and isinstance(body[0], Tagged) else tag_of(b"".join(body))

    def answer(self, value: Any, status: int = 200) -> None:
        """Sends `value` as JSON."""
        self.send(encoded(value), status)

    def send(self, body: bytes, status: int = 200) -> None:
        """Sends ready JSON."""
        self.set_status(status)
        self.finish(body)

    def json_object(self) -> dict[str, Any]:
        """Returns the body as a JSON object. Raises ApiError (400)."""
        try:
            return read_object(self.request.body)
        except BadJson as error:
            raise invalid([str(error)]) from None

    def given(self, shape: type[Given], error: str = "Validation failed") -> Given:
        """Returns the body as `shape`. Raises ApiError (400) with all its faults."""
        values, faults = shapes.read_fields(shape, self.json_object())
        if faults:
            raise invalid([f"{name}: {text}" for name, text in faults], error)
        return shape(**values)

    def asked(self, shape: type[Parameters]) -> Parameters:
        """Returns the query as `shape`. Raises ApiError (400) with all its faults."""
        given = self.query(*shapes.parameters_of(shape)) if self.request.query else {}
        values, faults = shapes.read_query(shape, given)
        if faults:
            raise invalid(faults)
        return shape(**values)

    def query(self, *names: str) -> dict[str, str]:
        """Returns the given query parameters that are present, by name.

        Raises ApiError (400) for a parameter that is given twice or is not in `names`.
        """
        given = {name: self.get_query_arguments(name) for name in names}
        faults = [f"{name}: is given more than once" for name, values in given.items() if len(values) > 1]
        faults += [f"{shown(name)}: unknown parameter" for name in self.request.query_arguments if name not in given]
        if faults:
            raise invalid(faults)
        return {name: values[0] for name, values in given.items() if values}

    def whoever_calls(self) -> Caller | None:
        """Finds the caller by the request's bearer token; None if the token is missing or not valid."""
        return gate.caller(self.request.headers.get("Authorization", ""), self.now_ms)

    async def ask_signer(self, question: Callable[[SignerClient], Value]) -> Value:
        """Asks the signer in a thread. Raises ApiError (503)."""
        try:
            return await self.services.signer(question)
        except SignerError as error:
            raise blocking.answer_to(error) from error

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        raised = kwargs.get("exc_info", (None, None, None))[1]
        if status_code == 500 and (answer := blocking.answer_to_any(raised)) is not None:
            kwargs["exc_info"] = (type(answer), answer, None)
            status_code = answer.status_code
        super().send_error(status_code, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        raised = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(raised, ApiError):
            for name, value in raised.headers.items():
                self.set_header(name, value)
            self.answer(raised.body(), status_code)
            return
        if status_code == 405:
            self.set_header("Allow", ", ".join(self.allowed()))
        self.answer(Error(error=responses.get(status_code, "Error")), status_code)

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        # Tornado's own log line would repeat the query, which may contain a caller's secret.
        if (answer := blocking.answer_to_any(value)) is not None:
            log.error("failed at %s %s: %s: %s", self.request.method, self.request.path, answer.error, value)
        elif not isinstance(value, HTTPError):
            log.error("failed at %s %s", self.request.method, self.request.path, exc_info=(typ, value, tb))  # type: ignore[arg-type]


class SignedIn(Handler):
    """A handler that requires a valid bearer token."""

    caller: Caller
    _answering: asyncio.Timeout | None = None
    _has_gone = False

    def admit(self) -> None:
        super().admit()
        found = self.whoever_calls()
        if found is None:
            raise unauthorized()
        self.caller = found
        if found.api_token is not None:
            refusal = self.openings.refusal(str(self.request.method), found.api_token)
            if refusal:
                raise ApiError(403, "Not allowed to this token", message=refusal)

    def is_signed_in(self) -> bool:
        """Tells whether the caller's token is still valid, because it may have been ended since the request began."""
        return self.whoever_calls() is not None

    def require_signed_in(self) -> None:
        """Raises ApiError (401) if the caller's token has been ended. Call it after each wait, before the next step."""
        if not self.is_signed_in():
            raise unauthorized()

    @property
    def user(self) -> User:
        """The calling user, or the owner of the calling program's token."""
        return self.caller.user

    @property
    def plan(self) -> SubscriptionPlan:
        """The caller's plan; a plan that is no longer in the settings allows nothing."""
        subscription = subscription_of(self.user.id)
        key = subscription.plan if subscription else ""
        return self.services.settings.plans.get(key) or SubscriptionPlan(key, 0, 0, 0, 0, 0)

    @property
    def look(self) -> UserMarket:
        """A client of the marketplaces for the user's reads."""
        return self.services.market_for(self.user.id, "look", self.until)

    @property
    def act(self) -> UserMarket:
        """A client of the marketplaces for the user's actions: start, delete, withdraw.

        Its time limit begins now, so that a start that waited for the task's lock has the full time for its checks.
        """
        return self.services.market_for(self.user.id, "act", time.monotonic() + self.answers_s)

    @asynccontextmanager
    async def long_answer(self, place: AbstractAsyncContextManager[None] | None = None) -> AsyncIterator[None]:
        """Holds one of the user's places during the block, which reads and writes a long answer.

        The places limit how many of a user's answers are in memory. The block is left if the client disconnects. Raises
        ApiError (429).
        """
        if self._has_gone:
            raise Finish
        place = place or blocking.long_answer_place(self.services.long_answers, self.user.id)
        present = asyncio.timeout(None)
        try:
            async with present:
                self._answering = present
                async with place:
                    yield
        except TimeoutError:
            if not present.expired():
                raise
            raise Finish from None  # the client has disconnected
        finally:
            self._answering = None

    def on_connection_close(self) -> None:
        self._has_gone = True
        if self._answering is not None:
            answering, self._answering = self._answering, None
            answering.reschedule(asyncio.get_running_loop().time())

    async def taken(self) -> None:
        """Flushes the answer. Raises StreamClosedError if the client has disconnected or receives nothing."""
        try:
            await asyncio.wait_for(self.flush(), SENDING_S)
        except TimeoutError:
            if isinstance(self.request.connection, HTTP1Connection):
                self.request.connection.close()
            raise StreamClosedError from None

    async def in_turn(self, work: Callable[[], Value]) -> Value:
        """Does a piece of a long answer in the user's turn, then yields the loop to other work for as long as it took.

        Check with `require_signed_in` that the caller may still see the answer.
        """
        return await self.services.in_turn(self.user.id, work)

    async def in_turns(self, rows: Sequence[Row], build: Callable[[Row], Value], piece: int = PIECE) -> list[Value]:
        """Builds the parts of a long answer from rows, `piece` rows in each turn."""
        shown = list[Value]()
        for begin in range(0, len(rows), piece):
            some = rows[begin : begin + piece]
            shown += await self.in_turn(lambda: [build(row) for row in some])  # noqa: B023
        return shown

    async def ask_market(self, question: Callable[[MarketClient], Value]) -> Value:
        """Reads from a marketplace. Raises ApiError: 404, 429, 502 if it cannot be read, 504 if it is too slow."""
        try:
            return await self.look(question)
        except VenueError as error:
            raise blocking.answer_to(error) from error

    @property
    def is_admin(self) -> bool:
        """Whether the caller is an administrator; always false for API tokens."""
        return self.caller.api_token is None and self.services.entitlements.is_admin(self.user.address)

    @property
    def is_for_one_task(self) -> bool:
        """Whether the caller's token is for one task only."""
        return self.caller.api_token is not None and self.caller.api_token.task_id is not None

    def may_name(self, task_id: int) -> bool:
        """Tells whether the caller's token covers this task. The owner of the task is not checked."""
        token = self.caller.api_token
        return token is None or token.task_id in (None, task_id)

    def refuse_beyond(self, shape: type[shapes.Body], changes: Mapping[str, Any]) -> None:
        """Raises ApiError (403) if a token for one task makes changes, by field of `shape`, that reach beyond it."""
        if not self.is_for_one_task:
            return
        if found := shapes.beyond(shape, changes):
            raise ApiError(403, "Not allowed to this token", message="It is for one task only.", details=found)

    def going(self) -> dict[int, Closing]:
        """Returns the caller's tasks with bids that are to be cancelled and still open, including deleted tasks."""

        def is_refused() -> bool:
            return self.services.entitlements.refusal(self.user, self.now_ms) is not None

        halts = [wanted for wanted in self.services.unstored.values() if wanted.state == HALT]
        unstored = {(halt.subject.scope, halt.subject.row_id): halt.at_ms for halt in halts}
        return closing(self.user.id, is_refused=is_refused, unstored=unstored)

    def path_id(self, text: str) -> int:
        """Reads an id in a path. Raises ApiError (404) for a text that cannot be an id."""
        if len(text) > 19 or int(text) > MAX_ID or not self.may_name(int(text)):
            raise not_found()
        return int(text)


JSON = "application/json"
ONE_TASK = re.compile(r"/api/(?:tasks|autolist)/\{id\}")

Method = TypeVar("Method", bound=Callable[..., Any])


class Operation(Struct, frozen=True, kw_only=True):
    """One method of one path; `@route` describes the fields."""

    verb: str
    path: str
    function: Callable[..., Any]
    scopes: tuple[str, ...]
    says: str
    status: int
    headers: tuple[str, ...]
    errors: Mapping[int, str]
    of: Callable[..., Any] | None
    described_body: type[Struct] | None
    described_answer: type[Struct] | None
    media: str
    others: tuple[str, ...]
    also: Mapping[int, tuple[str, type[Struct]]]
    bad_body: str
    text: str
    is_open: bool
    may_sign_in: bool
    names_task: bool
    has_etag: bool
    answers_s: float | None
    tag: str = ""

    @property
    def name(self) -> str:
        """The method and the path."""
        return f"{self.verb} {self.path}"

    @property
    def id(self) -> str:
        """The operation's id."""
        return camel(self.function.__name__)

    @property
    def words(self) -> tuple[str, str]:
        """The summary, and the text that describes the operation."""
        summary, _, rest = (inspect.getdoc(self.function) or "").partition("\n")
        return summary, self.text or " ".join(rest.split())

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the method's parameters. Type hints are not used, because evaluating them slows each start."""
        return self.function.__code__.co_varnames[: self.function.__code__.co_argcount]

    @property
    def body(self) -> type[Struct] | None:
        """The body's shape, None where no body is taken."""
        return self.described_body or _hints(self.function).get("given")

    @property
    def query(self) -> type[Asked] | None:
        """The query's shape, None where no query is taken."""
        return _hints(self.function).get("asked")

    @property
    def answer(self) -> tuple[type[Struct] | None, bool]:
        """The answer's shape, or None if it is not JSON; and whether the answer is a list."""
        returned = self.described_answer or _hints(self.function).get("return")
        if get_origin(returned) in (list, tuple):
            return get_args(returned)[0], True
        return (returned, False) if isinstance(returned, type) and issubclass(returned, Struct) else (None, False)


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function)


def route(
    name: str,
    *scopes: str,
    says: str,
    status: int = 200,
    headers: tuple[str, ...] = (),
    errors: Mapping[int, str] | None = None,
    of: Callable[..., Any] | None = None,
    body: type[Struct] | None = None,
    answer: Any = None,
    media: str = JSON,
    others: tuple[str, ...] = (),
    also: Mapping[int, tuple[str, type[Struct]]] | None = None,
    bad_body: str = "Validation failed",
    text: str = "",
    is_open: bool = False,
    may_sign_in: bool = False,
    names_task: bool | None = None,
    has_etag: bool = False,
    answers_s: float | None = None,
) -> Callable[[Method], Method]:
    """Declares a method as the operation `name`, such as `PUT /api/budgets/{id}`.

    API tokens need one of `scopes`; without scopes the operation is for sessions only. `says` describes the answer of
    `status`, which has `headers`; `errors` say when each other status is answered. The description adds by itself: 401
    unless `is_open`, and the errors common to all bodies. With `may_sign_in` a token is optional.

    The ids of the path are the method's first arguments. If `of`, a method of the class, is given, it gets the ids, and
    its result is the first argument. It raises the 404, so a missing row is reported before a fault of the body.

    `body` and `answer` are the shapes of a method that reads or writes JSON itself (it takes no `given`, or returns
    JSON). `media` is the type of the answer, `others` are further types. `also` has the answers of other statuses that
    have their own shape, each with its description. `bad_body` is the error's text for faults of the body, `text`
    replaces the docstring. `names_task`: each request names one task, so that a token for one task may be used; default
    for paths of one task. `has_etag` is for answers that clients poll. `answers_s` limits the wait for marketplaces.
    """
    verb, _, path = name.partition(" ")

    def declare(function: Method) -> Method:
        operation = Operation(
            verb=verb,
            path=path,
            function=function,
            scopes=scopes,
            says=says,
            status=status,
            headers=headers,
            errors=errors or {},
            of=of,
            described_body=body,
            described_answer=answer,
            media=media,
            others=others,
            also=also or {},
            bad_body=bad_body,
            text=text,
            is_open=is_open,
            may_sign_in=may_sign_in,
            names_task=ONE_TASK.match(path) is not None if names_task is None else names_task,
            has_etag=has_etag,
            answers_s=answers_s,
        )
        function.__operation__ = operation  # type: ignore[attr-defined]
        return function

    return declare


class Route(NamedTuple):
    """One path: Tornado's pattern, the handler made for it, and its operations by method."""

    pattern: str
    handler: type[Handler]
    operations: dict[str, Operation]


# By name of a parameter in a path: its pattern and its schema.
_ID: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "id": ("([0-9]+)", _ID),
    "deliveryId": ("([1-9][0-9]*)", _ID),
    "address": ("([A-Za-z0-9]+)", {"type": "string", "pattern": "^[A-Za-z0-9]+$"}),
    "inscriptionId": ("([^/]+)", {"type": "string"}),
}


def routes_of(nouns: Iterable[type[Handler]]) -> list[Route]:
    """Makes the routes of the handlers' operations, in the order of their declaration."""
    made = list[Route]()
    for noun in nouns:
        paths = dict[str, dict[str, Operation]]()
        for method in vars(noun).values():
            found: Operation | None = getattr(method, "__operation__", None)
            if found is not None:
                paths.setdefault(found.path, {})[found.verb] = structs.replace(found, tag=getattr(noun, "tag", ""))
        for path, operations in paths.items():
            pattern = re.sub(r"\{(\w+)\}", lambda part: PARTS[part[1]][0], path)
            made.append(Route(pattern, _handler(noun, path, operations), operations))
    return made


def _handler(noun: type[Handler], path: str, operations: dict[str, Operation]) -> type[Handler]:
    slowest = [each.answers_s for each in operations.values() if each.answers_s is not None]
    members: dict[str, Any] = {
        "__doc__": f"{' and '.join(operations)} {path}",
        "bodies": frozenset(v for v, each in operations.items() if each.described_body or "given" in each.parameters),
        "takes_query": any("asked" in each.parameters for each in operations.values()),
        "has_etag": any(each.has_etag for each in operations.values()),
        "openings": Openings(
            {verb: each.scopes for verb, each in operations.items() if each.scopes},
            names_task=any(each.names_task for each in operations.values()),
        ),
        **({"answers_s": max(slowest)} if slowest else {}),
        **{verb.lower(): _method(each) for verb, each in operations.items()},
    }
    return type(noun.__name__, (noun,), members)


def _method(operation: Operation) -> Callable[..., Awaitable[None] | None]:
    """Makes the method that Tornado calls. If the operation returns None, it has sent its answer itself."""
    function, of, status = operation.function, operation.of, operation.status
    reads_body, reads_query = "given" in operation.parameters, "asked" in operation.parameters

    def method(self: Any, *parts: str) -> Awaitable[None] | None:
        arguments: list[Any] = list(parts) if of is None else [of(self, parts[0]), *parts[1:]]
        read: dict[str, Any] = {"given": self.given(operation.body, operation.bad_body)} if reads_body else {}
        if reads_query:
            read["asked"] = self.asked(operation.query)
        answer = function(self, *arguments, **read)
        if answer is None:
            return None
        if inspect.isawaitable(answer):
            return _later(self, answer, status)
        self.answer(answer, status)
        return None

    return method


async def _later(handler: Handler, answer: Awaitable[Any], status: int) -> None:
    found = await answer
    if found is not None:
        handler.answer(found, status)
