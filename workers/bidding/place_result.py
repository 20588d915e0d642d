"""The possible fates of a bid to be placed."""

from __future__ import annotations

from enum import StrEnum


class PlaceResult(StrEnum):
    """The fate of a bid to be placed; a limit's name (`task_total`, ...) may stand in its place."""

    PLACED = "placed"  # the venue accepted it
    UNKNOWN = "unknown"  # its signature or the venue's answer was lost: it counts, and nothing is sent again
    REFUSED = "refused"  # the venue refused
    QUOTA = "quota"  # the gateway refused: the month's quota of calls runs short
    CLOCK_SKEW = "clock_skew"  # the gateway refused: our clock and the venue's are too far apart
    NO_COINS = "no_coins"  # no coins are left to pay for it, where bids are transactions
    NOT_SENT = "not_sent"  # nothing reached the venue
    SIGNED_LIMIT = "signed_limit"  # other tasks have just used the room under the signer's ceilings
    NOT_SIGNED = "not_signed"  # the signer refused or did not answer
    NOT_ALLOWED = "not_allowed"  # the task is no longer wanted, or another worker has taken over
    PUT_OFF = "put_off"  # not tried, because of the fate of the one before, or since the market wants cancels first


GATEWAY_REFUSALS = {
    "stale_token": PlaceResult.NOT_ALLOWED,
    "quota": PlaceResult.QUOTA,
    "clock_skew": PlaceResult.CLOCK_SKEW,
}  # its own
