"""The route table of this service, and what of it API tokens may ask for.

`python -m server.urls` prints its description.
"""

from __future__ import annotations

from typing import Any

from models.api_tokens import READ
from server import (
    admin,
    auth,
    autolist,
    budgets,
    control,
    events,
    export,
    health,
    history,
    hooks,
    inscriptions,
    market,
    me,
    metrics,
    moment,
    presets,
    preview,
    profit,
    series,
    sessions,
    task_log,
    task_runs,
    tasks,
    venues,
    wallet,
    web,
)
from server.http import json_out
from server.http.base import Handler
from server.http.callers import Openings
from server.http.route import routes_of
from server.listing import preview as autolist_preview
from server.openapi.document import document
from server.replay import task_replay
from server.withdrawals import withdraw as withdrawals

_ID = "([0-9]+)"

# One class a noun; its methods declare their operations.
NOUNS: list[type[Handler]] = [
    auth.SignIn,
    auth.SignOut,
    me.Me,
    me.Approvals,
    sessions.Sessions,
    me.Bounds,
    budgets.Budgets,
    control.Controlled,
    wallet.Wallets,
    withdrawals.Withdrawals,
    history.History,
    history.TaskOrders,
    profit.Profits,
    export.Exports,
    series.BiddingSeries,
    series.ListingSeries,
    moment.Moments,
    task_replay.Replays,
    hooks.Hooks,
    market.Market,
    admin.Administration,
    health.Health,
    metrics.Metrics,
    web.Description,
    events.Events,
    venues.Venues,
    autolist.AutolistTasks,
    inscriptions.Inscriptions,
    presets.Presets,
    task_log.BiddingTaskRecord,
    task_log.AutolistTaskRecord,
    preview.Previews,
    tasks.BiddingTasks,
    task_runs.TaskRuns,
]
DECLARED = routes_of(NOUNS)

ROUTES: list[tuple[str, type[Handler]]] = [
    (r"/", web.PageHandler),
    (r"/web/(.+)", web.WebFileHandler),
    (r"/favicon.ico", web.IconHandler),
    (r"/api/autolist/preview", autolist_preview.AutolistPreviewHandler),
    *((route.pattern, route.handler) for route in DECLARED),
]

# What an API token may ask for, and the scopes of which it needs one. What is not named here is for sessions only:
# withdrawals, changes of the profile, tokens and sessions, hooks, the user's own ceilings, administration.
SCOPES: dict[str, tuple[str, ...]] = {
    "POST /api/autolist/preview": (READ,),
} | {
    f"{verb} {route.pattern}": operation.scopes
    for route in DECLARED
    for verb, operation in route.operations.items()
    if operation.scopes
}


def routes_with_openings() -> list[tuple[str, type[Handler], dict[str, Any]]]:
    """Returns the route table for the application: each handler is told what API tokens may do there."""
    made = {route.handler for route in DECLARED}
    return [
        (path, handler, {"openings": handler.openings if handler in made else _openings(path, handler)})
        for path, handler in ROUTES
    ]


def _openings(path: str, handler: type[Handler]) -> Openings:
    scopes = {method: SCOPES[f"{method} {path}"] for method in handler.described() if f"{method} {path}" in SCOPES}
    return Openings(scopes, names_task=_ID in path and path.startswith(("/api/tasks/", "/api/autolist/")))


if __name__ == "__main__":  # prints the description that the server answers, for other programs to check
    print(json_out.dumps(document(ROUTES, SCOPES, DECLARED)))
