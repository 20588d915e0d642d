"""A bidding task's config, and the rules that its fields must keep.

A part is replaced as a whole, so a change must contain all of its fields.

`problems` is called on a request and again when the worker loads the stored config, so it checks single ranges, too.
Fields of an unselected mode are stored but not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Annotated, Any, NamedTuple

from msgspec import Struct

from core.fields import MAX_SATS as MAX_SATS  # the plans limit their sums by it, too
from strategy.config.table import (
    MAX_DECIMALS,
    MAX_TEXT,
    FeeRate,
    Field,
    decimals,
    dump,
    faults,
    flag,
    fraction,
    load,
    one_of,
    part,
    sats,
    stored_number,
    table_of,
    text,
    whole,
)

MOST_LEVELS, MOST_AT_A_LEVEL = 100, 20
MOST_DROP_MINUTES = 720
MOST_IGNORED = 50
MOST_OPEN, DEFAULT_OPEN = 500, 10
CLOCK, ADDRESS = "(?:[01][0-9]|2[0-3]):[0-5][0-9]", "[0-9A-Za-z]{14,90}"
_CLOCK = re.compile(CLOCK)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*)*")
_ADDRESS = re.compile(ADDRESS)


class BidLevel(Struct, frozen=True):
    """`count` bids at one price: `at` is a fraction of the reference in percent mode, sats of a bid in fixed mode."""

    at: Decimal
    count: int


class FloorDrop(Struct, frozen=True):
    """A fall of the floor by a fraction within some minutes, and the minutes without bids after it."""

    percent: Decimal
    window_minutes: int
    for_minutes: int


class ActiveHours(Struct, frozen=True):
    """The hours of a day in which bids are open, as local times in a time zone ("22:00" to "06:30")."""

    tz: str
    begin: str
    end: str


class OnFill(Struct, frozen=True):
    """The auto-list task to create for each fill. `autolist` is its stored config (listing.py), without its cost.

    With `start` the task is also started. `max_open` limits the number of such tasks; sold and deleted ones do not
    count.
    """

    autolist: str
    start: bool
    max_open: int = DEFAULT_OPEN


def wrong_levels(levels: tuple[BidLevel, ...], *, is_fixed: bool, most: Decimal) -> Iterator[str]:
    """Yields every fault of these levels; `most` is the maximum `at`."""
    if not 1 <= len(levels) <= MOST_LEVELS:
        yield f"must be null or a list of 1 to {MOST_LEVELS} levels"
        return
    if not all(1 <= level.count <= MOST_AT_A_LEVEL for level in levels):
        yield f"each count must be a whole number from 1 to {MOST_AT_A_LEVEL}"
    elif sum(level.count for level in levels) > MOST_LEVELS:
        yield f"must not come to more than {MOST_LEVELS} bids"
    if not all(_is_at(level.at, most) for level in levels):
        yield f"each at must be above 0 and at most {most:f}"
    elif is_fixed and any(level.at != int(level.at) for level in levels):
        yield "each at must be whole sats in fixed mode"
    elif len({level.at for level in levels}) < len(levels):
        yield "no two levels may have the same at"


def _is_at(at: Decimal, most: Decimal) -> bool:
    return at.is_finite() and 0 < at <= most and decimals(at) <= MAX_DECIMALS


def wrong_bounds(bounds: tuple[Decimal, ...], *, is_rune: bool, most: int) -> Iterator[str]:
    """Yields the fault of the two prices between which the floor must be."""
    if len(bounds) != 2 or not all(b.is_finite() and 0 <= b <= most and decimals(b) <= MAX_DECIMALS for b in bounds):
        yield f"must be null or two prices from 0 to {most}, the lower one first"
    elif bounds[0] >= bounds[1]:
        yield "the lower price must be below the upper one"
    elif not is_rune and any(bound != int(bound) for bound in bounds):
        yield "must be whole sats for ordinals"


def wrong_drop(drop: FloorDrop) -> Iterator[str]:
    """Yields every fault of this rule."""
    if not (
        drop.percent.is_finite() and Decimal("0.001") <= drop.percent < 1 and decimals(drop.percent) <= MAX_DECIMALS
    ):
        yield "percent must be from 0.001 to below 1 (0.1 is 10%)"
    for name, minutes in (("windowMinutes", drop.window_minutes), ("forMinutes", drop.for_minutes)):
        if not 1 <= minutes <= MOST_DROP_MINUTES:
            yield f"{name} must be a whole number from 1 to {MOST_DROP_MINUTES}"


def wrong_hours(hours: ActiveHours) -> Iterator[str]:
    """Yields every fault of these hours. Callers with a time zone database check whether the zone exists."""
    if len(hours.tz) > 64 or not _ZONE.fullmatch(hours.tz):
        yield 'tz must be the name of a time zone, such as "Europe/Berlin"'
    if not (_CLOCK.fullmatch(hours.begin) and _CLOCK.fullmatch(hours.end)):
        yield 'from and to must be times such as "22:00", up to "23:59"'
    elif hours.begin == hours.end:
        yield "from and to must differ; without activeHours a task is active all day"


def wrong_on_fill(on_fill: OnFill, *, to_vault: bool) -> Iterator[str]:
    """Yields every fault of this rule; the faults of its auto-list config are found by that config's own rules."""
    if not 1 <= on_fill.max_open <= MOST_OPEN:
        yield f"maxOpen must be a whole number from 1 to {MOST_OPEN}"
    if not to_vault:
        yield 'needs deliverTo "vault": only what is in the vault can be listed'


