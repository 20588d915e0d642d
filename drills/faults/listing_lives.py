"""Two lives of a listing, step by step: raised twice, dropped by the venue, sold; and stopped, then deleted."""

from __future__ import annotations

from typing import Any

import requests

from drills.faults.listing_fleet import Item, Shop
from drills.faults.listing_storm import lives
from tests.e2e.installation import until

SALE = ("list", "raise", "raise again", "list anew", "sale")
DELETION = ("list", "stop", "delete")
WRITES = ("list", "raise", "raise again", "list anew")
# What was reserved has to be left behind by another death before it can be freed.
LEFT_BEHIND_AT = {"listing-freed": "listing-reserved"}
PRICES = {"raise": 120_000, "raise again": 140_000, "list anew": 140_000, "sale": 140_000}


class Life:
    """One inscription and its task on the way through `steps`; `goal` is the step at which its worker dies."""

    def __init__(self, shop: Shop, steps: tuple[str, ...], goal: str) -> None:
        self.shop, self.steps, self.goal = shop, steps, goal
        self.item: Item = shop.sell_another()
        assert self.item.task is not None
        self.task: int = self.item.task

    def until_goal(self) -> None:
        for step in self.steps[: self.steps.index(self.goal)]:
            self.walk(step)

    def afterwards(self) -> None:
        """The goal was begun before: it comes to its end, and so does the rest."""
        at = self.steps.index(self.goal)
        until(lambda: self.is_done(self.goal), f"{self.goal} of task {self.task}")
        for step in self.steps[at + 1 :]:
            self.walk(step)

    def walk(self, step: str) -> None:
        self.begin(step)
        until(lambda: self.is_done(step), f"{step} of task {self.task}")

    def begin(self, step: str) -> None:
        if step == "list":
            until(lambda: self.shop.start(self.task), "a start")
        elif step in ("raise", "raise again"):
            name = "priceSats" if self.item.is_fixed else "minPriceSats"
            until(lambda: self._is_changed(name, PRICES[step]), "a change")
        elif step == "list anew":
            self.shop.service.sim("POST", "/sim/delist", {"inscriptionId": self.item.inscription})
        elif step == "sale":
            self.shop.service.sim("POST", "/sim/sell", {"inscriptionId": self.item.inscription})
        elif step == "stop":
            until(lambda: self.shop.stop(self.task), "a stop")
        else:
            until(lambda: self.shop.delete(self.item), "a deletion")

    def is_done(self, step: str) -> bool:
        """By the venue's history and the task's own word."""
        events = self.shop.service.history(kind="ask", slug=self.item.slug)
        own = [(event["event"], event["price"]) for event in events if event["signature"]]
        live = [each.price for each in self.shop.taken() if each.slug == self.item.slug and each.end_ms is None]
        if step == "delete":
            return not live and own[-1][0] == "cancelled"
        if step == "stop":
            return len(live) == 1  # it stays where it is
        listing = self._task()["listing"] or {}
        if step == "sale":
            known = listing.get("state"), listing.get("closeReason"), listing.get("proceeds")
            return known == ("closed", "sold", PRICES[step]) and not self._task()["isRunning"]
        if step == "list anew" and own.count(("accepted", PRICES[step])) != 2:
            return False
        wanted = PRICES.get(step, 100_000 if self.item.is_fixed else 105_000)
        return live == [wanted] and (listing.get("state"), listing.get("price")) == ("live", wanted)

    def deaths_at(self, point: str) -> int:
        logs = (self.shop.service.data_dir / "logs").glob(f"task-{self.task}.log*")
        return sum(found == point for path in logs for _, _, found in lives(path))

    def _is_changed(self, name: str, price: int) -> bool:
        self.shop.change(self.task, **{name: price})
        return bool(self._task()["config"][name] == price)

    def _task(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self.shop.trader.ok("GET", f"/api/autolist/{self.task}")
        except requests.RequestException:
            return {"listing": None, "isRunning": True, "config": {}}
        return found
