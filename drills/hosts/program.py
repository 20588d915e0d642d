"""A program of a host in a drill: `python -m drills.hosts.program VERB`, with what a drill has planted in it.

It notes what is refused to those who have lost their right, and on wish forgets the kernel's timer, so that it shows
what the other fences are worth. Nothing of this is in the product.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import structs

WITHOUT_TIMER = "without-timer"  # while this file is in the data directory, programs begin without the kernel's timer
VENUE = "DRILL_VENUE"  # the host at which the practice market is; the program `venue` leads there
REFUSED = "refused"  # the file, in the data directory, with a line for each refusal


def note_refusals(who: str, call: Callable[..., Any], means_stale: Callable[[Exception], bool]) -> Callable[..., Any]:
    """Wraps a function so that each of its refusals of a former right is noted in this host's data directory."""

    def noting(*arguments: Any, **named: Any) -> Any:
        try:
            return call(*arguments, **named)
        except Exception as error:
            if means_stale(error):
                note(REFUSED, who)
            raise

    return noting


def note(name: str, text: str) -> None:
    path = Path(os.environ["BIDKEEPER_DATA_DIR"]) / name
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{time.time_ns() // 1_000_000} {text}\n".encode())
    os.close(fd)


def _plant(verb: str) -> None:
    if verb == "gateway":
        from gateway.writes import Fences
        from markets import venues
        from markets.base import Refused

        def is_stale(error: Exception) -> bool:
            return isinstance(error, Refused) and error.code == "stale_token"

        # The drill's practice market allows as much (Site.up): a ladder of bids takes a second then, and not ten.
        quick = structs.replace(venues._DIALECTS["satflow"], rate_per_s=40, burst=40)
        venues._DIALECTS = {**venues._DIALECTS, "satflow": quick}
        Fences.permit = note_refusals(verb, Fences.permit, is_stale)  # type: ignore[method-assign]
    elif verb == "signer":
        from wallet import policy, protocol

        def is_former(error: Exception) -> bool:
            return isinstance(error, protocol.PolicyRefused)

        policy.grant_live = note_refusals(verb, policy.grant_live, is_former)
    elif verb == "ray":
        from cli import on_ray

        on_ray.MANAGER = ("drills.hosts.program", *on_ray.MANAGER[1:])
    elif verb == "manager":
        from workers.spawning import spawner

        spawner.ZygoteSpawner.__init__.__defaults__ = ((sys.executable, "-m", "drills.hosts.zygote"),)
    if (Path(os.environ["BIDKEEPER_DATA_DIR"]) / WITHOUT_TIMER).exists():
        from core.process import DeathTimer

        DeathTimer.arm = lambda self, at_s: None  # type: ignore[method-assign]
    if verb == "simulator" and os.environ.get(VENUE):
        from simulator import app

        app.HOST = "0.0.0.0"


async def _venue() -> None:
    """Has the practice market be at this machine, too: the product asks it nowhere else."""
    port = int(os.environ["BIDKEEPER_SIMULATOR_PORT"])

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while some := await reader.read(65536):
                writer.write(some)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection(os.environ[VENUE], port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "venue":
        asyncio.run(_venue())
    _plant(sys.argv[1])
    from cli.main import main

    sys.exit(main())
