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
    KEPT = ("kept", "keep", "Kept", "Close enough to where it should be.")
    RENEW = ("renew", "do", "Renewed", "Near its end: cancelled, and placed again at the price of now.")
    RENEW_WAITS = ("renew_waits", "wait", "Renewed next",
        "Near its end; others are renewed first, this one in the next cycle.",
        "close to its expiry, and renewed first thing in the next cycle: others come first")
    IN_FLIGHT = ("in_flight", "wait", "In flight",
        "Being placed, or its fate is not known yet. Its slot stays taken until it is.")
    CANCELLING = ("cancelling", "wait", "Cancelling", "The cancel is sent and not confirmed yet.")
    EXPIRED = ("expired", "wait", "Expired", "Past its end and not closed yet. Its slot stays taken until it is.",
        "past its expiry, not closed in the ledger yet: the slot is blocked until then")
    # Why a rung gets no bid.
    PLAN_BIDS = ("plan_bids", "limit", "Plan limit", "Your plan allows fewer bids for a task.")
    RANGE_EMPTY = ("range_empty", "limit", "Empty range", "The low end lies above the high end.",
        "low end above high end; the note's detail names the binding cause")
    RUNGS_MERGED = ("rungs_merged", "keep", "Same price",
        "The rung above has this price, and the marketplace takes no equal bids.")
    TASK_TOTAL = ("task_total", "limit", "Task total", "It would pass this task's total.", "would pass maxBidTotal")
    EXPOSURE_LIMIT = ("exposure_limit", "limit", "Exposure limit",
        "It would pass your exposure limit. Room comes as other bids end.",
        "would pass the user's exposure limit: the plan's, or the user's own where that is lower (`maxExposure`, "
        "[interface.md](interface.md#own-ceilings-and-approvals))")
    BID_COUNT = ("bid_count", "wait", "Slot not free", "A bid that was cancelled, or has ended, is still there.",
        "as many orders as wanted are open, since one that should be closed is still open")
    INSUFFICIENT_BALANCE = ("insufficient_balance", "limit", "Balance too low",
        "The balance does not cover price and fee. Add funds on the Wallet page.",
        "the balance does not cover price and fee reserve; `detail` and the line of the cycle name the address to "
        "fund, and the sats that all such bids lack")
    FEE_UNKNOWN = ("fee_unknown", "fault", "Fee unknown", "No fee rate could be read. Nothing is placed until one is.")
    BALANCE_UNKNOWN = ("balance_unknown", "fault", "Balance unknown",
        "The balance could not be read. Nothing is placed until it is.")
    NO_REFERENCE = ("no_reference", "fault", "No floor", "No floor can be trusted. Nothing is placed until one can.",
        "no usable price to start from: nothing is placed, no listing is made or changed")
    MIN_AGE = ("min_age", "wait", "Too young", "The bid here was placed moments ago. It moves once it is old enough.",
        "a bid too young to be replaced holds the slot")
    SLOT_TAKEN = ("slot_taken", "keep", "Slot taken", "A bid that is left alone holds this slot.")
    OWN_BIDS_UNKNOWN = ("own_bids_unknown", "fault", "Own bids unknown",
        "Your live bids could not be read. Nothing is placed until they are.",
        "our own bids, or a row that may be any of them, could not be read: nothing is placed")
    BIDS_UNKNOWN = ("bids_unknown", "fault", "Rivals unknown",
        "The bids of others could not be read. Nothing is placed or raised until they are.")
    UNIT_UNKNOWN = ("unit_unknown", "fault", "Rune unknown",
        "The rune's smallest unit is not known, so no quantity can be computed.")
    BELOW_LOT = ("below_lot", "limit", "Too few sats",
        "The sats for each order do not buy the smallest unit at this price.",
        "satsPerOrder does not buy the smallest unit of the rune at this price")
    RAISE_LIMITED = ("raise_limited", "limit", "Raised enough",
        "Raised as often as is allowed in an hour. It may rise again after that.")
    MAX_FILLS = ("max_fills", "limit", "Fills used up", "The open bids could already fill as often as you allow.",
        "open bids could already fill as often as maxFills allows")
    SPEND_CAP = ("spend_cap", "limit", "Spend cap", "It would pass the task's spend cap.", "would pass spendCapSats")
    MAX_FILLS_PER_DAY = ("max_fills_per_day", "limit", "Day's fills",
        "The open bids could fill as often as 24 hours allow.")
    SPEND_CAP_PER_DAY = ("spend_cap_per_day", "limit", "Day's spend cap",
        "It would pass what may be spent in 24 hours.", "would pass spendCapPerDaySats")
    BUDGET = ("budget", "limit", "Shared budget", "It would pass the budget that this task shares with others.",
        "would pass a limit of the budget (`budgetId`) that the task shares with others, by their open bids and fills "
        "([bidding.md](bidding.md#one-budget-for-several-tasks))")
    FILL_PAUSE = ("fill_pause", "wait", "Pause after fill", "A bid was just filled. The next ones wait a moment.")
    FILL_BURST = ("fill_burst", "stop", "Fill burst",
        "Several bids were filled within minutes. Nothing more is placed for now.")
    QUOTA = ("quota", "limit", "Calls run short", "The calls to the marketplace run short. Lower rungs wait.",
        "the key's quota of calls at the marketplace runs short: a ladder's lowest rungs wait first "
        "([venues.md](venues.md#quota))")
    CLOCK_SKEW = ("clock_skew", "fault", "Clocks differ",
        "Our clock and the marketplace's are too far apart. Nothing is placed.")
    SIGNED_LIMIT = ("signed_limit", "limit", "Signing limit",
        "A signed bid counts until it expires, cancelled or not. Not enough has expired yet.",
        "would pass a ceiling of signatures ([custody.md](custody.md)), or take the part of it that renewals need: "
        "waits until earlier ones expire ([when](bidding.md))")
    REDUCE = ("reduce", "stop", "Reduce only", "The brake lets bids go, and none come.", "control allows cancels only")
    FLOOR_GUARD = ("floor_guard", "stop", "Floor outside",
        "The floor is not where the task wants it. Bids return once it is.",
        "the floor is not where onlyWhileFloorBetween wants it, or not known while pauseOnFloorDrop watches it: "
        "nothing is placed")
    FLOOR_DROP = ("floor_drop", "stop", "Floor fell",
        "The floor fell as far as you watch for. Every bid goes, none comes for now.",
        "the floor fell as far as pauseOnFloorDrop says: every bid goes, none is placed for now")
    ACTIVE_HOURS = ("active_hours", "stop", "Off hours", "Outside the task's hours. Bids come back when they begin.",
        "not within activeHours: every bid goes, none is placed")
    # Why a live bid is cancelled or left alone.
    HARDCAP = ("hardcap", "stop", "Above hard cap", "Higher than the hard cap.",
        "above hardcapSats, or above the user's own `maxHardcap` where that is lower")
    AT_ASK = ("at_ask", "stop", "At the ask", "A listing could be bought for this price instead.",
        "at or above the lowest foreign ask: that listing could be bought instead")
    ABOVE_RANGE = ("above_range", "do", "Above range", "The market fell: the bid is above the high end.")
    BELOW_RANGE = ("below_range", "do", "Below range", "The market rose: the bid is below the low end.")
    HALT = ("halt", "stop", "Halted", "The brake lets no bid stand.", "control allows nothing to be live")
    NOT_HIGHEST = ("not_highest", "do", "Not highest", "Another bid is higher, and this task bids only as the highest.",
        "another bid is higher, and onlyBidIfHighest is set")
    OUTBID = ("outbid", "do", "Outbid", "Another bid is higher: replaced by a bid that ranks ahead.")
    STEP_DOWN = ("step_down", "do", "Stepped down", "It was more than it takes to rank ahead.")
    WRONG_TRAIT = ("wrong_trait", "do", "Other trait", "On another trait than the task asks for.")
    WRONG_QUANTITY = ("wrong_quantity", "do", "Other quantity", "For another quantity than the task asks for.")
    DUPLICATE = ("duplicate", "do", "Duplicate", "Same price as another of your bids, with more bids than rungs.")
    OVER_COUNT = ("over_count", "do", "One too many", "There are more bids than rungs.")
    SURPLUS = ("surplus", "do", "Market moved", "No rung is close to this bid any more.")
    UPDATE_OFF = ("update_off", "keep", "Left alone", "No rung is close to it, but replacing is switched off.",
        "no rung is close to it, but updateBidEnabled is false")
    NO_OVERLAP = ("no_overlap", "limit", "No room yet",
        "The new bid must be placed before the old one ends, and both do not fit.",
        "replaceMode is makeFirst, and there is no room for both it and its successor")
    EXPIRING = ("expiring", "keep", "Left to expire", "No rung needs it, and it ends by itself soon.",
        "no rung needs it and it is about to expire by itself")
    # Marks of a whole plan.
    COLD_START = ("cold_start", "mark", "Learns the floor",
        "Too little floor history yet to detect a spike. Until then only the hard cap protects you.",
        "too little history to clamp the reference against a spike: until then only `hardcapSats` protects you")
    FLOOR_SPIKE = ("floor_spike", "mark", "Floor spike",
        "The floor jumped: bids follow a multiple of its median over the last hour.",
        "the reference is clamped to a multiple of its median over the last hour")
    FLOOR_ALARM = ("floor_alarm", "mark", "Floor alarm",
        "The lowest ask is far above its median. It may be manipulated.")
    TRAIT_FLOOR_MISSING = ("trait_floor_missing", "mark", "No trait floor",
        "No ask is known to have the trait: the collection's floor is used.",
        "no ask is known to have the trait, or one that may have it is not understood: the collection's floor is used")
    THIN_BOOK = ("thin_book", "mark", "Thin book", "The asks hold less than half of the depth: the VWAP is unknown.",
        "the asks hold less than half of depthSats, or one is not understood: no VWAP")
    RIVAL_ABOVE_ASK = ("rival_above_ask", "mark", "Odd rival",
        "A rival bids more than the lowest ask, which it could buy. It is not followed.")
    NO_REFERENCE_FIXED = ("no_reference_fixed", "mark", "No floor",
        "The fixed range continues without the ask as its cap.")
    # Listings: actions.
    LIST = ("list", "do", "Listed", "Nothing was listed yet.")
    RELIST = ("relist", "do", "Listed again",
        "The marketplace dropped the listing while the inscription is still here.")
    MOVED = ("moved", "do", "Moved", "The inscription lies on another output: the old signature is worth nothing.")
    LOWERED = ("lowered", "do", "Lowered", "The wanted price fell.")
    RAISED = ("raised", "do", "Raised", "The wanted price rose, or the listing was below its least price.")
    AT_MIN = ("at_min", "limit", "At least price", "The minimum price holds.",
        "the minimum price holds: minPriceSats, or cost and margin")
    UNCHANGED = ("unchanged", "keep", "Unchanged", "Close enough to the wanted price.")
    # Listings: why nothing is signed.
    LISTING_YOUNG = ("listing_young", "wait", "Too young",
        "Listed moments ago. It may be lowered once it is old enough.")
    LOWER_LIMITED = ("lower_limited", "limit", "Lowered enough", "Lowered as far as is allowed within an hour.")
    SMALL_RAISE = ("small_raise", "keep", "Raise too small",
        "The cheaper signature would stay good, so a small raise gains nothing.",
        "too little to raise: the cheaper signature would stay spendable")
    OWN_LISTINGS_UNKNOWN = ("own_listings_unknown", "fault", "Listings unknown",
        "Your listings could not be read. Nothing is signed until they are.", "our own listings could not be read")
    HOLDING_UNKNOWN = ("holding_unknown", "fault", "Place unknown",
        "It could not be read where the inscription lies. Nothing is signed until it is.",
        "the place of the inscription could not be read")
    SPEND_PENDING = ("spend_pending", "wait", "Being moved", "An unconfirmed transaction moves the inscription.")
    SPENT = ("spent", "stop", "Gone", "The inscription is not here any more: sold, or sent away.")
    RELIST_CONFIRMING = ("relist_confirming", "wait", "Looks twice",
        "One look does not show the listing. A second one must confirm that.")
    DELISTED_OFTEN = ("delisted_often", "stop", "Dropped often",
        "The marketplace dropped the listing again and again. It is not listed for now.")
    IMPOSSIBLE_PRICE = ("impossible_price", "fault", "Impossible price", "More than every bitcoin there can be.")


