"""The common surroundings of all tasks' keepers: peers, spawner, timing."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from core.settings import Settings
from workers.manager.background import Background
from workers.manager.brakes import Brakes
from workers.manager.rights import Rights
from workers.manager.starts import Absences, StartQueue, WorkerPlaces
from workers.spawning.spawner import Spawner


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds. Together they bound a start (signer, fence, locked) and a stop (signer, fence, term, kill)."""

    signer_s: float = 5.0
    fence_s: float = 20.0  # longer than a write may be on the wire, which is twice markets/http.py's READ_S
    locked_s: float = 10.0  # from the start of a process until it holds its lock
    term_s: float = 5.0  # from SIGTERM to SIGKILL
    kill_s: float = 10.0  # from SIGKILL to an error
    silent_s: float = 120.0  # a worker without a sign of life for this and for three cycles is hung
    first_rest_s: float = 1.0  # after a death or a failed start; it doubles with each
    refused_rest_s: float = 5.0  # after a refused start, for the client to take it back
    sweep_s: float = 1.0
    full_sweep_s: float = 10.0
    files_s: float = 5.0  # between two looks whether the database's files are still there
    fill_look_s: float = 5.0  # between two reads of a bought inscription that is to be listed


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The peers and clocks. `clock_ms` is the wall clock; intervals are measured by the monotonic one."""

    settings: Settings
    spawner: Spawner
    rights: Rights
    brakes: Brakes
    starts: StartQueue
    places: WorkerPlaces
    absences: Absences
    background: Background
    timing: Timing
    rng: random.Random
    clock_ms: Callable[[], int]
