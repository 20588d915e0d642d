"""A frozen copy of the market, which a stale read sees."""

from __future__ import annotations

import random

from simulator.engine import Engine


def frozen(engine: Engine) -> Engine:
    """Returns a copy of `engine` in which time stands still. Its history is empty."""
    taken_ms = engine.now_ms()
    copy = Engine(lambda: taken_ms, random.Random(0))
    # Through a dump, so that the copy shares no object with the original.
    copy.load(engine.dump(with_history=False))
    return copy
