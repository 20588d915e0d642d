"""The base of all request handlers, and the venues' routes: each route is one function with its method and path."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar

from tornado import web

from simulator.calls import AFTER_THE_CHANGE, Fault, Operation
from simulator.engine import Order, Refusal
from simulator.scenes import ListName
from simulator.wire import ApiError, bad, load_object, number, text
from simulator.world import World
from wallet import address as addresses

log = logging.getLogger(__name__)

MAX_BODY = 1 << 20
# Faults that refuse without doing anything: their answer's status, text and code.
_REFUSALS: dict[str, tuple[int, str, str | None]] = {
    "error_500": (500, "internal error", None),
    "rate_429": (429, "too many requests", "RATE_LIMITED"),
    "refuse_400": (400, "the request was refused", "BAD_REQUEST"),
    "auth_401": (401, "invalid API key", "UNAUTHORIZED"),
}


class JsonHandler(web.RequestHandler):
    """The base of JSON handlers. A handler raises ApiError to refuse; any other error is logged and answered by 500."""

    def initialize(self, world: World) -> None:
        self.world, self.engine = world, world.engine
        # True if answers have the form that clients have seen, where that differs from the documentation.
        self.is_as_seen = world.shape == "seen"

    def _log(self) -> None:
        log.debug("%s %s %s", self.get_status(), self.request.method, self.request.path)

    def prepare(self) -> None:
        if len(self.request.body) > MAX_BODY:
            raise ApiError(413, f"the body is longer than {MAX_BODY} bytes")

    def body(self) -> dict[str, Any]:
        return load_object(self.request.body)

    def send(self, value: Any, status: int = 200) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        self.finish(json.dumps(value, default=_default))

    def error_body(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        return {"error": text, "code": code} if code else {"error": text}

    def refuse(self, error: ApiError) -> None:
        if error.retry_after is not None:
            self.set_header("Retry-After", str(error.retry_after))
        self.send(self.error_body(error.status, error.text, error.code), error.status)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, ApiError):
            self.refuse(error)
            return
        if status_code == 405:
            self.set_header("Allow", ", ".join(self._allowed()))
        self.refuse(ApiError(status_code, self._reason if status_code < 500 else "internal error"))

    def _allowed(self) -> list[str]:
        plain = web.RequestHandler._unimplemented_method
        return [m for m in self.SUPPORTED_METHODS if getattr(type(self), m.lower()) is not plain]

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if isinstance(value, (ApiError, web.HTTPError)):
            return
        super().log_exception(typ, value, tb)

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None, None))[1]
        super().send_error(error.status if isinstance(error, ApiError) else status_code, **kwargs)

    def query(self, name: str) -> str:
        value = self.get_query_argument(name, "")
        if not value:
            raise bad(f"{name} is required")
        return value

    def query_whole(self, name: str, default: int, low: int, high: int) -> int:
        text = self.get_query_argument(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 16 and low <= int(text) <= high):
            raise bad(f"{name} must be a whole number between {low} and {high}")
        return int(text)


def _default(value: Any) -> Any:
    if isinstance(value, Decimal):
        return number(value)
    raise TypeError(f"{type(value).__name__} has no JSON form here")


class NotFound(JsonHandler):
    def prepare(self) -> None:
        raise ApiError(404, "no such route")


class VenueHandler(JsonHandler):
    """The base of the venues' handlers: one documented route, counted, limited and hit by faults, in that order.

    A route's function is its synchronous `data`; `envelope` wraps the result.
    """

    operation: Operation
    # The venue's name in scenes.
    dialect: ClassVar[str] = ""
    # The route's only method; no other method is answered as the venue would.
    method = "GET"
    # True for a route that only drafts: faults that take effect after a change do not apply to it.
    drafts = False
    fault: Fault | None = None
    mode = ""

    def subject(self) -> str:
        """Returns the request's subject, for the counts; must not raise."""
        return ""

    def admit(self) -> None:
        """Raises ApiError if the caller may not make this request, or not now."""

    def data(self) -> Any:
        raise NotImplementedError

    def envelope(self, data: Any) -> Any:
        return data

    def _draw_fault(self) -> Fault | None:
        faults = self.world.faults
        if not self.drafts:
            return faults.draw(self.operation)
        found = faults.draw("draft") if self.operation in ("list", "place") else None
        return found or faults.draw(self.operation, but=AFTER_THE_CHANGE)

    def staged(self, list_name: ListName, rows: Sequence[Any], about: Sequence[Any]) -> Sequence[Any]:
        """Returns an answer's rows with the scenes' changes; the last rows are those `about` real orders."""
        scenes = self.world.scenes
        return scenes.rows(self.dialect, list_name, rows, about, self.engine) if scenes.chosen else rows

    async def get(self, *_: str) -> None:
        await self._serve("GET")

    async def post(self, *_: str) -> None:
        await self._serve("POST")

    def _allowed(self) -> list[str]:
        return [self.method]

    async def _serve(self, method: str) -> None:
        if method != self.method:
            raise web.HTTPError(405)
        self._gone = asyncio.Event()
        self.world.counts.count(self.operation, self.subject())
        self.admit()
        fault = self.fault = self._draw_fault()
        if fault is None:
            self.deliver(self.envelope(self.data()))
            return
        self.mode = fault.mode
        if fault.then is not None:  # a read under a stale fault sees the market's frozen copy
            self.engine = fault.then
        if self.mode in ("timeout", "cut"):
            await self._hang(fault.delay_seconds if self.mode == "timeout" else 0)
            return
        if self.mode in _REFUSALS:
            wait = round(fault.delay_seconds) if self.mode == "rate_429" else None
            raise ApiError(*_REFUSALS[self.mode], wait)
        if self.mode == "slow" or (self.mode == "late" and self.method == "GET"):
            await asyncio.sleep(fault.delay_seconds)
            self.initialize(self.world)  # because the market may have been reset meanwhile
        value = self.envelope(self.data())
        if self.mode == "accept_then_timeout":
            await self._hang(fault.delay_seconds)
        elif self.mode == "accept_then_500":
            raise ApiError(500, "internal error")
        elif self.mode == "bad_json":
            self.finish('{"success": tru')
        else:
            self.deliver(value)

    def deliver(self, value: Any) -> None:
        """Sends an answer, as JSON unless the route overrides this."""
        self.send(value)

    def send_text(self, value: Any, status: int = 200) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(str(value))

    def visible_ms(self) -> int:
        """Returns the time from which reads show this write: 0, or later under a fault."""
        if self.fault is None or self.mode != "late":
            return 0
        return self.world.engine.now_ms() + round(self.fault.delay_seconds * 1000)

    def end(self, order: Order) -> None:
        """Cancels an order; a fault may delay or skip that."""
        if self.mode == "late":
            self.world.engine.cancel_at(order, self.visible_ms())
        elif self.mode != "cancel_lie":
            self.world.engine.cancel(order)

    async def _hang(self, delay_seconds: float) -> None:
        """Keeps the caller waiting, then closes the connection without an answer."""
        if delay_seconds:
            try:
                await asyncio.wait_for(self._gone.wait(), delay_seconds)
            except TimeoutError:
                log.debug("hung up after %s s", delay_seconds)
        stream = self.detach() if not self._gone.is_set() else None
        if stream is not None:
            stream.close()

    def on_connection_close(self) -> None:
        if hasattr(self, "_gone"):
            self._gone.set()


