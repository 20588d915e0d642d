"""Requests and answers on the sockets as plain dicts, for what no declared shape can send or answer."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from core.call import Address, exchange
from core.errors import PeerRefused


def ask(address: Address, peer: str, request: dict[str, Any], *, timeout: float) -> dict[str, Any]:
    """Sends one request and returns the answer's `ok` object. Raises as `core.call.call` does."""
    answer = json.loads(exchange(address, peer, json.dumps(request).encode() + b"\n", timeout=timeout))
    if "ok" not in answer:
        raise PeerRefused(peer, answer["error"], answer["message"], answer.get("highest"))
    ok: dict[str, Any] = answer["ok"]
    return ok


class Answers:
    """Answers each line by a function of dicts, as a program does by its shapes."""

    def __init__(self, function: Callable[[dict[str, Any]], dict[str, Any] | Awaitable[dict[str, Any]]]) -> None:
        self._function = function

    async def answer(self, line: bytes) -> bytes:
        try:
            result = self._function(json.loads(line))
            told = {"ok": await result if inspect.isawaitable(result) else result}
        except PeerRefused as refused:
            told = {"error": refused.code, "message": refused.message, "highest": refused.highest}
        return json.dumps(told).encode() + b"\n"