def wrong_addresses(addresses: tuple[str, ...]) -> Iterator[str]:
    """Yields the fault of these addresses."""
    if len(addresses) > MOST_IGNORED or not all(_ADDRESS.fullmatch(address) for address in addresses):
        yield f"must be a list of at most {MOST_IGNORED} addresses"


MOST_ID = 2**53 - 1  # exact in any JSON
MOST_FILLS = 1_000_000
MAX_PERCENT = 10
EXPIRY_MINUTES = (15, 10_080)
DEFAULT_EXPIRY_MINUTES = 16
DEFAULT_LOOP_SECONDS = 30
MOST_LOOPS = 4  # a task in a still market, without its own loopSeconds, reads the market once in this many loops
TYPES = {"ordinals": "Collection", "rune": "Rune"}
FEE_TIERS = {
    "fastestFee": "The next block",
    "halfHourFee": "Within half an hour",
    "hourFee": "Within an hour",
    "minimumFee": "The lowest that is relayed",
}

# The conditions under which a field is used.
IN_PERCENT, IN_SATS = {"bid_mode": ("percent",)}, {"bid_mode": ("fixed",)}
OF_ITEMS, OF_RUNES = {"type": ("ordinals",)}, {"type": ("rune",)}
ON_TRAIT = OF_ITEMS | {"bid_type": ("trait",)}
OUTBIDS = {"outbid_enabled": (True,)}
WITHOUT_LEVELS = {"bid_levels": (None,)}


def _percent(group: str, label: str, words: str, hint: str, **more: Any) -> Field:
    fault = f"must be above 0 and at most {MAX_PERCENT} (1 is 100%)"
    return fraction(group, label, words, hint, above=0, most=MAX_PERCENT, fault=fault, **more)


def _part_of_price(least: str, most: str, label: str, words: str, hint: str, **more: Any) -> Field:
    bounds: dict[str, Any] = {"least": Decimal(least), "most": Decimal(most)}
    return fraction("moves", label, words, hint, **bounds, fault=f"must be from {least} to {most}", **more)


