"""One request to the gateway with its answer, or the error that stands for a lost one."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, Protocol, Self

from msgspec import UnsetType

from core.unix_http import NoAnswer, NotSent, UnixHttp
from markets import verbs
from markets.base import GatewayAway, Refused, Unavailable, Unknown, VenueError, from_wire
from markets.verbs import AMPLE, Answer, Args, Purpose, Scarcity

MAX_REQUEST = 256 * 1024  # bytes; the gateway closes the connection on more
MOST_SKEW_S = 30.0  # how far apart our clock and a marketplace's may be; beyond, no bid is placed there
_GRACE_S = 0.25  # so that the asker, who knows why it waits, gives up before the gateway does


class KnowsScarcity(Protocol):
    """A client of the gateway that knows the quotas."""

    scarcity: Scarcity
    rune_scarcity: Scarcity


def stretch_s(asker: KnowsScarcity, *, is_rune: bool) -> int:
    """Returns the age in seconds that a task's reads may have, so that the quotas last; 0 = none."""
    return max(asker.scarcity.stretch_s, asker.rune_scarcity.stretch_s if is_rune else 0)


def skew_words(off_s: float) -> str:
    """Describes a skew, for example: this machine's clock is 61 s ahead of the marketplace's."""
    return f"this machine's clock is {abs(off_s):.0f} s {'ahead of' if off_s > 0 else 'behind'} the marketplace's"


class GatewayClient:
    """A client of the gateway at `socket_path`; a subclass has the verbs. `scarcity` and `skew_s` come from the last
    good answer; `rune_scarcity` is of the source of runes' asks, whose key has a quota of its own.

    `venue` is the marketplace's name; None = the installation's default. `user` is the number of the user whose calls
    these are, if any; `purpose` is None for a task's work, else the reason of a person's or of a brake.
    """

    scarcity = AMPLE
    rune_scarcity = AMPLE
    user: int | None = None
    purpose: Purpose | None = None
    until = math.inf  # the end of a person's patience, by the monotonic clock
    skew_s = 0.0  # how far our clock is ahead by the marketplace's last answers, if too far to bid by

    def __init__(self, socket_path: Path, timeout_s: float = 30.0, venue: str | None = None) -> None:
        self.venue = venue
        self._http = UnixHttp(socket_path, timeout_s)

    def close(self) -> None:
        """Closes the kept connection; the next call opens one."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, args: Args[Answer], **more: Any) -> Answer:
        """Asks the gateway, with `more` members of `verbs.Request`. Raises as `MarketClient` says."""
        kind = type(args)
        lost: type[VenueError] = Unknown if kind.is_write else Unavailable
        whose = {"venue": self.venue, "user": self.user, "purpose": self.purpose}
        more |= {name: value for name, value in whose.items() if value is not None}
        if self.until < math.inf:
            left_s = self.until - time.monotonic()
            if left_s <= 0 and not kind.is_write:
                raise Unavailable("the marketplace has not answered in time; ask again in a moment")
            more["patience_s"] = max(left_s, 0.0) + _GRACE_S
        asked = verbs.request(args, **more)
        if len(asked) > MAX_REQUEST:
            raise Refused("bad_request", "too much is asked at once")
        try:
            body = self._exchange(asked, repeatable=not kind.is_write)
        except NotSent as error:
            raise GatewayAway(f"failed to ask the gateway: {error}") from error
        except NoAnswer as error:
            raise lost(f"no answer from the gateway: {error}") from error
        try:
            answer = verbs.read_answer(body, kind)
            value = from_wire(answer.error) if isinstance(answer.ok, UnsetType) else answer.ok
        except (ValueError, OverflowError, RecursionError) as error:
            raise lost(f"failed to understand the gateway: {error}; restart it if it is of another version") from error
        if isinstance(value, VenueError):
            raise value
        if kind.quota_of == "runes":
            self.rune_scarcity = answer.quota
        else:
            self.scarcity = answer.quota
        self.skew_s = answer.skew_s
        return value

    def _exchange(self, asked: bytes, *, repeatable: bool) -> bytes:
        return self._http.post(asked, repeatable=repeatable)
