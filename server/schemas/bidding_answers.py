"""The newest cycle and a trait, as the descriptions of auto-list tasks still have them."""

from __future__ import annotations

from server.schemas.answers import Answer, Seconds


class LastCycle(Answer):
    """The newest cycle."""

    time: Seconds
    action: str


class Trait(Answer):
    """One trait of a collection."""

    type: str
    value: str
