"""The state file: what survives a restart of the practice market, written whole and put in place at once."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path

from simulator.world import World

log = logging.getLogger(__name__)

# A save may take this share of the time at most, so that a large history does not hold up answers.
MAX_SHARE = 0.05


class StateFile:
    """Keeps `world` in the file at `path`. Writes survive the end of the process, not a loss of power: it is play."""

    def __init__(self, path: Path, world: World) -> None:
        self._path = path
        self._world = world
        self._saved_changes = -1
        self._not_before = 0.0

    def load(self) -> bool:
        """Whether a state was read. One that cannot be read is put aside as `*.unreadable`."""
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
        """Writes when something changed since the last time; failing to write is a line in the log."""
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
