"""The demo markets, and where the floor of each one stands."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from simulator.orders import Kind

# How far a floor may go from where it began.
LOWEST, HIGHEST = 0.6, 1.6
# Steps between two moves of one market's floor; a step is about a second.
DRIFT_EVERY = (5, 9)
# Steps between two sweeps of the cheap listings.
SWEEP_EVERY = (240, 600)
# Steps between two sales into a bid of a client: seldom enough that a client's money lasts an evening.
SALE_EVERY = (150, 400)
# Steps for which some listing of a client is cheap before one is bought.
BUY_EVERY = (150, 400)


@dataclass(frozen=True, slots=True)
class Demo:
    """One demo market. `start` is the first floor: sats, for runes sats per whole token."""

    kind: Kind
    slug: str
    name: str
    start: float
    divisibility: int = 0


DEMOS = (
    Demo("ordinals", "bitcoin-puppets-demo", "Bitcoin Puppets (practice)", 2_400_000),
    Demo("ordinals", "quantum-cats-demo", "Quantum Cats (practice)", 9_500_000),
    Demo("ordinals", "nodemonkes-demo", "NodeMonkes (practice)", 5_200_000),
    Demo("runes", "PRACTICE•RUNE•TOKEN", "PRACTICE•RUNE•TOKEN", 2.75, 2),
)


@dataclass(slots=True)
class Course:
    """Where a demo market's floor stands, and in how many steps it drifts, is swept, and sees a sale to a client.

    `settle_at` is the level that the floor comes back to after a sweep, 0 when it need not. `to_buy` counts the steps
    until a client's listing is bought, but only those in which one is cheap.
    """

    level: float
    to_drift: int
    to_sweep: int = SWEEP_EVERY[0]
    to_sale: int = SALE_EVERY[0]
    settle_at: float = 0.0
    to_buy: int = BUY_EVERY[0]

    def tick(self) -> None:
        """One step has passed."""
        self.to_drift -= 1
        self.to_sweep -= 1
        self.to_sale -= 1

    def dump(self) -> list[float]:
        return list(astuple(self))


def load_course(row: list[Any]) -> Course:
    """The course that `Course.dump` wrote, or an older one, which has fewer of the fields."""
    level, *steps = row
    course = Course(float(level), *(int(each) for each in steps[:3]))
    if len(steps) > 3:
        course.settle_at = float(steps[3])
    if len(steps) > 4:
        course.to_buy = int(steps[4])
    return course