class PlaceResult(Code):
    """The outcome for a bid to be placed; a limit's name (`LedgerLimit`) may replace it."""

    PLACED = ("placed", "do", "Placed", "The marketplace took it.")
    UNKNOWN = ("unknown", "wait", "Fate unknown",
        "No answer came. It counts, nothing is sent twice, and it is looked for.")
    REFUSED = ("refused", "fault", "Refused", "The marketplace said no.")
    QUOTA = ("quota", "the gateway refused: the key's quota of calls runs short")
    CLOCK_SKEW = ("clock_skew", "the gateway refused: our clock and the venue's are too far apart")
    NO_COINS = ("no_coins", "limit", "No coins left",
        "No coins are left to pay with, where each bid needs one of its own.")
    NOT_SENT = ("not_sent", "fault", "Not sent", "Nothing reached the marketplace. It is tried again.")
    SIGNED_LIMIT = ("signed_limit", "other tasks have just used the room under the signer's ceilings")
    NOT_SIGNED = ("not_signed", "fault", "Not signed",
        "The signer refused or did not answer. The task's line says which rule.")
    NOT_ALLOWED = ("not_allowed", "stop", "Not allowed", "The task is stopped, or another worker has taken over.")
    PUT_OFF = ("put_off", "wait", "Put off", "It waits for what became of the one before.")


