"""A data directory with database, a nodding signer and gateway, and a manager with stub workers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler

from core.call import Request, call
from core.errors import PeerRefused
from core.local_server import serve
from core.program_calls import Settle, Settled
from core.settings import Settings, load
from models import users
from models.ledger import listings, orders
from models.ledger.listings import NewListing
from models.ledger.orders import ExposureLimits, NewOrder
from models.ledger.states import LIVE, SIGNED, SUBMITTED, Order
from models.tasks import tasks
from models.tasks.tasks import RUNNING, STOPPED
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.json_lines import Answers
from tests.shapes import replace
from workers.manager.keeper import Timing
from workers.manager.manager import Manager
from workers.spawning.spawner import PopenSpawner, Spawner, ZygoteSpawner

ROOT = Path(__file__).resolve().parents[2]
STUB = (sys.executable, str(Path(__file__).with_name("stub_worker.py")))
STUB_ZYGOTE = (sys.executable, str(Path(__file__).with_name("stub_zygote.py")))
# Where something has to be done in a time, a busy machine is given plenty.
A = TypeVar("A")
QUICK = Timing(
    signer_s=60,
    fence_s=60,
    locked_s=60,
    term_s=1,
    first_rest_s=0.05,
    refused_rest_s=0.3,
    sweep_s=0.1,
    full_sweep_s=0.3,
)
PATIENCE_S = 120.0
DRAIN_S = 60.0  # a drain is a process of its own
# A test has a zygote of its own, which on a busy machine takes longer to get ready than the product waits for one.
ZYGOTE_S = 60.0


class Signer:
    """Grants everything, or refuses with `refusal`, and as the real one tokens that are not new; keeps what it was
    asked.
    """

    def __init__(self) -> None:
        self.refusal: str | None = None
        self.asked: list[dict[str, Any]] = []
        self.highest: dict[int, int] = {}

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        if self.refusal:
            raise PeerRefused("signer", self.refusal, "not now")
        if request["op"] == "grant":
            task, token = request["grant"]["task"], request["grant"]["token"]
            highest = self.highest.get(task, 0)
            if token <= highest:
                raise PeerRefused("signer", "stale-token", f"{token} is not above {highest}", highest)
            self.highest[task] = token
            return {"secret": "ab" * 32}
        if "token" in request:
            self._see(request["task"], request["token"])
        if request["op"] == "end_all_rights":
            return {
                "higher": [
                    [task, seen] for task, token in request["tokens"] if (seen := self._see(task, token)) > token
                ]
            }
        return {}

    def _see(self, task: int, token: int) -> int:
        self.highest[task] = max(self.highest.get(task, 0), token)
        return self.highest[task]

    def grants(self, task_id: int) -> list[dict[str, Any]]:
        return [asked["grant"] for asked in self.asked if asked["op"] == "grant" and asked["grant"]["task"] == task_id]

    def ops(self) -> list[str]:
        return [asked["op"] for asked in self.asked]


class Gateway:
    """Fences everything, as the real one never below what it has fenced; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.least: dict[int, int] = {}

    def application(self) -> Application:
        asked, least = self.asked, self.least

        class Answer(RequestHandler):
            def post(self) -> None:
                request = json.loads(self.request.body)
                asked.append(request)
                verb, tokens = request["verb"], request.get("args", {}).get("tokens", ())
                if verb == "fence":
                    tokens = [(request["task"], request["token"])]
                for task, token in tokens:
                    least[task] = max(least.get(task, 0), token)
                higher = [[task, least[task]] for task, token in tokens if least[task] > token]
                self.finish({"ok": higher if verb == "fence_all" else least.get(request.get("task"))})

        return Application([("/", Answer)], log_function=lambda handler: None)


