"""The codes of reasons, results and faults, with their texts: docs/reasons.md and the page are made from these.

Codes are stored and shown, so they do not change. A member has its code; for the page its kind (which selects colour
and shape), a title of at most three words and one short sentence; and last its meaning for docs/reasons.md, unless that
is the page's sentence. If several classes have the same code, the first class has the page's texts for it.
"""

from __future__ import annotations

import json
from enum import StrEnum

_KINDS = ("do", "keep", "wait", "limit", "fault", "stop", "mark")


class Code(StrEnum):
    """A code with its texts."""

    _value_: str
    kind: str
    heading: str
    why: str
    meaning: str

    def __new__(cls, code: str, *words: str) -> Code:
        member = str.__new__(cls, code)
        member._value_ = code
        member.kind, *texts = words if words[0] in _KINDS else ("", *words)
        member.heading, member.why = texts[:2] if len(texts) > 1 else ("", "")
        member.meaning = member.why[:1].lower() + member.why[1:].removesuffix(".") if len(texts) == 2 else texts[-1]
        return member


# fmt: off
class Reason(Code):
    """The outcome for a rung, a bid or a listing in a plan, summary or cycle record."""

    # Actions.
    PLACE = ("place", "do", "New bid", "A bid is wanted at this price.")
    KEPT = ("kept", "keep", "Kept", "Close enough to its rung, so it stays.")
    RENEW = ("renew", "do", "Renewed", "About to expire: cancelled, and placed again at the current price.")
    RENEW_WAITS = ("renew_waits", "wait", "Renewed next",
        "About to expire. Others are renewed first, this one in the next cycle.",
        "close to its expiry, and renewed first thing in the next cycle: others come first")
    IN_FLIGHT = ("in_flight", "wait", "In flight",
        "Being placed, or its outcome is not known yet. Its slot stays taken until then.")
    CANCELLING = ("cancelling", "wait", "Cancelling", "The cancel was sent and is not confirmed yet.")
    EXPIRED = ("expired", "wait", "Expired",
        "Expired but not closed yet. Its slot stays taken until it is.",
        "past its expiry, not closed in the ledger yet: the slot is blocked until then")
    # Why a rung gets no bid.
    PLAN_BIDS = ("plan_bids", "limit", "Plan limit", "Your plan allows fewer bids per task.")
    RANGE_EMPTY = ("range_empty", "limit", "Empty range",
        "The low end is above the high end.", "low end above high end; the note's detail names the binding cause")
    RUNGS_MERGED = ("rungs_merged", "keep", "Same price",
        "The rung above has this price, and the marketplace accepts no equal bids.")
    TASK_TOTAL = ("task_total", "limit", "Task total", "It would exceed this task's total.", "would pass maxBidTotal")
    EXPOSURE_LIMIT = ("exposure_limit", "limit", "Exposure limit",
        "It would exceed your exposure limit. Room frees up as other bids end.",
        "would pass the user's exposure limit: the plan's, or the user's own where that is lower (`maxExposure`, "
        "[interface.md](interface.md#own-ceilings-and-approvals))")
    BID_COUNT = ("bid_count", "wait", "Slot not free",
        "A bid that should be closed is still open.",
        "as many orders as wanted are open, since one that should be closed is still open")
    INSUFFICIENT_BALANCE = ("insufficient_balance", "limit", "Balance too low",
        "The balance doesn't cover price and fee. Add funds on the Wallet page.",
        "the balance does not cover price and fee reserve; `detail` and the line of the cycle name the address "
        "to fund, and the sats that all such bids lack")
    FEE_UNKNOWN = ("fee_unknown", "fault", "Fee unknown", "The fee rate could not be read. No new bids until it can.")
    BALANCE_UNKNOWN = ("balance_unknown", "fault", "Balance unknown",
        "The balance could not be read. No new bids until it can.")
    NO_REFERENCE = ("no_reference", "fault", "No floor",
        "No trustworthy floor. Nothing is placed or listed until there is one.",
        "no usable price to start from: nothing is placed, no listing is made or changed")
    MIN_AGE = ("min_age", "wait", "Too young",
        "This bid was placed moments ago. It can move once it reaches the minimum age.",
        "a bid too young to be replaced holds the slot")
    SLOT_TAKEN = ("slot_taken", "keep", "Slot taken", "Another bid of the task keeps this slot.")
    OWN_BIDS_UNKNOWN = ("own_bids_unknown", "fault", "Own bids unknown",
        "Your open bids could not be read. No new bids until they can.",
        "our own bids, or a row that may be any of them, could not be read: nothing is placed")
    BIDS_UNKNOWN = ("bids_unknown", "fault", "Rivals unknown",
        "Others' bids could not be read. No new or higher bids until they can.")
    UNIT_UNKNOWN = ("unit_unknown", "fault", "Rune unknown",
        "The rune's smallest unit is unknown, so no quantity can be computed.")
    BELOW_LOT = ("below_lot", "limit", "Too few sats",
        "The sats per order don't buy the rune's smallest unit at this price.",
        "satsPerOrder does not buy the smallest unit of the rune at this price")
    RAISE_LIMITED = ("raise_limited", "limit", "Raise limit",
        "Raised as often as allowed in an hour. It can rise again after that.")
    MAX_FILLS = ("max_fills", "limit", "Fill limit",
        "Open bids could already use up all the fills you allow.",
        "open bids could already fill as often as maxFills allows")
    SPEND_CAP = ("spend_cap", "limit", "Spend cap", "It would exceed the task's spend cap.", "would pass spendCapSats")
    MAX_FILLS_PER_DAY = ("max_fills_per_day", "limit", "Daily fill limit",
        "Open bids could already use up the fills allowed in 24 hours.")
    SPEND_CAP_PER_DAY = ("spend_cap_per_day", "limit", "Daily spend cap",
        "It would exceed what may be spent in 24 hours.", "would pass spendCapPerDaySats")
    BUDGET = ("budget", "limit", "Shared budget",
        "It would exceed the budget that this task shares with others.",
        "would pass a limit of the budget (`budgetId`) that the task shares with others, by their open bids and "
        "fills ([bidding.md](bidding.md#one-budget-for-several-tasks))")
    FILL_PAUSE = ("fill_pause", "wait", "Pause after fill", "A bid just filled. New bids wait a moment.")
    FILL_BURST = ("fill_burst", "stop", "Fill burst", "Several bids filled within minutes. No new bids for now.")
    QUOTA = ("quota", "limit", "Calls running low",
        "Calls to the marketplace are running low. Lower rungs wait.",
        "the key's quota of calls at the marketplace runs short: a ladder's lowest rungs wait first "
        "([venues.md](venues.md#quota))")
    CLOCK_SKEW = ("clock_skew", "fault", "Clocks differ",
        "Our clock and the marketplace's are too far apart. No new bids.")
    SIGNED_LIMIT = ("signed_limit", "limit", "Signing limit",
        "A signed bid counts until it expires, even if cancelled. Not enough has expired yet.",
        "would pass a ceiling of signatures ([custody.md](custody.md)), or take the part of it that renewals "
        "need: waits until earlier ones expire ([when](bidding.md))")
    REDUCE = ("reduce", "stop", "Reduce only", "No new or higher bids.", "control allows cancels only")
    FLOOR_GUARD = ("floor_guard", "stop", "Floor outside",
        "The floor is outside the task's limits. Bids return once it is back.",
        "the floor is not where onlyWhileFloorBetween wants it, or not known while pauseOnFloorDrop watches it: "
        "nothing is placed")
    FLOOR_DROP = ("floor_drop", "stop", "Floor fell",
        "The floor fell too far. All bids are cancelled, and none is placed for now.",
        "the floor fell as far as pauseOnFloorDrop says: every bid is cancelled, none is placed for now")
    ACTIVE_HOURS = ("active_hours", "stop", "Off hours",
        "Outside the task's hours. Bids return when they begin.",
        "outside activeHours: every bid is cancelled, none is placed")
    # Why a live bid is cancelled or left alone.
    HARDCAP = ("hardcap", "stop", "Above hard cap",
        "Above the hard cap.", "above hardcapSats, or above the user's own `maxHardcap` where that is lower")
    AT_ASK = ("at_ask", "stop", "At the ask", "A listing could be bought for this price instead.",
        "at or above the lowest foreign ask: that listing could be bought instead")
    ABOVE_RANGE = ("above_range", "do", "Above range", "The market fell: the bid is above the high end.")
    BELOW_RANGE = ("below_range", "do", "Below range", "The market rose: the bid is below the low end.")
    HALT = ("halt", "stop", "Halted", "The brake allows no open bids.", "control allows nothing to be live")
    NOT_HIGHEST = ("not_highest", "do", "Not highest", "Another bid is higher, and this task bids only as the highest.",
        "another bid is higher, and onlyBidIfHighest is set")
    OUTBID = ("outbid", "do", "Outbid", "Another bid is higher: replaced by one that ranks ahead.")
    STEP_DOWN = ("step_down", "do", "Stepped down", "It was higher than needed to rank ahead.")
    WRONG_TRAIT = ("wrong_trait", "do", "Other trait", "On a different trait than the task's.")
    WRONG_QUANTITY = ("wrong_quantity", "do", "Other quantity", "For a different quantity than the task's.")
    DUPLICATE = ("duplicate", "do", "Duplicate", "Same price as another of your bids, with more bids than rungs.")
    OVER_COUNT = ("over_count", "do", "One too many", "There are more bids than rungs.")
    SURPLUS = ("surplus", "do", "Market moved", "No rung is close to this bid any more.")
    UPDATE_OFF = ("update_off", "keep", "Left alone",
        "No rung is close to it, but replacing bids is switched off.",
        "no rung is close to it, but updateBidEnabled is false")
    NO_OVERLAP = ("no_overlap", "limit", "No room yet",
        "The new bid must be placed before the old one is cancelled, and both don't fit.",
        "replaceMode is makeFirst, and there is no room for both it and its successor")
    EXPIRING = ("expiring", "keep", "Left to expire",
        "No rung needs it, and it expires soon anyway.", "no rung needs it and it is about to expire by itself")
    # Marks of a whole plan.
    COLD_START = ("cold_start", "mark", "Warming up",
        "Too little floor history to detect spikes. Until then only your hard cap protects you.",
        "too little history to clamp the reference against a spike: until then only `hardcapSats` protects you")
    FLOOR_SPIKE = ("floor_spike", "mark", "Floor spike",
        "The floor jumped, so bids follow a multiple of its median over the last hour instead.",
        "the reference is clamped to a multiple of its median over the last hour")
    FLOOR_ALARM = ("floor_alarm", "mark", "Floor alarm",
        "The lowest ask is far above its median. It may be manipulated.")
    TRAIT_FLOOR_MISSING = ("trait_floor_missing", "mark", "No trait floor",
        "No ask is known to have the trait, so the collection's floor is used.",
        "no ask is known to have the trait, or one that may have it is not understood: the collection's floor is used")
    THIN_BOOK = ("thin_book", "mark", "Thin book",
        "The asks hold less than half of the depth, so there is no VWAP.",
        "the asks hold less than half of depthSats, or one is not understood: no VWAP")
    RIVAL_ABOVE_ASK = ("rival_above_ask", "mark", "Odd rival",
        "A rival bids above the lowest ask, which it could buy instead. It is ignored.")
    NO_REFERENCE_FIXED = ("no_reference_fixed", "mark", "No floor",
        "The fixed range continues without the ask as its cap.")
    # Listings: actions.
    LIST = ("list", "do", "Listed", "The first listing of this item.")
    RELIST = ("relist", "do", "Relisted", "The marketplace dropped the listing, but the inscription is still here.")
    MOVED = ("moved", "do", "Moved", "The inscription moved to another output, so the old signature is void.")
    LOWERED = ("lowered", "do", "Lowered", "The target price fell.")
    RAISED = ("raised", "do", "Raised", "The target price rose, or the listing was below its minimum.")
    AT_MIN = ("at_min", "limit", "At minimum",
        "The minimum price applies.", "the minimum price holds: minPriceSats, or cost and margin")
    UNCHANGED = ("unchanged", "keep", "Unchanged", "Close enough to the target price.")
    # Listings: why nothing is signed.
    LISTING_YOUNG = ("listing_young", "wait", "Too young",
        "Listed moments ago. It can be lowered once it reaches the minimum age.")
    LOWER_LIMITED = ("lower_limited", "limit", "Lowering limit", "Lowered as far as allowed within an hour.")
    SMALL_RAISE = ("small_raise", "keep", "Raise too small",
        "The cheaper signature stays valid, so a small raise gains nothing.",
        "too little to raise: the cheaper signature would stay spendable")
    OWN_LISTINGS_UNKNOWN = ("own_listings_unknown", "fault", "Listings unknown",
        "Your listings could not be read. Nothing is signed until they can.", "our own listings could not be read")
    HOLDING_UNKNOWN = ("holding_unknown", "fault", "Location unknown",
        "The inscription's location could not be read. Nothing is signed until it can.",
        "the place of the inscription could not be read")
    SPEND_PENDING = ("spend_pending", "wait", "Being moved", "An unconfirmed transaction moves the inscription.")
    SPENT = ("spent", "stop", "No longer here", "The inscription was sold, or sent away.")
    RELIST_CONFIRMING = ("relist_confirming", "wait", "Double-checking",
        "The last read does not show the listing. A second one must confirm it.")
    DELISTED_OFTEN = ("delisted_often", "stop", "Dropped often",
        "The marketplace keeps dropping the listing. It is not listed for now.")
    IMPOSSIBLE_PRICE = ("impossible_price", "fault", "Impossible price", "More than all the bitcoin that can exist.")


