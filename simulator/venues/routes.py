"""Routes, readers and rows that the venues share: a route is one function, declared with its method and path."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from simulator.calls import AFTER_THE_DEED, Fault, Operation
from simulator.handler import DialectHandler
from simulator.orders import Order, Refusal
from simulator.wire import ApiError, bad, load_object, text
from simulator.world import World
from wallet import address as addresses

MAX_PSBT_TEXT = 200_000
# A public key in hex; its parity, which may be left out, adds nothing.
X_ONLY_KEY = re.compile(r"(?:0[23])?([0-9a-f]{64})")
MAX_OFFSET = 10_000_000
UNREADABLE = "(unreadable)"


class VenueHandler(DialectHandler):
    """The base of the venues' handlers. A route's function is its `data`; `envelope` wraps what that returns."""

    # Whether the route only drafts: faults that follow a deed do not strike it.
    drafts = False

    def data(self) -> Any:
        raise NotImplementedError

    def envelope(self, data: Any) -> Any:
        return data

    def answer(self) -> Any:
        return self.envelope(self.data())

    async def get(self, *_: str) -> None:
        await self._serve("GET")

    async def post(self, *_: str) -> None:
        await self._serve("POST")

    def draw_fault(self) -> Fault | None:
        if not self.drafts:
            return super().draw_fault()
        faults = self.world.faults
        found = faults.draw("draft") if self.operation in ("list", "place") else None
        return found or faults.draw(self.operation, but=AFTER_THE_DEED)

    def visible_ms(self) -> int:
        """Returns the time from which reads show this write: 0, or later under a fault."""
        if self.fault is None or self.mode != "late":
            return 0
        return self.world.engine.now_ms() + round(self.fault.delay_seconds * 1000)

    def end(self, order: Order) -> None:
        """Cancels an order; a fault may delay that, or leave it out."""
        if self.mode == "late":
            self.world.engine.cancel_at(order, self.visible_ms())
        elif self.mode != "cancel_lie":
            self.world.engine.cancel(order)

    def send_text(self, value: str, status: int = 200) -> None:
        """Answers plain text."""
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(value)

    def deliver_text(self, value: Any) -> None:
        self.send_text(str(value))


# The subject of a request, for the counts. It must not raise.
Subject = Callable[[Any], str]
Data = Callable[..., Any]
Declare = Callable[[Data], Data]


class Routes:
    """The routes under one prefix, in the order in which they are tried."""

    def __init__(self, prefix: str, base: type[VenueHandler]) -> None:
        self.prefix, self._base = prefix, base
        self._handlers: list[tuple[str, type[VenueHandler]]] = []

    def __call__(self, world: World, prefix: str = "") -> list[tuple[Any, ...]]:
        """Returns path, handler and arguments of each route."""
        return [(f"{prefix or self.prefix}/{path}", handler, {"world": world}) for path, handler in self._handlers]

    def get(self, path: str, operation: Operation, subject: Subject | None = None, **more: Any) -> Declare:
        """Declares the decorated function as the answer to GET; `more` replaces further members of the handler."""
        return self._declared("GET", path, operation, subject, more)

    def post(self, path: str, operation: Operation, subject: Subject | None = None, **more: Any) -> Declare:
        """Declares the decorated function as the answer to POST."""
        return self._declared("POST", path, operation, subject, more)

    def _declared(
        self, method: str, path: str, operation: Operation, subject: Subject | None, more: dict[str, Any]
    ) -> Declare:
        def declared(data: Data) -> Data:
            members = {"method": method, "operation": operation, "data": data} | more
            if subject is not None:
                members["subject"] = subject
            self._handlers.append((path, type(data.__name__, (self._base,), members)))
            return data

        return declared


def by_path(call: VenueHandler) -> str:
    """Returns the first argument of the path."""
    return call.path_args[0][:200] if call.path_args else ""


def by_url(call: VenueHandler) -> str:
    return call.request.path[:200]


def asked(*names: str) -> Subject:
    """Returns a subject: the first of these query arguments that is there."""
    return lambda call: call.asked(*names)


def named(*names: str) -> Subject:
    """Returns a subject: a text field of the body, by the names that lead to it."""
    return lambda call: peek(call.request.body, *names)


def peek(body: bytes, *names: str) -> str:
    """Reads a text field for the counts, from any body; of a list the first row."""
    try:
        value: Any = load_object(body)
    except ApiError:
        return UNREADABLE
    for name in names:
        if isinstance(value, list) and value:
            value = value[0]
        value = value.get(name, "") if isinstance(value, dict) else None
    return value[:200] if isinstance(value, str) else UNREADABLE


# Rows


def picked(about: object, names: str) -> dict[str, Any]:
    """Returns fields of `about` as a row; `names` lists each as `name`, or as `name=attribute`."""
    return {name: getattr(about, attribute) for name, attribute in _pairs(names)}


@cache
def _pairs(names: str) -> tuple[tuple[str, str], ...]:
    cut = (each.partition("=") for each in names.split())
    return tuple((name, attribute or name) for name, _, attribute in cut)


def same(value: Any, names: str) -> dict[str, Any]:
    """Returns a row whose fields all have this value, as those have that the practice market does not know."""
    return dict.fromkeys(names.split(), value)


# Readers


@contextmanager
def refusals() -> Iterator[None]:
    """Turns the market's refusals into a 400 with their words."""
    try:
        yield
    except Refusal as refusal:
        raise bad(str(refusal)) from None


def sign_in_address(value: Any, name: str) -> str:
    """Reads a mainnet address that can sign, in its normal form. Raises ApiError(400)."""
    try:
        return addresses.sign_in_address(text(value, name))
    except addresses.AddressError as error:
        raise bad(f"{name}: {error}") from None


def mainnet(value: Any, name: str) -> str:
    """Reads an address that can be paid, of any kind. Raises ApiError(400)."""
    try:
        found = addresses.parse(text(value, name))
    except addresses.AddressError as error:
        raise bad(f"{name}: {error}") from None
    if found.network != "mainnet":
        raise bad(f"{name}: not an address of mainnet")
    return found.text


def hex_of(psbt: str) -> str:
    """Converts a PSBT from base64 to hex."""
    return b64decode(psbt).hex()
