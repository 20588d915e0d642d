"""What becomes of a bid that is to be placed."""

from __future__ import annotations

from enum import StrEnum


class PlaceResult(StrEnum):
    """What became of a bid that was to be placed; a limit's name (`task_total`, ...) stands beside these."""

    PLACED = "placed"  # the venue accepted it
    UNKNOWN = "unknown"  # its signature or the venue's answer was lost: it counts, and nothing is sent again
    REFUSED = "refused"  # the venue said no
    QUOTA = "quota"  # the gateway said no: the month's quota of calls runs short
    CLOCK_SKEW = "clock_skew"  # the gateway said no: our clock and the venue's are too far apart
    NO_COINS = "no_coins"  # no coins are left to pay for it, where bids are transactions
    NOT_SENT = "not_sent"  # nothing reached the venue
    SIGNED_LIMIT = "signed_limit"  # other tasks have just used the room under the signer's ceilings
    NOT_SIGNED = "not_signed"  # the signer said no or did not answer
    NOT_ALLOWED = "not_allowed"  # the task is no longer wanted, or another worker has taken over
    PUT_OFF = "put_off"  # not tried, after what became of the one before, or since the market wants cancels first


GATEWAY_REFUSALS = {
    "stale_token": PlaceResult.NOT_ALLOWED,
    "quota": PlaceResult.QUOTA,
    "clock_skew": PlaceResult.CLOCK_SKEW,
}  # its own
