"""The fates of bids and listings that were to be placed or cancelled: the codes of cycles beside the reasons."""

from __future__ import annotations

from enum import StrEnum


class PlaceResult(StrEnum):
    """The fate of a bid to be placed; the name of a limit (`LedgerLimit`) may stand in its place."""

    PLACED = "placed"  # the venue accepted it
    UNKNOWN = "unknown"  # its signature or the venue's answer was lost: it counts, and nothing is sent again
    REFUSED = "refused"  # the venue refused
    QUOTA = "quota"  # the gateway refused: the key's quota of calls runs short
    CLOCK_SKEW = "clock_skew"  # the gateway refused: our clock and the venue's are too far apart
    NO_COINS = "no_coins"  # no coins are left to pay for it, where bids are transactions
    NOT_SENT = "not_sent"  # nothing reached the venue
    SIGNED_LIMIT = "signed_limit"  # other tasks have just used the room under the signer's ceilings
    NOT_SIGNED = "not_signed"  # the signer refused or did not answer
    NOT_ALLOWED = "not_allowed"  # the task is no longer wanted, or another worker has taken over
    PUT_OFF = "put_off"  # not tried, because of the fate of the one before, or since the market wants cancels first


class LedgerLimit(StrEnum):
    """A limit that the ledger holds a bid against at the last moment, when others may have just used the room."""

    TASK_TOTAL = "task_total"  # would pass maxBidTotal
    EXPOSURE_LIMIT = "exposure_limit"  # would pass the user's exposure limit
    INSTALLATION_LIMIT = "installation_limit"  # would pass the exposure limit of all users together
    HARDCAP = "hardcap"  # above the user's own maxHardcap
    BID_COUNT = "bid_count"  # as many orders as wanted are open
    MAX_FILLS = "max_fills"  # open bids could already fill as often as allowed
    BUDGET = "budget"  # would pass the budget that the task shares with others


class WorkerReason(StrEnum):
    """The worker's own reason to cancel a bid that no plan judges."""

    DRY_RUN = "dry_run"  # the task was turned into a dry run, or out of one
    WRONG_SLUG = "wrong_slug"  # the task was changed to another slug
    OVERDUE = "overdue"  # still shown well after its expiry
    NO_RUNG = "no_rung"  # the plan has no word for it


class ListingResult(StrEnum):
    """The fate of a listing that was to be put up."""

    LISTED = "listed"  # the venue accepted it
    UNKNOWN = "unknown"  # the venue's answer was lost: it is looked for
    REFUSED = "refused"  # the venue refused
    NOT_SENT = "not_sent"  # there was nothing to sign, or nothing reached the venue
    NOT_SIGNED = "not_signed"  # the signer refused or did not answer
    NOT_ALLOWED = "not_allowed"  # the task is no longer wanted, or another worker has taken over
    OPEN_ELSEWHERE = "open_elsewhere"  # a deleted task's listing of the same item is not ended yet
