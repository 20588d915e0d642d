"""The base of all Satflow routes: the API key, the envelope, readers of addresses."""

from __future__ import annotations

from typing import Any

from simulator.handler import DialectHandler
from simulator.orders import Trait
from simulator.wire import ApiError, bad, load_object, text
from wallet import address

VENUE = "satflow"


class SatflowHandler(DialectHandler):
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

    def answer(self) -> Any:
        return {"success": True, "data": self.data()}

    def data(self) -> Any:
        """Returns the answer's `data`."""
        raise NotImplementedError

    def query_address(self, name: str = "address") -> str:
        return sign_in_address(self.query(name), name)


def sign_in_address(value: Any, name: str) -> str:
    """Reads a mainnet address that can sign, in its normal form. Raises ApiError(400)."""
    try:
        return address.sign_in_address(text(value, name))
    except address.AddressError as error:
        raise bad(f"{name}: {error}") from None


def attribute(trait: Trait | None) -> dict[str, str] | None:
    return {"trait_type": trait[0], "value": trait[1]} if trait else None


def attributes(traits: tuple[Trait, ...]) -> list[dict[str, str]]:
    return [{"trait_type": key, "value": value} for key, value in traits]


def peek(body: bytes, *names: str) -> str:
    """Reads a text field for the counts, from any body; of a list the first row."""
    try:
        value: Any = load_object(body)
    except ApiError:
        return "(unreadable)"
    for name in names:
        if isinstance(value, list) and value:
            value = value[0]
        value = value.get(name, "") if isinstance(value, dict) else None
    return value[:200] if isinstance(value, str) else "(unreadable)"
