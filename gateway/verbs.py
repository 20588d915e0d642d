"""The table of the gateway's verbs: a method marked `@answers` for each class of `markets/verbs.py`.

Such a method returns the answer as JSON text and raises VenueError leaves. It stands where the verb's work is done.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct, UnsetType

from markets import verbs
from markets.base import Refused, Unavailable
from markets.verbs import Args, Request

Given = TypeVar("Given", bound=Args[Any])


class Asker:
    """The client of a request: is it still there, and the work done for it."""

    def __init__(self, connection: socket.socket | None) -> None:
        self._connection = connection
        self._left = False
        self.work: asyncio.Future[str] | None = None
        self.droppable = True

    def leave(self) -> None:
        """Ends work that has not reached the wire, since the client has closed its connection."""
        self._left = True
        if self.droppable and self.work is not None:
            self.work.cancel()

    def is_gone(self) -> bool:
        """Tells whether the client has left. Safe in any thread; looks at the socket itself."""
        if self._left or self._connection is None:
            return self._left
        seen = select.poll()
        try:
            seen.register(self._connection, select.POLLRDHUP)
            return bool(seen.poll(0))
        except (OSError, ValueError):  # it is closed
            return True


class Call(Struct, Generic[Given], frozen=True):
    """One request: its arguments, the rest of it, its client, and the age that the quota lets its answer have."""

    args: Given
    request: Request
    asker: Asker
    max_age_s: float

    def given(self, name: str) -> int:
        """Returns a number that this request must have, such as its task. Raises Refused('bad_request')."""
        value = getattr(self.request, name)
        if isinstance(value, UnsetType):
            raise Refused("bad_request", f"{name} is missing")
        return int(value)


Answer = Callable[[Call[Any]], Awaitable[str]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[str]])


def answers(kind: type[Args[Any]]) -> Callable[[Method], Method]:
    """Marks the method that answers the verb `kind`."""

    def mark(method: Method) -> Method:
        method.answers = kind  # type: ignore[attr-defined]
        return method

    return mark


def marked(holder: type) -> dict[type[Args[Any]], str]:
    """Returns the names of a class's marked methods by the verbs that they answer."""
    methods = ((name, getattr(holder, name)) for name in dir(holder))
    return {kind: name for name, method in methods if (kind := getattr(method, "answers", None))}


def table(*holders: object) -> dict[type[Args[Any]], Answer]:
    """Returns the holders' marked methods by the verbs that they answer."""
    return {kind: getattr(holder, name) for holder in holders for kind, name in marked(type(holder)).items()}


class VerbTable:
    """Answers requests by the marked methods of `holders` and of a subclass."""

    def __init__(self, *holders: object) -> None:
        self.stopping = False
        self._table = table(self, *holders)

    async def answer(self, request: Request, asker: Asker) -> str:
        """Returns the answer as JSON text. Raises VenueError leaves; Refused('bad_request') for a bad request."""
        if self.stopping:
            raise Unavailable("the gateway is stopping; nothing was sent")
        kind = verbs.BY_NAME.get(request.verb)
        if kind is None or not self.has(kind):
            raise verbs.no_such_verb(request.verb)
        call = Call(verbs.read_args(request, kind), request, asker, self.max_age_s(request, kind))
        return await self.method(request, kind)(call)

    def has(self, kind: type[Args[Any]]) -> bool:
        """Tells whether requests for this verb are answered here."""
        return kind in self._table

    def method(self, request: Request, kind: type[Args[Any]]) -> Answer:
        """Returns the method that answers a request for `kind`."""
        return self._table[kind]

    def max_age_s(self, request: Request, kind: type[Args[Any]]) -> float:
        """Returns the age that an answer may have."""
        return request.max_age_s

    def remark(self, request: Request) -> str:
        """Returns further members of the answer's JSON object: ',"quota":{...}' or nothing."""
        return ""
