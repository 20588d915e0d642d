"""A bidding task's config, and the rules that its fields must keep together.

`problems` is called on a request and again when the worker loads the stored config, so it checks single ranges too.
Fields of a mode that is not selected are stored and not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from strategy import bid_parts, stored
from strategy.bid_parts import ActiveHours, BidLevel, FloorDrop, OnFill

MAX_SATS = 2_100_000_000_000_000  # every bitcoin there can be; below 2**53, so exact in any JSON
MOST_ID = 2**53 - 1  # exact in any JSON
FEE_TIERS = ("fastestFee", "halfHourFee", "hourFee", "minimumFee")
DEFAULT_EXPIRY_MINUTES = 16
DEFAULT_LOOP_SECONDS = 30
MOST_LOOPS = 4  # a calm task without a loop of its own looks at the market once in so many


@dataclass(frozen=True, slots=True)
class BidConfig:
    """The config of one bidding task. Sats are of one whole bid, percents are fractions (0.01 is 1 %).

    With `bid_levels`, `bid_count` is the number of their bids.
    """

    slug: str
    type: str = "ordinals"
    bid_mode: str = "percent"
    bid_percent_low: Decimal = Decimal("0.15")
    bid_percent_high: Decimal = Decimal("0.75")
    bid_fixed_low: int = 10_000
    bid_fixed_high: int = 50_000
    bid_count: int = 5
    hardcap_sats: int = 0
    max_bid_total: int = 0
    bid_expiry_minutes: int | None = None
    loop_seconds: int | None = None
    outbid_enabled: bool = False
    outbid_mode: str = "fixed"
    outbid_amount: int = 1000
    outbid_percent: Decimal = Decimal("0.01")
    update_bid_enabled: bool = True
    only_bid_if_highest: bool = False
    bid_type: str = "collection"
    trait_type: str = ""
    trait_value: str = ""
    quantity: Decimal = Decimal(1)
    quantity_mode: str = "quantity"
    sats_per_order: int = 0
    use_vwap: bool = False
    depth_sats: int = 1_000_000
    fee_rate: str | Decimal = "halfHourFee"
    cancel_on_stop: bool = True
    max_fills: int = 0
    spend_cap_sats: int = 0
    dry_run: bool = False
    update_tolerance: Decimal | None = None
    keep_within_gap: Decimal = Decimal("0.25")
    min_age_seconds: int | None = None
    replace_mode: str = "auto"
    bid_levels: tuple[BidLevel, ...] | None = None
    ladder_shape: str = "even"
    pause_after_fill_seconds: int = 60
    max_fills_per_day: int = 0
    spend_cap_per_day_sats: int = 0
    only_while_floor_between: tuple[Decimal, ...] | None = None
    pause_on_floor_drop: FloorDrop | None = None
    active_hours: ActiveHours | None = None
    ignore_addresses: tuple[str, ...] = ()
    deliver_to: str = "ordinalsAddress"
    on_fill: OnFill | None = None
    budget_id: int | None = None

    @property
    def expiry_ms(self) -> int:
        """Life of a new bid in milliseconds."""
        return (DEFAULT_EXPIRY_MINUTES if self.bid_expiry_minutes is None else self.bid_expiry_minutes) * 60_000

    @property
    def loop_s(self) -> int:
        """Cycle interval in seconds."""
        return DEFAULT_LOOP_SECONDS if self.loop_seconds is None else self.loop_seconds

    @property
    def slowest_s(self) -> int:
        """The longest time in seconds that is meant to be between two cycles."""
        return MOST_LOOPS * DEFAULT_LOOP_SECONDS if self.loop_seconds is None else self.loop_seconds

    @property
    def level_count(self) -> int:
        """The bids of all levels together, 0 without levels."""
        return sum(level.count for level in self.bid_levels or ())

    @property
    def is_rune(self) -> bool:
        """Whether the slug is a rune ticker."""
        return self.type == "rune"

    @property
    def trait(self) -> tuple[str, str] | None:
        """The trait (type, value) that is bid on, None for bids on the whole collection."""
        return (self.trait_type, self.trait_value) if self.bid_type == "trait" else None

    @property
    def to_vault(self) -> bool:
        """Whether the vault gets what is bought."""
        return self.deliver_to == "vault"

    @property
    def wants_bids(self) -> bool:
        """Whether the bids of others matter."""
        return self.outbid_enabled or self.only_bid_if_highest

    @property
    def hangs_on_floor(self) -> bool:
        """Whether a collection's lowest ask is all that matters of the market.

        Not for a trait, whose own floor moves independently, nor for a rune, whose asks are read elsewhere and may
        count as far as a depth goes, nor where some sellers are ignored, of whom the floor may be.
        """
        return not (self.wants_bids or self.is_rune or self.bid_type == "trait" or self.ignore_addresses)

    @property
    def is_guarded(self) -> bool:
        """Whether the floor's own course may keep the task from bidding."""
        return self.only_while_floor_between is not None or self.pause_on_floor_drop is not None

    @property
    def wants_history(self) -> bool:
        """Whether earlier references matter: to clamp a reference that bids depend on, or to guard against its fall."""
        return self.bid_mode == "percent" or self.is_guarded


