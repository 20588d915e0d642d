"""The route table of this service."""

from __future__ import annotations

from server import api_docs, auth, bidding_wallet, control, health, me, metrics, task_log, venues
from server.bidding import bids, lookups, preview, running
from server.bidding import tasks as bidding_tasks
from server.http.base import Handler
from server.listing import inscriptions
from server.listing import running as autolist_running
from server.listing import tasks as autolist_tasks
from server.withdrawals import handler as withdrawals

_ID = "([0-9]+)"

ROUTES: list[tuple[str, type[Handler]]] = [
    (r"/healthz", health.HealthHandler),
    (r"/readyz", health.ReadyHandler),
    (r"/metrics", metrics.MetricsHandler),
    (r"/docs", api_docs.DocsHandler),
    (r"/api/openapi.json", api_docs.OpenApiHandler),
    (r"/api/auth/challenge", auth.ChallengeHandler),
    (r"/api/auth/verify", auth.VerifyHandler),
    (r"/api/auth/logout", auth.LogoutHandler),
    (r"/api/auth/me", me.MeHandler),
    (r"/api/tasks", bidding_tasks.BiddingTasksHandler),
    (r"/api/tasks/preview", preview.PreviewHandler),
    (r"/api/tasks/floor", lookups.FloorHandler),
    (r"/api/tasks/rune-market", lookups.RuneMarketHandler),
    (rf"/api/tasks/{_ID}", bidding_tasks.OneBiddingTaskHandler),
    (rf"/api/tasks/{_ID}/start", running.StartBiddingTaskHandler),
    (rf"/api/tasks/{_ID}/stop", running.StopBiddingTaskHandler),
    (rf"/api/tasks/{_ID}/bids", bids.BidsHandler),
    (rf"/api/tasks/{_ID}/cycles", task_log.TaskCyclesHandler),
    (rf"/api/tasks/{_ID}/log", task_log.TaskLogHandler),
    (r"/api/autolist", autolist_tasks.AutolistTasksHandler),
    (r"/api/autolist/wallet/ordinals", inscriptions.WalletOrdinalsHandler),
    (r"/api/autolist/item/([^/]+)", inscriptions.InscriptionHandler),
    (rf"/api/autolist/{_ID}", autolist_tasks.OneAutolistTaskHandler),
    (rf"/api/autolist/{_ID}/start", autolist_running.StartAutolistTaskHandler),
    (rf"/api/autolist/{_ID}/stop", autolist_running.StopAutolistTaskHandler),
    (rf"/api/autolist/{_ID}/cycles", autolist_running.AutolistTaskCyclesHandler),
    (rf"/api/autolist/{_ID}/log", autolist_running.AutolistTaskLogHandler),
    (r"/api/venues", venues.VenuesHandler),
    (r"/api/wallet", bidding_wallet.WalletHandler),
    (r"/api/wallet/withdraw", withdrawals.WithdrawHandler),
    (r"/api/control", control.ControlHandler),
]
