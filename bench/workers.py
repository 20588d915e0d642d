"""The cost of a worker, forked from a zygote, against one that is a Python of its own.

Both back-ends are driven by a real manager in this process, with peers that say yes. A start is measured from asking
the manager until it answers that the worker holds its lock: token, grant, fence, process, database, lock.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler

from bench.bench_worker import CYCLES
from bench.processes import pss_mib
from bench.timing import Row
from core.local_server import serve
from core.program_calls import Settle
from core.settings import Settings, load
from markets import verbs
from models import schema, users
from models.database import base
from models.tasks import tasks
from models.tasks.tasks import RUNNING, Task
from strategy.config.bid import BidConfig, dump_bid_config
from workers.manager.keeper import Timing
from workers.manager.manager import Manager
from workers.spawning.spawner import PopenSpawner
from workers.spawning.warm_up import MadeUpMarket
from workers.spawning.zygote_spawner import ZygoteSpawner

WORKER = (sys.executable, "-m", "bench.bench_worker")
IN_TURN, AT_ONCE, GROUP = 30, 100, 20
BACK_ENDS = ("zygote", "popen")


def start_rows() -> Iterator[Row]:
    in_turn = {name: asyncio.run(_with_manager(name, _starts_in_turn, idle=True)) for name in BACK_ENDS}
    ours, peer = in_turn["zygote"] * 1e3, in_turn["popen"] * 1e3
    yield Row("start until the lock is held", f"{ours:.1f} ms", f"popen {peer:.0f} ms", f"{peer / ours:.1f} x", "10 ms")
    at_once = {name: asyncio.run(_with_manager(name, _starts_at_once, idle=True)) for name in BACK_ENDS}
    ours, peer = at_once["zygote"], at_once["popen"]
    what = f"{AT_ONCE} starts at once"
    yield Row(what, f"{ours:.2f} s", f"popen {peer:.1f} s", f"{peer / ours:.1f} x", "1.5 s")


def memory_rows() -> Iterator[Row]:
    found = {name: asyncio.run(_with_manager(name, _memory, idle=False)) for name in BACK_ENDS}
    (ours, parent), (peer, _) = found["zygote"], found["popen"]
    what = f"PSS of a worker after {CYCLES} cycles, one of {GROUP}"
    yield Row(what, f"{ours:.2f} MiB", f"popen {peer:.1f} MiB", f"{peer / ours:.1f} x", "4 MiB, 5 x")
    yield Row("PSS of the zygote", f"{parent:.1f} MiB")


async def _starts_in_turn(manager: Manager, new_task: Callable[[], int]) -> float:
    found = []
    for _ in range(IN_TURN):
        task = new_task()
        began = time.perf_counter()
        await manager.settle(Settle(task))
        found.append(time.perf_counter() - began)
    return statistics.median(found)


async def _starts_at_once(manager: Manager, new_task: Callable[[], int]) -> float:
    ids = [new_task() for _ in range(AT_ONCE)]
    began = time.perf_counter()
    await asyncio.gather(*(manager.settle(Settle(task)) for task in ids))
    return time.perf_counter() - began


async def _memory(manager: Manager, new_task: Callable[[], int]) -> tuple[float, float]:
    """Returns the MiB of a worker (median), and of the process that forked it."""
    ids = [new_task() for _ in range(GROUP)]
    await asyncio.gather(*(manager.settle(Settle(task)) for task in ids))
    deadline = time.monotonic() + 120
    while min(row.cycles for row in _rows(ids)) < CYCLES:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {CYCLES} cycles: {[(row.cycles, row.last_error) for row in _rows(ids)]}")
        await asyncio.sleep(0.2)
    if errors := {row.last_error for row in _rows(ids)} - {None}:
        raise RuntimeError(f"cycles with errors: {errors}")
    pids = [row.pid for row in _rows(ids)]
    return statistics.median(map(pss_mib, pids)), pss_mib(_parent(pids[0]))


def _rows(ids: Sequence[int]) -> list[Task]:
    return [Task.get_by_id(task) for task in ids]


async def _with_manager(back_end: str, measure: Callable[[Manager, Callable[[], int]], Any], *, idle: bool) -> Any:
    with tempfile.TemporaryDirectory(prefix="bk-") as directory:
        environment = {"BIDKEEPER_DATA_DIR": directory, "BIDKEEPER_WHITELIST": "*", "BIDKEEPER_CONFIG": os.devnull}
        os.environ.update(environment)
        settings = load(environment)
        base.connect(settings.database_url)
        schema.migrate()
        spawner = _spawner(back_end, settings, idle)
        manager = Manager(settings, spawner, Timing(locked_s=60))
        numbers = iter(range(1_000_000))
        try:
            async with _peers(settings):
                await manager.start()
                try:
                    async with asyncio.timeout(120):
                        while not spawner.is_ready:  # noqa: ASYNC110 - nobody tells
                            await asyncio.sleep(0.01)
                    await manager.settle(Settle(_new_task(settings, next(numbers))))
                    return await measure(manager, lambda: _new_task(settings, next(numbers)))
                finally:
                    await manager.stop()
        finally:
            base.close()


def _spawner(back_end: str, settings: Settings, idle: bool) -> ZygoteSpawner | PopenSpawner:
    job = "idle" if idle else "quick"
    if back_end == "zygote":
        return ZygoteSpawner(settings, (*WORKER, job, "zygote"))
    return PopenSpawner(settings, (*WORKER, job))


def _new_task(settings: Settings, number: int) -> int:
    now_ms = time.time_ns() // 1_000_000
    user = users.find_or_create(f"bc1qbench{number}", dict(settings.plans), now_ms)
    config = BidConfig(slug="cats", hardcap_sats=900_000)
    task = tasks.create_bidding_task(
        user.id,
        type="ordinals",
        slug="cats",
        slug_key="cats",
        config=dump_bid_config(config),
        venue=settings.market,
        max_tasks=1,
        now_ms=now_ms,
    )
    tasks.set_desired(task, RUNNING)
    return int(task.id)


@asynccontextmanager
async def _peers(settings: Settings) -> AsyncIterator[None]:
    """Starts a signer that signs everything, and a gateway to a market for each wallet."""
    signer = await serve(settings.signer_socket, _sign)
    gateway = HTTPServer(_gateway())
    gateway.add_socket(bind_unix_socket(str(settings.gateway_socket)))
    try:
        yield
    finally:
        signer.close()
        gateway.stop()
        await gateway.close_all_connections()


def _sign(request: dict[str, Any]) -> dict[str, Any]:
    user = request.get("user")
    return {
        "grant": {"secret": "ab" * 32},
        "addresses": {
            "payment": f"{user}pay",
            "payment_pubkey": "02" + "11" * 32,
            "vault": f"{user}vault",
            "vault_pubkey": "22" * 32,
        },
        "rooms": {"rooms": [{"whose": "task", "most_sats": 100_000_000, "signed_sats": 0, "frees_ms": 0}]},
        "sign_bid": {"message": "what was signed", "signature": "c2lnbmVk"},
    }.get(request["op"], {})


def _gateway() -> Application:
    markets: dict[str, MadeUpMarket] = {}

    class Answer(RequestHandler):
        def post(self) -> None:
            asked = verbs.read(self.request.body)
            if asked.verb == "fence":
                self.finish(verbs.text({"ok": asked.token}))
                return
            args = verbs.read_args(asked, verbs.BY_NAME[asked.verb])
            wallet = args.order.payment if isinstance(args, verbs.Place) else getattr(args, "wallet", "")
            market = markets.setdefault(wallet, MadeUpMarket(lambda: time.time_ns() // 1_000_000))
            self.finish(verbs.text({"ok": market.answer(args)}))

    return Application([("/", Answer)], log_function=lambda handler: None)


def _parent(pid: int | None) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
