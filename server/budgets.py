"""The caller's budgets: limits that several bidding tasks share."""

from __future__ import annotations

from typing import Any

from models import budgets
from models.budgets import MAX_BUDGETS, Budget, BudgetInUse, TooManyBudgets
from models.ledger.budget_room import left, use_of
from models.tasks.tasks import naming_budgets
from server.control import heed_limits
from server.http import json_out
from server.http.api_errors import ApiError, invalid, not_found
from server.http.base import SignedIn
from server.schemas.budgets import BudgetChange, NewBudget


class BudgetsHandler(SignedIn):
    """GET and POST /api/budgets"""

    def get(self) -> None:
        named, own = naming_budgets(self.user.id), budgets.of_user(self.user.id)
        self.answer([_as_json(budget, named.get(budget.id, []), self.now_ms) for budget in own])

    def post(self) -> None:
        body = self.body(NewBudget)
        try:
            budget = budgets.create(self.user.id, self.now_ms, **body.model_dump())
        except TooManyBudgets:
            raise ApiError(403, "Budget limit reached", message=f"You may have {MAX_BUDGETS} budgets.") from None
        self.set_header("Location", f"/api/budgets/{budget.id}")
        self.answer(_as_json(budget, [], self.now_ms), 201)


class OneBudgetHandler(SignedIn):
    """GET, PUT and DELETE /api/budgets/:id"""

    def get(self, budget_id: str) -> None:
        self._answer(self.path_id(budget_id))

    async def put(self, budget_id: str) -> None:
        own = self._own(self.path_id(budget_id))
        changes = self.body(BudgetChange).model_dump(exclude_unset=True)
        if not changes:
            raise invalid(["body: must have at least one field"])
        # Nothing is cancelled where a limit falls below what stands: the ledger refuses every new order beyond it.
        if not budgets.change(self.user.id, own.id, **changes):
            raise not_found()
        await heed_limits(self.services, self.user.id, self.now_ms)
        self._answer(own.id)

    def delete(self, budget_id: str) -> None:
        own = self._own(self.path_id(budget_id))
        try:
            removed = budgets.remove(self.user.id, own.id)
        except BudgetInUse:
            tasks = ", ".join(map(str, naming_budgets(self.user.id).get(own.id, [])))
            message = f"Take budgetId off these first: {tasks}."
            raise ApiError(409, "Tasks share this budget", message=message) from None
        if not removed:
            raise not_found()
        self.answer({"success": True})

    def _own(self, budget_id: int) -> Budget:
        found = budgets.own(self.user.id, budget_id)
        if found is None:
            raise not_found()
        return found

    def _answer(self, budget_id: int) -> None:
        self.answer(_as_json(self._own(budget_id), naming_budgets(self.user.id).get(budget_id, []), self.now_ms))


def _as_json(budget: Budget, task_ids: list[int], now_ms: int) -> dict[str, Any]:
    use = use_of(budget.id, now_ms)
    room = left(budget, use)
    return {
        "id": budget.id,
        "name": budget.name,
        "maxOpenSats": budget.max_open_sats,
        "maxFills": budget.max_fills,
        "spendCapSats": budget.spend_cap_sats,
        "spendCapPerDaySats": budget.spend_cap_per_day_sats,
        "taskIds": task_ids,
        "openBids": use.open_count,
        "openSats": use.open_sats,
        "fills": use.fills,
        "spentSats": use.spent_sats,
        "spentTodaySats": use.spent_today_sats,
        "freeSats": room.sats,
        "freeFills": room.orders,
        "createdAt": json_out.iso(budget.created_ms),
    }
