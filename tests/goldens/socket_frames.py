"""Malformed requests, and what a server answers to their bytes."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
