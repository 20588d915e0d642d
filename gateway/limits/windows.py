"""Limits per minute: some number of reads and of writes, for the whole installation and for one wallet.

A venue counts in windows of 60 s that begin at unknown times. A limit that holds in any 60 s holds in each of them, so
it is kept so here, for a second more, since requests take different times to arrive. The clock is an argument, in
monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gateway.limits.call_budget import Priority
from markets.capabilities import Capabilities

WINDOW_S = 61.0
Use = Literal["read", "write"]
# A part of each limit is kept for urgent calls: a quarter for cancels and for reads of own bids. Looks leave half of it
# to the tasks.
_URGENT = frozenset({Priority.BRAKE, Priority.CANCEL, Priority.OWN_BIDS})
_SPARE, _SPARE_OF_LOOKS = 4, 2


@dataclass(frozen=True, slots=True)
class Toll:
    """The toll of a call. `wallet` is any address of the profile that makes it, None is a call for everybody.

    `more` calls of the same kind must follow this one, else it was wasted.
    """

    use: Use = "read"
    wallet: str | None = None
    more: int = 0


READ = Toll()


@dataclass(eq=False, slots=True)
class Call:
    """One counted call, from its turn on."""

    use: Use
    wallet: str | None
    at: float


class Windows:
    """Counts calls against the limits of one venue; without limits it lets everything pass."""

    def __init__(self, can: Capabilities, clock: Callable[[], float]) -> None:
        self._all = {"read": can.reads_per_minute, "write": can.writes_per_minute}
        self._each = {"read": can.reads_per_minute_per_wallet, "write": can.writes_per_minute_per_wallet}
        self._clock = clock
        self._calls: list[Call] = []
        self._profiles: dict[str, str] = {}

    def bind(self, address: str, wallet: str) -> None:
        """Makes `address` count as `wallet` from now on: both belong to one profile."""
        self._profiles[address] = wallet

    def wait_s(self, toll: Toll, priority: Priority) -> float:
        """Returns the seconds until such a call fits; 0 when it does now."""
        now, wallet, each = self._clock(), self._wallet(toll), self._each[toll.use]
        self._calls = [call for call in self._calls if now - call.at < WINDOW_S]
        alike = [call for call in self._calls if call.use == toll.use]
        # Any profile may make a call for everybody: it counts for each of them, and waits for each.
        makers = {wallet} if wallet is not None else {None, *(call.wallet for call in alike)}
        full_until = max(
            _full_until(alike, self._all[toll.use], toll, priority),
            *(
                _full_until([call for call in alike if call.wallet in (maker, None)], each, toll, priority)
                for maker in makers
            ),
        )
        return max(full_until - now, 0.0)

    def enter(self, toll: Toll) -> Call:
        """Counts a call whose turn it is; follow it by `sent`, or `give_back` if it is not made."""
        call = Call(toll.use, self._wallet(toll), self._clock())
        if self._all[toll.use] is not None or self._each[toll.use] is not None:
            self._calls.append(call)
        return call

    def sent(self, call: Call) -> None:
        """Notes that the call goes out now: from here on it counts for a minute."""
        call.at = self._clock()

    def give_back(self, call: Call) -> None:
        """Takes a call back that was not made."""
        if call in self._calls:
            self._calls.remove(call)

    def _wallet(self, toll: Toll) -> str | None:
        return None if toll.wallet is None else self._profiles.get(toll.wallet, toll.wallet)


def _full_until(calls: list[Call], limit: int | None, toll: Toll, priority: Priority) -> float:
    """Returns when enough of `calls` are older than a minute for the call to fit under `limit`."""
    if limit is None:
        return 0.0
    kept = 0 if priority in _URGENT else limit // (_SPARE_OF_LOOKS if priority is Priority.LOOKUP else _SPARE)
    room = limit - toll.more - kept
    too_many = len(calls) - max(room, 1) + 1
    if too_many <= 0:
        return 0.0
    return sorted(call.at for call in calls)[too_many - 1] + WINDOW_S
