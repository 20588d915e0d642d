"""The errand that a call to a venue is on: whose it is, and what for."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from msgspec import UnsetType

from markets.verbs import Purpose, Request


@dataclass(frozen=True, slots=True)
class Errand:
    """The user (a number; None = nobody's) and the purpose of a request.

    `task`: a task's work. `look`: a person wants to see something, which can always wait. `act`: a person starts or
    deletes something; it is counted like a look, and refused only long after looks are. `withdraw`: a person takes
    their own out, which is counted by itself, and which a quota refuses as late as it can. `brake`: bids are taken
    off the market, which goes before everything else.
    """

    user: int | None = None
    purpose: Literal["task"] | Purpose = "task"

    def may_share(self, other: Errand) -> bool:
        """Tells whether a request of this errand may wait for a reading that `other` began.

        A look's reading may be refused where a task's is not, so a task never depends on one, and no user on another's.
        A brake's reading goes first, so it waits for no task's.
        """
        return other == self or (other.purpose == "task" and self.purpose != "brake")


# A context variable, since a reading is begun many calls deep: whatever is begun for a request inherits its errand.
_current: ContextVar[Errand] = ContextVar("errand", default=Errand())  # noqa: B039 (frozen)


def current() -> Errand:
    """Returns the errand of the work that calls this."""
    return _current.get()


def of(request: Request) -> Errand:
    """Returns whose request it is, and what for."""
    return Errand(None if isinstance(request.user, UnsetType) else request.user, request.purpose)


def begin(errand: Errand) -> None:
    """Makes all further work of this asyncio task, and what it begins, be on `errand`."""
    _current.set(errand)
