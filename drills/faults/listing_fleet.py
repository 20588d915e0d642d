"""Inscriptions in the vault of one trader, an auto-list task for each, and what is known of them."""

from __future__ import annotations

import contextlib
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drills.faults import listing_checker, listing_evidence
from drills.faults.evidence import Quiet
from drills.faults.fleet import now_ms
from drills.faults.listing_evidence import ListingEvidence, Taken, taken
from strategy.config.listing import ListingConfig, load_listing_config
from tests.databases import rows
from tests.e2e.installation import Installation, Trader, until
from workers.context import VARIABLE

FLOOR, GUARD = 100_000, 80_000
LOOP = {"loopSeconds": 5}


@dataclass
class Item:
    """An inscription, alone in its collection, and the id of the task that sells it (None: none does)."""

    inscription: str
    slug: str
    floor: int
    task: int | None = None
    is_fixed: bool = False


class Shop:
    """`items` are those in the vault; what is sold or moved away leaves it. Keeps what was promised in `quiet` and
    `deleted`, and each config that a task was seen with.
    """

    def __init__(self, service: Installation, trader: Trader, items: int, **config: Any) -> None:
        self.service, self.trader = service, trader
        wallet = trader.ok("GET", "/api/wallet")
        self.vault, self.payment = wallet["vault"], wallet["payment"]
        self.config = LOOP | config
        self.made = 0
        self.items: list[Item] = []
        self.tasks: list[int] = []  # all that ever were
        self.configs: dict[tuple[int, int], ListingConfig] = {}
        self.stopped: dict[int, int] = {}
        self.asleep: set[int] = set()  # asked to stop, whether that was answered or not
        self.quiet: list[Quiet] = []
        self.deleted: dict[int, int] = {}
        for _ in range(items):
            self.sell_another()

    def sell_another(self) -> Item:
        """Returns one more inscription in the vault, with a task; every third at a fixed price."""
        self.made += 1
        item = Item(f"{secrets.token_hex(32)}i0", f"item-{self.made}", FLOOR, is_fixed=self.made % 3 == 0)
        self.service.put_collection(item.slug, [item.floor])
        self.items.append(item)
        held = [{"id": each.inscription, "collection": each.slug, "name": each.slug} for each in self.items]
        self.service.sim("PUT", f"/sim/wallets/{self.vault}", {"inscriptions": held})
        self.make_task(item)
        return item

    def make_task(self, item: Item) -> bool:
        """Makes a task; tells whether there is one now: a server that was just killed makes none."""
        mode = {"priceMode": "fixed", "priceSats": FLOOR} if item.is_fixed else {}
        body = {"inscriptionId": item.inscription, "collectionId": item.slug, "minPriceSats": GUARD, **mode}
        answer = self.trader.call("POST", "/api/autolist", self.config | body)
        if answer.status_code == 201:
            item.task = int(answer.json()["id"])
            self.tasks.append(item.task)
            self.note_config(item.task)
        elif answer.status_code == 409:  # made by a request whose answer was lost
            rows = self.trader.ok("GET", "/api/autolist")
            item.task = next(row["id"] for row in rows if row["inscriptionId"] == item.inscription)
            self.tasks.append(item.task)
            self.note_config(item.task)
        return item.task is not None

    def note_config(self, task: int) -> None:
        found = rows(self.service.database_url, "SELECT revision, config FROM tasks WHERE id = ?", [task])
        for revision, config in found:
            self.configs[task, revision] = load_listing_config(config)

    # What the owner asks for; True once it was answered well. Whatever the answer, what it may have done counts.

    def start(self, task: int) -> bool:
        if task in self.stopped:
            self.quiet.append(Quiet(task, self.stopped.pop(task), now_ms()))
        is_started = self.trader.call("POST", f"/api/autolist/{task}/start").status_code == 200
        if is_started:
            self.asleep.discard(task)
        return is_started

    def start_all(self) -> None:
        def start(item: Item) -> None:
            assert item.task is not None
            task = item.task
            until(lambda: self.start(task), f"the start of task {task}")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(start, self.items))

    def stop(self, task: int) -> bool:
        self.asleep.add(task)
        answer = self.trader.call("POST", f"/api/autolist/{task}/stop")
        if answer.status_code == 200:
            assert answer.json()["isRunning"] is False
            self.stopped.setdefault(task, now_ms())
        return answer.status_code == 200

    def change(self, task: int, **config: Any) -> None:
        self.note_config(task)
        self.trader.call("PUT", f"/api/autolist/{task}", config)
        self.note_config(task)

    def delete(self, item: Item) -> bool:
        """Deletes the task; a lost answer is asked for again: 404 says that it is gone."""
        assert item.task is not None
        answer = self.trader.call("DELETE", f"/api/autolist/{item.task}")
        if answer.status_code in (200, 404):
            self.deleted[item.task] = now_ms()
            item.task = None
        return answer.status_code in (200, 404)

    # What is to be seen

    def taken(self) -> list[Taken]:
        """Returns every listing that the venue took."""
        return taken(self.service.history())

    def workers(self) -> dict[int, list[int]]:
        """Pids by task, of those that list or drain."""
        found: dict[int, list[int]] = {}
        for pid in [pid for kind in ("lister", "drain") for pid in self.service.processes(f"bidkeeper: {kind} task ")]:
            with contextlib.suppress(OSError, IndexError, ValueError):
                command = Path(f"/proc/{pid}/cmdline").read_text()
                words = command.split(" task ")[1].split()
                if len(words[1].rstrip("\0")) > 64:  # an inscription: no bidding task's drain
                    found.setdefault(int(words[0]), []).append(pid)
        return found

    def all_run(self) -> bool:
        workers = self.workers()
        assert all(len(pids) <= 1 for pids in workers.values()), f"two workers of one task: {workers}"
        return all(item.task in workers for item in self.items)

    def evidence(self) -> ListingEvidence:
        found = listing_evidence.read(self.service, self.payment)
        stopped = [Quiet(task, from_ms) for task, from_ms in self.stopped.items()]
        found.quiet, found.deleted, found.configs = [*self.quiet, *stopped], self.deleted, self.configs
        found.asleep = frozenset({*self.asleep, *self._crashed()})
        return found

    def _crashed(self) -> list[int]:
        """Those that died too often to be started again without being asked."""
        text = "SELECT id FROM tasks WHERE kind = 'listing' AND observed = 'crashed'"
        found = rows(self.service.database_url, text)
        return [task for (task,) in found]

    def disagreements(self, *, at_last: bool = True) -> list[str]:
        return listing_checker.disagreements(self.evidence(), at_last=at_last)

    def in_doubt(self) -> list[str]:
        """Returns the ledger's doubts: states other than live and closed."""
        rows = self.evidence().rows
        return [f"{row['slug']}: {row['state']}" for row in rows if row["state"] not in ("live", "closed")]

    def live_of_deleted(self) -> list[str]:
        """Listings that the venue still shows of tasks that were deleted."""
        return [line for line in self.disagreements() if line.startswith("outlives_its_task")]


def restart(service: Installation, crash: str | None = None) -> None:
    """Starts it, after ending it well; `crash` (see workers/context.py) is what its workers die of from now on."""
    if service.process is not None:
        service.down()
    service.environment.pop(VARIABLE, None)
    if crash is not None:
        service.environment[VARIABLE] = crash
    service.up()
    service.sim("PUT", "/sim/limits", {"perSecond": 50, "burst": 50})