class Problem(NamedTuple):
    """One broken rule: the field (snake_case) and the fault, in words that follow the field's name."""

    field: str
    text: str


CHOICES = {
    "type": ("ordinals", "rune"),
    "bid_mode": ("percent", "fixed"),
    "outbid_mode": ("fixed", "percent"),
    "bid_type": ("collection", "trait"),
    "quantity_mode": ("quantity", "sats"),
    "replace_mode": ("auto", "breakFirst", "makeFirst"),
    "ladder_shape": ("even", "geometric", "top"),
    "deliver_to": ("ordinalsAddress", "vault"),
}
WHOLE_RANGES = {
    "bid_fixed_low": (0, MAX_SATS),
    "bid_fixed_high": (0, MAX_SATS),
    "bid_count": (1, 100),
    "hardcap_sats": (0, MAX_SATS),
    "max_bid_total": (0, MAX_SATS),
    "bid_expiry_minutes": (15, 10_080),
    "loop_seconds": (5, 86_400),
    "outbid_amount": (0, MAX_SATS),
    "sats_per_order": (0, MAX_SATS),
    "depth_sats": (1, MAX_SATS),
    "max_fills": (0, 1_000_000),
    "spend_cap_sats": (0, MAX_SATS),
    "min_age_seconds": (0, 3600),
    "pause_after_fill_seconds": (0, 86_400),
    "max_fills_per_day": (0, 1_000_000),
    "spend_cap_per_day_sats": (0, MAX_SATS),
    "budget_id": (1, MOST_ID),
}
# Fractions: of a rung's price, and of the gap between two rungs. From half a gap on a bid could hold two rungs.
FRACTION_RANGES = {
    "update_tolerance": (Decimal("0.001"), Decimal("0.2")),
    "keep_within_gap": (Decimal(0), Decimal("0.45")),
}
PERCENTS = ("bid_percent_low", "bid_percent_high", "outbid_percent")
TEXTS = ("slug", "trait_type", "trait_value")
MAX_PERCENT = 10
MAX_TEXT = 200
MAX_QUANTITY = Decimal(2**128)  # rune amounts are 128 bits in their smallest unit ...
MAX_DECIMALS = 38  # ... which is at most 38 decimals of a token
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
    """Returns the key by which a user's slugs are unique: as `canonical_slug`, tickers also without their bullets."""
    canonical = canonical_slug(type, slug)
    return canonical.replace(_BULLET, "") if type == "rune" else canonical


def is_ticker(slug: str) -> bool:
    """Tells whether a stored slug is a rune's: tickers are in upper case, collections in lower (`canonical_slug`)."""
    return slug == slug.upper() and slug != slug.lower()


def is_on(config: BidConfig, slug: str) -> bool:
    """Tells whether an order on this stored slug is on the config's: an order outlives a change of its task's slug."""
    return is_ticker(slug) == config.is_rune and normal_slug(config.type, slug) == normal_slug(config.type, config.slug)


def problems(config: BidConfig) -> list[Problem]:
    """Returns every broken rule of this config; an empty list means that it can be planned with.

    Both ranges are checked for low <= high, even the unselected one: a contradiction left in storage would surprise at
    the PUT that selects it.
    """
    found = [*_single_fields(config), *_slug(config)]
    return found + list(_between_fields(config, {problem.field for problem in found}))