class LedgerLimit(Code):
    """A limit that the ledger checks when a bid is reserved, because other tasks may just have used the allowance."""

    TASK_TOTAL = ("task_total", "would pass maxBidTotal")
    EXPOSURE_LIMIT = ("exposure_limit", "would pass the user's exposure limit")
    INSTALLATION_LIMIT = ("installation_limit", "limit", "Limit of all",
        "It would pass the exposure limit of all users together.")
    HARDCAP = ("hardcap", "above the user's own maxHardcap")
    BID_COUNT = ("bid_count", "as many orders as wanted are open")
    MAX_FILLS = ("max_fills", "open bids could already fill as often as allowed")
    BUDGET = ("budget", "would pass the budget that the task shares with others")


class WorkerReason(Code):
    """The worker's own reason to cancel a bid, without a plan."""

    DRY_RUN = ("dry_run", "do", "On paper", "The task was turned into a dry run, or out of one.")
    WRONG_SLUG = ("wrong_slug", "do", "Other collection", "The task was changed to another collection or rune.")
    OVERDUE = ("overdue", "do", "Overdue", "Still shown well after its end.")
    NO_RUNG = ("no_rung", "do", "No rung", "The plan has no word for it.")


class ListingResult(Code):
    """The outcome for a listing to be placed."""

    LISTED = ("listed", "do", "Listed", "The marketplace took it.")
    UNKNOWN = ("unknown", "the venue's answer was lost: it is looked for")
    REFUSED = ("refused", "the venue refused")
    NOT_SENT = ("not_sent", "there was nothing to sign, or nothing reached the venue")
    NOT_SIGNED = ("not_signed", "the signer refused or did not answer")
    NOT_ALLOWED = ("not_allowed", "the task is stopped, or another worker has taken over")
    OPEN_ELSEWHERE = ("open_elsewhere", "wait", "Open elsewhere",
        "A deleted task's listing of this item is not ended yet.")


