"""The tasks whose start failed because signer or gateway is away: one of them asks often, for all."""

from __future__ import annotations

from collections.abc import Callable

# The longest wait before the next try. Most absences are short, but asking costs a token and a right each time: so of
# a thousand tasks one asks each second, and after a minute (a locked signer, say) none more often than the others.
OFTEN_S = 1.0
SELDOM_S = 5.0
OFTEN_TRIES = 60


class Absences:
    """Knows who waits for absent peers, in the order in which they began to."""

    def __init__(self) -> None:
        self._wakes: dict[Callable[[], None], None] = {}
        self._tries = 0  # of those that ask often, since somebody was answered

    def longest_rest_s(self, wake: Callable[[], None]) -> float:
        """Notes that a start has failed; `wake` is called once both are there again.

        Returns how long its task may rest before it tries again by itself.
        """
        self._wakes[wake] = None
        if next(iter(self._wakes)) != wake or self._tries >= OFTEN_TRIES:
            return SELDOM_S
        self._tries += 1
        return OFTEN_S

    def forget(self, wake: Callable[[], None]) -> None:
        """Leaves this one out: its task does not wait for them any more."""
        self._wakes.pop(wake, None)

    def are_over(self) -> None:
        """Wakes all that wait: a task has got its rights."""
        wakes, self._wakes, self._tries = self._wakes, {}, 0
        for wake in wakes:
            wake()
