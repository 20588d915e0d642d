"""The whole installation in one look, for administrators: peers, workers, quotas, the global control state."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from core.errors import BidkeeperError
from models import totals
from models.controls import EVERYBODY, GLOBAL, RUN, Control
from models.tasks.table import BIDDING, LISTING
from server.admin.access import AdminHandler
from server.health import PATIENCE_S, missing_peers
from server.http import json_out

_QUOTA = ("limit", "used", "left", "projected")


class ReadinessHandler(AdminHandler):
    """GET /api/admin/readiness"""

    async def get(self) -> None:
        missing, manager, gateway = await asyncio.gather(missing_peers(self), self._manager(), self._gateway())
        self.require_signed_in()
        row = Control.get_or_none(Control.scope == GLOBAL, Control.subject_id == EVERYBODY)
        self.answer(
            {
                "isReady": not any(missing.values()),
                "peers": [
                    {"name": name, "isReady": not reason, "reason": reason or None} for name, reason in missing.items()
                ],
                "workers": None if manager is None else manager.get("workers"),
                "mostWorkers": self.services.settings.max_workers,
                "tasks": _running(BIDDING),
                "autolist": _running(LISTING),
                "sessions": totals.sessions(self.now_ms),
                "exposure": totals.exposure(),
                "maxExposure": self.services.settings.max_exposure_sats or None,
                "venues": None if gateway is None else [_venue(name, told) for name, told in sorted(gateway.items())],
                "control": {
                    "state": RUN if row is None else row.state,
                    "setAt": None if row is None else json_out.iso(row.set_ms),
                    "setBy": None if row is None else row.by_user,
                },
            }
        )

    async def _manager(self) -> Mapping[str, Any] | None:
        try:
            each = await self.services.manager.status(PATIENCE_S)
        except BidkeeperError:
            return None
        return {"workers": sum(status.workers for status in each)}

    async def _gateway(self) -> Mapping[str, Any] | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                status = await self.services.market(lambda market: market.status())
        except (BidkeeperError, TimeoutError):
            return None
        found: Mapping[str, Any] = status.get("venues", {})
        return found


def _running(kind: str) -> dict[str, int]:
    """Counts tasks by what runs of them, only states that there are."""
    counts: dict[str, int] = {}
    for (_, observed), count in totals.tasks_by_state(kind).items():
        if count:
            counts[observed] = counts.get(observed, 0) + count
    return counts


def _venue(name: str, told: Mapping[str, Any]) -> dict[str, object]:
    quota: Mapping[str, Any] = told.get("quota") or {}
    return {
        "name": name,
        "isCutOff": bool(told.get("is_cut_off")),
        "pausedSeconds": _exact(told.get("paused_s")),
        "waiting": told.get("waiting"),
        "skewSeconds": _exact(told.get("skew_s")),
        "quota": _quota(quota, quota.get("stretch_s")),
        "quotaToday": _quota(quota.get("day", {}), quota.get("stretch_s")),
    }


def _exact(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(str(number))


def _quota(quota: Mapping[str, Any], stretch_s: int | None) -> dict[str, object] | None:
    """Returns the quota of a period, None where the key has none; reads are stretched for the tightest of them."""
    if "limit" not in quota:
        return None
    ends_ms = quota.get("ends_ms")
    return {
        **{name: quota.get(name) for name in _QUOTA},
        "stretchSeconds": stretch_s,
        "endsAt": None if ends_ms is None else json_out.iso(ends_ms),
        "users": [{"id": int(user), "used": used} for user, used in quota.get("users", {}).items()],
    }
