"""Health of this process, and of everything it needs to do its work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from urllib.parse import urlsplit

from peewee import PeeweeException

from core import local, version
from core.errors import BidkeeperError
from markets.market_client import MarketClient
from models import schema
from models.leases import leases
from server.http.base import Handler
from server.http.client_ip import is_local
from server.http.services import Services

PATIENCE_S = 2.0


class HealthHandler(Handler):
    """GET /healthz"""

    def get(self) -> None:
        self.answer({"status": "ok", **_version()})


class ReadyHandler(Handler):
    """GET /readyz"""

    async def get(self) -> None:
        own = _version()
        missing = {name: reason for name, reason in (await missing_peers(self)).items() if reason}
        if missing:
            answer: dict[str, object] = {"error": "Not ready", "missing": sorted(missing), **own}
            if is_local(str(self.request.remote_ip), self.request.headers):  # reasons name hosts and users
                answer["details"] = [f"{name}: {reason}" for name, reason in missing.items()]
            self.answer(answer, 503)
        else:
            self.answer({"status": "ready", **own})


def _version() -> dict[str, object]:
    running = version.running()  # the server has asked at its start
    return {"version": running.number, "commit": running.commit or None}


async def missing_peers(handler: Handler) -> dict[str, str]:
    """Returns each peer with the reason why it is not ready, empty for one that is. Callers share one look."""
    shared = handler.application.settings
    if "look" not in shared or shared["look"].done():
        shared["look"] = asyncio.ensure_future(_looked(handler.services))
    found: dict[str, str] = await asyncio.shield(shared["look"])
    return found


async def _looked(services: Services) -> dict[str, str]:
    looks: dict[str, Awaitable[str]] = {
        "database": _database(),
        "manager": _manager(services),
        "gateway": _gateway(services),
        "facts": _facts(services),
        "hooks": _hooks(services),
        "signer": _signer(services),
    }
    if services.settings.market == "simulator":
        looks["simulator"] = _simulator(services.settings.simulator_url)
    reasons = await asyncio.gather(*map(_in_time, looks.values()))
    return dict(zip(looks, reasons, strict=True))


async def _in_time(look: Awaitable[str]) -> str:
    """Returns the fault in words; empty without one."""
    try:
        return await asyncio.wait_for(look, PATIENCE_S)
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s"
    except (BidkeeperError, OSError) as error:
        return str(error) or type(error).__name__


async def _database() -> str:
    try:
        return "not migrated" if schema.pending() else ""
    except PeeweeException as error:
        return str(error)


async def _manager(services: Services) -> str:
    state = await services.manager.state(PATIENCE_S)
    return "" if state == "ready" else state


async def _gateway(services: Services) -> str:
    await services.market(lambda market: market.status())
    return ""


async def _facts(services: Services) -> str:
    if services.settings.facts_hosts:
        # The relay listens in any case, and a host of the servers' role is answered.
        await asyncio.to_thread(_facts_status, services.settings.facts_socket)
        return ""
    # It answers the signer only: from here only its listening can be seen.
    _, writer = await asyncio.open_unix_connection(services.settings.facts_socket)
    writer.close()
    return ""


def _facts_status(socket: Path) -> None:
    with MarketClient(socket, PATIENCE_S) as facts:
        facts.status()


async def _hooks(services: Services) -> str:
    path = services.settings.hooks_socket
    if leases.kept_elsewhere(leases.HOOKS, path.parent):
        return ""
    await asyncio.to_thread(local.ask, path, "hooks", {"op": "ping"}, timeout=PATIENCE_S)
    return ""


async def _signer(services: Services) -> str:
    status = await services.signer(lambda signer: signer.status())
    return "" if status.state == "ready" else f"{status.state}: {status.reason}"


async def _simulator(url: str) -> str:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(b"GET /sim/requests HTTP/1.0\r\nHost: localhost\r\n\r\n")
        await writer.drain()
        line = await reader.readline()
    finally:
        writer.close()
    return "" if line.startswith(b"HTTP/1.") else "does not speak HTTP"
