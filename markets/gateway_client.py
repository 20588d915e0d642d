"""One request to the gateway with its answer, or the error that stands for a lost one."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar

from core.unix_http import NoAnswer, NotSent, UnixHttp
from markets import codec
from markets.base import GatewayAway, Refused, Unavailable, Unknown, VenueError, from_wire

MAX_REQUEST = 256 * 1024  # bytes; the gateway closes the connection on more
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Scarcity:
    """Savings for the month's quota: reads may be `stretch_s` old, and only a ladder's top `rungs` get new bids.

    `rungs` None = all.
    """

    stretch_s: int = 0
    rungs: int | None = None


AMPLE = Scarcity()
MOST_SKEW_S = 30.0  # how far apart our clock and a marketplace's may be; beyond, no bid is placed there
_GRACE_S = 0.25  # so that the asker, who knows why it waits, gives up before the gateway does
_OF_RUNES = frozenset({"rune", "rune_asks"})
Purpose = Literal["look", "act", "withdraw", "brake"]


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

    def _read(self, verb: str, args: dict[str, Any], max_age_s: float | None, unpack: Callable[[Any], Value]) -> Value:
        request: dict[str, Any] = {"verb": verb, "args": args}
        if max_age_s is not None:
            request["max_age_s"] = max_age_s
        return self._ask(request, unpack, write=False)

    def _ask(self, request: dict[str, Any], unpack: Callable[[Any], Value], *, write: bool) -> Value:
        lost: type[VenueError] = Unknown if write else Unavailable
        whose = {"venue": self.venue, "user": self.user, "purpose": self.purpose}
        named: dict[str, Any] = {name: value for name, value in whose.items() if value is not None}
        if self.until < math.inf:
            left_s = self.until - time.monotonic()
            if left_s <= 0 and not write:
                raise Unavailable("the marketplace has not answered in time; ask again in a moment")
            named["patience_s"] = max(left_s, 0.0) + _GRACE_S
        asked = json.dumps({**named, **request}).encode()
        if len(asked) > MAX_REQUEST:
            raise Refused("bad_request", "too much is asked at once")
        try:
            body = self._http.post(asked, repeatable=not write)
        except NotSent as error:
            raise GatewayAway(f"failed to ask the gateway: {error}") from error
        except NoAnswer as error:
            raise lost(f"no answer from the gateway: {error}") from error
        try:
            answer = json.loads(body)
            if "ok" in answer:
                value = unpack(answer["ok"])
                told = Scarcity(**answer["quota"]) if "quota" in answer else AMPLE
                if request["verb"] in _OF_RUNES:
                    self.rune_scarcity = told
                else:
                    self.scarcity = told
                self.skew_s = float(answer.get("skew_s", 0))
                return value
            refused = from_wire(answer["error"])
        except codec.MALFORMED as error:
            raise lost(f"failed to understand the gateway: {error}") from error
        raise refused
