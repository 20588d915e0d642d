"""The demo markets, and the state of each one's floor."""

from __future__ import annotations

import random
from dataclasses import astuple, dataclass
from typing import Any

from simulator.orders import Kind

# The range of a floor, as shares of its start.
LOWEST, HIGHEST = 0.6, 1.6
# The other times are in steps of about a second. Between two moves of one market's floor.
DRIFT_EVERY = (20, 40)
# Between two times that a rival passes the leader.
OUTBID_EVERY = (300, 900)
# With orders of clients, before the cheap listings are swept.
SWEEP_EVERY = (3_600, 9_000)
# With a client's bid in the lead, before it is sold into: soon at first, then rarely enough for play money to last.
FIRST_SALE = (150, 400)
SALE_EVERY = (1_800, 5_400)
# With a cheap listing of a client, before it is bought.
BUY_EVERY = (900, 2_700)


@dataclass(frozen=True, slots=True)
class Demo:
    """One demo market. `start` is the first floor: sats, for runes sats per whole token.

    `to_sweep` and `to_sale` are the steps before its first sweep and its first sale to a client, 0 for the usual ones.
    """

    kind: Kind
    slug: str
    name: str
    start: float
    divisibility: int = 0
    to_sweep: int = 0
    to_sale: int = 0


# A newcomer's first two minutes come first: a floor that leaps, and a bid that is filled.
DEMOS = (
    Demo("ordinals", "bitcoin-puppets-demo", "Bitcoin Puppets (practice)", 2_400_000, to_sweep=30),
    Demo("ordinals", "quantum-cats-demo", "Quantum Cats (practice)", 9_500_000),
    Demo("ordinals", "nodemonkes-demo", "NodeMonkes (practice)", 5_200_000),
    Demo("runes", "PRACTICE•RUNE•TOKEN", "PRACTICE•RUNE•TOKEN", 2.75, 2, to_sale=20),
    Demo("ordinals", "pizza-ninjas-demo", "Pizza Ninjas (practice)", 640_000),
)


@dataclass(slots=True)
class Course:
    """The state of a demo market: its floor, and the steps until it drifts, is swept, and sees a sale to a client.

    `settle_at` is the level that the floor comes back to after a sweep, 0 when it need not. `to_sweep` counts only the
    steps in which clients have orders, `to_sale` those in which a bid of theirs leads, and `to_buy` those in which a
    listing of theirs is cheap: late clients see the same as the first.
    """

    level: float
    to_drift: int
    to_sweep: int = SWEEP_EVERY[0]
    to_sale: int = SALE_EVERY[0]
    settle_at: float = 0.0
    to_buy: int = BUY_EVERY[0]
    to_outbid: int = OUTBID_EVERY[0]

    def dump(self) -> list[float]:
        return list(astuple(self))


def new_course(demo: Demo, rng: random.Random) -> Course:
    """Makes the first course of `demo`."""
    drift, sweep, sale, outbid = (rng.randint(*span) for span in (DRIFT_EVERY, SWEEP_EVERY, FIRST_SALE, OUTBID_EVERY))
    return Course(demo.start, drift, demo.to_sweep or sweep, demo.to_sale or sale, to_outbid=outbid)


def load_course(row: list[Any]) -> Course:
    """Reads a course that `Course.dump` wrote, perhaps an older version with fewer fields."""
    read = (float, int, int, int, float, int, int)
    return Course(*(as_number(value) for as_number, value in zip(read, row, strict=False)))
