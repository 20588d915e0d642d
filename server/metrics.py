"""GET /metrics: this installation's metrics, read from the tables and the peers at each request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from core import version
from core.call import call
from core.errors import BidkeeperError, PeerUnavailable
from core.program_calls import CountTasks
from core.settings import Settings
from markets.client import MarketClient
from models import summaries
from models.leases.manager_places import Place, address_at, places
from models.tasks.tasks import BIDDING, LISTING
from server.http.answers import not_found
from server.http.base import Handler
from server.http.gate import is_local
from server.http.route import route
from server.http.services import CONTENT_TYPE, Histogram, Metric, metric, render
from wallet.signer_client import SignerClient

PATIENCE_S = 1.0

Said = TypeVar("Said")


def start_times() -> Histogram:
    """Makes the histogram of starts in this process."""
    return Histogram(
        "bidkeeper_start_seconds",
        "From a start's request to its answer that the worker runs, at this server process.",
        (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    )


class Metrics(Handler):
    """The metrics, for callers on this machine without a proxy; to all others this is a 404."""

    tag = "service"

    @route(
        "GET /metrics",
        says="Prometheus' text format.",
        media=CONTENT_TYPE,
        errors={404: "The caller is not on this machine, or comes through a proxy."},
        is_open=True,
    )
    async def get_metrics(self) -> None:
        """Metrics for Prometheus

        For programs on this machine that ask the server itself.
        """
        if not is_local(str(self.request.remote_ip), self.request.headers):
            raise not_found()
        text = render([*await collect(self.services.settings, self.now_ms), self.services.starts])
        self.set_header("Content-Type", CONTENT_TYPE)
        self.finish(text.encode())


async def collect(settings: Settings, now_ms: int) -> list[Metric]:
    """Collects every metric. A peer's are left out while it is away."""
    known = places(settings)
    manager, gateway, signer = await asyncio.gather(
        _asked(lambda: _managers(settings, known)),
        _asked(lambda: _gateway(settings)),
        _asked(lambda: SignerClient(settings.signer_socket, PATIENCE_S).status()),
    )
    up = {"manager": manager is not None, "gateway": gateway is not None}
    up["signer"] = signer is not None and signer.state == "ready"
    return [
        _build(version.running()),
        *_of_tables(now_ms),
        _up(up),
        *_of_manager(manager or {}),
        *_of_venues((gateway or {}).get("venues", {})),
    ]


def _managers(settings: Settings, known: Sequence[Place | PeerUnavailable]) -> dict[str, int]:
    """Adds up the managers' own numbers. Raises PeerError when one is away."""
    addresses = [address_at(settings, place) for place in known]
    return {"workers": sum(call(each, "manager", CountTasks(), timeout=PATIENCE_S).workers for each in addresses)}


async def _asked(question: Callable[[], Said]) -> Said | None:
    """Returns the answer, or None without one in time. In a thread of its own: the pools may all be waiting."""
    try:
        return await asyncio.wait_for(asyncio.to_thread(question), 2 * PATIENCE_S)
    except (BidkeeperError, TimeoutError):
        return None


def _gateway(settings: Settings) -> dict[str, Any]:
    with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
        return market.status()


def _of_tables(now_ms: int) -> Iterator[Metric]:
    for name, words, kind in (
        ("bidkeeper_tasks", "Bidding", BIDDING),
        ("bidkeeper_autolist_tasks", "Auto-list", LISTING),
    ):
        counts = summaries.tasks_by_state(kind)
        samples = tuple(({"desired": wanted, "observed": seen}, count) for (wanted, seen), count in counts.items())
        yield Metric(name, "gauge", f"{words} tasks by what is wanted and what runs.", samples)
    yield metric("bidkeeper_cycles_total", "counter", "Finished cycles of all tasks.", summaries.cycles_finished())
    yield Metric(
        "bidkeeper_orders",
        "gauge",
        "Orders in the ledger by state.",
        tuple(({"state": state}, count) for state, count in summaries.orders_by_state().items()),
    )
    yield Metric(
        "bidkeeper_listings",
        "gauge",
        "Listings in the ledger by state, one for each price.",
        tuple(({"state": state}, count) for state, count in summaries.listings_by_state().items()),
    )
    yield metric("bidkeeper_exposure_sats", "gauge", "Sats of all orders that are not closed.", summaries.exposure())
    yield metric("bidkeeper_sessions", "gauge", "Sessions that are signed in.", summaries.sessions(now_ms))