def _single_fields(config: BidConfig) -> Iterator[Problem]:
    for name, choices in CHOICES.items():
        if getattr(config, name) not in choices:
            yield Problem(name, f"must be {' or '.join(choices)}")
    for name, (least, most) in WHOLE_RANGES.items():
        value = getattr(config, name)
        if value is not None and not least <= value <= most:
            yield Problem(name, f"must be a whole number from {least} to {most}")
    for name in PERCENTS:
        if not _is_within(getattr(config, name), Decimal(0), Decimal(MAX_PERCENT)):
            yield Problem(name, f"must be above 0 and at most {MAX_PERCENT} (1 is 100 %)")
    for name, (lowest, highest) in FRACTION_RANGES.items():
        fraction = getattr(config, name)
        if fraction is not None and not (lowest <= fraction <= highest and _decimals(fraction) <= MAX_DECIMALS):
            yield Problem(name, f"must be from {lowest} to {highest}")
    if not _is_within(config.quantity, Decimal(0), MAX_QUANTITY):
        yield Problem("quantity", f"must be above 0, with at most {MAX_DECIMALS} decimals")
    if not _is_fee_rate(config.fee_rate):
        yield Problem("fee_rate", f"must be {', '.join(FEE_TIERS)}, or 1 to 10000 sat/vB with at most 3 decimals")
    for name in TEXTS:
        if len(getattr(config, name)) > MAX_TEXT:
            yield Problem(name, f"must not be longer than {MAX_TEXT} characters")
    yield from _parts(config)


def _parts(config: BidConfig) -> Iterator[Problem]:
    """Finds one fault of each part; most configs have none of them."""
    found: dict[str, Iterator[str]] = {}
    is_fixed = config.bid_mode == "fixed"
    if config.bid_levels is not None:
        most = Decimal(MAX_SATS if is_fixed else MAX_PERCENT)
        found["bid_levels"] = bid_parts.wrong_levels(config.bid_levels, is_fixed=is_fixed, most=most)
    if config.only_while_floor_between is not None:
        bounds, is_rune = config.only_while_floor_between, config.type == "rune"
        found["only_while_floor_between"] = bid_parts.wrong_bounds(bounds, is_rune=is_rune, most=MAX_SATS)
    if config.pause_on_floor_drop is not None:
        found["pause_on_floor_drop"] = bid_parts.wrong_drop(config.pause_on_floor_drop)
    if config.active_hours is not None:
        found["active_hours"] = bid_parts.wrong_hours(config.active_hours)
    if config.ignore_addresses:
        found["ignore_addresses"] = bid_parts.wrong_addresses(config.ignore_addresses)
    if config.on_fill is not None:
        found["on_fill"] = bid_parts.wrong_on_fill(config.on_fill, to_vault=config.to_vault)
    for name, faults in found.items():
        if (text := next(faults, None)) is not None:
            yield Problem(name, text)


def _is_within(value: Decimal, above: Decimal, most: Decimal) -> bool:
    return value.is_finite() and above < value <= most and _decimals(value) <= MAX_DECIMALS


def _decimals(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _is_fee_rate(value: str | Decimal) -> bool:
    if isinstance(value, str):
        return value in FEE_TIERS
    return value.is_finite() and 1 <= value <= 10_000 and _decimals(value) <= 3


def _slug(config: BidConfig) -> Iterator[Problem]:
    if not config.slug:
        yield Problem("slug", "must not be empty")
    elif len(config.slug) > MAX_TEXT:
        return
    elif config.type == "rune":
        letters = len(config.slug.replace(_BULLET, ""))
        if not _TICKER.fullmatch(config.slug) or letters > _TICKER_LETTERS:
            yield Problem("slug", _TICKER_RULE)
    elif not _COLLECTION.fullmatch(config.slug):
        yield Problem("slug", _SLUG_RULE)


def _between_fields(config: BidConfig, broken: set[str]) -> Iterator[Problem]:
    c = config

    def sound(*names: str) -> bool:
        """Tells whether these fields are valid by themselves: only then does a rule between them make sense."""
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
        # In a shorter window there would be no price to fall from.
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
    """Returns the legal wishes of this config that are not built. A task with such a config must not start."""
    if not config.is_rune and config.quantity != 1:
        return [Problem("quantity", "several items per bid are not available yet")]
    return []


def dump_bid_config(config: BidConfig) -> str:
    """Returns the config as JSON for storage."""
    return stored.dumps(config)


@lru_cache(maxsize=16)  # one request, or one cycle, reads the same text several times
def load_bid_config(text: str) -> BidConfig:
    """Reads a config that `dump_bid_config` wrote. Raises ValueError when it is none (strategy/stored.py); ranges are
    for `problems`.
    """
    return stored.loads(BidConfig, text, FEE_TIERS)
