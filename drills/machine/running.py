"""The one way in which every test runs a machine, with more or less of it."""

from __future__ import annotations

import logging
import os
from typing import TypeVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.database import ExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from drills.machine.machine import Machine
from drills.machine.processes import Processes

SEED = int(os.environ.get("BIDKEEPER_MODEL_SEED", "1"))
AnyMachine = TypeVar("AnyMachine", Machine, Processes)


def run(
    machine: type[AnyMachine],
    examples: int,
    steps: int,
    *,
    shrinks: bool = True,
    chosen_seed: int = SEED,
    database: ExampleDatabase | None = None,
) -> type[AnyMachine]:
    """Runs it with the seed, what `database` has first, and returns it with its counts. Raises AssertionError for what
    does not hold.
    """
    machine.start_counting()
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=database,
        phases=[Phase.reuse, Phase.generate, Phase.shrink] if shrinks else [Phase.reuse, Phase.generate],
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    logging.disable(logging.WARNING)  # what is expected here, thousands of times
    try:
        run_state_machine_as_test(seed(chosen_seed)(machine), settings=chosen)
    finally:
        logging.disable(logging.NOTSET)
    return machine
