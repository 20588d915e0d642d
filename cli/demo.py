"""`bidkeeper demo`: runs `up` on the practice marketplace, with a demo user whose tasks trade while you watch.

The demo user is an ordinary user, the practice market's play wallet, and uses the service over HTTP only. The page
signs every visitor in as the same user, by one click.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cli import api
from cli.api import Unauthorized
from cli.up import Installation
from core.errors import BidkeeperError, SettingsError
from core.settings import Settings
from simulator.wallets import Kind, kind_of

_CALLS = re.compile(r'^bidkeeper_venue_calls_total\{venue="([^"]+)",operation="([^"]+)",outcome="[^"]+"\} (\d+)$', re.M)
_PATIENCE = re.compile(r"patience x ([\d.]+)")
_MOST_OPERATIONS = 6


class TaskFigures(Struct):
    """One task's results. `still` counts the cycles that changed nothing, `patience` is the highest value it reached.

    A listing (`is_listing`) counts as placed when it is listed or repriced, and its sale counts as a fill.
    """

    is_listing: bool = False
    cycles: int = 0
    still: int = 0
    places: int = 0
    cancels: int = 0
    fills: int = 0
    errors: int = 0
    patience: Decimal = Decimal(1)

    def count(self, cycle: dict[str, Any]) -> None:
        """Adds a cycle of a bidding or auto-list task, in the API's form."""
        detail = cycle["detail"] or {}
        places = sum(rung.get("fate") == "placed" for rung in detail.get("rungs", ()))
        places += detail.get("fate") == "listed"
        is_sold = (detail.get("listing") or {}).get("closeReason") == "sold"
        cancels, fills = len(detail.get("cancelled", ())), len(detail.get("filled", ())) + is_sold
        self.cycles += 1
        self.still += not (places or cancels or fills)
        self.places += places
        self.cancels += cancels
        self.fills += fills
        self.errors += cycle["error"] is not None
        self.patience = max([self.patience, *map(Decimal, _PATIENCE.findall(cycle["action"]))])

    def __str__(self) -> str:
        began = f"{self.cycles} cycles, {self.still} without changes;"
        if self.is_listing:
            return f"{began} listed or repriced {self.places}, sold {self.fills}, errors {self.errors}"
        return (
            f"{began} placed {self.places}, cancelled {self.cancels}, filled {self.fills}, errors {self.errors}, "
            f"patience x {self.patience}"
        )


class Figures:
    """The figures of every task of a run, by its printed name."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskFigures] = {}

    def count(self, name: str, cycle: dict[str, Any]) -> None:
        self._tasks.setdefault(name, TaskFigures(is_listing=name.startswith("auto"))).count(cycle)

    def lines(self, seconds: float, metrics: str | None) -> Iterator[str]:
        """Yields a headline, a line a task, and the calls unless `metrics` is None; nothing before the first cycle."""
        if not self._tasks:
            return
        yield f"results after {in_words(seconds)}:"
        for name, figures in sorted(self._tasks.items(), key=lambda item: (item[1].is_listing, item[0])):
            yield f"  {name}: {figures}"
        if metrics is not None:
            yield f"  calls to marketplaces and data sources: {calls(metrics)}"


def calls(metrics: str) -> str:
    """Returns the number of calls since the gateway's start, in total and by operation, the most frequent first."""
    counts = Counter[str]()
    for _, operation, count in _CALLS.findall(metrics):
        counts[operation] += int(count)
    most = counts.most_common(_MOST_OPERATIONS)
    counted = [f"{count:,} {operation}" for operation, count in most]
    if rest := counts.total() - sum(count for _, count in most):
        counted.append(f"{rest:,} other")
    return f"{counts.total():,} ({', '.join(counted)})"