class PlaceResult(Code):
    """The outcome for a bid to be placed; a limit's name (`LedgerLimit`) may replace it."""

    PLACED = ("placed", "do", "Placed", "The marketplace accepted it.")
    UNKNOWN = ("unknown", "wait", "Outcome unknown",
        "No answer came. It counts as open and is looked up; nothing is sent twice.")
    REFUSED = ("refused", "fault", "Refused", "The marketplace refused it.")
    QUOTA = ("quota", "the gateway refused: the key's quota of calls runs short")
    CLOCK_SKEW = ("clock_skew", "the gateway refused: our clock and the venue's are too far apart")
    NO_COINS = ("no_coins", "limit", "No coins left", "No coins are left to pay with; each bid needs its own.")
    NOT_SENT = ("not_sent", "fault", "Not sent", "Nothing reached the marketplace. It is retried.")
    SIGNED_LIMIT = ("signed_limit", "other tasks have just used the room under the signer's ceilings")
    NOT_SIGNED = ("not_signed", "fault", "Not signed",
        "The signer refused or did not answer. The task's message names the rule.")
    NOT_ALLOWED = ("not_allowed", "stop", "Not allowed", "The task is stopped, or another worker has taken over.")
    PUT_OFF = ("put_off", "wait", "Postponed", "It waits for the outcome of the bid before it.")