class FaultCode(Code):
    """The kind of a task's fault, for programs: every `lastErrorCode`. Title and sentence are for people."""

    VENUE_UNAVAILABLE = ("venue_unavailable", "The marketplace does not answer",
        "Open bids there can still be filled. It is asked again in the next cycle.",
        "it did not answer a read, or nothing was sent")
    VENUE_NOT_UNDERSTOOD = ("venue_not_understood", "An answer is not understood",
        "The marketplace answered in a form that is not known. Nothing is concluded from it, and it is asked again. "
        "Ask the operator if it lasts.", "it answered a read, and the answer is not understood")
    VENUE_RATE_LIMITED = ("venue_rate_limited", "The marketplace asks for a pause",
        "The task continues by itself when the pause is over.", "it took too many requests and asks for a pause")
    VENUE_UNKNOWN = ("venue_unknown", "An answer was lost",
        "Something was sent and its answer did not come. It is looked for, and nothing is sent twice.",
        "something was sent and its answer was lost: it is looked for")
    VENUE_REFUSED = ("venue_refused", "The marketplace refused", "It is tried again in the next cycle.",
        "it said no, or reports a failure")
    INSUFFICIENT_FUNDS = ("insufficient_funds", "Not enough funds",
        "The marketplace says the wallet does not cover the bid. Add funds on the Wallet page.",
        "it says that the wallet does not cover the bid; `address` is to be funded, with `sendSats` at least where "
        "that is known")
    PRICE_GRID = ("price_grid", "Price off the grid",
        "The marketplace takes other steps of price. The operator is notified.",
        "it says that the price is not on its grid")
    BELOW_MINIMUM = ("below_minimum", "Below the minimum", "The marketplace takes no bid this low. Raise the range.",
        "it says that the price is below its least")
    NOT_FOUND = ("not_found", "Not known there", "The marketplace does not know what was asked for. Check the name.",
        "it does not know the thing asked for")
    AUTH_FAILED = ("auth_failed", "Key not accepted",
        "The marketplace does not accept the installation's key. The operator must look.",
        "it does not accept the installation's key or the user's right; [when that ends a "
        "task](venues.md#what-an-answer-other-than-success-does)")
    SIGN_IN_NEEDED = ("sign_in_needed", "Session missing",
        "The wallet's session at the marketplace is over. It is made anew.", "the wallet's session there is missing")
    NOT_SUPPORTED = ("not_supported", "Not possible there", "This marketplace, or this installation, cannot do it.",
        "it, or the installation as configured, cannot do it")
    SIGNER_AWAY = ("signer_away", "The signer is away",
        "Nothing is signed until it is back, and cancels may have to wait. Open bids can still be filled.",
        "it did not answer")
    SIGNER_LOCKED = ("signer_locked", "The signer is locked",
        "The operator must unlock it. Nothing is signed until then.", "it has no keys at hand")
    SIGNER_REFUSED = ("signer_refused", "The signer refused", "One of its rules does not allow this. Nothing was sent.",
        "one of its rules refuses; `rule` names it")
    MAX_FILLS = ("max_fills", "Fills used up", "Filled as often as you allow. Raise the limit to continue.",
        "filled as often as maxFills allows")
    SPEND_CAP = ("spend_cap", "Spend cap reached", "What the task may spend is spent. Raise the cap to continue.",
        "spendCapSats is spent")
    MAX_FILLS_PER_DAY = ("max_fills_per_day", "Day's fills used up", "It continues when 24 hours have passed.",
        "filled within 24 hours as often as maxFillsPerDay allows")
    SPEND_CAP_PER_DAY = ("spend_cap_per_day", "Day's spend cap reached", "It continues when 24 hours have passed.",
        "spendCapPerDaySats was spent within 24 hours")
    BUDGET = ("budget", "Budget used up", "The shared budget leaves too little. It continues when there is room.",
        "the budget that the task shares with others leaves too little")
    FILL_BURST = ("fill_burst", "Fill burst",
        "Several bids were filled within minutes. Look at the market, then start it again.",
        "several bids were filled in a short time")
    CLOCK_SKEW = ("clock_skew", "Clocks differ",
        "Our clock and the marketplace's are too far apart. The operator must look.")
    HARDCAP = ("hardcap", "Hard cap too low", "The hard cap leaves no price to bid.",
        "the hard cap leaves no price to bid")
    QUOTA = ("quota", "Calls run short",
        "The calls to the marketplace run short. Fewer rungs are kept until they last again.",
        "the key's quota of calls runs short")
    NO_COINS = ("no_coins", "No coins left",
        "Bids are paid with whole coins, and none are left. Add funds on the Wallet page.",
        "no coins are left to pay with; one coin of `sendSats` at `address` pays")
    DISK_FULL = ("disk_full", "Disk full",
        "The disk has too little room: nothing is placed, and cancels are sent. The operator must look.",
        "the installation's disk has too little room")
    DATABASE_DAMAGED = ("database_damaged", "Database damaged",
        "Nothing is placed, and cancels are sent where the database still shows the bids. The operator must look.",
        "the installation's database is damaged, or a file of it was removed: nothing is placed ([what to "
        "do](operations.md#a-damaged-database))")
    NOT_ENTITLED = ("not_entitled", "Plan over",
        "The plan is over, or this address may not trade any more. An admin can change it.",
        "the plan is over, or the address may not trade any more")
    NO_REFERENCE = ("no_reference", "No floor", "No floor can be trusted. Nothing is placed until one can.",
        "no usable price to start from")
    IMPOSSIBLE_PRICE = ("impossible_price", "Impossible price",
        "More than every bitcoin there can be. Check the price.", "more than every bitcoin there can be")
    HOLDING_UNKNOWN = ("holding_unknown", "Place unknown",
        "It could not be read where the inscription lies. It is asked again.",
        "the place of the inscription could not be read")
    DELISTED_OFTEN = ("delisted_often", "Dropped often",
        "The marketplace dropped the listing again and again. Ask the marketplace why.")
    NOT_IN_VAULT = ("not_in_vault", "Not in the vault",
        "The inscription is not in the vault, or left it without a known sale.",
        "the inscription is not in the vault, or has left it without a known sale")
    BAD_CONFIG = ("bad_config", "Config cannot be done", "The task's settings cannot be carried out. Edit them.",
        "its config cannot be carried out")
    START_REFUSED = ("start_refused", "Start refused", "The last start was refused. The words say why.",
        "the last start was refused")
    START_FAILED = ("start_failed", "Start did not work", "The worker could not be started. It is tried again.",
        "its worker could not be started; it is tried again")
    WORKER_ENDED = ("worker_ended", "Worker ended", "The task's worker ended or hung. It is started again.",
        "its worker ended or hung; it is started again")
    GIVEN_UP = ("given_up", "Given up", "The worker ended too often. Nothing is tried any more until you start it.",
        "its worker ended too often, or for good: nothing is tried any more")
    NO_CYCLE = ("no_cycle", "No cycle",
        "The task runs, and nothing was recorded for three loops. The operator must look.",
        "it runs, and no cycle was recorded for three loops")
    CANNOT_CANCEL = ("cannot_cancel", "Cannot cancel now", "Open bids cannot be taken off for now. It is tried again.",
        "its open orders cannot be cancelled for now")
    OTHER = ("other", "Something else", "The words say what.", "anything else: only the words say what")


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
