"""Runs of the machine, and the examples that found planted bugs once.

`python -m drills.machine.running` searches for them anew, freely, and notes them in findings.json: when the rules of
the machine have changed, so that a noted example is another one. With names of bugs as arguments it does so for these
alone.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import sys
import textwrap
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.database import ExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from drills.machine.bugs import BUGS
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


_FILE = Path(__file__).with_name("findings.json")
# Several seeds: with one alone what needs some luck may stay hidden for long.
_SEEDS, _EXAMPLES, _STEPS = 4, 40, 50
# A quarter of a minute and more each, some of them several.
RARE = (
    "adoption skipped",
    "exposure counted late",
    "a shared budget is not counted",
    "forgotten at a restart",
    "a stop that is only a flag",
    "the cap is not last",
    "made first, past maxFills",
    "a batch is cancelled as one",
)


class Findings(ExampleDatabase):
    """Hypothesis' database of one machine: `known` is tried before anything else, `seen` is what was found."""

    def __init__(self, known: bytes | None = None) -> None:
        super().__init__()
        self._known = known
        self.seen: list[bytes] = []

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Gives what is known, for the key of the primary examples: those of others are longer."""
        if self._known is not None and not key.endswith((b".secondary", b".pareto")):
            yield self._known

    def save(self, key: bytes, value: bytes) -> None:
        self.seen.append(bytes(value))

    def delete(self, key: bytes, value: bytes) -> None:
        """Forgets what is known and found nothing."""
        if value == self._known:
            self._known = None

    def is_known(self) -> bool:
        """Tells whether what was known has found something, as far as it was tried."""
        return self._known is not None


def noted(bug: str) -> Findings:
    """Returns what is noted of a bug."""
    lines = json.loads(_FILE.read_text()).get(bug) if _FILE.exists() else None
    return Findings(zlib.decompress(base64.b85decode("".join(lines))) if lines else None)


def find(bug: str, findings: Findings) -> None:
    """Plants a bug and runs machines: with what is known of it first, then freely. Raises AssertionError or Failed when
    none of the promises that it is to break is found broken.
    """
    with pytest.MonkeyPatch.context() as patch, pytest.raises(AssertionError) as found:
        BUGS[bug][0](patch)
        for nth in range(_SEEDS):
            examples = 3 * _EXAMPLES if bug in RARE else _EXAMPLES
            run(Machine, examples, _STEPS, shrinks=False, chosen_seed=SEED + nth, database=findings)
    assert any(f"{name}: " in str(found.value) for name in BUGS[bug][1]), found.value


def _note(bug: str) -> None:
    findings = Findings()
    find(bug, findings)
    text = base64.b85encode(zlib.compress(min(findings.seen, key=len), 9)).decode()
    kept = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    kept[bug] = textwrap.wrap(text, 100)
    _FILE.write_text(json.dumps({name: kept[name] for name in BUGS if name in kept}, indent=1) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or BUGS:
        _note(name)
        print(f"{name}: noted", flush=True)
