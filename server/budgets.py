"""Budgets: limits that several of the caller's bidding tasks share."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from core.fields import Count, Sats, Time, text_of, within, words
from models import budgets
from models.accounts import READ, TRADE
from models.budgets import MAX_BUDGETS, BudgetInUse, TooManyBudgets
from models.ledger.orders import left, use_of
from models.tasks.tasks import naming_budgets
from server.control import heed_limits
from server.http.answers import INVALID, ApiError, Success, invalid, not_found
from server.http.base import SignedIn, route
from server.http.shapes import Answer, Body, shown_as

Name = Annotated[str, text_of(1, 100), words("Any words of yours, for the reasons of tasks.")]
Fills = Annotated[int, within(0, 1_000_000), words("Most fills of all its tasks together; 0 is any number.")]
Open = Annotated[Sats, words("Most sats of the open bids of all its tasks together; 0 is unlimited.")]
Spent = Annotated[Sats, words("Most sats spent by all its tasks together; 0 is unlimited.")]
SpentToday = Annotated[Sats, words("Most sats spent by all its tasks in any 24 hours; 0 is unlimited.")]


class NewBudget(Body, frozen=True, kw_only=True):
    """Limits to be shared by the tasks that name them with `budgetId`."""

    name: Name
    max_open_sats: Open = 0
    max_fills: Fills = 0
    spend_cap_sats: Spent = 0
    spend_cap_per_day_sats: SpentToday = 0


class BudgetChange(Body, frozen=True, kw_only=True):
    """Fields of a budget; omitted ones stay as they are."""

    name: Name | UnsetType = UNSET
    max_open_sats: Open | UnsetType = UNSET
    max_fills: Fills | UnsetType = UNSET
    spend_cap_sats: Spent | UnsetType = UNSET
    spend_cap_per_day_sats: SpentToday | UnsetType = UNSET


class SharedBudget(Answer, frozen=True, kw_only=True):
    """A budget, and what its tasks' real bids hold of it; those of dry runs are counted apart."""

    id: int
    name: str
    max_open_sats: Open
    max_fills: Fills
    spend_cap_sats: Spent
    spend_cap_per_day_sats: SpentToday
    task_ids: Annotated[list[int], words("The tasks that name it.")]
    open_bids: Count
    open_sats: Count
    fills: Annotated[Count, words("Of its tasks, deleted ones too.")]
    spent_sats: Annotated[Count, words("The whole bids that were filled.")]
    spent_today_sats: Annotated[Count, words("Of these, what was spent in the last 24 hours.")]
    free_sats: Annotated[Count | None, words("Sats of bids that still fit; null is any number.")]
    free_fills: Annotated[Count | None, words("Bids that may still be opened; null is any number.")]
    created_at: Time


_NOT_YOURS = "There is no such budget, or it is somebody else's."


class Budgets(SignedIn):
    """The operations on the caller's budgets."""

    tag = "budgets"

    def own(self, budget_id: str) -> budgets.Budget:
        """Returns the caller's budget of this id. Raises ApiError (404)."""
        found = budgets.own(self.user.id, self.path_id(budget_id))
        if found is None:
            raise not_found()
        return found

    @route("GET /api/budgets", READ, says="The budgets, oldest first.")
    def list_budgets(self) -> list[SharedBudget]:
        """My budgets

        With what their tasks hold, have spent, and may still open.
        """
        named = naming_budgets(self.user.id)
        return [_shown(each, named.get(each.id, []), self.now_ms) for each in budgets.of_user(self.user.id)]

    @route(
        "POST /api/budgets",
        TRADE,
        says="The budget; no task names it yet.",
        status=201,
        headers=("Location",),
        errors={400: INVALID, 403: "There are 100 already."},
    )
    def create_budget(self, given: NewBudget) -> SharedBudget:
        """Make one budget for several tasks

        Bidding tasks name it with `budgetId`. Each bid is counted against it, the user's and the task's own limits in
        one step, so that tasks that bid at the same moment cannot pass it.
        """
        try:
            budget = budgets.create(self.user.id, self.now_ms, **given.changes())
        except TooManyBudgets:
            raise ApiError(403, "Budget limit reached", message=f"You may have {MAX_BUDGETS} budgets.") from None
        self.set_header("Location", f"/api/budgets/{budget.id}")
        return _shown(budget, [], self.now_ms)

    @route("GET /api/budgets/{id}", READ, of=own, says="The budget.", errors={404: _NOT_YOURS})
    def get_budget(self, budget: budgets.Budget) -> SharedBudget:
        """One budget

        With what its tasks hold, have spent, and may still open.
        """
        return _shown(budget, naming_budgets(self.user.id).get(budget.id, []), self.now_ms)

    @route(
        "PUT /api/budgets/{id}",
        TRADE,
        of=own,
        says="The budget as it is now.",
        errors={400: INVALID, 404: _NOT_YOURS},
    )
    async def change_budget(self, budget: budgets.Budget, given: BudgetChange) -> SharedBudget:
        """Change a budget

        It holds for the next bid of each of its tasks. A limit below what stands open cancels nothing: nothing new is
        placed or renewed until bids have ended and it fits again.
        """
        changes = given.changes()
        if not changes:
            raise invalid(["body: must have at least one field"])
        # A limit below the open orders cancels nothing; the ledger refuses each new order that exceeds it.
        if not budgets.change(self.user.id, budget.id, **changes):
            raise not_found()
        await heed_limits(self.services, self.user.id, self.now_ms)
        return self.get_budget(self.own(str(budget.id)))

    @route(
        "DELETE /api/budgets/{id}",
        TRADE,
        of=own,
        says="It is gone.",
        errors={404: _NOT_YOURS, 409: "Tasks name it."},
    )
    def delete_budget(self, budget: budgets.Budget) -> Success:
        """Delete a budget

        Once no task names it any more.
        """
        try:
            removed = budgets.remove(self.user.id, budget.id)
        except BudgetInUse:
            tasks = ", ".join(map(str, naming_budgets(self.user.id).get(budget.id, [])))
            message = f"Take budgetId off these first: {tasks}."
            raise ApiError(409, "Tasks share this budget", message=message) from None
        if not removed:
            raise not_found()
        return Success()


def _shown(budget: budgets.Budget, task_ids: list[int], now_ms: int) -> SharedBudget:
    use = use_of(budget.id, now_ms)
    room = left(budget, use)
    return shown_as(
        SharedBudget,
        budget,
        task_ids=task_ids,
        open_bids=use.open_count,
        open_sats=use.open_sats,
        fills=use.fills,
        spent_sats=use.spent_sats,
        spent_today_sats=use.spent_today_sats,
        free_sats=room.sats,
        free_fills=room.orders,
    )