def in_words(seconds: float) -> str:
    """Writes a duration, for example `1 h 5 min`."""
    hours, minutes = divmod(round(seconds) // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {round(seconds) % 60} s"


# Mostly pictures, and one of each other kind of inscription; of two collections in turn.
_GIFT_KINDS: tuple[Kind, ...] = ("picture", "picture", "picture", "svg", "text", "picture", "large", "picture")


def gifts(vault: str, collection: str) -> list[dict[str, str]]:
    """Returns the gifts to a vault, the same at each call; the first is of `collection`."""
    slugs = itertools.cycle(("quantum-cats-demo", "nodemonkes-demo"))
    wanted: list[tuple[str, Kind]] = [(collection, "picture"), *zip(slugs, _GIFT_KINDS, strict=False)]
    found = []
    for at, (slug, kind) in enumerate(wanted):
        ids = (f"{hashlib.sha256(f'{vault} {at} {number}'.encode()).hexdigest()}i0" for number in itertools.count())
        found.append({"id": next(each for each in ids if kind_of(each) == kind), "collection": slug})
    return found


class Session:
    """Calls to one installation and its practice marketplace."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._token = ""

    @property
    def is_signed_in(self) -> bool:
        return bool(self._token)

    def sign_in(self) -> None:
        """Signs in, and prints the page's address and the user's token. Raises as `call`."""
        who = self._market("GET", "/sim/play-wallet")["address"]
        challenge = self.call("POST", "/api/auth/challenge", {"address": who})
        signed = self._market("POST", "/sim/play-wallet/sign", {"message": challenge["message"]})
        proof = {"challengeId": challenge["challengeId"], "address": who, "signature": signed["signature"]}
        self._token = str(self.call("POST", "/api/auth/verify", proof)["token"])
        print(f"signed in as {who}; see its tasks on the page, or call the API with its token:", flush=True)
        print(f"  {page_line(self._settings)}", flush=True)
        print(f"  export TOKEN={self._token}", flush=True)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the service's answer.

        Raises NoAnswer without an answer, Unauthorized after the session's end, and BidkeeperError for other errors.
        """
        try:
            return api.ask_json("server", self._settings.server_at(), method, path, body, token=self._token)
        except api.Unauthorized:
            self._token = ""
            raise

    def metrics(self) -> str:
        """Returns the installation's metrics as text, within 2 s because the demo may be ending; raises as `call`."""
        return api.ask("server", self._settings.server_at(), "GET", "/metrics", patience_s=2)

    def give(self, vault: str, gifts: list[dict[str, str]]) -> None:
        """Has the practice market put inscriptions into a vault and remove any others."""
        self._market("PUT", f"/sim/wallets/{vault}", {"inscriptions": gifts})

    def sell_into(self, bid: dict[str, Any]) -> None:
        """Lets a trader of the practice market sell an inscription into a bid."""
        self._market("POST", "/sim/sell", {"slug": bid["slug"], "bidId": bid["id"], "networkFee": _FEE_SATS})

    def send(self, inscription: str, address: str) -> None:
        """Sends an inscription of the demo user to another address."""
        self._market("POST", "/sim/move", {"inscriptionId": inscription, "address": address})

    def _market(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the practice market's answer; raises as `call`."""
        return api.ask_json("practice market", self._settings.simulator_at, method, path, body)


def page_line(settings: Settings) -> str:
    """Returns the line with the page's address."""
    hint = "click Play wallet to sign in" if settings.has_play_wallet else "sign in with your wallet"
    return f"Bidkeeper's page: {settings.server_at().url}/  ({hint})"


_PUPPETS, _NINJAS = "bitcoin-puppets-demo", "pizza-ninjas-demo"
# A ladder on a collection, a ladder on a rune, and a pair of bids that outbids rivals. Prices follow the floor within
# 4 %: at 1 % the top bid would move every minute or two, and each move signs one more bid for an hour. The pair moves
# with its rivals, about twenty times an hour, so each of its bids is signed for only 20 minutes.
_TASKS: tuple[dict[str, Any], ...] = (
    {"slug": _PUPPETS, "bidCount": 4, "hardcapSats": 3_500_000, "bidExpiryMinutes": 60}
    | {"bidPercentLow": 0.5, "bidPercentHigh": 0.9},
    {"slug": "PRACTICE•RUNE•TOKEN", "type": "rune", "bidCount": 3, "hardcapSats": 600_000, "bidExpiryMinutes": 60}
    | {"bidPercentLow": 0.7, "bidPercentHigh": 0.95, "quantity": 100_000},
    {"slug": _NINJAS, "bidCount": 2, "hardcapSats": 1_000_000, "bidExpiryMinutes": 20}
    | {"bidPercentLow": 0.6, "bidPercentHigh": 0.88, "outbidEnabled": True, "outbidAmount": 5_000},
)
# The first purchase of an item is made soon, for this network fee: then the first sale is of something that was bought.
_FIRST_S, _FEE_SATS = 30.0, 600
# Bought inscriptions are listed one at a time, at this multiple of the floor, and not below these prices (sats).
_PRICE_PERCENT = 1.15
_LEAST_PRICE = {_PUPPETS: 1_500_000, _NINJAS: 400_000}

_READ_EVERY_S = 1.0
_FIGURES_EVERY_S = 3600.0
_CYCLES_A_READ = 10
_LIST_EVERY_S = 15.0


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds nothing: everything is a setting."""


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Runs `up`, with the demo's own defaults for settings that are not given."""
    if settings.market != "simulator":
        raise SettingsError(["BIDKEEPER_MARKET must be simulator: the demo never trades on a real marketplace"])
    # The demo is for visitors, so everyone may use the play wallet unless the setting says otherwise.
    has_play_wallet = not os.environ.get("BIDKEEPER_PLAY_WALLET") or settings.play_wallet
    environment = {
        "BIDKEEPER_PLAY_WALLET": "true" if has_play_wallet else "false",
        "BIDKEEPER_SIMULATOR_BACKGROUND": os.environ.get("BIDKEEPER_SIMULATOR_BACKGROUND") or "true",
        "BIDKEEPER_SIMULATOR_SCENES": os.environ.get("BIDKEEPER_SIMULATOR_SCENES") or "true",
        "BIDKEEPER_WHITELIST": os.environ.get("BIDKEEPER_WHITELIST") or "*",
    }
    settings = replace(settings, whitelist=frozenset({"*"}), play_wallet=has_play_wallet)
    print(page_line(settings), flush=True)
    print("starting on the practice marketplace, with play money; Ctrl-C stops everything", flush=True)
    print("each task prints a line when it does something new; the page shows the reason for every bid", flush=True)
    demo = Demo(Session(settings))
    return Installation(settings, environment).run(demo.step, demo.print_figures)


class Demo:
    """Starts the demo user's tasks, then prints each cycle's result, and repeated results only once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._figures = Figures()
        self._began = self._figures_printed = time.monotonic()
        self._began_at = int(time.time())
        self._read_at = self._listed = -math.inf
        self._is_started = self._has_given = self._has_bought = False
        self._trouble = ""
        self._ids: dict[str, int] = {}  # the demo's own tasks, by slug
        self._shown: dict[str, Any] = {}
        self._newest: dict[str, Any] = {}
        self._words: dict[str, str] = {}

    def step(self) -> None:
        """Reads the tasks and prints their new cycles, at most once a second; a failed read is retried."""
        now = time.monotonic()
        if now - self._read_at < _READ_EVERY_S:
            return
        self._read_at = now
        try:
            self._read_tasks()
            self._trouble = ""
        except Unauthorized:
            pass
        except BidkeeperError as error:
            if self._trouble != str(error):
                self._trouble = str(error)
                _say(f"retrying every second: {error}")
        if now - self._figures_printed > _FIGURES_EVERY_S:
            self._figures_printed = now
            self.print_figures()

    def print_figures(self) -> None:
        """Prints the figures of the run so far, if there are any."""
        try:
            metrics = self._session.metrics()
        except BidkeeperError:
            metrics = None
        for line in self._figures.lines(time.monotonic() - self._began, metrics):
            print(line, flush=True)

    def _read_tasks(self) -> None:
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
        """Counts and prints the cycles since the last read, without those of an earlier demo."""
        shown = (task["lastCycle"], task["lastError"])
        if shown == self._shown.get(name, (None, None)):
            return
        cycles = self._session.call("GET", f"{path}/cycles?limit={_CYCLES_A_READ}")
        newest = self._newest.get(name)
        new = list(itertools.takewhile(lambda cycle: cycle != newest and cycle["time"] >= self._began_at, cycles))
        for cycle in reversed(new):
            self._figures.count(name, cycle)
            words = cycle["action"] + (f" ({cycle['error']})" if cycle["error"] else "")
            self._print_if_new(name, words, cycle["time"])
        if task["lastError"] and not new:
            # The task failed before its cycle ended.
            self._print_if_new(name, task["lastError"])
        self._shown[name], self._newest[name] = shown, cycles[0] if cycles else None

    def _print_if_new(self, name: str, words: str, at_seconds: float | None = None) -> None:
        # An unchanged listing reports another wanted price at each floor, which is not news.
        gist = words.partition(": wanted ")[0]
        if gist != self._words.get(name):
            self._words[name] = gist
            _say(f"{name}: {words}", at_seconds)

    def _start_tasks(self) -> None:
        there = {task["slug"]: task for task in self._session.call("GET", "/api/tasks")}
        for config in _TASKS:
            task = there.get(config["slug"]) or self._session.call(
                "POST", "/api/tasks", config | {"updateTolerance": 0.04}
            )
            self._ids[config["slug"]] = task["id"]
            self._session.call("POST", f"/api/tasks/{task['id']}/start")
            _say(f"task {task['id']} {task['slug']}: started: {_in_words(task['config'])}")

    def _list_another(self, ended: list[dict[str, Any]]) -> None:
        """Puts a bought inscription without a task up for sale; has the market sell one if none was bought yet."""
        vault = self._session.call("GET", "/api/wallet")["vault"]
        found = self._session.call("GET", "/api/fills?side=buy&limit=500")["fills"]
        bought = {fill["inscriptionId"] for fill in found if fill["slug"] in _LEAST_PRICE}
        # Not together with the first sale of the rune: then the balance shows the fee of neither.
        if not bought and (found or time.monotonic() - self._began >= _FIRST_S):
            self._buy_first(vault)
        known = {task["inscriptionId"] for task in ended}
        for item in self._session.call("GET", "/api/autolist/wallet/ordinals?refresh=1"):
            inscription, slug = item["id"], item["collectionId"]
            if inscription in bought and inscription not in known:
                if item["address"] != vault:
                    # Bids deliver to the user's own address, so the demo user sends the inscription to the vault.
                    self._session.send(inscription, vault)
                self._list(inscription, slug, ended)
                return

    def _buy_first(self, vault: str) -> None:
        """Gives the user something to look at, then has the highest bid on the puppets filled once it is there."""
        if not self._has_given:
            self._session.give(vault, gifts(vault, _PUPPETS))
            self._has_given = True
        bids = self._session.call("GET", f"/api/tasks/{self._ids[_PUPPETS]}/bids")
        if bids and not self._has_bought:
            self._has_bought = True  # once: the fill is known some seconds later
            self._session.sell_into(max(bids, key=lambda bid: bid["price"]))

    def _list(self, inscription: str, slug: str, ended: list[dict[str, Any]]) -> None:
        price = {"pricePercent": _PRICE_PERCENT, "minPriceSats": _LEAST_PRICE[slug]}
        body = {"inscriptionId": inscription, "collectionId": slug} | price
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