class Installation:
    """The handles of a test on an installation; tasks by their numbers. `manager` is there between `started` and its
    end.
    """

    def __init__(self, data_dir: Path, timing: Timing = QUICK, whitelist: str = "*") -> None:
        environment = {
            "BIDKEEPER_DATA_DIR": str(data_dir),
            "BIDKEEPER_WHITELIST": whitelist,
            "BIDKEEPER_CONFIG": os.devnull,
            "BIDKEEPER_SPAWNER": os.environ.get("BIDKEEPER_SPAWNER", ""),
            "BIDKEEPER_DATABASE_URL": os.environ.get("BIDKEEPER_DATABASE_URL", ""),
        }
        self.environment = dict(os.environ) | environment
        self.settings: Settings = load(environment)
        self.timing = timing
        self.signer = Signer()
        self.gateway = Gateway()
        self.manager: Manager | None = None
        self.user = users.find_or_create("bc1qowner", dict(self.settings.plans), now_ms())

    def task(self, slug: str = "cats", **config: Any) -> int:
        text = dump_bid_config(BidConfig(slug=slug, bid_mode="fixed", **config))
        task = tasks.create_bidding_task(
            self.user.id,
            type="ordinals",
            slug=slug,
            slug_key=slug,
            config=text,
            venue=self.settings.market,
            max_tasks=1000,
            now_ms=now_ms(),
        )
        return int(task.id)

    def listing(self, inscription: str = "item", config: ListingConfig = ListingConfig()) -> int:  # noqa: B008
        """Makes an auto-list task; its worker does as the name of its inscription says."""
        task = tasks.create_autolist_task(
            self.user.id,
            inscription_id=inscription,
            collection_id=None,
            config=dump_listing_config(config),
            venue=self.settings.market,
            now_ms=now_ms(),
        )
        return int(task.id)

    def row(self, task_id: int) -> Any:
        found = tasks.with_owner(task_id)
        assert found is not None
        return found

    def pid(self, task_id: int) -> int:
        """Returns the running worker's pid."""
        pid = self.row(task_id).pid
        assert pid is not None
        return pid

    def want(self, task_id: int, desired: str = RUNNING) -> None:
        tasks.set_desired(self.row(task_id), desired)

    async def ask(self, request: Request[A]) -> A:
        """As the server asks: over the socket, from a thread."""
        return await asyncio.to_thread(call, self.settings.manager_socket, "manager", request, timeout=PATIENCE_S)

    async def settle(self, task_id: int, drain_s: float = DRAIN_S) -> Settled:
        return await self.ask(Settle(task_id, drain_s))

    async def start(self, task_id: int) -> Settled:
        self.want(task_id)
        return await self.settle(task_id)

    async def started(self, slug: str = "cats", **config: Any) -> int:
        """A new task that runs."""
        task = self.task(slug, **config)
        await self.start(task)
        return task

    async def started_listing(self, inscription: str = "item") -> int:
        task = self.listing(inscription)
        await self.start(task)
        return task

    async def stop(self, task_id: int, drain_s: float = DRAIN_S) -> Settled:
        self.want(task_id, STOPPED)
        return await self.settle(task_id, drain_s)

    def open_order(self, task_id: int) -> None:
        """A live bid, as a running worker of the task would have left it."""
        row = self.row(task_id)
        tasks.set_desired(row, RUNNING)
        number = Order.select().count() + 1
        new = NewOrder(
            intent=f"{number:032x}",
            task_id=task_id,
            user_id=row.user.id,
            venue="simulator",
            wallet="bc1qpay",
            slug=row.slug,
            price_sats=10_000,
            quantity="1",
            expires_ms=now_ms() + 900_000,
            token=row.token,
        )
        order = orders.reserve(new, ExposureLimits(task=0, user=10**9, installation=0), now_ms())
        for state in (SIGNED, SUBMITTED, LIVE):
            orders.move(order, state, now_ms())

    def open_listing(self, task_id: int) -> None:
        """A live listing, as a running worker of the task would have left it."""
        row = self.row(task_id)
        tasks.set_desired(row, RUNNING)
        new = NewListing(
            intent=f"{task_id:064x}",
            task_id=task_id,
            user_id=row.user.id,
            venue="simulator",
            wallet="bc1pvault",
            inscription_id=row.inscription_id,
            slug=None,
            outpoint=f"{task_id:064x}:0",
            price_sats=100_000,
            token=row.token,
            revision=row.revision,
        )
        listing = listings.reserve(new, None, now_ms())
        for state in (SIGNED, SUBMITTED, LIVE):
            listings.move(listing, state, now_ms())

    def acts(self) -> list[tuple[int, int]]:
        """(task, pid) of every cycle of a bidder, oldest first."""
        path = self.settings.data_dir / "acts"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(task), int(pid)) for task, pid in (line.split() for line in lines)]

    def log_of(self, task_id: int) -> str:
        path = self.settings.log_dir / f"task-{task_id}.log"
        return path.read_text() if path.exists() else ""

    def two_acted_at_once(self) -> bool:
        """Tells whether any worker acted after its successor had begun to."""
        followed: dict[int, set[int]] = {}
        latest: dict[int, int] = {}
        for task, pid in self.acts():
            if latest.get(task, pid) != pid:
                followed.setdefault(task, set()).add(latest[task])
            if pid in followed.get(task, set()):
                return True
            latest[task] = pid
        return False

    @asynccontextmanager
    async def peers(self) -> AsyncIterator[None]:
        """Signer and gateway."""
        signer = await serve(self.settings.signer_socket, Answers(self.signer))
        gateway = HTTPServer(self.gateway.application())
        gateway.add_socket(bind_unix_socket(str(self.settings.gateway_socket)))
        try:
            yield
        finally:
            signer.close()
            gateway.stop()
            await gateway.close_all_connections()
            await _ended()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Installation]:
        """Signer, gateway and a manager in this process."""
        async with self.peers():
            self.manager = Manager(self.settings, stub_spawner(self.settings), self.timing)
            await self.manager.start()
            try:
                yield self
            finally:
                await self.manager.stop()

    def manager_process(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.workers.run_manager"]
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, stderr=subprocess.PIPE)


async def _ended() -> None:
    """Waits for the conversations with the signer: one that is cancelled before it begins leaves its socket open."""
    deadline = time.monotonic() + PATIENCE_S
    while any(_is_conversation(task) for task in asyncio.all_tasks()):
        assert time.monotonic() < deadline, "somebody still asks the signer"
        await asyncio.sleep(0.005)


def _is_conversation(task: asyncio.Task[Any]) -> bool:
    return getattr(task.get_coro(), "__name__", "") in ("_converse", "_accept_connection2")


def stub_spawner(settings: Settings) -> Spawner:
    """As set, but for workers with a stub for their job."""
    if settings.spawner == "zygote":
        return ZygoteSpawner(settings, STUB_ZYGOTE)
    return PopenSpawner(settings, STUB)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def with_timing(data_dir: Path, **changes: float) -> Installation:
    return Installation(data_dir, replace(QUICK, **changes))


def descriptors(pid: int | str) -> dict[int, str]:
    """Returns the process's open descriptors."""
    found = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found[int(fd.name)] = str(fd.readlink())
    return found


def lives(pid: int | None) -> bool:
    """Tells whether the process runs; one that nobody has waited for yet does not."""
    if pid is None:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


async def eventually(holds: Callable[[], object], what: str = "it") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come about"
        await asyncio.sleep(0.02)
