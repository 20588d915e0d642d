"""`bidkeeper demo`: up, on the practice marketplace, with a demo user whose tasks trade as you watch.

The demo user is an ordinary one, the practice market's play wallet: it signs in with it and talks to the service over
HTTP only. The page lets everybody in as the same user, by one click.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import time
from itertools import takewhile
from typing import Any

from cli.api import Unauthorized
from cli.demo.figures import Figures
from cli.demo.gifts import gifts
from cli.demo.session import Session, page_line
from cli.up import Installation
from core.errors import BidkeeperError, SettingsError
from core.settings import Settings

_PUPPETS, _NINJAS = "bitcoin-puppets-demo", "pizza-ninjas-demo"
# A ladder on a collection, one of a rune, and a pair of bids that outbids rivals. Their prices follow the floor within
# 4 %: at 1 % the top would move every minute or two, and each move signs one more bid for an hour. The pair moves
# whenever a rival does, some twenty times an hour: it signs for a third of that.
_TASKS: tuple[dict[str, Any], ...] = (
    {
        "slug": _PUPPETS,
        "bidPercentLow": 0.5,
        "bidPercentHigh": 0.9,
        "bidCount": 4,
        "hardcapSats": 3_500_000,
        "bidExpiryMinutes": 60,
        "updateTolerance": 0.04,
    },
    {
        "slug": "PRACTICE•RUNE•TOKEN",
        "type": "rune",
        "bidPercentLow": 0.7,
        "bidPercentHigh": 0.95,
        "bidCount": 3,
        "quantity": 100_000,
        "hardcapSats": 600_000,
        "bidExpiryMinutes": 60,
        "updateTolerance": 0.04,
    },
    {
        "slug": _NINJAS,
        "bidPercentLow": 0.6,
        "bidPercentHigh": 0.88,
        "bidCount": 2,
        "hardcapSats": 1_000_000,
        "outbidEnabled": True,
        "outbidAmount": 5_000,
        "bidExpiryMinutes": 20,
        "updateTolerance": 0.04,
    },
)
# Bought inscriptions are put up for sale, one at a time, at this share of the floor and not below that price.
_PRICE_PERCENT = 1.15
_LEAST_PRICE = {_PUPPETS: 1_500_000, _NINJAS: 400_000}

_LOOK_EVERY_S = 1.0
_FIGURES_EVERY_S = 3600.0
_CYCLES_A_LOOK = 10
_LIST_EVERY_S = 30.0


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds nothing: everything is a setting."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs `up`, with the demo's own settings where none are given."""
    if settings.market != "simulator":
        raise SettingsError(["BIDKEEPER_MARKET must be simulator: the demo never trades on a real marketplace"])
    # A demo is there to be looked at, so the play wallet is for everybody unless somebody said otherwise.
    has_play_wallet = not os.environ.get("BIDKEEPER_PLAY_WALLET") or settings.play_wallet
    environment = {
        "BIDKEEPER_PLAY_WALLET": "true" if has_play_wallet else "false",
        "BIDKEEPER_SIMULATOR_BACKGROUND": os.environ.get("BIDKEEPER_SIMULATOR_BACKGROUND") or "true",
        "BIDKEEPER_SIMULATOR_SCENES": os.environ.get("BIDKEEPER_SIMULATOR_SCENES") or "true",
        "BIDKEEPER_WHITELIST": os.environ.get("BIDKEEPER_WHITELIST") or "*",
    }
    settings = dataclasses.replace(settings, whitelist=frozenset({"*"}), play_wallet=has_play_wallet)
    print(page_line(settings), flush=True)
    print("starting on the practice marketplace, with play money; Ctrl-C stops everything", flush=True)
    print("each task prints a line when it does something new; the page shows the reason for every bid", flush=True)
    demo = Demo(Session(settings))
    return Installation(settings, environment).run(demo.step, demo.tell_figures)


