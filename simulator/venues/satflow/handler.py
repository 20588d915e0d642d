"""Satflow's routes under `/satflow/v1`, from its reference of API 1.1.4 (docs.satflow.com/reference)."""

from __future__ import annotations

from typing import Any

from simulator.engine import Kind
from simulator.handler import VenueHandler, sign_in_address
from simulator.wire import ApiError, bad

VENUE = "satflow"
PREFIX = "/satflow/v1"


def kind_of(value: Any, name: str) -> Kind:
    """Reads the kind of a market. Raises ApiError(400)."""
    if value != "ordinals" and value != "runes":
        raise bad(f"{name} must be ordinals or runes")
    return "ordinals" if value == "ordinals" else "runes"


class SatflowHandler(VenueHandler):
    """The base handler: asks for `x-api-key`, applies its limits, wraps answers as {"success": true, "data": ...}."""

    dialect = VENUE

    def admit(self) -> None:
        key = self.request.headers.get("x-api-key", "").strip()
        if not key:
            raise ApiError(401, "x-api-key is required", "UNAUTHORIZED")
        self.world.limits.admit(f"satflow {key[:200]}")

    @property
    def is_as_seen(self) -> bool:
        """Tells whether to answer as clients have seen it, where that is not as it is documented."""
        return self.world.shape == "seen"

    def envelope(self, data: Any) -> Any:
        return {"success": True, "data": data}

    def query_address(self, name: str = "address") -> str:
        return sign_in_address(self.query(name), name)

    def missing(self) -> Any:
        """Refuses a documented endpoint that the practice market lacks."""
        raise ApiError(501, "not implemented by the practice market", "NOT_IMPLEMENTED")
