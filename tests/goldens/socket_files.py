"""Golden files of the sockets: malformed requests, and a wire tap that keeps each request.

`*_meanings.jsonl`, `signer_attack*.jsonl` and `signer_audit*.jsonl` hold what callers and operators see: they may not
change with the form of a socket. `*_wire.jsonl` hold decoded requests and answers, `socket_frames_*.jsonl` and
`signer_fields.jsonl` answers to malformed ones: they may, for a reason. tests/goldens/__init__.py says how to renew
them: `RENEW_GOLDENS=1 .venv/bin/python -m pytest tests/goldens`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from core.errors import BidkeeperError
from server.http.answers import ApiError
from tests import goldens


def plain(value: Any) -> Any:
    """Returns `value` as JSON takes it; a dataclass, msgspec.Struct or NamedTuple as an object of its fields."""
    kinds = ("__struct_fields__", "__dataclass_fields__", "_fields")
    if names := next(filter(None, (getattr(type(value), kind, None) for kind in kinds)), None):
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Decimal):
        return f"Decimal {value}"
    if isinstance(value, bytes):
        return f"base64 {base64.b64encode(value).decode()}"
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value))
    assert value is None or isinstance(value, str | int | float), f"{type(value)} has no plain form"
    return value


def failed(error: BaseException) -> dict[str, Any]:
    """Returns an exception as a value: its class, its text, and the fields that callers read."""
    fields = {name: plain(value) for name, value in sorted(vars(error).items()) if not name.startswith("_")}
    return {"raises": type(error).__name__, "text": str(error), **({"fields": fields} if fields else {})}


def hold(name: str, rows: Iterable[Any]) -> None:
    """Fails unless the golden `name` has exactly these rows, each a line of JSON."""
    lines = [json.dumps(plain(row), sort_keys=True, ensure_ascii=False) for row in rows]
    assert lines
    goldens.hold(name, lines)


_PATIENCE_S = 60.0
_DEEP = "[" * 2000 + "]" * 2000


def frames(verb: str, good: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yields malformed frames by name. `verb` is the member that names the operation, `good` a faultless request."""
    text = json.dumps(good)
    yield "a good one", text.encode()
    yield "a blank", b" "
    yield "not JSON", b"{"
    yield "two objects", f"{text}{text}".encode()
    yield "not UTF-8", text.encode()[:-1] + b', "x": "\xff"}'
    yield "a byte order mark", b"\xef\xbb\xbf" + text.encode()
    yield "UTF-16", text.encode("utf-16")
    for name, value in {"a list": [], "a number": 5, "a text": "status", "null": None, "true": True}.items():
        yield name, json.dumps(value).encode()
    yield "a repeated verb, the last is unknown", f'{text[:-1]}, "{verb}": "nonsense"}}'.encode()
    yield "a repeated verb, the first is unknown", f'{{"{verb}": "nonsense", {text[1:]}'.encode()
    yield "2,000 deep", _DEEP.encode()
    yield "2,000 deep in a field", f'{text[:-1]}, "x": {_DEEP}}}'.encode()
    for name, odd in {
        "1e999": "1e999",
        "NaN": "NaN",
        "Infinity": "-Infinity",
        "5,000 digits": "9" * 5000,
        "a lone surrogate": '"\\ud800"',
        "a NUL": '"\\u0000"',
    }.items():
        yield f"{name} in an unknown field", f'{text[:-1]}, "x": {odd}}}'.encode()
        yield f"{name} as the verb", json.dumps(dict(good) | {verb: "<odd>"}).replace('"<odd>"', odd).encode()
    yield "no verb", json.dumps({name: value for name, value in good.items() if name != verb}).encode()
    yield "an empty object", b"{}"
    for name, value in {
        "empty": "",
        "null": None,
        "a list": ["x"],
        "unknown": "nonsense",
        "private": "__init__",
    }.items():
        yield f"a verb that is {name}", json.dumps(dict(good) | {verb: value}).encode()
    yield "an unknown field", json.dumps(dict(good) | {"more": 1}).encode()
    yield "an empty name", json.dumps(dict(good) | {"": 1}).encode()
    yield "a megabyte in a field", json.dumps(dict(good) | {"more": "x" * (1 << 20)}).encode()
    yield "10,000 fields", json.dumps(dict(good) | {f"f{number}": number for number in range(10_000)}).encode()


def odd_fields(good: Mapping[str, Any], verb: str) -> Iterator[tuple[str, str, bytes]]:
    """Yields requests with one odd field each: the field, also one of an object within, the value, and the frame."""
    for name, within in good.items():
        if name == verb:
            continue
        for value, changed in _odd(good, name):
            yield name, value, changed
        if isinstance(within, dict):
            for inner in within:
                for value, changed in _odd(within, inner):
                    text = json.dumps(dict(good) | {name: "<within>"})
                    yield f"{name}.{inner}", value, text.replace('"<within>"', changed.decode()).encode()