def _build(running: version.Version) -> Metric:
    labels = {"version": running.number, "commit": running.commit or "unknown"}
    return Metric("bidkeeper_build_info", "gauge", "The version of this server, and its commit.", ((labels, 1),))


def _up(peers: Mapping[str, bool]) -> Metric:
    samples = tuple(({"peer": name}, int(is_up)) for name, is_up in peers.items())
    return Metric("bidkeeper_up", "gauge", "Whether a peer answers and can do its work.", samples)


def _of_manager(status: Mapping[str, Any]) -> Iterator[Metric]:
    if "workers" in status:
        yield metric("bidkeeper_workers", "gauge", "Worker processes, drain workers too.", status["workers"])


def _of_venues(venues: Mapping[str, Any]) -> Iterator[Metric]:
    yield Metric(
        "bidkeeper_venue_calls_total",
        "counter",
        "Requests to a venue since the gateway's start.",
        tuple(
            ({"venue": venue, "operation": operation, "outcome": outcome}, count)
            for venue, status in venues.items()
            for operation, counts in status.get("calls", {}).items()
            for outcome, count in counts.items()
        ),
    )
    yield Metric(
        "bidkeeper_venue_unread_rows_total",
        "counter",
        "Rows of a venue's answers that were left out, since they could not be read or were about something else.",
        tuple(
            ({"venue": venue, "operation": operation}, count)
            for venue, status in venues.items()
            for operation, count in status.get("unread_rows", {}).items()
        ),
    )
    for name, key, help in (
        ("bidkeeper_venue_budget_left", "budget_left", "Requests that could be sent to a venue at once."),
        ("bidkeeper_venue_paused_seconds", "paused_s", "Until a venue that asked for a pause is asked again."),
        ("bidkeeper_venue_waiting", "waiting", "Requests that wait for their turn at a venue."),
        ("bidkeeper_venue_running", "running", "Requests that a venue has not answered yet."),
    ):
        samples = tuple(({"venue": venue}, status[key]) for venue, status in venues.items() if key in status)
        yield Metric(name, "gauge", help, samples)
    cut_off = tuple(({"venue": venue}, int(bool(status.get("is_cut_off")))) for venue, status in venues.items())
    yield Metric("bidkeeper_venue_cut_off", "gauge", "Whether a venue that does not answer is only probed.", cut_off)
    yield from _of_quotas({venue: status["quota"] for venue, status in venues.items() if "quota" in status})


def _of_quotas(quotas: Mapping[str, Any]) -> Iterator[Metric]:
    for name, key, help in (
        ("bidkeeper_venue_read_stretch_seconds", "stretch_s", "How old reads may be so that the quota lasts."),
        ("bidkeeper_venue_quota_rungs", "rungs", "Rungs of a ladder that may have new bids; absent: all."),
    ):
        yield Metric(name, "gauge", help, _of_each(quotas, key))
    yield from _of_period("bidkeeper_venue_quota", "month", quotas)
    days = {venue: quota["day"] for venue, quota in quotas.items() if "day" in quota}
    yield from _of_period("bidkeeper_venue_day_quota", "day", days)


def _of_period(begin: str, period: str, quotas: Mapping[str, Any]) -> Iterator[Metric]:
    for key, help in (
        ("used", f"Calls of this {period} (UTC) that the key's quota has had."),
        ("left", f"Calls of this {period} that the key's quota still has."),
        ("projected", f"Calls of the whole {period}, if it went on like the last hour."),
    ):
        yield Metric(f"{begin}_{key}", "gauge", help, _of_each(quotas, key))
    yield Metric(
        f"{begin}_used_by_user",
        "gauge",
        f"Calls of this {period} by user, of those with the most; user others: all the rest.",
        tuple(
            ({"venue": venue, "user": user}, used)
            for venue, quota in quotas.items()
            if "used" in quota
            for user, used in _by_user(quota)
        ),
    )


def _of_each(quotas: Mapping[str, Any], key: str) -> tuple[tuple[dict[str, str], Any], ...]:
    return tuple(({"venue": venue}, quota[key]) for venue, quota in quotas.items() if quota.get(key) is not None)


def _by_user(quota: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yields the calls of the users that the gateway names, which are few, and of all others together."""
    named: Mapping[str, int] = quota.get("users", {})
    yield from named.items()
    yield "others", max(quota["used"] - sum(named.values()), 0)
