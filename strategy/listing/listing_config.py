"""An auto-list task's config, and the rules that its fields must keep together.

`problems` is called on a request and again when the worker loads the stored config. Fields of a mode or reference that
is not selected are stored and not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from strategy import stored
from strategy.bid_config import MAX_SATS, MAX_TEXT, Problem
from strategy.pricing import plus, times

CHOICES = {
    "price_mode": ("percent", "fixed", "undercut"),
    "reference": ("floor", "traitFloor", "purchase", "lastSale"),
}
SATS = ("price_sats", "undercut_sats", "min_price_sats", "cost_sats")
MAX_PERCENT = 1000
MAX_MARGIN = 100
MAX_DECIMALS = 18
DEFAULT_LOOP_SECONDS, LEAST_LOOP_SECONDS, MOST_LOOP_SECONDS = 30, 5, 3_600


@dataclass(frozen=True, slots=True)
class ListingConfig:
    """The pricing of a listing. Sats are the item's, `price_percent` and `min_margin` are fractions (1.05 is 105 %)."""

    price_mode: str = "percent"
    price_percent: Decimal = Decimal("1.05")
    price_sats: int = 0
    undercut_sats: int = 1000
    min_price_sats: int = 0
    cost_sats: int | None = None
    min_margin: Decimal = Decimal(0)
    reference: str = "floor"
    allow_below_reference: bool = False
    trait_type: str = ""
    trait_value: str = ""
    loop_seconds: int | None = None
    dry_run: bool = False

    @property
    def loop_s(self) -> int:
        """The seconds between two cycles."""
        return DEFAULT_LOOP_SECONDS if self.loop_seconds is None else self.loop_seconds

    @property
    def trait(self) -> tuple[str, str] | None:
        """The trait (type, value) whose cheapest listing is the reference, None where another reference is used."""
        wanted = self.price_mode == "percent" and self.reference == "traitFloor"
        return (self.trait_type, self.trait_value) if wanted else None

    @property
    def wants_asks(self) -> bool:
        """Whether the price depends on the asks of others."""
        return self.price_mode == "undercut" or (
            self.price_mode == "percent" and self.reference in ("floor", "traitFloor")
        )

    @property
    def wants_collection(self) -> bool:
        """Whether the price depends on asks or sales of others, for which the collection must be known."""
        return self.wants_asks or (self.price_mode == "percent" and self.reference == "lastSale")


def problems(config: ListingConfig) -> list[Problem]:
    """Returns every broken rule of this config; an empty list means that it can be planned with."""
    found = list(_single_fields(config))
    return found + list(_between_fields(config, {problem.field for problem in found}))


def _single_fields(config: ListingConfig) -> Iterator[Problem]:
    for name, choices in CHOICES.items():
        if getattr(config, name) not in choices:
            yield Problem(name, f"must be {', '.join(choices[:-1])} or {choices[-1]}")
    for name in SATS:
        value = getattr(config, name)
        if value is not None and not 0 <= value <= MAX_SATS:
            yield Problem(name, f"must be a whole number from 0 to {MAX_SATS}")
    if not _is_within(config.price_percent, MAX_PERCENT) or config.price_percent == 0:
        yield Problem("price_percent", f"must be above 0 and at most {MAX_PERCENT} (1 is the reference price)")
    if not _is_within(config.min_margin, MAX_MARGIN):
        yield Problem("min_margin", f"must be from 0 to {MAX_MARGIN} (0.1 is 10 %)")
    if not LEAST_LOOP_SECONDS <= config.loop_s <= MOST_LOOP_SECONDS:
        yield Problem("loop_seconds", f"must be from {LEAST_LOOP_SECONDS} to {MOST_LOOP_SECONDS}, or null")
    for name in ("trait_type", "trait_value"):
        if len(getattr(config, name)) > MAX_TEXT:
            yield Problem(name, f"must not be longer than {MAX_TEXT} characters")


def _is_within(value: Decimal, most: int) -> bool:
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -MAX_DECIMALS and 0 <= value <= most


def _between_fields(config: ListingConfig, broken: set[str]) -> Iterator[Problem]:
    c = config
    if (
        "price_percent" not in broken
        and c.price_mode == "percent"
        and c.price_percent < 1
        and not c.allow_below_reference
    ):
        yield Problem("price_percent", "is below 1, the reference price: set allowBelowReference if that is meant")
    if c.price_mode == "fixed" and "price_sats" not in broken:
        if c.price_sats == 0:
            yield Problem("price_sats", "is required in fixed mode")
        elif c.price_sats < c.min_price_sats:
            yield Problem("price_sats", "must not be below minPriceSats")
    # A sum that no price may exceed is no least price for the signer either.
    if (
        not {"cost_sats", "min_margin"} & broken
        and c.cost_sats is not None
        and times(c.cost_sats, plus(1, c.min_margin)) > MAX_SATS
    ):
        yield Problem("cost_sats", f"must not come to more than {MAX_SATS} with minMargin")


def unstartable(config: ListingConfig) -> list[Problem]:
    """Returns the gaps of this legal config. It may be stored, but a task that is to start must fill them."""
    if config.price_mode != "percent":
        return []
    if config.reference == "purchase" and config.cost_sats is None:
        return [Problem("cost_sats", "is required when the reference is purchase")]
    if config.reference == "traitFloor":
        return [
            Problem(name, "is required when the reference is traitFloor")
            for name in ("trait_type", "trait_value")
            if not getattr(config, name).strip()
        ]
    return []


def warnings(config: ListingConfig) -> list[str]:
    """Returns legal but probably unintended settings, in words for the task's owner."""
    if config.price_mode != "fixed" and config.min_price_sats == 0 and config.cost_sats is None:
        return ["no minPriceSats and no costSats: the price follows the market down without a limit"]
    return []


def dump_listing_config(config: ListingConfig) -> str:
    """Returns the config as JSON for storage."""
    return stored.dumps(config)


def load_listing_config(text: str) -> ListingConfig:
    """Reads a config that `dump_listing_config` wrote. Raises ValueError when it is none; ranges are for `problems`."""
    return stored.loads(ListingConfig, text)
