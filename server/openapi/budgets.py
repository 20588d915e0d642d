"""The operations on budgets that several tasks share."""

from __future__ import annotations

from server.openapi.operation import INVALID, Operation, many, one
from server.schemas.answers import Success
from server.schemas.budgets import BudgetChange, NewBudget, SharedBudget

_TAG = "budgets"
_NOT_YOURS = "There is no such budget, or it is somebody else's."

OPERATIONS = {
    "GET /api/budgets": Operation(
        id="listBudgets",
        tag=_TAG,
        summary="My budgets",
        text="With what their tasks hold, have spent, and may still open.",
        success=many(SharedBudget, "The budgets, oldest first."),
    ),
    "POST /api/budgets": Operation(
        id="createBudget",
        tag=_TAG,
        summary="Make one budget for several tasks",
        text="Bidding tasks name it with `budgetId`. Each bid is counted against it, the user's and the task's own "
        "limits in one step, so that tasks that bid at the same moment cannot pass it.",
        body=NewBudget,
        success=one(SharedBudget, "The budget; no task names it yet.", 201, ("Location",)),
        errors={400: INVALID, 403: "There are 100 already."},
    ),
    "GET /api/budgets/{id}": Operation(
        id="getBudget",
        tag=_TAG,
        summary="One budget",
        text="With what its tasks hold, have spent, and may still open.",
        success=one(SharedBudget, "The budget."),
        errors={404: _NOT_YOURS},
    ),
    "PUT /api/budgets/{id}": Operation(
        id="changeBudget",
        tag=_TAG,
        summary="Change a budget",
        text="It holds for the next bid of each of its tasks. A limit below what stands open cancels nothing: nothing "
        "new is placed or renewed until bids have ended and it fits again.",
        body=BudgetChange,
        success=one(SharedBudget, "The budget as it is now."),
        errors={400: INVALID, 404: _NOT_YOURS},
    ),
    "DELETE /api/budgets/{id}": Operation(
        id="deleteBudget",
        tag=_TAG,
        summary="Delete a budget",
        text="Once no task names it any more.",
        success=one(Success, "It is gone."),
        errors={404: _NOT_YOURS, 409: "Tasks name it."},
    ),
}
