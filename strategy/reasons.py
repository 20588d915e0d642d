"""The reasons for the treatment of a rung, a bid or a listing: every code of plans, summaries and cycle records."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reasons, one line each; the codes are stored and shown, so they do not change."""

    # Actions.
    PLACE = "place"  # a new bid is wanted at this rung
    KEPT = "kept"  # a live bid is close enough to this rung
    RENEW = "renew"  # close to its expiry: cancelled, and placed again at the rung's price of now
    RENEW_WAITS = "renew_waits"  # close to its expiry, and renewed in the next cycle, at once: others come first
    IN_FLIGHT = "in_flight"  # being placed, or its fate is unknown: the slot is blocked until that is settled
    CANCELLING = "cancelling"  # a cancel was sent and is not confirmed
    EXPIRED = "expired"  # past its expiry, not closed in the ledger yet: the slot is blocked until then

    # Reasons why a rung gets no bid.
    PLAN_BIDS = "plan_bids"  # the user's plan allows fewer bids per task
    RANGE_EMPTY = "range_empty"  # low end above high end; the note's detail names the binding cause
    RUNGS_MERGED = "rungs_merged"  # same price as the rung above, and the venue takes no equal bids
    TASK_TOTAL = "task_total"  # would pass maxBidTotal
    EXPOSURE_LIMIT = "exposure_limit"  # would pass the user's exposure limit
    BID_COUNT = "bid_count"  # as many orders as wanted are open, since one that should be gone is not gone yet
    INSUFFICIENT_BALANCE = "insufficient_balance"  # the balance does not cover price and fee reserve
    FEE_UNKNOWN = "fee_unknown"  # no usable fee rate: nothing is placed
    BALANCE_UNKNOWN = "balance_unknown"  # the balance could not be read: nothing is placed
    NO_REFERENCE = "no_reference"  # no usable price to start from: nothing is placed, no listing is made or changed
    MIN_AGE = "min_age"  # a bid too young to be replaced holds the slot
    SLOT_TAKEN = "slot_taken"  # a bid that is left alone holds the slot
    OWN_BIDS_UNKNOWN = "own_bids_unknown"  # our own bids could not be read: nothing is placed
    BIDS_UNKNOWN = "bids_unknown"  # competing bids are wanted and could not be read: nothing is placed or raised
    UNIT_UNKNOWN = "unit_unknown"  # the rune's smallest unit is not known: no quantity can be computed
    BELOW_LOT = "below_lot"  # satsPerOrder does not buy the smallest unit of the rune at this price
    RAISE_LIMITED = "raise_limited"  # raised to outbid as often as allowed
    MAX_FILLS = "max_fills"  # open bids could already fill as often as maxFills allows
    SPEND_CAP = "spend_cap"  # would pass spendCapSats
    MAX_FILLS_PER_DAY = "max_fills_per_day"  # open bids could already fill as often as 24 hours allow
    SPEND_CAP_PER_DAY = "spend_cap_per_day"  # would pass spendCapPerDaySats
    BUDGET = "budget"  # would pass a limit of the budget that the task shares with others
    FILL_PAUSE = "fill_pause"  # a bid was just filled: the next ones wait a moment
    FILL_BURST = "fill_burst"  # several bids were filled in a short time: nothing more is placed for now
    QUOTA = "quota"  # the key's quota of calls runs short: a ladder's lowest rungs wait first
    CLOCK_SKEW = "clock_skew"  # our clock and the marketplace's are too far apart: nothing is placed
    SIGNED_LIMIT = "signed_limit"  # would pass a ceiling of signatures: waits until earlier ones expire
    REDUCE = "reduce"  # control allows cancels only
    FLOOR_GUARD = "floor_guard"  # the floor is not where onlyWhileFloorBetween wants it: nothing is placed
    FLOOR_DROP = "floor_drop"  # the floor fell as far as pauseOnFloorDrop says: every bid goes, none is placed for now
    ACTIVE_HOURS = "active_hours"  # not within activeHours: every bid goes, none is placed

    # Reasons why a live bid is cancelled or left alone.
    HARDCAP = "hardcap"  # above hardcapSats
    AT_ASK = "at_ask"  # at or above the lowest foreign ask: that listing could be bought instead
    ABOVE_RANGE = "above_range"  # above the high end
    BELOW_RANGE = "below_range"  # below the low end
    HALT = "halt"  # control allows nothing to be live
    NOT_HIGHEST = "not_highest"  # another bid is higher, and onlyBidIfHighest is set
    OUTBID = "outbid"  # another bid is higher: replaced by a bid that ranks ahead
    STEP_DOWN = "step_down"  # more than it takes to rank ahead
    WRONG_TRAIT = "wrong_trait"  # on another trait than the config asks for
    WRONG_QUANTITY = "wrong_quantity"  # for another quantity than the config asks for
    DUPLICATE = "duplicate"  # same price as another own bid, and more bids than rungs
    OVER_COUNT = "over_count"  # more bids than rungs
    SURPLUS = "surplus"  # the market moved: no rung is close to it
    UPDATE_OFF = "update_off"  # no rung is close to it, but updateBidEnabled is false
    NO_OVERLAP = "no_overlap"  # replaceMode is makeFirst, and the successor does not fit beside it
    EXPIRING = "expiring"  # no rung needs it and it is about to expire by itself

    # Marks of a whole plan.
    COLD_START = "cold_start"  # too little history to clamp the reference against a spike
    FLOOR_SPIKE = "floor_spike"  # the reference is clamped to a multiple of its median over the last hour
    FLOOR_ALARM = "floor_alarm"  # the lowest ask is far above its median: it may be manipulated
    TRAIT_FLOOR_MISSING = "trait_floor_missing"  # no ask is known to have the trait: the collection's floor stands in
    THIN_BOOK = "thin_book"  # the asks hold less than half of depthSats: no VWAP
    RIVAL_ABOVE_ASK = "rival_above_ask"  # a bid of others is above the lowest ask, which it could buy: not followed
    NO_REFERENCE_FIXED = "no_reference_fixed"  # fixed mode goes on without the ask cap

    # Listings: actions.
    LIST = "list"  # nothing is listed yet
    RELIST = "relist"  # the marketplace dropped the listing while the inscription is still here
    MOVED = "moved"  # the inscription lies on another output: the old signature is worth nothing
    LOWERED = "lowered"  # the wanted price fell
    RAISED = "raised"  # the wanted price rose, or the listing is below its least price
    AT_MIN = "at_min"  # the least price holds: minPriceSats, or cost and margin
    UNCHANGED = "unchanged"  # the listing is close enough to the wanted price

    # Listings: reasons why nothing is signed.
    LISTING_YOUNG = "listing_young"  # too young to be lowered
    LOWER_LIMITED = "lower_limited"  # lowered as far as is allowed within an hour
    SMALL_RAISE = "small_raise"  # too little to raise: the cheaper signature would stay spendable
    OWN_LISTINGS_UNKNOWN = "own_listings_unknown"  # our own listings could not be read
    HOLDING_UNKNOWN = "holding_unknown"  # the place of the inscription could not be read
    SPEND_PENDING = "spend_pending"  # an unconfirmed transaction moves the inscription
    SPENT = "spent"  # the inscription is not here any more: sold, or sent away
    RELIST_CONFIRMING = "relist_confirming"  # one read does not show the listing: a second one must confirm it
    DELISTED_OFTEN = "delisted_often"  # the marketplace dropped the listing again and again: it is not listed for now
    IMPOSSIBLE_PRICE = "impossible_price"  # more than every bitcoin there can be
