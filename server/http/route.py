"""Operations: everything that the interface knows of one method of one path, declared above the method that answers it.

A noun is one class, its operations are methods with `@route`. Paths, scopes, checks, bodies and the description derive
from the declaration and the method's signature: `given` is the body's shape, `asked` the query's, the returned
annotation the answer's; the docstring's first line is the summary, the rest describes. The method's name is the
operation's id.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct, structs

from server.http.base import Handler
from server.http.gate import Openings
from server.http.shapes import Asked, camel

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
        """The names of the method's parameters: hints would have to be evaluated, at each start of a server."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    @property
    def takes_body(self) -> bool:
        """Whether a body is taken."""
        return self.described_body is not None or "given" in self.parameters

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
        """The answer's shape, and whether it is a list of them; None is a text of another type."""
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

    API tokens need one of `scopes`; without any it is for sessions only. `says` describes the answer of `status`,
    which has `headers`; `errors` say when each other status is answered. They leave out what the description adds by
    itself: 401 unless `is_open`, and the refusals of any body. With `may_sign_in` a token may be sent and need not be.

    The ids of the path are the method's first arguments. With `of`, a method of the class, they go to it instead, and
    what it returns is the first argument: it raises the 404, which comes before a fault of the body.

    `body` and `answer` describe what the method reads or writes by itself (it takes no `given`, or returns JSON).
    `media` is the answer's type, `others` are types that may be answered as well. `also` has answers of other statuses
    that have a shape of their own, each with the words that describe it. `bad_body` is the error's text for faults of
    the body, `text` describes in place of the docstring. `names_task`: each request names one task, so that a token for
    one task may come; by itself so for paths of one task. `has_etag` is for answers that are polled. After
    `answers_s` the request waits for no marketplace.
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


# The groups of a path, by name: their pattern and their schema.
_ID: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "id": ("([0-9]+)", _ID),
    "deliveryId": ("([1-9][0-9]*)", _ID),
    "address": ("([A-Za-z0-9]+)", {"type": "string", "pattern": "^[A-Za-z0-9]+$"}),
    "inscriptionId": ("([^/]+)", {"type": "string"}),
}


def routes_of(nouns: Iterable[type[Handler]]) -> list[Route]:
    """Makes the routes of classes whose methods are operations, in the order of their declaration."""
    return [route for noun in nouns for route in _routes(noun)]


def _routes(noun: type[Handler]) -> Iterator[Route]:
    paths = dict[str, dict[str, Operation]]()
    for method in vars(noun).values():
        found: Operation | None = getattr(method, "__operation__", None)
        if found is not None:
            paths.setdefault(found.path, {})[found.verb] = structs.replace(found, tag=getattr(noun, "tag", ""))
    for path, operations in paths.items():
        pattern = re.sub(r"\{(\w+)\}", lambda part: PARTS[part[1]][0], path)
        yield Route(pattern, _handler(noun, path, operations), operations)


def _handler(noun: type[Handler], path: str, operations: dict[str, Operation]) -> type[Handler]:
    slowest = [each.answers_s for each in operations.values() if each.answers_s is not None]
    members: dict[str, Any] = {
        "__doc__": f"{' and '.join(operations)} {path}",
        "bodies": frozenset(verb for verb, each in operations.items() if each.takes_body),
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
    """Makes the method that Tornado calls: it reads what the operation wants and sends what it returns.

    An operation that returns nothing has answered by itself.
    """
    function, of, status = operation.function, operation.of, operation.status
    reads_body, reads_query = "given" in operation.parameters, "asked" in operation.parameters

    def method(self: Any, *parts: str) -> Awaitable[None] | None:
        arguments: list[Any] = list(parts) if of is None else [of(self, parts[0]), *parts[1:]]
        read: dict[str, Any] = {}
        if reads_body:
            read["given"] = self.given(operation.body, operation.bad_body)
        if reads_query:
            read["asked"] = self.asked(operation.query)
        answer = function(self, *arguments, **read)
        if inspect.isawaitable(answer):
            return _later(self, answer, status)
        if answer is not None:
            self.answer(answer, status)
        return None

    return method


async def _later(handler: Handler, answer: Awaitable[Any], status: int) -> None:
    found = await answer
    if found is not None:
        handler.answer(found, status)
