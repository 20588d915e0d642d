"""The users and their plans, for administrators."""

from __future__ import annotations

from models import profile
from models.user_list import ListedUser, listed_user, users_after, users_of_plans
from models.users import DAY_MS
from server.admin.access import AdminHandler
from server.control import heed_limits
from server.http import json_out
from server.http.api_errors import invalid, not_found
from server.http.query import Query
from server.schemas.admin import UserChange
from wallet.address import pasted_sign_in_address

DEFAULT_USERS, MOST_USERS = 100, 500


class PlansHandler(AdminHandler):
    """GET /api/admin/plans"""

    def get(self) -> None:
        counts = users_of_plans()
        self.answer(
            [
                {
                    "key": key,
                    "name": plan.name,
                    "maxTasks": plan.max_tasks,
                    "maxBidsPerTask": plan.max_bids_per_task,
                    "maxExposure": plan.max_exposure,
                    "priceSats": plan.price_sats,
                    "durationDays": plan.duration_days,
                    "users": counts.get(key, 0),
                }
                for key, plan in sorted(self.services.settings.plans.items())
            ]
        )


class UsersHandler(AdminHandler):
    """GET /api/admin/users"""

    takes_query = True

    def get(self) -> None:
        query = Query(self, "limit", "after", "address")
        most, after = query.whole("limit", MOST_USERS) or DEFAULT_USERS, query.from_0("after") or 0
        address = query.pasted("address", pasted_sign_in_address)
        query.refuse_faults()
        found = users_after(after, most, address)
        self.answer(
            {"users": [self.shown(each) for each in found], "next": found[-1].id if len(found) == most else None}
        )

    def shown(self, user: ListedUser) -> dict[str, object]:
        return _as_json(self, user)


class OneUserHandler(AdminHandler):
    """PUT /api/admin/users/:id"""

    async def put(self, user_id: str) -> None:
        number = self.path_id(user_id)
        user = listed_user(number)
        if user is None:
            raise not_found()
        change, plans = self.body(UserChange), self.services.settings.plans
        plan = user.plan if change.plan is None else change.plan
        if plan is None or plan not in plans:
            raise invalid([f"plan: must be one of {', '.join(sorted(plans))}"])
        ends_ms = change.ends_at
        if ends_ms is None:
            if change.plan is None:
                raise invalid(["plan: is required without endsAt"])
            ends_ms = self.now_ms + plans[plan].duration_days * DAY_MS
        profile.set_plan(number, plan, ends_ms, self.now_ms)
        self.record(f"gave user {number} ({user.address}) the plan {plan} until {json_out.iso(ends_ms)}")
        stopped = await self.enforce()
        await heed_limits(self.services, number, self.now_ms)
        found = listed_user(number)
        if found is None:
            raise not_found()
        self.answer(_as_json(self, found) | {"tasksStopped": stopped})


def _as_json(handler: AdminHandler, user: ListedUser) -> dict[str, object]:
    entitlements = handler.services.entitlements
    return {
        "id": user.id,
        "address": user.address,
        "displayName": user.display_name,
        "isAdmin": entitlements.is_admin(user.address),
        "maySignIn": entitlements.may_sign_in(user.address),
        "plan": user.plan,
        "planEndsAt": None if user.plan_ends_ms is None else json_out.iso(user.plan_ends_ms),
        "planIsOver": user.plan_ends_ms is None or user.plan_ends_ms <= handler.now_ms,
        "tasks": user.tasks,
        "running": user.running,
        "exposure": user.exposure_sats,
        "openBids": user.open_bids,
        "lastSeenAt": None if user.seen_ms is None else json_out.iso(user.seen_ms),
        "createdAt": json_out.iso(user.created_ms),
    }
