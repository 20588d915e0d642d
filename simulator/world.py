"""The whole state of one practice market in memory, its reset, and the file that keeps it over a restart."""

from __future__ import annotations

import json
import logging
import os
import random
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulator.calls import Counts, Faults, Limits
from simulator.crowd import Traders
from simulator.engine import Engine, wall_clock_ms
from simulator.listing import AskTerms
from simulator.poison import Poison
from simulator.scenes import Scenes
from simulator.sessions import Asked, Challenges, Desk, Newest, Step, WalletSessions
from simulator.wallets import PlayWallet
from simulator.wire import Shape

VERSION = 1


class World:
    """One practice market. `clock` gives ms since the epoch, `monotonic` seconds for intervals.

    `seller_fee_ppm`: millionths of a listing's price that Satflow keeps. `scenes`: show the oddities of the seed. After
    `reset`, equal seeds, clocks and steps give equal markets. The state file lacks challenges, drafts, faults, poison,
    chosen scenes, request counts and buckets. The play wallet survives a reset.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        background: bool = False,
        clock: Callable[[], int] = wall_clock_ms,
        monotonic: Callable[[], float] = time.monotonic,
        seller_fee_ppm: int = 0,
        scenes: bool = False,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._seller_fee_ppm = seller_fee_ppm
        self._has_scenes = scenes
        self._clock = clock
        self._monotonic = monotonic
        self._started_with = background
        self._changes_before = 0
        self.play_wallet = PlayWallet(random_bytes)
        self._start(seed, background=background)
        if background:
            self.traders.open_markets()

    def reset(self, seed: int, *, background: bool) -> None:
        self._changes_before = self.changes + 1
        self._start(seed, background=background)
        if background:
            self.traders.open_markets()

    def _start(self, seed: int, *, background: bool, salt: str = "") -> None:
        self.seed = seed
        # The form of the answers of venues that have two.
        self.shape: Shape = "documented" if seed % 2 else "seen"
        self.background = background
        self.engine = Engine(self._clock, random.Random(f"engine {seed}{salt}"))
        self.engine.seller_fee_ppm = self._seller_fee_ppm
        self.challenges = Challenges(self._clock)
        self.ordnet = Desk(self._clock)
        self.limits = Limits(self._clock, self._monotonic)
        self.faults = Faults(random.Random(f"faults {seed}{salt}"))
        self.scenes = Scenes(seed, self._clock, drawn=self._has_scenes)
        self.counts = Counts()
        self.poison: Poison | None = None
        # UniSat's drafts, one for each step of an auction, and the terms of placed auctions.
        self.drafts: Newest[tuple[str, Step], Asked] = Newest()
        self.placed: Newest[str, AskTerms] = Newest()
        self.protected: dict[str, AskTerms] = {}  # drafts of protected listings by their digest
        self.wallet_sessions = WalletSessions(self._clock, f"{seed}")
        self.traders = Traders(self.engine, random.Random(f"traders {seed}{salt}"))

    @property
    def changes(self) -> int:
        """Grows with every change of the state file's contents, also over a reset."""
        return self._changes_before + self.engine.changes

    def step(self) -> None:
        """Makes one move of the background traders, if there are any."""
        self.engine.expire()
        if self.background:
            self.traders.step()

    def dump(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "seed": self.seed,
            "background": self.background,
            "startedWith": self._started_with,
            "engine": self.engine.dump(),
            "limits": self.limits.dump(),
            "limitsSet": self.limits.rows(),
            "traders": self.traders.dump(),
            "playWallet": self.play_wallet.dump(),
        }

    def load(self, row: dict[str, Any]) -> None:
        """Continues from a dump; traders trade as before unless this start's settings differ.

        Raises KeyError, TypeError, ValueError, ArithmeticError or AttributeError if `row` is not such a dump.
        """
        if row["version"] != VERSION:
            raise ValueError("the state is of another version")
        same = row["startedWith"] == self._started_with
        background = bool(row["background"]) if same else self._started_with
        # The salt is the number of orders so far, so that random numbers, and thus order ids, do not repeat.
        self._start(int(row["seed"]), background=background, salt=f" after {row['engine']['sequence']}")
        self.engine.load(row["engine"])
        given = row["limitsSet"]
        self.limits.change(given["perSecond"], given["burst"], given["monthly"], given.get("daily", 0))
        self.limits.load(row["limits"])
        self.traders.load(row["traders"])
        self.play_wallet.load(row["playWallet"])
        if background:
            self.traders.open_markets()


log = logging.getLogger(__name__)

# Maximum share of the time spent saving, so that a large history does not delay answers.
MAX_SHARE = 0.05


class StateFile:
    """Keeps `world` in the file at `path`. Play data may be lost in a power cut, but not when the process ends."""

    def __init__(self, path: Path, world: World) -> None:
        self._path = path
        self._world = world
        self._saved_changes = -1
        self._not_before = 0.0

    def load(self) -> bool:
        """Reads the state; returns True if there was one. An unreadable file is renamed to `*.unreadable`."""
        try:
            self._world.load(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return False
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            aside = self._path.with_name(self._path.name + ".unreadable")
            log.warning("state file %s cannot be read (%s), put aside as %s", self._path, error, aside.name)
            self._path.replace(aside)
            self._world.reset(self._world.seed, background=self._world.background)
            return False
        self._saved_changes = self._world.changes
        return True

    def save_if_changed(self) -> None:
        """Writes the state if it changed since the last time; logs a failure."""
        if self._world.changes == self._saved_changes or time.monotonic() < self._not_before:
            return
        self.save()

    def save(self) -> None:
        started = time.monotonic()
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(self._world.dump(), separators=(",", ":")))
            temporary.replace(self._path)
            self._saved_changes = self._world.changes
        except OSError as error:
            log.error("failed to write state file %s: %s", self._path, error)
        self._not_before = time.monotonic() + (time.monotonic() - started) / MAX_SHARE
