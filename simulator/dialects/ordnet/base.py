"""The base of all ord.net routes: the bearer, the rate limits of its fixed windows, its errors, its readers."""

from __future__ import annotations

import base64
import binascii
import json
import time
from typing import Any, Literal, TypeVar

from simulator.handler import DialectHandler
from simulator.orders import Market
from simulator.ordnet.desk import Desk
from simulator.ordnet.sessions import Session
from simulator.wire import ApiError, bad, text

Bucket = Literal["read", "write"]
# Requests in one window: of one IP address, and of one profile.
LIMITS: dict[Bucket, tuple[int, int]] = {"read": (60, 30), "write": (20, 8)}

Row = TypeVar("Row")


class OrdnetHandler(DialectHandler):
    """The base handler: asks for a bearer token of `/auth/verify`; answers errors as {"error": text}."""

    dialect = "ordnet"
    bucket: Bucket = "read"

    @property
    def desk(self) -> Desk:
        return self.world.ordnet

    def error_body(self, status: int, text: str, code: str | None) -> dict[str, Any]:
        return {"error": text}

    def admit(self) -> None:
        by_ip, by_profile = LIMITS[self.bucket]
        self.desk.windows.admit(f"{self.bucket} ip", self.request.remote_ip or "", by_ip)
        session = self._bearer()
        if session is None:
            given = self.request.headers.get("Authorization", "")
            raise ApiError(401, "Invalid or expired bearer session token" if given else "Bearer session token required")
        self.desk.windows.admit(f"{self.bucket} profile", session.profile_id, by_profile)

    def _bearer(self) -> Session | None:
        kind, _, token = self.request.headers.get("Authorization", "").partition(" ")
        return self.desk.sessions.find(token.strip()) if kind.lower() == "bearer" else None

    @property
    def session(self) -> Session:
        """The session of this request; `admit` has seen to it that there is one."""
        found = self._bearer()
        if found is None:
            raise ApiError(401, "Invalid or expired bearer session token")
        return found

    def own_address(self) -> str:
        """Returns the caller's payment address, for the counts."""
        found = self._bearer()
        return found.payment if found else "(nobody)"

    def market(self) -> Market:
        """Returns the collection that the path names."""
        found = self.engine.market("ordinals", self.path_args[0])
        if found is None:
            raise ApiError(404, "Collection not found")
        return found

    def bound(self, body: dict[str, Any]) -> Session:
        """Returns the session if the request names its wallet binding. Raises ApiError(403) for another one."""
        session = self.session
        if text(body.get("walletBindingId"), "walletBindingId") != session.binding_id:
            raise ApiError(403, "walletBindingId is not one of this session")
        return session

    def visible_ms(self) -> int:
        """Returns the time from which reads show this write: a fault may delay it."""
        late = self.fault.delay_seconds if self.fault and self.mode == "late" else 0
        return self.world.engine.now_ms() + round(late * 1000) if late else 0

    async def get(self, *_: str) -> None:
        await self._serve("GET")

    async def post(self, *_: str) -> None:
        await self._serve("POST")

    # Pages

    def page(self, rows: list[Row], keys: list[list[Any]], default: int, filters: str) -> tuple[list[Row], Any]:
        """Returns the rows of the requested page, and the answer's `pagination`.

        `keys` are the rows' sort keys, in their order; a cursor of other `filters` is refused.
        """
        size = self.query_whole("limit", default, 1, 100)
        start = 0
        cursor = self.get_query_argument("cursor", "")
        if cursor:
            after = _after(cursor, filters)
            start = next((at for at, key in enumerate(keys) if key > after), len(rows))
        end = start + size
        more = end < len(rows)
        following = _cursor(filters, keys[end - 1]) if more else None
        shown = rows[start:end]
        return shown, {"pageSize": len(shown), "hasNext": more, "nextCursor": following}


def _cursor(filters: str, key: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps([filters, key]).encode()).decode()


def _after(cursor: str, filters: str) -> list[Any]:
    try:
        said, key = json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise bad("Invalid cursor") from None
    if said != filters or not isinstance(key, list):
        raise bad("Invalid cursor")
    return key


def moment(time_ms: int) -> str:
    """Writes a time in ISO 8601 with milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_ms // 1000)) + f".{time_ms % 1000:03d}Z"
