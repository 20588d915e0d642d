"""UniSat's routes: its collection market, its runes market and its indexer, from unisat-dev-docs (open-api)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from simulator.engine import Kind, Market
from simulator.handler import MAX_OFFSET, UNREADABLE, Subject, VenueHandler
from simulator.wire import ApiError, bad, load_object, whole

Row = TypeVar("Row")

VENUE = "unisat"
PREFIX = "/unisat"
COLLECTIONS, RUNES, INDEXER = "v3/market/collection/auction", "v3/market/runes/auction", "v1/indexer/runes"
COMMON_ERROR = -1
OVER_LIMIT = "-2006"  # as programs that run against the live venue met it
# A free key's calls in a month.
PER_MONTH = 60_000
MAX_PAGE = 99


class UnisatHandler(VenueHandler):
    """The base handler: asks for a bearer key, counts it against the limits, wraps answers as {code, msg, data}."""

    dialect = VENUE

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

    def envelope(self, data: Any) -> Any:
        return {"code": 0, "msg": "ok", "data": data}

    def markets(self, kind: Kind) -> list[Market]:
        """Returns every collection or rune, in the order of opening."""
        self.engine.expire()
        return [market for market in self.engine.markets.values() if market.kind == kind]

    def missing(self) -> Any:
        """Refuses a purchase, which is called `bid` there: the practice market lacks it."""
        raise ApiError(501, "not implemented by the practice market")


def about(*names: str) -> Subject:
    """Returns a subject: the first of these fields of the body, or of its filter."""

    def subject(call: UnisatHandler) -> str:
        try:
            body = load_object(call.request.body)
        except ApiError:
            return UNREADABLE
        asked = body["filter"] if isinstance(body.get("filter"), dict) else body
        found = next((asked[name] for name in names if asked.get(name) is not None), "")
        return found[:200] if isinstance(found, str) else UNREADABLE

    return subject


def refused(number: int, text: str) -> ApiError:
    """Makes a marketplace's refusal: its own code in an answer with status 200."""
    return ApiError(200, text, str(number))


def page(body: dict[str, Any], found: Sequence[Row], most: int = MAX_PAGE) -> list[Row]:
    """Returns the rows of `start` and `limit`."""
    start = whole(body.get("start"), "start", 0, MAX_OFFSET)
    return list(found[start : start + whole(body.get("limit"), "limit", 1, most)])


def open_filter(body: dict[str, Any], kind: str) -> dict[str, Any]:
    """Reads the filter of a list of open listings. Raises ApiError(400)."""
    wanted = body.get("filter")
    if not isinstance(wanted, dict) or wanted.get("nftType") != kind:
        raise bad(f'filter.nftType must be "{kind}"')
    if wanted.get("isEnd", False) is not False:
        raise bad("filter.isEnd: only false is implemented here")
    return wanted


def sorted_by(sort: Any, found: list[Row], keys: dict[str, Callable[[Row, int], Any]]) -> list[Row]:
    """Sorts by the field that `sort` names; a key is made of a row and its way, 1 upwards and -1 downwards."""
    if not isinstance(sort, dict) or not set(sort) <= keys.keys() or len(sort) > 1:
        raise bad(f"sort must be one of {', '.join(keys)}")
    if not all(type(way) is int and way in (1, -1) for way in sort.values()):
        raise bad("sort: 1 is upwards, -1 downwards")
    if not sort:
        return found
    ((name, way),) = sort.items()
    return sorted(found, key=lambda row: keys[name](row, way))
