"""A small HTTP client that asks over kept connections as fast as it is answered."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import time
from collections.abc import Iterator
from typing import Any

CONNECTIONS = 16
_PATIENCE_S = 120.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def get(path: str, token: str) -> bytes:
    """Returns a GET as it goes over the wire."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


def write(method: str, path: str, token: str, body: object) -> bytes:
    """Returns a POST or PUT of JSON as it goes over the wire."""
    text = json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


def call(port: int, method: str, path: str, token: str) -> Any:
    """Makes one request without a body over a new connection; returns the answer's JSON. May be called in a thread.

    Raises RuntimeError for a status that is not 2xx.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.request(method, path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {text[:200].decode(errors='replace')}")
    return json.loads(text)


def ask(port: int, request: bytes) -> Any:
    """Makes one request; returns the answer's JSON. Raises RuntimeError for a status that is not 2xx."""
    return json.loads(asyncio.run(_ask_once(port, request)))


def press(port: int, requests: Iterator[bytes], seconds: float = 60.0, connections: int = CONNECTIONS) -> int:
    """Sends `requests` until they or `seconds` are over; returns the number of answers.

    Raises RuntimeError for a status that is not 2xx.
    """
    return asyncio.run(_press(port, requests, time.monotonic() + seconds, connections))


async def _press(port: int, requests: Iterator[bytes], until: float, connections: int) -> int:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_client(port, requests, until)) for _ in range(connections)]
    return sum(task.result() for task in tasks)


async def _client(port: int, requests: Iterator[bytes], until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    answered = 0
    try:
        for request in requests:
            await _exchange(reader, writer, request)
            answered += 1
            if time.monotonic() > until:
                break
    finally:
        writer.close()
    return answered


async def _ask_once(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    try:
        return await _exchange(reader, writer, request)
    finally:
        writer.close()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bytes:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    if head[9:10] != b"2":
        raise RuntimeError(f"{head.splitlines()[0].decode()}: {body[:200].decode(errors='replace')}")
    return body
