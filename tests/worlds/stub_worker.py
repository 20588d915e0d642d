"""A worker with a stub for its job: what it does is in its task's slug, or in the name of its inscription.

Each cycle is a line in DATA_DIR/acts.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from core.settings import Settings
from models.database.base import transaction
from models.ledger import listings, orders
from models.ledger.states import CANCELLED, CANCELLING, CLOSED
from models.tasks import cycles, tasks
from models.tasks.tasks import LISTING
from workers.context import BadConfig, BadCredentials, Context, Job
from workers.process import main

DATA_DIR = Path(os.environ["BIDKEEPER_DATA_DIR"])


class Steady:
    """A job whose every cycle finishes."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def cycle(self) -> float | None:
        context = self.context
        with (DATA_DIR / "acts").open("a") as acts:
            acts.write(f"{context.task_id} {os.getpid()}\n")
        cycles.record_cycle(
            context.task_id, context.token, time_ms=1, action="acted", error=None, detail="{}", memory="{}"
        )
        return 0.05


class Dies(Steady):
    def cycle(self) -> float | None:
        os._exit(1)


class DiesAfterACycle(Steady):
    def cycle(self) -> float | None:
        super().cycle()
        os._exit(1)


class Fails(Steady):
    def cycle(self) -> float | None:
        raise RuntimeError("no luck")


class IsMisconfigured(Steady):
    def cycle(self) -> float | None:
        raise BadConfig("the config is nonsense")


class IsUnwelcome(Steady):
    def cycle(self) -> float | None:
        raise BadCredentials("the key is not accepted")


class Deaf(Steady):
    """Does not end when it is asked to."""

    def cycle(self) -> float | None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return super().cycle()


class Stands(Steady):
    """Once DATA_DIR/stand is there it is stopped within a transaction."""

    def cycle(self) -> float | None:
        if (DATA_DIR / "stand").exists():
            with transaction():
                (DATA_DIR / "stand").unlink()
                os.kill(os.getpid(), signal.SIGSTOP)
        return super().cycle()


class Hoards(Steady):
    """Once DATA_DIR/hoard is there it keeps everybody else from writing to the database, and does not listen."""

    def cycle(self) -> float | None:
        if (DATA_DIR / "hoard").exists():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with transaction():
                (DATA_DIR / "hoarding").touch()
                time.sleep(3600)
        return super().cycle()


class Rolls(Steady):
    """Writes what chance gives it to DATA_DIR/rolls."""

    def cycle(self) -> float | None:
        with (DATA_DIR / "rolls").open("a") as rolls:
            rolls.write(f"{random.random()} {uuid.uuid4()} {random.Random().random()}\n")
        return 60.0


class CallsOut(Steady):
    """Tries to open sockets of every family, and writes those that could be opened to DATA_DIR/families."""

    def cycle(self) -> float | None:
        could = []
        for family in range(64):
            try:
                socket.socket(family, socket.SOCK_DGRAM).close()
            except PermissionError:
                continue
            except OSError:
                pass
            could.append(family)
        (DATA_DIR / "families").write_text(" ".join(map(str, could)))
        return 60.0


class Stuck(Steady):
    """Gives no sign of life after its first cycle."""

    def cycle(self) -> float | None:
        super().cycle()
        time.sleep(3600)
        return None


class Drain(Steady):
    def cycle(self) -> float | None:
        for order in orders.open_orders(self.context.task_id):
            orders.move(order, CLOSED, 1, reason="cancelled")
        return None


class ListingDrain(Steady):
    def cycle(self) -> float | None:
        listing = listings.open_listing(self.context.task_id)
        assert listing is not None
        listings.move(listing, CANCELLING, 1)
        listings.move(listing, CLOSED, 1, reason=CANCELLED)
        return None


class Sells(Steady):
    """Finds that there is nothing left to do."""

    def cycle(self) -> float | None:
        super().cycle()
        tasks.stop_wanting(self.context.task_id, "sold")
        return None


class LazyDrain(Steady):
    def cycle(self) -> float | None:
        return 0.1


JOBS = {
    "dies": Dies,
    "dies-after-a-cycle": DiesAfterACycle,
    "fails": Fails,
    "is-misconfigured": IsMisconfigured,
    "is-unwelcome": IsUnwelcome,
    "deaf": Deaf,
    "hoards": Hoards,
    "stands": Stands,
    "rolls": Rolls,
    "stuck": Stuck,
    "sells": Sells,
    "calls-out": CallsOut,
}


def make_job(kind: str, context: Context) -> Job:
    outline = tasks.outline(context.task_id)
    assert outline is not None
    slug = outline.subject.partition(":")[0]
    if kind == "drain" and slug.startswith("lazy"):
        return LazyDrain(context)
    if kind == "drain":
        return ListingDrain(context) if outline.kind == LISTING else Drain(context)
    assert kind == ("lister" if outline.kind == LISTING else "bidder")
    return JOBS.get(slug, Steady)(context)


def run(argv: Sequence[str], settings: Settings | None = None) -> int:
    """Lives a worker's whole life."""
    if (DATA_DIR / "slow-to-start").exists():
        time.sleep(3600)
    return main.run(argv, make_job, settings)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
