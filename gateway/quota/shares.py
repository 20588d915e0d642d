"""The division of a quota between users: what one does not use, others may.

Nobody is over their share as long as they have used no more than the rest could, were each to have as much: the level.
"""

from __future__ import annotations

from collections.abc import Collection

from markets.base import RateLimited


class BeyondShare(RateLimited):
    """A refusal of this user's reading; another user's may go on."""


def level(used: Collection[int], room: float) -> float:
    """Returns the most that each user may have used so that all, cut at it, come to `room`; infinite when they do so
    uncut.
    """
    left = room
    for position, each in enumerate(sorted(used)):
        share = left / (len(used) - position)
        if each > share:
            return max(share, 0.0)
        left -= each
    return float("inf")