class LedgerLimit(Code):
    """A limit that the ledger checks when a bid is reserved, because other tasks may just have used the allowance."""

    TASK_TOTAL = ("task_total", "would pass maxBidTotal")
    EXPOSURE_LIMIT = ("exposure_limit", "would pass the user's exposure limit")
    INSTALLATION_LIMIT = ("installation_limit", "limit", "Server limit",
        "It would exceed the exposure limit of all users together.")
    HARDCAP = ("hardcap", "above the user's own maxHardcap")
    BID_COUNT = ("bid_count", "as many orders as wanted are open")
    MAX_FILLS = ("max_fills", "open bids could already fill as often as allowed")
    BUDGET = ("budget", "would pass the budget that the task shares with others")


class WorkerReason(Code):
    """The worker's own reason to cancel a bid, without a plan."""

    DRY_RUN = ("dry_run", "do", "On paper", "The task was switched to or from a dry run.")
    WRONG_SLUG = ("wrong_slug", "do", "Other collection", "The task now bids on another collection or rune.")
    OVERDUE = ("overdue", "do", "Overdue", "Still shown well after its expiry.")
    NO_RUNG = ("no_rung", "do", "No rung", "The plan has no rung for it.")


class ListingResult(Code):
    """The outcome for a listing to be placed."""

    LISTED = ("listed", "do", "Listed", "The marketplace accepted it.")
    UNKNOWN = ("unknown", "the venue's answer was lost: it is looked for")
    REFUSED = ("refused", "the venue refused")
    NOT_SENT = ("not_sent", "there was nothing to sign, or nothing reached the venue")
    NOT_SIGNED = ("not_signed", "the signer refused or did not answer")
    NOT_ALLOWED = ("not_allowed", "the task is stopped, or another worker has taken over")
    OPEN_ELSEWHERE = ("open_elsewhere", "wait", "Open elsewhere",
        "A deleted task's listing of this item is still open.")


