"""The state file, which carries the practice market over a restart; written whole and put in place in one step."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path

from simulator.world import World

log = logging.getLogger(__name__)

# The most of the time that saving may take, so that a large history does not hold up answers.
MAX_SHARE = 0.05


class StateFile:
    """Keeps `world` in the file at `path`. Writes survive the end of the process, not a power cut: it is only play."""

    def __init__(self, path: Path, world: World) -> None:
        self._path = path
        self._world = world
        self._saved_changes = -1
        self._not_before = 0.0

    def load(self) -> bool:
        """Reads the state; returns whether there was one. An unreadable file is put aside as `*.unreadable`."""
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
        """Writes when something changed since the last time; a failure is a line in the log."""
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
