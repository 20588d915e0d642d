"""A storm over auto-list tasks: killed workers and programs, moving floors, a venue that fails, drops and sells."""

from __future__ import annotations

import contextlib
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import requests

from drills.faults.evidence import Row
from drills.faults.fleet import Fleet
from drills.faults.listing_fleet import Item, Shop, restart
from drills.faults.storm import Blows, Deed, Storm
from tests.e2e.installation import until
from workers.context import LISTING_NAMES

PROGRAMS = ("manager", "zygote", "gateway", "facts", "signer", "server")
# What the venue may do to writes and reads without making a listing that is not ours.
FAULTS = (
    *(("list", mode) for mode in ("timeout", "cut", "error_500", "rate_429", "refuse_400", "late", "bad_json")),
    *(("list", mode) for mode in ("accept_then_timeout", "accept_then_500") * 3),
    *(("cancel", mode) for mode in ("timeout", "cut", "error_500", "cancel_lie", "late")),
    *(("cancel", mode) for mode in ("accept_then_timeout", "accept_then_500")),
    ("draft", "error_500"),
    ("wallet", "error_500"),
    ("wallet", "bad_json"),
    ("wallet", "stale"),
    ("book", "error_500"),
    ("challenge", "error_500"),
    ("sales", "error_500"),
    ("output", "error_500"),
    ("inscription", "error_500"),
    ("outspend", "error_500"),
)
_BEGINS = re.compile(r"(lister|drain) worker begins, token \d+, pid (\d+)")
_POINT = re.compile(r"pid (\d+) dies at crash point (\S+)")


@dataclass
class ListingKills:
    """Listers and drains by what killed them, programs by name."""

    workers: int = 0
    drains: int = 0
    points: Counter[str] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)
    bidders: int = 0

    @property
    def total(self) -> int:
        """Without those of bidders."""
        return self.workers + self.drains + self.programs.total()

    @property
    def missed(self) -> list[str]:
        """The crash points of listings that killed no process."""
        return [name for name in LISTING_NAMES if not self.points[name]]

    def __str__(self) -> str:
        programs = ", ".join(f"{count} x {name}" for name, count in sorted(self.programs.items()))
        points = ", ".join(f"{self.points[name]} {name.removeprefix('listing-')}" for name in LISTING_NAMES)
        return (
            f"{self.total} kills: {self.workers} listers, {self.drains} drains ({self.points.total()} at crash points: "
            f"{points}), {programs or 'no programs'}; beside {self.bidders} bidders"
        )