class FaultCode(Code):
    """The kind of a task's fault, for programs: every `lastErrorCode`. Title and sentence are for people."""

    VENUE_UNAVAILABLE = ("venue_unavailable", "Can't reach the marketplace",
        "Open bids there can still fill. Retried in the next cycle.", "it did not answer a read, or nothing was sent")
    VENUE_NOT_UNDERSTOOD = ("venue_not_understood", "Answer not understood",
        "The marketplace answered in an unknown format. Nothing is concluded from it, and it is retried. Ask the "
        "operator if this lasts.", "it answered a read, and the answer is not understood")
    VENUE_RATE_LIMITED = ("venue_rate_limited", "Rate limited",
        "The marketplace asked for a pause. The task continues automatically afterwards.",
        "it took too many requests and asks for a pause")
    VENUE_UNKNOWN = ("venue_unknown", "Answer lost",
        "A request was sent but its answer was lost. The outcome is looked up; nothing is sent twice.",
        "something was sent and its answer was lost: it is looked for")
    VENUE_REFUSED = ("venue_refused", "The marketplace refused",
        "Retried in the next cycle.", "it said no, or reports a failure")
    INSUFFICIENT_FUNDS = ("insufficient_funds", "Not enough funds",
        "The marketplace says the wallet doesn't cover the bid. Add funds on the Wallet page.",
        "it says that the wallet does not cover the bid; `address` is to be funded, with `sendSats` at least "
        "where that is known")
    PRICE_GRID = ("price_grid", "Wrong price step",
        "The marketplace uses different price steps. The operator is notified.",
        "it says that the price is not on its grid")
    BELOW_MINIMUM = ("below_minimum", "Below the minimum",
        "The marketplace accepts no bid this low. Raise the range.", "it says that the price is below its least")
    NOT_FOUND = ("not_found", "Not found there",
        "The marketplace doesn't know what was asked for. Check the name.", "it does not know the thing asked for")
    AUTH_FAILED = ("auth_failed", "Key not accepted",
        "The marketplace rejects the installation's key. The operator must fix it.",
        "it does not accept the installation's key or the user's right; [when that ends a "
        "task](venues.md#what-an-answer-other-than-success-does)")
    SIGN_IN_NEEDED = ("sign_in_needed", "Session ended",
        "The wallet's session at the marketplace has ended. It is being renewed.",
        "the wallet's session there is missing")
    NOT_SUPPORTED = ("not_supported", "Not supported there",
        "This marketplace, or this installation, can't do it.", "it, or the installation as configured, cannot do it")
    SIGNER_AWAY = ("signer_away", "Can't reach the signer",
        "Nothing is signed until it is back, and cancels may be delayed. Open bids can still fill.",
        "it did not answer")
    SIGNER_LOCKED = ("signer_locked", "The signer is locked",
        "The operator must unlock it. Nothing is signed until then.", "it has no keys at hand")
    SIGNER_REFUSED = ("signer_refused", "The signer refused",
        "One of its rules forbids this. Nothing was sent.", "one of its rules refuses; `rule` names it")
    MAX_FILLS = ("max_fills", "Fill limit reached",
        "All the fills you allow are used. Raise the limit to continue.", "filled as often as maxFills allows")
    SPEND_CAP = ("spend_cap", "Spend cap reached",
        "The task has spent all it may. Raise the cap to continue.", "spendCapSats is spent")
    MAX_FILLS_PER_DAY = ("max_fills_per_day", "Daily fill limit reached",
        "It continues once 24 hours have passed.", "filled within 24 hours as often as maxFillsPerDay allows")
    SPEND_CAP_PER_DAY = ("spend_cap_per_day", "Daily spend cap reached",
        "It continues once 24 hours have passed.", "spendCapPerDaySats was spent within 24 hours")
    BUDGET = ("budget", "Budget used up",
        "Too little is left in the shared budget. It continues when there is room.",
        "the budget that the task shares with others leaves too little")
    FILL_BURST = ("fill_burst", "Fill burst",
        "Several bids filled within minutes. Check the market, then start it again.",
        "several bids were filled in a short time")
    CLOCK_SKEW = ("clock_skew", "Clocks differ",
        "Our clock and the marketplace's are too far apart. The operator must fix it.")
    HARDCAP = ("hardcap", "Hard cap too low", "The hard cap leaves no price to bid.",
        "the hard cap leaves no price to bid")
    QUOTA = ("quota", "Calls running low",
        "Calls to the marketplace are running low. Fewer rungs are kept until they recover.",
        "the key's quota of calls runs short")
    NO_COINS = ("no_coins", "No coins left",
        "Each bid is paid with a whole coin, and none are left. Add funds on the Wallet page.",
        "no coins are left to pay with; one coin of `sendSats` at `address` pays")
    DISK_FULL = ("disk_full", "Disk full",
        "The disk is nearly full: no new bids, but cancels are still sent. The operator must fix it.",
        "the installation's disk has too little room")
    DATABASE_DAMAGED = ("database_damaged", "Database damaged",
        "No new bids; cancels are still sent where the database shows the bids. The operator must fix it.",
        "the installation's database is damaged, or a file of it was removed: nothing is placed ([what to "
        "do](operations.md#a-damaged-database))")
    NOT_ENTITLED = ("not_entitled", "Plan ended",
        "The plan has ended, or this address may no longer trade. An admin can change that.",
        "the plan is over, or the address may not trade any more")
    NO_REFERENCE = ("no_reference", "No floor",
        "No trustworthy floor. Nothing is placed or listed until there is one.", "no usable price to start from")
    IMPOSSIBLE_PRICE = ("impossible_price", "Impossible price",
        "More than all the bitcoin that can exist. Check the price.", "more than every bitcoin there can be")
    HOLDING_UNKNOWN = ("holding_unknown", "Location unknown",
        "The inscription's location could not be read. It is retried.",
        "the place of the inscription could not be read")
    DELISTED_OFTEN = ("delisted_often", "Dropped often",
        "The marketplace keeps dropping the listing. Ask the marketplace why.")
    NOT_IN_VAULT = ("not_in_vault", "Not in the vault",
        "The inscription is not in the vault, or left it without a known sale.",
        "the inscription is not in the vault, or has left it without a known sale")
    BAD_CONFIG = ("bad_config", "Invalid settings",
        "The task can't run with these settings. Edit them.", "its config cannot be carried out")
    START_REFUSED = ("start_refused", "Start refused",
        "The last start was refused. The message says why.", "the last start was refused")
    START_FAILED = ("start_failed", "Start failed",
        "The worker couldn't be started. It is retried.", "its worker could not be started; it is tried again")
    WORKER_ENDED = ("worker_ended", "Worker ended",
        "The task's worker ended or hung. It is being restarted.", "its worker ended or hung; it is started again")
    GIVEN_UP = ("given_up", "Given up",
        "The worker ended too often. Nothing more is tried until you start the task.",
        "its worker ended too often, or for good: nothing is tried any more")
    NO_CYCLE = ("no_cycle", "No cycle",
        "The task runs, but no cycle was recorded for three loops. The operator must check.",
        "it runs, and no cycle was recorded for three loops")
    CANNOT_CANCEL = ("cannot_cancel", "Can't cancel now",
        "Open bids can't be cancelled for now. It is retried.", "its open orders cannot be cancelled for now")
    OTHER = ("other", "Something else", "The message says what.", "anything else: only the words say what")