MAX_PSBT_TEXT = 200_000
# A public key in hex; its parity is optional and ignored.
X_ONLY_KEY = re.compile(r"(?:0[23])?([0-9a-f]{64})")
MAX_OFFSET = 10_000_000
UNREADABLE = "(unreadable)"


# Reads the subject of a request, for the counts; it must not raise.
Subject = Callable[[Any], str]
Data = Callable[..., Any]
Declare = Callable[[Data], Data]


class Routes:
    def __init__(self, prefix: str, base: type[VenueHandler]) -> None:
        self.prefix, self._base = prefix, base
        self._handlers: list[tuple[str, type[VenueHandler]]] = []

    def __call__(self, world: World, prefix: str = "") -> list[tuple[Any, ...]]:
        return [(f"{prefix or self.prefix}/{path}", handler, {"world": world}) for path, handler in self._handlers]

    def get(self, path: str, operation: Operation, subject: Subject | None = None, **more: Any) -> Declare:
        """Registers the decorated function for GET; `more` sets further attributes of the handler."""

        def declared(data: Data) -> Data:
            members = {"operation": operation, "data": data} | ({"subject": subject} if subject else {}) | more
            self._handlers.append((path, type(data.__name__, (self._base,), members)))
            return data

        return declared

    def post(self, path: str, operation: Operation, subject: Subject | None = None, **more: Any) -> Declare:
        return self.get(path, operation, subject, method="POST", **more)