class BidConfig(Struct, frozen=True, dict=True):
    """The config of one bidding task. Sats are for one whole bid, percents are fractions (0.01 is 1%).

    With `bid_levels`, `bid_count` is the total number of their bids.
    """

    # fmt: off
    slug: Annotated[str, part("text", "what", "Name",
        "Collection slug, or rune ticker with or without its bullets.", "", is_replayed=False)]
    type: Annotated[str, one_of(TYPES, "what", "Kind", "What the slug names.", "",
        is_replayed=False)] = "ordinals"
    bid_mode: Annotated[str, one_of({"percent": "% of the floor", "fixed": "Fixed sats"}, "range", "Range as",
        "Whether the range is a fraction of the floor or fixed sats.", "")] = "percent"
    bid_percent_low: Annotated[Decimal, _percent("range", "Lowest bid",
        "Low end of the range as a fraction of the floor (0.15 is 15%).", "", when=IN_PERCENT)] = Decimal("0.15")
    bid_percent_high: Annotated[Decimal, _percent("range", "Highest bid",
        "High end of the range as a fraction of the floor.", "", when=IN_PERCENT)] = Decimal("0.75")
    bid_fixed_low: Annotated[int, sats("range", "Lowest bid", "Low end of the range in sats, in fixed mode.", "",
        when=IN_SATS)] = 10_000
    bid_fixed_high: Annotated[int, sats("range", "Highest bid", "High end of the range in sats, in fixed mode.", "",
        when=IN_SATS)] = 50_000
    bid_count: Annotated[int, whole(1, 100, "main", "Bids at a time",
        "Bids kept at the same time; cut to what the plan allows.", "Spread from the highest bid to the lowest.",
        when=WITHOUT_LEVELS)] = 5
    hardcap_sats: Annotated[int, sats("main", "Hard cap",
        "No bid is above it. Required in percent mode, where 0 is refused.",
        "Your highest price: no bid exceeds it, whatever the floor does.", no_limit_at_0=True)] = 0
    max_bid_total: Annotated[int, sats("main", "All bids together",
        "Most sats of all the task's bids together; 0 is unlimited.", "Maximum total of open bids. 0 = no limit.",
        no_limit_at_0=True)] = 0
    bid_expiry_minutes: Annotated[int | None, whole(*EXPIRY_MINUTES, "main", "Bid expires after",
        f"Lifetime of a bid; null is {DEFAULT_EXPIRY_MINUTES}.",
        f"Expires after this, then is placed again. Default: {DEFAULT_EXPIRY_MINUTES} min.", unit="min",
        usual=f"{DEFAULT_EXPIRY_MINUTES}")] = None
    loop_seconds: Annotated[int | None, whole(5, 86_400, "moves", "Check the market every",
        f"Seconds between two cycles; null: every {DEFAULT_LOOP_SECONDS} seconds, up to "
        f"{DEFAULT_LOOP_SECONDS * MOST_LOOPS} while nothing moves.",
        f"Default: every {DEFAULT_LOOP_SECONDS} s, less often while nothing moves.", unit="s",
        usual=f"{DEFAULT_LOOP_SECONDS} to {DEFAULT_LOOP_SECONDS * MOST_LOOPS}")] = None
    outbid_enabled: Annotated[bool, flag("main", "Outbid others", "Bid above competitors.",
        "Bid just enough to rank first, within your range.")] = False
    outbid_mode: Annotated[str, one_of({"fixed": "Sats", "percent": "Percent"}, "outbid", "Outbid in",
        "Whether outbidding adds sats or a fraction.", "Added to the rival's price.",
        when=OUTBIDS)] = "fixed"
    outbid_amount: Annotated[int, sats("outbid", "Outbid by", "Sats added above a competitor, in fixed mode.",
        "For the whole bid or order.", when=OUTBIDS | {"outbid_mode": ("fixed",)})] = 1000
    outbid_percent: Annotated[Decimal, _percent("outbid", "Outbid by",
        "Fraction added above a competitor, in percent mode (0.01 is 1%).", "Of the rival's price.",
        when=OUTBIDS | {"outbid_mode": ("percent",)})] = Decimal("0.01")
    update_bid_enabled: Annotated[bool, flag("moves", "Follow the market", "Replace bids when the market moves.",
        "Replace bids when prices move. Off: a bid stays until it expires.")] = True
    only_bid_if_highest: Annotated[bool, flag("outbid", "Only while highest", "Cancel bids that are not the highest.",
        "Cancel a bid as soon as another user's is higher.")] = False
    bid_type: Annotated[str, one_of({"collection": "Every item of the collection", "trait": "Items with a trait"},
        "trait", "Bid on", "Bids on the whole collection or on one trait.",
        "Trait bids follow the floor of the items that have the trait.", when=OF_ITEMS)] = "collection"
    trait_type: Annotated[str, text("trait", "Trait", "Trait category, for trait bids.",
        "Category, such as Background.", when=ON_TRAIT)] = ""
    trait_value: Annotated[str, text("trait", "Value", "Trait value, for trait bids.",
        "Such as Gold. Checked with the marketplace.", when=ON_TRAIT)] = ""
    quantity: Annotated[Decimal, part("quantity", "size", "Tokens per order", "Tokens per bid (runes, quantity mode).",
        "Tokens that each bid buys.", above=0, most=Decimal(2**128), has_open_top=True,
        fault=f"must be above 0, with at most {MAX_DECIMALS} decimals",
        when=OF_RUNES | {"quantity_mode": ("quantity",)})] = Decimal(1)
    quantity_mode: Annotated[str, one_of({"quantity": "Tokens", "sats": "Sats"}, "size", "Order size in",
        "Whether a rune order is sized by tokens or by sats.", "Same tokens, or same sats, in each order.",
        when=OF_RUNES | IN_PERCENT)] = "quantity"
    sats_per_order: Annotated[int, sats("size", "Sats per order", "Size of a rune order, in sats mode.",
        "The most that each bid spends; lower prices buy more tokens.",
        when=OF_RUNES | {"quantity_mode": ("sats",)})] = 0
    use_vwap: Annotated[bool, flag("vwap", "Use the average price (VWAP)",
        "Use the volume-weighted average price instead of the floor (runes).",
        "The range follows the average price of the cheapest asks, not the lowest ask.", when=OF_RUNES)] = False
    depth_sats: Annotated[int, sats("vwap", "Depth of the average",
        "Depth of the order book that the average looks at.",
        "Average over the cheapest asks that this much would buy.", least=1,
        when=OF_RUNES | {"use_vwap": (True,)})] = 1_000_000
    fee_rate: Annotated[FeeRate, part("fee", "more", "Fee rate",
        "A tier, or sat/vB from 1 to 10000 with at most 3 decimals.", "For the task's own transactions.",
        choices=FEE_TIERS, least=1, most=10_000, places=3, unit="sat/vB",
        fault=f"must be {', '.join(FEE_TIERS)}, or 1 to 10000 sat/vB with at most 3 decimals",
        is_replayed=False)] = "halfHourFee"
    cancel_on_stop: Annotated[bool, flag("moves", "Cancel bids when stopped",
        "Cancel the task's bids when it is stopped.", "Off: they stay until they expire.", is_replayed=False)] = True
    max_fills: Annotated[int, whole(0, MOST_FILLS, "guards", "Maximum fills", "End after this many fills; 0 is never.",
        "The task ends after this many. 0 = no limit.", no_limit_at_0=True)] = 0
    spend_cap_sats: Annotated[int, sats("guards", "Maximum spend", "End after this many sats spent; 0 is never.",
        "The most its fills may cost in total. 0 = no limit.", no_limit_at_0=True)] = 0
    dry_run: Annotated[bool, flag("more", "Dry run", "Plan and report, place nothing.",
        "Runs on paper: plans and records as usual, but places nothing.", is_replayed=False)] = False
    update_tolerance: Annotated[Decimal | None, _part_of_price("0.001", "0.2", "Ignore moves smaller than",
        "A live bid this close to its rung stays, as a fraction of the price; null: the service's.",
        "Share of the bid's price. Empty: the server's default.", usual="the default")] = None
    keep_within_gap: Annotated[Decimal, _part_of_price("0", "0.45", "Gap tolerance",
        "Lower rungs also keep a bid this close, as a fraction of the gap between two rungs.",
        "Leave a bid alone while it is within this share of the gap to the next rung.")] = Decimal("0.25")
    min_age_seconds: Annotated[int | None, whole(0, 3600, "moves", "Minimum age before a move",
        "No bid is replaced before this age; null is the service's own.",
        "Younger bids are not replaced. Empty: the server's default.", unit="s", usual="the default")] = None
    replace_mode: Annotated[str, one_of(
        {"auto": "Automatic", "breakFirst": "Cancel first", "makeFirst": "Place first"}, "moves",
        "When replacing a bid",
        "Whether a bid is placed before the one that it replaces is cancelled; auto: where limits allow.",
        "Automatic places the new bid first if your limits have room for both.")] = "auto"
    bid_levels: Annotated[tuple[BidLevel, ...] | None, part("levels", "ladder", "Custom levels",
        "The prices of the bids, in place of rungs spread over the range; bidCount is then their number.",
        "Choose how many bids to place at which prices, instead of an even spread.")] = None
    ladder_shape: Annotated[str, one_of(
        {"even": "Even gaps", "geometric": "Equal ratios", "top": "Denser near the top"},
        "ladder", "Spread", "How rungs are spread: evenly, by equal ratios, or most of them near the top.",
        "How the bids are spread over the range.", when=WITHOUT_LEVELS)] = "even"
    pause_after_fill_seconds: Annotated[int, whole(0, 86_400, "guards", "Pause after a fill",
        "Nothing is placed for this long after a fill.", "Place nothing new for this long.", unit="s")] = 60
    max_fills_per_day: Annotated[int, whole(0, MOST_FILLS, "guards", "Maximum fills per day",
        "Most fills in any 24 hours; 0 is any number.", "Within any 24 hours. 0 = no limit.", no_limit_at_0=True)] = 0
    spend_cap_per_day_sats: Annotated[int, sats("guards", "Maximum spend per day",
        "Most sats spent in any 24 hours; 0 is unlimited.", "Within any 24 hours. 0 = no limit.",
        no_limit_at_0=True)] = 0
    only_while_floor_between: Annotated[tuple[Decimal, ...] | None, part("between", "guards",
        "Only while the floor is between",
        "Nothing is placed while the floor (sats of an item or a token, as in GET /api/tasks/floor) is below the "
        "first or above the second price.",
        "Outside this range all bids are cancelled.")] = None
    pause_on_floor_drop: Annotated[FloorDrop | None, part("drop", "guards", "Pause when the floor falls",
        "All bids go when the floor falls so far, and come back after a pause.",
        "All bids are cancelled, and none is placed for a while.")] = None
    active_hours: Annotated[ActiveHours | None, part("hours", "guards", "Active hours",
        "There are bids only at these hours of the day.", "Bids are open only at these hours, every day.")] = None
    ignore_addresses: Annotated[tuple[str, ...], part("lines", "outbid", "Addresses to ignore",
        "Bids and listings of these addresses are not part of the market.",
        "One per line. Their bids and listings are ignored.")] = ()
    deliver_to: Annotated[str, one_of({"ordinalsAddress": "Your ordinals address", "vault": "The vault"}, "fill",
        "Deliver purchases to",
        "Which address gets what is bought; the vault for ordinals only, and always at ord.net.",
        "Only items in the vault can be listed here.", when=OF_ITEMS, is_replayed=False)] = "ordinalsAddress"
    on_fill: Annotated[OnFill | None, part("onFill", "fill", "List purchases",
        "The auto-list task to make of each fill once it is in the vault; null: none.",
        "Creates an auto-list task for each fill. Needs delivery to the vault.", when=OF_ITEMS,
        is_replayed=False)] = None
    budget_id: Annotated[int | None, whole(1, MOST_ID, "more", "Shared budget",
        "The budget whose limits it shares with other tasks; null: none.", "Limits that several tasks share.",
        kind="budget")] = None
    # fmt: on

    @cached_property
    def expiry_ms(self) -> int:
        return (DEFAULT_EXPIRY_MINUTES if self.bid_expiry_minutes is None else self.bid_expiry_minutes) * 60_000

    @cached_property
    def loop_s(self) -> int:
        return DEFAULT_LOOP_SECONDS if self.loop_seconds is None else self.loop_seconds

    @cached_property
    def slowest_s(self) -> int:
        """The intended maximum number of seconds between two cycles."""
        return MOST_LOOPS * DEFAULT_LOOP_SECONDS if self.loop_seconds is None else self.loop_seconds

    @cached_property
    def level_count(self) -> int:
        """The total number of bids of all levels, 0 without levels."""
        return sum(level.count for level in self.bid_levels or ())

    @cached_property
    def is_rune(self) -> bool:
        return self.type == "rune"

    @cached_property
    def trait(self) -> tuple[str, str] | None:
        """The trait (type, value) to bid on, None for bids on the whole collection."""
        return (self.trait_type, self.trait_value) if self.bid_type == "trait" else None

    @cached_property
    def to_vault(self) -> bool:
        return self.deliver_to == "vault"

    @cached_property
    def wants_bids(self) -> bool:
        return self.outbid_enabled or self.only_bid_if_highest

    @cached_property
    def hangs_on_floor(self) -> bool:
        """Whether the task needs only a collection's lowest ask.

        False for a trait, because its floor moves independently. False for a rune, because its asks come from another
        source and may be needed to some depth. False with ignored addresses, because the lowest ask may be theirs.
        """
        return not (self.wants_bids or self.is_rune or self.bid_type == "trait" or self.ignore_addresses)

    @cached_property
    def is_guarded(self) -> bool:
        """Whether moves of the floor may keep the task from bidding."""
        return self.only_while_floor_between is not None or self.pause_on_floor_drop is not None

    @cached_property
    def wants_history(self) -> bool:
        """Whether earlier references are needed: to clamp the reference, or to guard against its fall."""
        return self.bid_mode == "percent" or self.is_guarded


