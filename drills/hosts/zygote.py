"""A manager's zygote in a drill. On wish its workers stop in the middle of a bid, as a machine may stop them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from drills.hosts.program import REFUSED, note
from workers import context

HOLD = "hold"  # while this file is in the data directory, workers stop themselves at their next point
HELD, RESUMED = "held", "resumed"  # the files with a line for each of these
# Before the ledger, the signer, the ledger again and the gateway are asked.
POINTS = ("after_plan", "after_reserve", "after_sign", "before_submit")
_crashpoint = context.crashpoint


def stop_at(name: str) -> None:
    """Stops this process at its own one of the points, until somebody lets it go on."""
    _crashpoint(name)
    if name != POINTS[os.getpid() % len(POINTS)] or not (Path(os.environ["BIDKEEPER_DATA_DIR"]) / HOLD).exists():
        return
    note(HELD, f"{os.getpid()} {name}")
    os.kill(os.getpid(), signal.SIGSTOP)
    note(RESUMED, f"{os.getpid()} {name}")


def _plant() -> None:
    context.crashpoint = stop_at  # before the others import it
    from models.ledger import orders, states

    for name in ("reserve", "move"):
        wrapped = getattr(orders, name)

        def noting(*arguments: object, wrapped: object = wrapped, **named: object) -> object:
            try:
                return wrapped(*arguments, **named)  # type: ignore[operator]
            except (orders.NotAllowedToPlace, states.IllegalMove):
                note(REFUSED, "ledger")
                raise

        setattr(orders, name, noting)


if __name__ == "__main__":
    _plant()
    from workers.spawning.zygote import main

    main(sys.argv[1:])