class Made(Sequence[Any]):
    """The rows that `make` makes of `of`, each made only when it is read, because an answer shows one page of them."""

    def __init__(self, make: Callable[..., Any], of: Sequence[Any]) -> None:
        self._make, self._of = make, of

    def __len__(self) -> int:
        return len(self._of)

    def __getitem__(self, at: int | slice) -> Any:
        return [self._make(one) for one in self._of[at]] if isinstance(at, slice) else self._make(self._of[at])


def by_path(call: VenueHandler) -> str:
    return call.path_args[0][:200] if call.path_args else ""


def by_url(call: VenueHandler) -> str:
    return call.request.path[:200]


def asked(*names: str) -> Subject:
    def subject(call: VenueHandler) -> str:
        try:
            found = (call.get_query_argument(name, "") for name in names)
            return next((value[:200] for value in found if value), "")
        except web.HTTPError:
            return UNREADABLE

    return subject


def named(*names: str) -> Subject:
    return lambda call: peek(call.request.body, *names)


def peek(body: bytes, *names: str) -> str:
    """Reads a text field of any body, for the counts; in a list it reads the first row."""
    try:
        value: Any = load_object(body)
    except ApiError:
        return UNREADABLE
    for name in names:
        if isinstance(value, list) and value:
            value = value[0]
        value = value.get(name, "") if isinstance(value, dict) else None
    return value[:200] if isinstance(value, str) else UNREADABLE


def picked(about: object, names: str) -> dict[str, Any]:
    """Returns fields of `about` as a row; `names` lists each as `name` or `name=attribute`."""
    return {name: getattr(about, attribute) for name, attribute in _pairs(names)}


@cache
def _pairs(names: str) -> list[tuple[str, str]]:
    return [(name, attribute or name) for name, _, attribute in (each.partition("=") for each in names.split())]


def same(value: Any, names: str) -> dict[str, Any]:
    """Returns a row whose fields all have this value, for fields that the practice market does not know."""
    return dict.fromkeys(names.split(), value)


@contextmanager
def refusals(said: Callable[[Refusal], ApiError] = lambda refusal: bad(str(refusal))) -> Iterator[None]:
    """Turns the market's refusals into the venue's error answers."""
    try:
        yield
    except Refusal as refusal:
        raise said(refusal) from None


def sign_in_address(value: Any, name: str) -> str:
    try:
        return addresses.sign_in_address(text(value, name))
    except addresses.AddressError as error:
        raise bad(f"{name}: {error}") from None


_COMPRESSED = re.compile(r"0[23][0-9a-fA-F]{64}")


def belongs_to(public_key: str, payment: str) -> bool:
    """Returns True if `payment` is the P2WPKH or nested P2WPKH address of a compressed key in hex."""
    if not _COMPRESSED.fullmatch(public_key):
        return False
    key_hash = addresses.hash160(bytes.fromhex(public_key))
    found = addresses.parse(payment)
    if found.kind == "p2wpkh":
        return found.program == key_hash
    return found.kind == "p2sh" and found.program == addresses.hash160(b"\x00\x14" + key_hash)


def mainnet(value: Any, name: str) -> str:
    """Reads a payable mainnet address of any kind. Raises ApiError(400)."""
    try:
        found = addresses.parse(text(value, name))
    except addresses.AddressError as error:
        raise bad(f"{name}: {error}") from None
    if found.network != "mainnet":
        raise bad(f"{name}: not an address of mainnet")
    return found.text


def hex_of(psbt: str) -> str:
    return b64decode(psbt).hex()