class Problem(NamedTuple):
    """One broken rule: the field (snake_case) and the fault, in words that follow the field's name."""

    field: str
    text: str


_COLLECTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TICKER = re.compile(r"[A-Za-z](?:\u2022?[A-Za-z])*")
_BULLET = "\u2022"
_SLUG_RULE = "must be letters, digits, dots, dashes and underscores, a letter or digit first, such as bitcoin-puppets"
_TICKER_LETTERS = 28
_TICKER_RULE = (
    f"must be a ticker of 1 to {_TICKER_LETTERS} letters, bullets only between letters, such as UNCOMMON\u2022GOODS"
)


def canonical_slug(type: str, slug: str) -> str:
    """Returns the spelling that is stored and sent to venues: collections in lower case, tickers in upper case."""
    return slug.strip().upper() if type == "rune" else slug.strip().lower()


def normal_slug(type: str, slug: str) -> str:
    """Returns the key by which a user's slugs are unique: `canonical_slug`, for tickers without their bullets."""
    canonical = canonical_slug(type, slug)
    return canonical.replace(_BULLET, "") if type == "rune" else canonical


def is_ticker(slug: str) -> bool:
    """Tells whether a stored slug is a rune's: tickers are in upper case, collections in lower (`canonical_slug`)."""
    return slug == slug.upper() and slug != slug.lower()