def _odd(fields: Mapping[str, Any], name: str) -> Iterator[tuple[str, bytes]]:
    yield "missing", json.dumps({each: value for each, value in fields.items() if each != name}).encode()
    for value, odd in _VALUES.items():
        yield value, json.dumps(dict(fields) | {name: "<odd>"}).replace('"<odd>"', odd).encode()


_VALUES = {
    **{text: text for text in ("null", "true", "0", "-1", "1.5", "1e999", "[]", "{}", '""', '"x"', '"1"', '[["x"]]')},
    "10^30": str(10**30),
    "a lone surrogate": '"\\ud800"',
    "600 characters": json.dumps("x" * 600),
    "50,000 characters": json.dumps("A" * 50_000),
    "30 texts": json.dumps(["x"] * 30),
}


def _exchange(path: Path, sent: bytes) -> bytes:
    """Sends the bytes, then ends that direction; returns all that comes back."""
    received = bytearray()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE_S)
        connection.connect(os.fspath(path))
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # it had closed before all was sent
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while some := connection.recv(1 << 16):
                received += some
    return bytes(received)


def by_line(path: Path, frame: bytes) -> Any:
    """Returns the answer of a server of lines, decoded; None where it closes without one."""
    lines = [json.loads(line) for line in _exchange(path, frame + b"\n").splitlines()]
    return lines[0] if len(lines) == 1 else lines or None


def by_http(path: Path, body: bytes) -> Any:
    """Returns status and answer of a server of HTTP, decoded; None where it closes without one."""
    head = f"POST / HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    received = bytearray()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE_S)
        connection.connect(os.fspath(path))
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(head.encode() + body)  # it takes a closed half for a client that has left
            while some := connection.recv(1 << 16):
                received += some
    if not received:
        return None
    first, _, rest = bytes(received).partition(b"\r\n")
    return {"status": int(first.split()[1]), "answer": json.loads(rest.partition(b"\r\n\r\n")[2])}


_TAP_WAITS_S = 120.0


class Tap:
    """Listens at `path` and passes on to `behind`. Bodies of HTTP and lines are kept, decoded, in their order."""

    def __init__(self, path: Path, behind: Path) -> None:
        self._behind = behind
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.fspath(path))
        self._listener.listen()
        self._listener.settimeout(_TAP_WAITS_S)
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.sent, self.answered = bytearray(), bytearray()
        self._start(self._accept)

    def exchange(self) -> tuple[Any, Any]:
        """Returns what crossed since the last call, both ways, decoded."""
        sent, answered = bytes(self.sent), bytes(self.answered)
        self.sent.clear()
        self.answered.clear()
        return decoded(sent), decoded(answered)

    def close(self) -> None:
        """Ends all connections and threads."""
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(_TAP_WAITS_S)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            self._open += [near, far]
            try:
                far.connect(os.fspath(self._behind))
            except OSError:
                near.close()
                continue
            self._start(self._pass, near, far, self.sent)
            self._start(self._pass, far, near, self.answered)

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
        try:
            while some := source.recv(1 << 16):
                kept += some
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return


def decoded(raw: bytes) -> Any:
    """Returns the JSON value of an HTTP body or of a line; None where nothing crossed."""
    body = raw.partition(b"\r\n\r\n")[2] if raw.startswith((b"POST ", b"HTTP/")) else raw
    return json.loads(body) if body.strip() else None


class Session:
    """Calls through a tap, one after another: what each returned or raised, and what crossed the socket."""

    def __init__(self, tap: Tap, mask: Callable[[Any], Any]) -> None:
        self._tap = tap
        self._mask = mask
        self.meanings: list[Any] = []
        self.wire: list[Any] = []

    def call(self, name: str, ask: Callable[[], Any]) -> Any:
        """Calls `ask` and keeps the outcome under `name`; returns the value, None for an error."""
        value = None
        try:
            value = ask()
            self._keep(name, {"returns": plain(value)})
        except (BidkeeperError, ApiError) as error:
            self._keep(name, failed(error))
        return value

    async def wait_for(self, name: str, asked: Awaitable[Any]) -> Any:
        """Waits for `asked`, and keeps the outcome as `call` does."""
        value = None
        try:
            value = await asked
            self._keep(name, {"returns": plain(value)})
        except (BidkeeperError, ApiError) as error:
            self._keep(name, failed(error))
        return value

    def _keep(self, name: str, outcome: dict[str, Any]) -> None:
        sent, answered = self._tap.exchange()
        self.meanings.append(self._mask({"call": name} | outcome))
        self.wire.append(self._mask({"call": name, "sent": sent, "answered": answered}))
