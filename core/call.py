"""Typed calls between programs: requests and answers as shapes, one line of JSON each.

The transport is a Unix socket, or TLS at a `core.tls.FarAddress`. This is the client side. The server side is
`core/local_server.py`, a file of its own so that a worker never imports asyncio.

class Settle(Request[Settled], frozen=True, tag="settle"):
        task: Id

The client writes `call(address, "manager", Settle(17), timeout=5)` and gets a Settled; the server has
`Verbs("manager", {Settle: settle})`, one function for each request. Both ends import the class from one module, so the
fields, their bounds and the answer are declared once. On the socket each is a line of JSON:

    {"op": "settle", "task": 17}       {"ok": {...}}, or {"error": CODE, "message": TEXT}

A program of another version may know other requests or fields; the error texts mention that.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast, get_args

from msgspec import UNSET, MsgspecError, Struct, UnsetType, ValidationError, convert, json

from core.errors import PeerRefused, PeerUnavailable
from core.fields import MOST_VALUES, BadJson, read_object, reader_of, shown

MAX_LINE = 1 << 20
# The kernel's sun_path holds 108 bytes with its final NUL.
MAX_SOCKET_PATH = 107


class Far(Protocol):
    """An address on another host; `str()` of it is for logs and errors."""

    def connect(self, timeout: float) -> socket.socket:
        """Opens a connection; each step takes at most `timeout` seconds. Raises OSError."""


Address = Path | Far


def socket_path_problem(path: Path) -> str | None:
    """Says why `path` cannot be a Unix socket's address, or None if it can."""
    length = len(os.fsencode(path))
    if length > MAX_SOCKET_PATH:
        return (
            f"socket path {path} has {length} bytes, the kernel takes {MAX_SOCKET_PATH}: use a shorter data directory"
        )
    return None


def exchange(address: Address, peer: str, line: bytes, *, timeout: float) -> bytes:
    """Sends one line to the `peer` at `address` and returns the answer line.

    `timeout` (seconds) bounds each step of the exchange. Raises PeerUnavailable when the peer cannot be reached
    or its answer is lost.
    """
    try:
        with _connected(address, timeout) as connection:
            connection.sendall(line)
            with connection.makefile("rb") as answers:
                answer = answers.readline(MAX_LINE)
    except OSError as error:
        where = f"over {address.name}" if isinstance(address, Path) else f"at {address}"
        raise PeerUnavailable(peer, f"cannot be asked {where}: {error.strerror or error}") from error
    if not answer.endswith(b"\n"):
        raise PeerUnavailable(peer, "closed the connection without an answer")
    return answer


def _connected(address: Address, timeout: float) -> socket.socket:
    if not isinstance(address, Path):
        return address.connect(timeout)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(os.fspath(address))
    except OSError:
        connection.close()
        raise
    return connection


log = logging.getLogger(__name__)

A = TypeVar("A")
OTHER_VERSION = "the two programs may be of different versions: restart both"
_LONGEST_FAULT, _SHOWN = 300, 60


class Shape(Struct, frozen=True, forbid_unknown_fields=True):
    """A request, an answer or a part of one. Unknown fields are refused, which a dataclass would not do."""


class Request(Shape, Generic[A], frozen=True, tag_field="op"):
    """A request whose answer is an A. Each kind has a `tag`, the name of its operation on the socket."""


class _Reply(Struct, Generic[A], frozen=True):
    ok: A | UnsetType = UNSET
    error: str | UnsetType = UNSET
    message: str = ""
    highest: int | None = None


class _Nothing(Struct, frozen=True):
    """The form of the answer None on the socket: `{}`."""


Answering: TypeAlias = Callable[[Any], Any]  # takes the request; returns its answer, or an awaitable of it
AsRequest: TypeAlias = Callable[[dict[str, Any], type["Request[Any]"]], "Request[Any]"]  # raises BadJson
_encoder = json.Encoder()
_FAILED = b'{"error":"internal","message":"failed; the log has the reason"}\n'


def call(address: Address, peer: str, request: Request[A], *, timeout: float) -> A:
    """Sends the request to the `peer` at `address` and returns the answer.

    `timeout` (seconds) bounds each step of the exchange. Raises PeerUnavailable when the peer cannot be reached
    or its answer is lost or not understood, PeerRefused when it refuses.
    """
    return read_answer(request, peer, exchange(address, peer, _encoder.encode(request) + b"\n", timeout=timeout))