def is_on(config: BidConfig, slug: str) -> bool:
    """Tells whether an order's stored slug is the config's; it may differ, because orders outlive a changed slug."""
    return is_ticker(slug) == config.is_rune and normal_slug(config.type, slug) == normal_slug(config.type, config.slug)


def problems(config: BidConfig) -> list[Problem]:
    """Returns every broken rule of this config; if the list is empty, the config can be planned with.

    Both ranges are checked for low <= high, even the unselected one; otherwise a stored contradiction would appear only
    in the later PUT that selects it.
    """
    found = [*(Problem(*fault) for fault in faults(config)), *_parts(config), *_slug(config)]
    return found + list(_between_fields(config, {problem.field for problem in found}))


def _parts(config: BidConfig) -> Iterator[Problem]:
    """Yields at most one problem per part."""
    found: dict[str, Iterator[str]] = {}
    is_fixed = config.bid_mode == "fixed"
    if config.bid_levels is not None:
        most = Decimal(MAX_SATS if is_fixed else MAX_PERCENT)
        found["bid_levels"] = wrong_levels(config.bid_levels, is_fixed=is_fixed, most=most)
    if config.only_while_floor_between is not None:
        bounds, is_rune = config.only_while_floor_between, config.type == "rune"
        found["only_while_floor_between"] = wrong_bounds(bounds, is_rune=is_rune, most=MAX_SATS)
    if config.pause_on_floor_drop is not None:
        found["pause_on_floor_drop"] = wrong_drop(config.pause_on_floor_drop)
    if config.active_hours is not None:
        found["active_hours"] = wrong_hours(config.active_hours)
    if config.ignore_addresses:
        found["ignore_addresses"] = wrong_addresses(config.ignore_addresses)
    if config.on_fill is not None:
        found["on_fill"] = wrong_on_fill(config.on_fill, to_vault=config.to_vault)
    for name, wrong in found.items():
        if (fault := next(wrong, None)) is not None:
            yield Problem(name, fault)


