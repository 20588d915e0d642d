"""The base of all UniSat routes: the bearer key, the envelope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from simulator.calls import Operation
from simulator.handler import DialectHandler
from simulator.orders import Market
from simulator.wire import ApiError, load_object, whole

Row = TypeVar("Row")

VENUE = "unisat"
COMMON_ERROR = -1
OVER_LIMIT = "-2006"  # as programs that run against the live venue met it
# A free key's calls in a month.
PER_MONTH = 60_000
MAX_PAGE = 99


class UnisatHandler(DialectHandler):
    """The base handler: asks for a bearer key, counts it against the limits, wraps answers as {code, msg, data}."""

    dialect = VENUE
    operation: Operation = "book"
    method = "POST"
    # The fields of the body, or of its filter, that name the request's subject, for the counts.
    about: tuple[str, ...] = ("tick",)

    @property
    def is_as_seen(self) -> bool:
        """Tells whether to answer as it was recorded, where that is not as it is documented."""
        return self.world.shape == "seen"

    def shows(self, scene: str) -> bool:
        """Tells whether a scene is in force; a market that answers as recorded has all that are forms of an answer."""
        return self.is_as_seen or self.world.scenes.has(scene)

    def admit(self) -> None:
        scheme, _, key = self.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise ApiError(401, "invalid API key")
        over = ApiError(403, "your request exceeds rate limit", OVER_LIMIT)
        scenes = self.world.scenes
        try:
            self.world.limits.admit(f"unisat {key.strip()[:200]}", PER_MONTH, day_is_over=over)
        except ApiError:
            if scenes.has("unisat_403_over_the_rate"):
                raise over from None
            raise
        if scenes.strikes("unisat_403_over_the_rate"):
            raise over if scenes.strikes("unisat_403_over_the_rate") else refused(int(OVER_LIMIT), over.text)

    def error_body(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        # The marketplace's own codes are negative numbers; others are errors common to its services.
        number = int(code) if code and code.startswith("-") else COMMON_ERROR
        return {"code": number, "msg": text, "data": None}

    def answer(self) -> Any:
        return {"code": 0, "msg": "ok", "data": self.data()}

    def data(self) -> Any:
        """Returns the answer's `data`."""
        raise NotImplementedError

    def runes(self) -> list[Market]:
        """Returns every rune, in the order of opening."""
        self.engine.expire()
        return [market for market in self.engine.markets.values() if market.kind == "runes"]

    def subject(self) -> str:
        try:
            body = load_object(self.request.body)
        except ApiError:
            return "(unreadable)"
        asked = body.get("filter") if isinstance(body.get("filter"), dict) else body
        names = [name for name in self.about if isinstance(asked, dict) and asked.get(name) is not None]
        found = asked[names[0]] if names and asked else ""
        return found[:200] if isinstance(found, str) else "(unreadable)"

    def page(self, body: dict[str, Any], found: Sequence[Row], most: int = MAX_PAGE) -> list[Row]:
        """Returns the rows of `start` and `limit`."""
        start = whole(body.get("start"), "start", 0, 10_000_000)
        return list(found[start : start + whole(body.get("limit"), "limit", 1, most)])


def refused(number: int, text: str) -> ApiError:
    """Makes a marketplace's refusal: its own code in an answer with status 200."""
    return ApiError(200, text, str(number))