def read_answer(request: Request[A], peer: str, line: bytes) -> A:
    """Reads the line that answers the request. Raises PeerUnavailable or PeerRefused."""
    try:
        reply = _replies(type(request)).decode(line)
        if not isinstance(reply.error, UnsetType):
            raise PeerRefused(peer, reply.error, reply.message, reply.highest)
        if isinstance(reply.ok, UnsetType):
            raise ValidationError("no answer")
    except (MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PeerUnavailable(peer, f"gave an answer that is not understood: {OTHER_VERSION}") from error
    return cast("A", None if isinstance(reply.ok, _Nothing) else reply.ok)


def answer_of(kind: type[Request[Any]]) -> Any:
    """Returns the type of the answers to this kind of request."""
    (answer,) = get_args(kind.__orig_bases__[0])  # type: ignore[attr-defined]
    return answer


@cache
def _replies(kind: type[Request[Any]]) -> json.Decoder[_Reply[Any]]:
    answer = answer_of(kind)
    return reader_of(_Reply[_Nothing if answer is NoneType else answer])  # type: ignore[misc]


class Verbs:
    """The functions that answer each kind of request to a program.

    A function may be a coroutine function. PeerRefused is sent with its code; any other exception is logged and becomes
    the code `internal`. An unknown kind of request is refused with the code `unknown`, wrong fields with `misshapen`.
    `as_request` replaces the default reader of requests where a program words the faults of fields itself.
    """

    def __init__(
        self,
        peer: str,
        functions: Mapping[type[Request[Any]], Answering],
        *,
        unknown: str = "unknown_op",
        misshapen: str = "unreadable",
        unreadable: str = "unreadable",
        most_values: int = MOST_VALUES,
        as_request: AsRequest | None = None,
    ) -> None:
        self._peer = peer
        self._functions = functions
        self._kinds = {str(kind.__struct_config__.tag): kind for kind in functions}
        self._unknown = unknown
        self._misshapen = misshapen
        self._unreadable = unreadable
        self._most_values = most_values
        self._as_request = as_request or _as_request

    def read(self, line: bytes) -> Request[Any]:
        """Reads a request. Raises PeerRefused with a text that names the fault."""
        try:
            given = read_object(line, "request", self._most_values)
        except BadJson as error:
            raise self._refused(self._unreadable, str(error)) from None
        op = given.get("op")
        if not isinstance(op, str) or op not in self._kinds:
            raise self._refused(self._unknown, f"unknown operation {repr(op)[:_SHOWN]}: {OTHER_VERSION}")
        try:
            return self._as_request(given, self._kinds[op])
        except BadJson as error:
            raise self._refused(self._misshapen, str(error)) from None

    def _refused(self, code: str, text: str) -> PeerRefused:
        log.warning("refused a request: %s", text)
        return PeerRefused(self._peer, code, text)

    async def answer(self, line: bytes) -> bytes:
        """Answers one line of request with one line of answer."""
        name = "a request"
        try:
            try:
                request = self.read(line)
                name = type(request).__name__
                result = self._functions[type(request)](request)
                if isinstance(result, Awaitable):
                    result = await result
                reply = {"ok": result if result is not None or answer_of(type(request)) is not NoneType else {}}
            except PeerRefused as refused:
                reply = {"error": refused.code, "message": refused.message}
                reply |= {} if refused.highest is None else {"highest": refused.highest}
            return _encoder.encode(reply) + b"\n"
        except Exception:
            log.exception("failed to answer %s", name)
            return _FAILED


def _as_request(given: dict[str, Any], kind: type[Request[Any]]) -> Request[Any]:
    try:
        reader_of(kind)
        return convert(given, kind)
    except ValidationError as error:
        raise BadJson(f"{given['op']}: {fault_of(error)}") from None


def fault_of(error: ValidationError) -> str:
    """Writes a fault of a field in one line: `bid.price: expected int >= 1`."""
    text, path = str(error), ""
    if found := re.fullmatch(r"(.*) - at `\$\.?([^`]*)`", text, re.DOTALL):
        text, path = found[1], found[2]
    text = text.replace("`", "")
    if text.startswith(("Object contains unknown field ", "Object missing required field ")):
        text = f"{text.removeprefix('Object ')}: {OTHER_VERSION}"
    return shown(": ".join(filter(None, (path, text[:1].lower() + text[1:]))), _LONGEST_FAULT)
