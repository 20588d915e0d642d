"""The addresses that may sign in, for administrators. Administrators themselves are made on the machine only."""

from __future__ import annotations

from models import whitelist
from models.users import Whitelist
from server.admin.access import AdminHandler
from server.http import json_out
from server.http.api_errors import ApiError, not_found
from server.http.query import Query
from server.schemas.admin import WhitelistBody
from wallet.address import AddressError, pasted_sign_in_address

DEFAULT_ADDRESSES, MOST_ADDRESSES = 100, 500


class WhitelistHandler(AdminHandler):
    """GET and POST /api/admin/whitelist"""

    takes_query = True

    def get(self) -> None:
        query = Query(self, "limit", "after")
        most, after = query.whole("limit", MOST_ADDRESSES) or DEFAULT_ADDRESSES, query.text("after") or ""
        query.refuse_faults()
        rows, settings = whitelist.listed(most, after), self.services.settings
        self.answer(
            {
                "isOpen": "*" in settings.whitelist,
                "fromSettings": [
                    {"address": address, "isAdmin": address in settings.admins}
                    for address in sorted((settings.whitelist | settings.admins) - {"*"})
                ],
                "addresses": [_as_json(row) for row in rows],
                "next": rows[-1].address if len(rows) == most else None,
            }
        )

    def post(self) -> None:
        address = self.body(WhitelistBody).address
        row = whitelist.add(address, self.now_ms)
        if row is None:
            raise ApiError(409, "The address is on the list already")
        self.record(f"put {address} on the whitelist")
        self.answer(_as_json(row), 201)


class OneAddressHandler(AdminHandler):
    """DELETE /api/admin/whitelist/:address"""

    async def delete(self, named: str) -> None:
        try:
            address = pasted_sign_in_address(named)
        except AddressError as error:
            raise ApiError(404, "Not found", message=f"The address in the path: {error}.") from None
        row = whitelist.find(address)
        if row is None:
            raise not_found()
        if row.is_admin:
            message = "`bidkeeper whitelist remove` does it, on the machine."
            raise ApiError(409, "An administrator is not taken off here", message=message)
        removed = whitelist.remove(self.services.entitlements, address)
        self.record(f"took {address} off the whitelist")
        stopped = None if removed.may_still else await self.enforce()
        self.answer({"address": address, "maySignIn": removed.may_still, "tasksStopped": stopped})


def _as_json(row: Whitelist) -> dict[str, object]:
    return {"address": row.address, "isAdmin": bool(row.is_admin), "addedAt": json_out.iso(row.added_ms)}
