"""The codes of reasons, fates and faults, with their words: docs/reasons.md and the page are made from these."""

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


class FaultCode(StrEnum):
    """The kind of a task's trouble, for programs; its words are for people."""

    # The marketplace, or a source that tells of the chain.
    VENUE_UNAVAILABLE = "venue_unavailable"  # it did not answer a read, or nothing was sent
    VENUE_NOT_UNDERSTOOD = "venue_not_understood"  # it answered a read, and the answer is not understood
    VENUE_RATE_LIMITED = "venue_rate_limited"  # it took too many requests and asks for a pause
    VENUE_UNKNOWN = "venue_unknown"  # something was sent and its answer was lost: it is looked for
    VENUE_REFUSED = "venue_refused"  # it said no, or reports a failure
    INSUFFICIENT_FUNDS = "insufficient_funds"  # it says that the wallet does not cover the bid
    PRICE_GRID = "price_grid"  # it says that the price is not on its grid
    BELOW_MINIMUM = "below_minimum"  # it says that the price is below its least
    NOT_FOUND = "not_found"  # it does not know the thing asked for
    AUTH_FAILED = "auth_failed"  # it does not accept the installation's key or the user's right
    SIGN_IN_NEEDED = "sign_in_needed"  # the wallet's session there is missing
    NOT_SUPPORTED = "not_supported"  # it, or the installation as configured, cannot do it
    # The signer.
    SIGNER_AWAY = "signer_away"  # it did not answer
    SIGNER_LOCKED = "signer_locked"  # it has no keys at hand
    SIGNER_REFUSED = "signer_refused"  # one of its rules refuses; `rule` names it
    # The task's own limits, and what else holds it back.
    MAX_FILLS = "max_fills"  # filled as often as maxFills allows
    SPEND_CAP = "spend_cap"  # spendCapSats is spent
    MAX_FILLS_PER_DAY = "max_fills_per_day"  # filled within 24 hours as often as maxFillsPerDay allows
    SPEND_CAP_PER_DAY = "spend_cap_per_day"  # spendCapPerDaySats was spent within 24 hours
    BUDGET = "budget"  # the budget that the task shares with others leaves too little
    FILL_BURST = "fill_burst"  # several bids were filled in a short time
    CLOCK_SKEW = "clock_skew"  # our clock and the marketplace's are too far apart
    HARDCAP = "hardcap"  # the hard cap leaves no price to bid
    QUOTA = "quota"  # the key's quota of calls runs short
    NO_COINS = "no_coins"  # no coins are left to pay with
    DISK_FULL = "disk_full"  # the installation's disk has too little room
    DATABASE_DAMAGED = "database_damaged"  # the installation's database cannot be relied on
    NOT_ENTITLED = "not_entitled"  # the plan is over, or the address may not trade any more
    # A listing's.
    NO_REFERENCE = "no_reference"  # no usable price to start from
    IMPOSSIBLE_PRICE = "impossible_price"  # more than every bitcoin there can be
    HOLDING_UNKNOWN = "holding_unknown"  # the place of the inscription could not be read
    DELISTED_OFTEN = "delisted_often"  # the marketplace dropped the listing again and again
    NOT_IN_VAULT = "not_in_vault"  # the inscription is not in the vault, or has left it without a known sale
    # The task's processes.
    BAD_CONFIG = "bad_config"  # its config cannot be carried out
    START_REFUSED = "start_refused"  # the last start was refused
    START_FAILED = "start_failed"  # its worker could not be started; it is tried again
    WORKER_ENDED = "worker_ended"  # its worker ended or hung; it is started again
    GIVEN_UP = "given_up"  # its worker ended too often, or for good: nothing is tried any more
    NO_CYCLE = "no_cycle"  # it runs, and no cycle was recorded for three loops
    CANNOT_CANCEL = "cannot_cancel"  # its open orders cannot be cancelled for now
    OTHER = "other"  # anything else: only the words say what


class Step(StrEnum):
    """The step of a cycle that failed."""

    ADDRESSES = "addresses"  # get our addresses from the signer
    PROFILE = "profile"  # learn what the market asks of bids
    MARKET = "market"  # find the market
    READ_OWN_BIDS = "read_own_bids"
    READ_OWN_LISTINGS = "read_own_listings"
    READ_ASKS = "read_asks"
    READ_BIDS = "read_bids"
    READ_SALES = "read_sales"
    READ_BALANCE = "read_balance"
    READ_FEES = "read_fees"  # the fee rates, or the fees of a fill
    READ_RUNE = "read_rune"  # what the rune is
    READ_COINS = "read_coins"  # those that bids are paid with
    FIND_ITEM = "find_item"  # the inscription, its output, its collection
    ASK_SIGNER = "ask_signer"  # whether it has signed something that was reserved
    DRAFT = "draft"  # a bid or a listing, by the marketplace
    SIGN = "sign"  # a bid or a listing
    PLACE = "place"  # a bid
    CHECK_PLACED = "check_placed"  # the marketplace shows another price than was asked for
    CANCEL = "cancel"  # a bid or a listing, with what that needs
    LIST = "list"  # the item
    BRING_HOME = "bring_home"  # the inscription, from its escrow
    OTHER = "other"