def _slug(config: BidConfig) -> Iterator[Problem]:
    if not config.slug:
        yield Problem("slug", "must not be empty")
    elif len(config.slug) > MAX_TEXT:
        yield Problem("slug", f"must not be longer than {MAX_TEXT} characters")
    elif config.type == "rune":
        letters = len(config.slug.replace(_BULLET, ""))
        if not _TICKER.fullmatch(config.slug) or letters > _TICKER_LETTERS:
            yield Problem("slug", _TICKER_RULE)
    elif not _COLLECTION.fullmatch(config.slug):
        yield Problem("slug", _SLUG_RULE)


def _between_fields(config: BidConfig, broken: set[str]) -> Iterator[Problem]:
    c = config

    def sound(*names: str) -> bool:
        """Tells whether these fields are valid alone; otherwise rules between them are not checked."""
        return broken.isdisjoint(names)

    if sound("bid_percent_low", "bid_percent_high") and c.bid_percent_low > c.bid_percent_high:
        yield Problem("bid_percent_low", "must not be above the high end")
    if sound("bid_fixed_low", "bid_fixed_high") and c.bid_fixed_low > c.bid_fixed_high:
        yield Problem("bid_fixed_low", "must not be above the high end")
    if sound("hardcap_sats") and c.bid_mode == "percent" and c.hardcap_sats == 0:
        yield Problem("hardcap_sats", "is required in percent mode")
    if sound("bid_levels", "bid_count") and c.bid_levels is not None and c.bid_count != c.level_count:
        yield Problem("bid_count", f"must be {c.level_count}, the bids of bidLevels, or be left out")
    least_s = 2 * c.loop_s + 60
    if sound("bid_expiry_minutes", "loop_seconds") and c.expiry_ms < least_s * 1000:
        yield Problem("bid_expiry_minutes", f"must be at least two cycles and a minute ({least_s} seconds)")
    if c.pause_on_floor_drop is not None and sound("pause_on_floor_drop", "loop_seconds"):
        # A shorter window might contain no earlier price to fall from.
        least = -(-2 * c.slowest_s // 60)
        if c.pause_on_floor_drop.window_minutes < least:
            yield Problem("pause_on_floor_drop", f"must have windowMinutes of two cycles at least ({least})")
    if sound("type"):
        yield from _of_type(c, sound("quantity"))
    if c.quantity_mode == "sats":
        yield from _of_sats_mode(c, sound("sats_per_order"), sound("hardcap_sats"))


def _of_type(config: BidConfig, quantity_sound: bool) -> Iterator[Problem]:
    if config.bid_type == "trait":
        if config.type != "ordinals":
            yield Problem("bid_type", "trait bids are for ordinals only")
        for name in ("trait_type", "trait_value"):
            if not getattr(config, name).strip():
                yield Problem(name, "is required for trait bids")
    if config.type == "ordinals":
        if quantity_sound and config.quantity != int(config.quantity):
            yield Problem("quantity", "must be a whole number for ordinals")
        if config.quantity_mode == "sats":
            yield Problem("quantity_mode", "sats is for runes only")
        if config.use_vwap:
            yield Problem("use_vwap", "is for runes only")
    elif config.to_vault:
        yield Problem("deliver_to", "must be ordinalsAddress for runes: they cannot be got out of the vault yet")


def _of_sats_mode(config: BidConfig, order_sound: bool, hardcap_sound: bool) -> Iterator[Problem]:
    if config.bid_mode == "fixed":
        yield Problem("quantity_mode", "sats contradicts a fixed range: both say what one order costs")
    if order_sound and config.sats_per_order == 0:
        yield Problem("sats_per_order", "is required in sats mode")
    if order_sound and hardcap_sound and config.sats_per_order > config.hardcap_sats > 0:
        yield Problem("sats_per_order", "must not be above the hard cap")


def unsupported(config: BidConfig) -> list[Problem]:
    """Returns the valid settings of this config that are not supported yet. A task with any of them must not start."""
    if not config.is_rune and config.quantity != 1:
        return [Problem("quantity", "several items per bid are not available yet")]
    return []


def dump_bid_config(config: BidConfig) -> str:
    """Returns the config as JSON for storage."""
    return dump(config)


@lru_cache(maxsize=16)  # one request, or one cycle, reads the same text several times
def load_bid_config(text: str) -> BidConfig:
    """Reads a config that `dump_bid_config` wrote. Raises ValueError for other texts; `problems` checks ranges."""
    return load(BidConfig, text, {"fee_rate": _stored_fee_rate})


def _stored_fee_rate(value: Any) -> str | Decimal:
    return value if isinstance(value, str) and value in FEE_TIERS else stored_number("fee_rate", value)


table_of(BidConfig)  # evaluated before the workers are forked, so that they share it
