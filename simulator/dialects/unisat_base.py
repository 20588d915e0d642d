"""What all UniSat routes share: the bearer key, the envelope."""

from __future__ import annotations

from typing import Any

from simulator.handler import DialectHandler
from simulator.operations import Operation
from simulator.orders import Market
from simulator.wire import ApiError, load_object

COMMON_ERROR = -1


class UnisatHandler(DialectHandler):
    """Asks for a bearer key, counts it against the limits, wraps answers as {code, msg, data}."""

    operation: Operation = "book"
    method = "POST"

    def admit(self) -> None:
        scheme, _, key = self.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise ApiError(401, "invalid API key")
        self.world.limits.admit(f"unisat {key.strip()[:200]}")

    def error_body(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        return {"code": COMMON_ERROR, "msg": text, "data": None}

    def answer(self) -> Any:
        return {"code": 0, "msg": "ok", "data": self.data()}

    def data(self) -> Any:
        """What the answer's `data` holds."""
        raise NotImplementedError

    def runes(self) -> list[Market]:
        """Every rune, in the order in which they were opened."""
        self.engine.expire()
        return [market for market in self.engine.markets.values() if market.kind == "runes"]

    def subject(self) -> str:
        try:
            body = load_object(self.request.body)
        except ApiError:
            return "(unreadable)"
        asked = body.get("filter") if isinstance(body.get("filter"), dict) else body
        tick = asked.get("tick", "") if asked else ""
        return tick[:200] if isinstance(tick, str) else "(unreadable)"