class Step(Code):
    """The step of a cycle that failed."""

    ADDRESSES = ("addresses", "get our addresses from the signer")
    PROFILE = ("profile", "learn what the market asks of bids")
    MARKET = ("market", "find the market")
    READ_OWN_BIDS = ("read_own_bids", "own bids")
    READ_OWN_LISTINGS = ("read_own_listings", "own listings")
    READ_ASKS = ("read_asks", "asks")
    READ_BIDS = ("read_bids", "bids")
    READ_SALES = ("read_sales", "sales")
    READ_BALANCE = ("read_balance", "balance")
    READ_FEES = ("read_fees", "the fee rates, or the fees of a fill")
    READ_RUNE = ("read_rune", "what the rune is")
    READ_COINS = ("read_coins", "those that bids are paid with")
    FIND_ITEM = ("find_item", "the inscription, its output, its collection")
    ASK_SIGNER = ("ask_signer", "whether it has signed something that was reserved")
    DRAFT = ("draft", "a bid or a listing, by the marketplace")
    SIGN = ("sign", "a bid or a listing")
    PLACE = ("place", "a bid")
    CHECK_PLACED = ("check_placed", "the marketplace shows another price than was asked for")
    CANCEL = ("cancel", "a bid or a listing, with what that needs")
    LIST = ("list", "the item")
    BRING_HOME = ("bring_home", "the inscription, from its escrow")
    OTHER = ("other", "anything else")

# fmt: on


def page_module() -> str:
    """Returns the page's module of texts: REASONS are [title, why, kind] by code, MARKS and FAULTS [title, why]."""
    codes = [code for kind in (Reason, PlaceResult, LedgerLimit, WorkerReason, ListingResult) for code in kind]
    shown = [code for code in codes if code.heading and code.kind != "mark"]
    tables = {
        "REASONS": {code: [code.heading, code.why, code.kind] for code in shown},
        "MARKS": {code: [code.heading, code.why] for code in Reason if code.kind == "mark"},
        "FAULTS": {code: [code.heading, code.why] for code in FaultCode},
    }
    return "".join(f"export const {name} = {json.dumps(table)};\n" for name, table in tables.items())
