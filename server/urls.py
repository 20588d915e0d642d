"""The route table of this service.

`python -m server.urls` prints its description.
"""

from __future__ import annotations

from server import (
    admin,
    auth,
    autolist,
    autolist_preview,
    budgets,
    collections,
    control,
    events,
    health,
    history,
    hooks,
    inscriptions,
    market,
    me,
    presets,
    preview,
    profit,
    task_log,
    task_rows,
    task_runs,
    tasks,
    venues,
    wallet,
    web,
    worth,
)
from server import withdraw as withdrawals
from server.http.base import Handler, routes_of
from server.http.shapes import dumps
from server.replay import task_replay

# The handlers, whose methods declare the operations. The patterns are tried in turn, so handlers that clients poll are
# first.
NOUNS: list[type[Handler]] = [
    tasks.BiddingTasks,
    task_rows.BiddingRows,
    autolist.AutolistTasks,
    events.Events,
    auth.SignIn,
    auth.SignOut,
    me.Me,
    me.Approvals,
    auth.Sessions,
    me.Bounds,
    budgets.Budgets,
    control.Controlled,
    wallet.Wallets,
    withdrawals.Withdrawals,
    history.History,
    history.TaskOrders,
    profit.Profits,
    profit.Exports,
    worth.Gains,
    history.BiddingSeries,
    history.ListingSeries,
    history.Moments,
    task_replay.Replays,
    hooks.Hooks,
    market.Market,
    collections.Choices,
    admin.Administration,
    health.Health,
    health.Metrics,
    web.Description,
    venues.Venues,
    web.Shapes,
    autolist_preview.AutolistPreviews,
    inscriptions.Inscriptions,
    presets.Presets,
    task_log.BiddingTaskRecord,
    task_log.AutolistTaskRecord,
    preview.Previews,
    task_runs.TaskRuns,
]
DECLARED = routes_of(NOUNS)

ROUTES: list[tuple[str, type[Handler]]] = [
    *((route.pattern, route.handler) for route in DECLARED),
    (r"/", web.PageHandler),
    (r"/web/(.+)", web.WebFileHandler),
    (r"/favicon.ico", web.IconHandler),
]


if __name__ == "__main__":  # prints the server's description, for checks by other programs
    from server.description import document

    print(dumps(document(DECLARED)))
