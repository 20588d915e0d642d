"""The codes of what keeps a task from its job: every `lastErrorCode`, and the steps that fail."""

from __future__ import annotations

from enum import StrEnum


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