class ListingStorm(Blows):
    """A storm over auto-list tasks, beside bidding ones."""

    victims, faults = PROGRAMS, FAULTS

    def __init__(self, shop: Shop, fleet: Fleet, rng: random.Random, blows: int = 1) -> None:
        """`blows`: how many times as many kills as usual, of all that happens."""
        super().__init__(fleet, rng)
        self.shop, self.blows = shop, blows
        self._lives: dict[tuple[int, int], tuple[str, str | None]] = {}  # of each worker of a task, by its pid
        self.bids = Storm(fleet, rng)
        for task in fleet.tasks:
            self.bids._note_config(task)

    def deeds(self) -> list[Deed]:
        return [
            (self.kill_lister, 8 * self.blows),
            (self.kill_program, 3 * self.blows),
            (self.bids.kill_worker, 2 * self.blows),
            (self.move_floor, 20),
            (self.bids.move_floor, 3),
            (self.fault, 10),
            (self.change, 24),
            (self.sell, 6),
            (self.delist, 5),
            (self.move, 3),
            (self.stop, 4),
            (self.start, 12),
            (self.delete, 7),
            (self.restock, 10),
        ]

    def calm(self, *, is_clean: bool) -> None:
        """Waits for calm: the venue is well, every item in the vault has a running task; `is_clean` ends all deaths."""
        if is_clean:
            restart(self.service)
        until(self.service.ready_again, "readiness after the storm")
        self.service.sim("PUT", "/sim/faults", [])
        for item in self.shop.items:
            if item.task is None:
                self.shop.make_task(item)
        self.shop.start_all()
        for task in self.fleet.tasks:
            self.bids._start(task)

    # Blows

    def kill_lister(self) -> None:
        """Also those that drain."""
        self._kill([pid for pids in self.shop.workers().values() for pid in pids])

    # The market

    def move_floor(self) -> None:
        """More often up than down: prices may rise at once and fall slowly only."""
        if item := self._any():
            item.floor = self.rng.choice([7, 9, 10, 11, 11, 11, 12, 12, 13]) * item.floor // 10_000 * 1_000
            self.service.put_collection(item.slug, [max(item.floor, 20_000)])

    def sell(self) -> None:
        item = self._any()
        if item and self._control("POST", "/sim/sell", {"inscriptionId": item.inscription}):
            self.tally["sold"] += 1
            self._gone(item)

    def delist(self) -> None:
        if item := self._any():
            self._control("POST", "/sim/delist", {"inscriptionId": item.inscription})

    def move(self) -> None:
        """Mostly within the vault: the listing is worthless, and another may be made."""
        if item := self._any():
            away = self.rng.random() < 0.25
            address = self.shop.trader.address if away else self.shop.vault
            if self._control("POST", "/sim/move", {"inscriptionId": item.inscription, "address": address}) and away:
                self._gone(item)

    def _gone(self, item: Item) -> None:
        """Out of the vault: its task is left to find out."""
        self.shop.items.remove(item)

    def _control(self, method: str, path: str, body: Row) -> bool:
        """Makes one control call; tells whether the venue could do it: there may be no listing."""
        url = f"http://127.0.0.1:{self.service.simulator_port}{path}"
        return requests.request(method, url, json=body, timeout=30).status_code == 200

    # Their owner

    def change(self) -> None:
        """Mostly to a higher price: that is listed at once."""
        item = self._any()
        if item is None or item.task is None:
            return
        newest = [each.price for each in self.shop.taken() if each.slug == item.slug][-1:]
        price = max(newest, default=100_000) * self.rng.choice([8, 10, 11, 11, 12]) // 10_000 * 1_000
        body = {"priceSats": price} if item.is_fixed else {"minPriceSats": price}
        self.shop.change(item.task, **(body if self.rng.random() < 0.8 else {"pricePercent": 1.2}))

    def stop(self) -> None:
        item = self._any()
        if item and item.task is not None:
            self.shop.stop(item.task)

    def start(self) -> None:
        stopped = [each.task for each in self.shop.items if each.task is not None and each.task in self.shop.stopped]
        others = [each.task for each in self.shop.items if each.task is not None]
        if stopped or others:
            self.shop.start(self.rng.choice(stopped or others))

    def delete(self) -> None:
        item = self._any()
        if item and item.task is not None:
            self.shop.delete(item)

    def restock(self) -> None:
        """A task for what has none, or another inscription for one that is gone."""
        bare = [item for item in self.shop.items if item.task is None]
        if bare:
            self.shop.make_task(bare[0])
        elif len(self.shop.items) < self.wanted:
            self.shop.sell_another()
        else:
            return
        found = self.shop.items[-1] if not bare else bare[0]
        if found.task is not None:
            self.shop.start(found.task)

    @property
    def wanted(self) -> int:
        return 6

    def _any(self) -> Item | None:
        return self.rng.choice(self.shop.items) if self.shop.items else None

    # Afterwards

    def kills(self) -> ListingKills:
        """By the logs: a killed worker cannot say that it was. What was read stays, since a log goes with its task."""
        found = ListingKills(programs=self.programs, bidders=self.bids.kills().workers)
        logs = self.service.data_dir / "logs"
        for task in self.shop.tasks:
            for path in logs.glob(f"task-{task}.log*"):
                with contextlib.suppress(FileNotFoundError):  # it has gone since
                    for kind, pid, point in lives(path):
                        self._lives[task, pid] = kind, point or self._lives.get((task, pid), (kind, None))[1]
        for (_, pid), (kind, point) in self._lives.items():
            if point is None and pid not in self.killed:
                continue
            found.workers += kind == "lister"
            found.drains += kind == "drain"
            if point:
                found.points[point] += 1
        return found


def lives(path: Path) -> list[tuple[str, int, str | None]]:
    """Of each worker in this log: what it was, its pid, and the crash point at which it died."""
    text = path.read_text(errors="replace")
    points = {int(pid): point for pid, point in _POINT.findall(text)}
    return [(kind, int(pid), points.get(int(pid))) for kind, pid in _BEGINS.findall(text)]