class Demo:
    """Starts the demo user's tasks, then prints each cycle's result; repetitions are printed once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._figures = Figures()
        self._began = self._figures_told = time.monotonic()
        self._began_at = int(time.time())
        self._looked = self._listed = -math.inf
        self._is_started = False
        self._trouble = ""
        self._shown: dict[str, Any] = {}
        self._newest: dict[str, Any] = {}
        self._words: dict[str, str] = {}

    def step(self) -> None:
        """Looks once; a failed question is asked again at the next look."""
        now = time.monotonic()
        if now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        try:
            self._look()
            self._trouble = ""
        except Unauthorized:
            pass
        except BidkeeperError as error:
            if self._trouble != str(error):
                self._trouble = str(error)
                _say(f"retrying every second: {error}")
        if now - self._figures_told > _FIGURES_EVERY_S:
            self._figures_told = now
            self.tell_figures()

    def tell_figures(self) -> None:
        """Prints the figures of the run so far, if there are any."""
        try:
            metrics = self._session.metrics()
        except BidkeeperError:
            metrics = None
        for line in self._figures.lines(time.monotonic() - self._began, metrics):
            print(line, flush=True)

    def _look(self) -> None:
        if not self._session.is_signed_in:
            self._session.sign_in()
        if not self._is_started:
            self._start_tasks()
            self._is_started = True
        for task in self._session.call("GET", "/api/tasks"):
            self._follow(f"task {task['id']} {task['slug']}", f"/api/tasks/{task['id']}", task)
        listings = self._session.call("GET", "/api/autolist")
        for task in listings:
            self._follow(_name(task), f"/api/autolist/{task['id']}", task)
        now = time.monotonic()
        if now - self._listed >= _LIST_EVERY_S and not any(task["isRunning"] for task in listings):
            self._listed = now
            self._list_another(listings)

    def _follow(self, name: str, path: str, task: dict[str, Any]) -> None:
        """Counts and prints the cycles since the last look, without those of an earlier demo."""
        shown = (task["lastCycle"], task["lastError"])
        if shown == self._shown.get(name, (None, None)):
            return
        cycles = self._session.call("GET", f"{path}/cycles?limit={_CYCLES_A_LOOK}")
        newest = self._newest.get(name)
        new = list(takewhile(lambda cycle: cycle != newest and cycle["time"] >= self._began_at, cycles))
        for cycle in reversed(new):
            self._figures.count(name, cycle)
            words = cycle["action"] + (f" ({cycle['error']})" if cycle["error"] else "")
            self._tell(name, words, cycle["time"])
        if task["lastError"] and not new:
            # It did not reach the end of a cycle.
            self._tell(name, task["lastError"])
        self._shown[name], self._newest[name] = shown, cycles[0] if cycles else None

    def _tell(self, name: str, words: str, at_seconds: float | None = None) -> None:
        # A listing that stays as it is gives its other possible price at each floor.
        gist = words.partition(": wanted ")[0]
        if gist != self._words.get(name):
            self._words[name] = gist
            _say(f"{name}: {words}", at_seconds)

    def _start_tasks(self) -> None:
        there = {task["slug"]: task for task in self._session.call("GET", "/api/tasks")}
        for config in _TASKS:
            task = there.get(config["slug"]) or self._session.call("POST", "/api/tasks", config)
            self._session.call("POST", f"/api/tasks/{task['id']}/start")
            _say(f"task {task['id']} {task['slug']}: started: {_in_words(task['config'])}")

    def _list_another(self, ended: list[dict[str, Any]]) -> None:
        """Puts an inscription without a task up for sale: at first a gift of the market, then a bought one."""
        vault = self._session.call("GET", "/api/wallet")["vault"]
        if not ended:
            self._session.give(vault, gifts(vault, _PUPPETS))
        known = {task["inscriptionId"] for task in ended}
        for item in self._session.call("GET", "/api/autolist/wallet/ordinals?refresh=1"):
            inscription, slug = item["id"], item["collectionId"]
            if slug in _LEAST_PRICE and inscription not in known:
                if item["address"] != vault:
                    # Bids buy to the user's own address; the demo user sends the inscription to the vault.
                    self._session.send(inscription, vault)
                self._list(inscription, slug, ended)
                return

    def _list(self, inscription: str, slug: str, ended: list[dict[str, Any]]) -> None:
        body = {
            "inscriptionId": inscription,
            "collectionId": slug,
            "pricePercent": _PRICE_PERCENT,
            "minPriceSats": _LEAST_PRICE[slug],
        }
        task = self._session.call("POST", "/api/autolist", body)
        self._session.call("POST", f"/api/autolist/{task['id']}/start")
        _say(f"{_name(task)}: started: listing at {_PRICE_PERCENT} x floor, minimum {_LEAST_PRICE[slug]:,} sats")
        for sold in ended:
            self._session.call("DELETE", f"/api/autolist/{sold['id']}")


def _in_words(config: dict[str, Any]) -> str:
    """Describes the work of a demo task."""
    low, high = (f"{config[name] * 100:.0f}" for name in ("bidPercentLow", "bidPercentHigh"))
    words = f"{config['bidCount']} bids at {low} to {high} % of the floor, hard cap {config['hardcapSats']:,} sats"
    return f"{words}, outbids rivals" if config["outbidEnabled"] else words


def _name(listing: dict[str, Any]) -> str:
    inscription = listing["inscriptionId"]
    return f"auto-list task {listing['id']} {inscription[:8]}...{inscription[-4:]}"


def _say(words: str, at_seconds: float | None = None) -> None:
    """Prints a line with the local time of day."""
    print(f"{time.strftime('%H:%M:%S', time.localtime(at_seconds))} {words}", flush=True)
