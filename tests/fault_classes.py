"""The effect of each class of a venue's fault: on the task, on the breaker, on the pause of the venue's key.

`tests/markets/contract/test_failures.py` has the table of answers and their classes.
"""

from __future__ import annotations

from typing import NamedTuple

from markets.base import (
    AuthFailed,
    BelowMinimum,
    InsufficientFunds,
    NotFound,
    NotSupported,
    NotUnderstood,
    PriceGrid,
    RateLimited,
    Refused,
    SignInNeeded,
    Unavailable,
    Unknown,
    VenueError,
)
from strategy.reasons import FaultCode


class Effect(NamedTuple):
    """The effect of `error`. No class ends a task, closes an order that is open, or empties a book by itself.

    `backs_off`: a task whose place failed so tries again in a second. `fate`: of the bid that was to be placed.
    """

    error: VenueError
    code: FaultCode
    opens_breaker: bool = False
    pauses: bool = False
    backs_off: bool = False
    fate: str = "refused"

    def __str__(self) -> str:
        return type(self.error).__name__


EFFECTS = (
    Effect(Unavailable("no"), FaultCode.VENUE_UNAVAILABLE, opens_breaker=True, backs_off=True),
    Effect(NotUnderstood("no"), FaultCode.VENUE_NOT_UNDERSTOOD, backs_off=True),
    Effect(RateLimited(None, "no"), FaultCode.VENUE_RATE_LIMITED, pauses=True, backs_off=True),
    Effect(Unknown("no"), FaultCode.VENUE_UNKNOWN, opens_breaker=True, backs_off=True, fate="unknown"),
    Effect(AuthFailed("no"), FaultCode.AUTH_FAILED, backs_off=True),
    Effect(Refused("refused", "no"), FaultCode.VENUE_REFUSED),
    Effect(InsufficientFunds("no"), FaultCode.INSUFFICIENT_FUNDS),
    Effect(PriceGrid("no"), FaultCode.PRICE_GRID),
    Effect(BelowMinimum("no"), FaultCode.BELOW_MINIMUM),
    Effect(NotFound("no"), FaultCode.NOT_FOUND),
    Effect(SignInNeeded("no"), FaultCode.SIGN_IN_NEEDED),
    Effect(NotSupported("no"), FaultCode.NOT_SUPPORTED),
)
