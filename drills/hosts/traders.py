"""Some users with some tasks each on several machines, and what becomes of them."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from drills.faults import checker
from drills.faults.evidence import AskMove, Bid, Evidence, audit_lines, bids, task_log
from drills.faults.fleet import EXPOSURE, now_ms
from drills.hosts.site import Site
from models.ledger.states import RESERVED, SIGNED, SUBMITTED
from strategy.config.bid import load_bid_config
from tests.e2e.installation import Trader

# No two have the same highest rung, and none is a spike: whoever looks less often than they move sees another one, too.
FLOORS = (100_000, 80_000, 120_000, 70_000, 110_000, 90_000)
# Room at the signer for many moves of the floor, and rungs for bids of which nobody knows whether they have arrived:
# each holds one until it would have expired.
CONFIG = {"bidCount": 5, "hardcapSats": 400_000, "maxBidTotal": 8_000_000, "bidExpiryMinutes": 15, "loopSeconds": 5}


@dataclass(frozen=True)
class Glance:
    """A task as the database has it; `slot` is that of its user, `pid` its worker's as it is seen from here."""

    slot: int
    token: int
    pid: int | None
    observed: str


class Traders:
    """Makes the tasks; each bids on a collection of its own (three quarters of its floor, and less)."""

    def __init__(self, site: Site, users: int = 4, tasks_each: int = 2) -> None:
        self.site = site
        self.asks: list[AskMove] = []
        self.slugs = [f"c-{number}" for number in range(users * tasks_each)]
        self._floors = itertools.cycle(FLOORS)
        self.move_floors()
        self.owners: dict[int, Trader] = {}
        for number in range(users):
            trader = Trader(site).sign_in()
            for slug in self.slugs[number * tasks_each : (number + 1) * tasks_each]:
                self.owners[trader.task(slug=slug, **CONFIG)] = trader

    def start(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: each[1].start(each[0]), self.owners.items()))

    def move_floors(self) -> None:
        """Gives every task a reason to bid anew."""
        floor = next(self._floors)
        for slug in self.slugs:
            self.asks.append(AskMove(now_ms(), slug, floor))
            self.site.put_collection(slug, [floor])

    def have_room(self) -> bool:
        """Tells whether each task has two rungs at least that no bid holds of which nobody knows whether it arrived."""
        text = "SELECT COUNT(*) FROM orders WHERE state IN (?, ?, ?) GROUP BY task_id"
        in_doubt = self.site.rows(text, [RESERVED, SIGNED, SUBMITTED])
        return all(number <= CONFIG["bidCount"] - 2 for (number,) in in_doubt)

    def glances(self) -> dict[int, Glance]:
        found = self.site.rows("SELECT id, user_id, token, pid, observed FROM tasks")
        glances = {row[0]: Glance(row[1] % self.site.slots, *row[2:]) for row in found}
        return self.site.engine.seen_from_here(self.site, glances)

    def state(self) -> str:
        """Tells the tasks' rows, how they are seen from here, who has which lease, and all programs' last words."""
        told = self.site.rows("SELECT id, user_id, token, pid, observed, last_error FROM tasks ORDER BY id")
        told += [*self.glances().items(), *self.site.rows("SELECT name, token, home FROM leases ORDER BY name")]
        told += [(machine.name, self.site.slots_of(machine)) for machine in self.site.traders]
        return "\n".join([*map(str, told), self.site.last_words()])

    def taken(self) -> list[tuple[Bid, int, int]]:
        """Returns every bid that the venue took, with its task and token; 0 for one that no ledger knows."""
        orders = {
            (wallet, expires_ms): (task, token)
            for wallet, expires_ms, task, token in self.site.rows(
                "SELECT wallet, expires_ms, task_id, token FROM orders"
            )
        }
        return [(bid, *orders.get(bid.mark, (0, 0))) for bid in bids(self.site.history())]

    def evidence(self) -> Evidence:
        as_of_ms = now_ms()
        history = self.site.history()
        lines = audit_lines(self.site.vault.data_dir)  # before the orders, which are there before they are signed
        tables = {}
        for table in ("orders", "cycles", "tasks"):
            names = [
                name
                for (name,) in self.site.rows(
                    "SELECT column_name FROM information_schema.columns WHERE table_name = ? ORDER BY ordinal_position",
                    [table],
                )
            ]
            found = self.site.rows(f"SELECT * FROM {table} ORDER BY id")
            tables[table] = [dict(zip(names, row, strict=True)) for row in found]
        evidence = Evidence(history, tables["orders"], lines, cycles=tables["cycles"], as_of_ms=as_of_ms)
        evidence.asks = self.asks
        for task in tables["tasks"]:
            evidence.configs[task["id"]] = [load_bid_config(task["config"])]
            evidence.exposure[task["user_id"]] = EXPOSURE
            logs = [line for each in self.site.traders for line in task_log(each.data_dir, task["id"])]
            evidence.logs[task["id"]] = sorted(line for line in logs if "worker begins" in line)
        return evidence

    def disagreements(self) -> list[str]:
        return checker.disagreements(self.evidence())
