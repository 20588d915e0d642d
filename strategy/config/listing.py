"""An auto-list task's config, and the rules between its fields.

`problems` is called on a request and again when the worker loads the stored config. Fields of an unselected mode or
reference are stored but not used.
"""

from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Annotated

from msgspec import Struct

from core.fields import MAX_SATS
from strategy.book import plus, times
from strategy.config.bid import Problem, wrong_addresses
from strategy.config.table import (
    decimals,
    dump,
    faults,
    flag,
    fraction,
    load,
    one_of,
    part,
    sats,
    table_of,
    text,
    whole,
)

MAX_PERCENT = 1000
MAX_MARGIN = 100
MOST_STEPS, MOST_HOURS = 20, 8_760
MAX_DECIMALS = 18
DEFAULT_LOOP_SECONDS, LEAST_LOOP_SECONDS, MOST_LOOP_SECONDS = 30, 5, 3_600

# The conditions under which a field is used.
BY_PERCENT, AT_SATS, BELOW_OTHERS = ({"price_mode": (mode,)} for mode in ("percent", "fixed", "undercut"))
OF_TRAIT = {"reference": ("traitFloor",)}


class PriceStep(Struct, frozen=True):
    """A price that applies from some hours after the first listing: a multiple of the reference, or sats."""

    after_hours: int
    price_percent: Decimal | None = None
    price_sats: int | None = None


class ListingConfig(Struct, frozen=True):
    """The pricing of a listing. Sats are for the item; `price_percent` and `min_margin` are fractions (1.05 is 105%).

    `price_schedule` changes the price over time (strategy/plan_listing.py). Asks of `ignore_addresses` are ignored.
    """

    # fmt: off
    price_mode: Annotated[str, one_of(
        {"percent": "Follow a reference", "fixed": "Fixed price", "undercut": "Undercut"}, "price",
        "How the price is found", "How the price is found.", "",
        says="percent, fixed or undercut")] = "percent"
    price_percent: Annotated[Decimal, fraction("price", "Share of the reference",
        "Price as a multiple of the reference price (1.05 is 5% above it).",
        "105% is 5% above the reference.", above=0, most=MAX_PERCENT, places=MAX_DECIMALS,
        fault=f"must be above 0 and at most {MAX_PERCENT} (1 is the reference price)",
        when=BY_PERCENT)] = Decimal("1.05")
    price_sats: Annotated[int, sats("price", "Price", "The price, in fixed mode, where 0 is refused.",
        "Rounded up to the marketplace's price steps.", when=AT_SATS)] = 0
    undercut_sats: Annotated[int, sats("price", "Undercut by",
        "How far below the cheapest listing, in undercut mode.",
        "Listings that are too cheap to undercut above your minimum price are skipped.", when=BELOW_OTHERS)] = 1000
    min_price_sats: Annotated[int, sats("least", "Never below", "The price is never below it.",
        "Overrides everything else. Empty: no minimum.", no_limit_at_0=True)] = 0
    cost_sats: Annotated[int | None, sats("least", "Your cost", "What the inscription cost; null is unknown.",
        "Empty: its purchase price here, if there is one.", usual="unknown")] = None
    min_margin: Annotated[Decimal, fraction("least", "Minimum profit over cost",
        "Least gain over the cost as a fraction (0.1 is 10%).", "After the marketplace's fee.", least=0,
        most=MAX_MARGIN, places=MAX_DECIMALS, fault=f"must be from 0 to {MAX_MARGIN} (0.1 is 10%)")] = Decimal(0)
    reference: Annotated[str, one_of(
        {"floor": "Floor of the collection", "traitFloor": "Floor of a trait", "purchase": "What you paid",
         "lastSale": "Last sales"}, "price", "Reference", "The price that pricePercent multiplies.", "",
        says="floor, traitFloor, purchase or lastSale", when=BY_PERCENT)] = "floor"
    allow_below_reference: Annotated[bool, flag("price", "Allow a price below the reference",
        "Let pricePercent be below 1.",
        "Off: a share below 100% is refused, so that a typo can't list too cheaply.",
        when=BY_PERCENT)] = False
    trait_type: Annotated[str, text("price", "Trait",
        "Trait category whose cheapest listing is the reference traitFloor.", "Category, such as Background.",
        when=OF_TRAIT)] = ""
    trait_value: Annotated[str, text("price", "Value", "Trait value of that reference.",
        "Such as Gold. Checked with the marketplace.", when=OF_TRAIT)] = ""
    loop_seconds: Annotated[int | None, whole(LEAST_LOOP_SECONDS, MOST_LOOP_SECONDS, "more",
        "Check the market every", "Seconds between two cycles; null is the default of 30.",
        f"Default: every {DEFAULT_LOOP_SECONDS} s.", unit="s", usual=f"{DEFAULT_LOOP_SECONDS}",
        fault=f"must be from {LEAST_LOOP_SECONDS} to {MOST_LOOP_SECONDS}, or null")] = None
    dry_run: Annotated[bool, flag("more", "Dry run",
        "Decide, have the signer judge the marketplace's draft, and report; nothing is signed or listed.",
        "Runs on paper: decides and reports as usual, but signs and lists nothing.")] = False
    price_schedule: Annotated[tuple[PriceStep, ...], part("schedule", "time", "Price over time",
        "Prices over time: each step holds from its hour on, in place of the price above.",
        "Each applies from its hour on, counted from the first listing.")] = ()
    ignore_addresses: Annotated[tuple[str, ...], part("lines", "more", "Addresses to ignore",
        "Listings of these addresses are not part of the market.",
        "One per line. Their listings are ignored; your own always are.")] = ()
    # fmt: on

    @property
    def multiplies(self) -> bool:
        """Whether the price is, or will be, a multiple of the reference."""
        return self.price_mode == "percent" or any(step.price_percent is not None for step in self.price_schedule)

    @property
    def loop_s(self) -> int:
        """The seconds between two cycles."""
        return DEFAULT_LOOP_SECONDS if self.loop_seconds is None else self.loop_seconds

    @property
    def trait(self) -> tuple[str, str] | None:
        """The trait (type, value) whose cheapest listing is the reference, None with another reference."""
        wanted = self.multiplies and self.reference == "traitFloor"
        return (self.trait_type, self.trait_value) if wanted else None

    @property
    def wants_asks(self) -> bool:
        """Whether the price depends on the asks of others."""
        return self.price_mode == "undercut" or (self.multiplies and self.reference in ("floor", "traitFloor"))

    @property
    def wants_collection(self) -> bool:
        """Whether the price depends on other users' asks or sales, so that the collection must be known."""
        return self.wants_asks or (self.multiplies and self.reference == "lastSale")


def problems(config: ListingConfig) -> list[Problem]:
    """Returns every broken rule of this config; if the list is empty, the config can be planned with."""
    found = list(_single_fields(config))
    return found + list(_between_fields(config, {problem.field for problem in found}))


def _single_fields(config: ListingConfig) -> Iterator[Problem]:
    yield from (Problem(*fault) for fault in faults(config))
    if (fault := next(_wrong_steps(config.price_schedule), None)) is not None:
        yield Problem("price_schedule", fault)
    if (fault := next(wrong_addresses(config.ignore_addresses), None)) is not None:
        yield Problem("ignore_addresses", fault)


def _wrong_steps(steps: tuple[PriceStep, ...]) -> Iterator[str]:
    if len(steps) > MOST_STEPS:
        yield f"must be a list of at most {MOST_STEPS} steps"
    hours = [step.after_hours for step in steps]
    if not all(0 <= each <= MOST_HOURS for each in hours):
        yield f"each afterHours must be a whole number from 0 to {MOST_HOURS}"
    if any(later <= earlier for earlier, later in pairwise(hours)):
        yield "each step must come after the one before it"
    for step in steps:
        if (step.price_percent is None) == (step.price_sats is None):
            yield "each step must have either pricePercent or priceSats"
        elif step.price_sats is not None and not 1 <= step.price_sats <= MAX_SATS:
            yield f"each priceSats must be a whole number from 1 to {MAX_SATS}"
        elif step.price_percent is not None and not _is_multiple(step.price_percent):
            yield f"each pricePercent must be above 0 and at most {MAX_PERCENT} (1 is the reference price)"


def _is_multiple(percent: Decimal) -> bool:
    return percent.is_finite() and decimals(percent) <= MAX_DECIMALS and 0 < percent <= MAX_PERCENT


def _between_fields(config: ListingConfig, broken: set[str]) -> Iterator[Problem]:
    c = config
    if (
        "price_percent" not in broken
        and c.price_mode == "percent"
        and c.price_percent < 1
        and not c.allow_below_reference
    ):
        yield Problem("price_percent", "is below 1, the reference price: set allowBelowReference to allow that")
    if not {"price_schedule", "min_price_sats"} & broken:
        percents = [step.price_percent for step in c.price_schedule if step.price_percent is not None]
        if any(percent < 1 for percent in percents) and not c.allow_below_reference:
            fault = "has a pricePercent below 1, the reference price: set allowBelowReference to allow that"
            yield Problem("price_schedule", fault)
        elif any(step.price_sats is not None and step.price_sats < c.min_price_sats for step in c.price_schedule):
            yield Problem("price_schedule", "must not have a priceSats below minPriceSats")
    if c.price_mode == "fixed" and "price_sats" not in broken:
        if c.price_sats == 0:
            yield Problem("price_sats", "is required in fixed mode")
        elif c.price_sats < c.min_price_sats:
            yield Problem("price_sats", "must not be below minPriceSats")
    # A sum above every allowed price cannot be the signer's minimum price either.
    if (
        not {"cost_sats", "min_margin"} & broken
        and c.cost_sats is not None
        and times(c.cost_sats, plus(1, c.min_margin)) > MAX_SATS
    ):
        yield Problem("cost_sats", f"must not come to more than {MAX_SATS} with minMargin")


def unstartable(config: ListingConfig) -> list[Problem]:
    """Returns the gaps of a valid config that must be filled before its task may start."""
    if not config.multiplies:
        return []
    if config.reference == "purchase" and config.cost_sats is None:
        return [Problem("cost_sats", "is required when the reference is purchase and no purchase of it is proved")]
    if config.reference == "traitFloor":
        return [
            Problem(name, "is required when the reference is traitFloor")
            for name in ("trait_type", "trait_value")
            if not getattr(config, name).strip()
        ]
    return []


def warnings(config: ListingConfig) -> list[str]:
    """Returns valid but probably unintended settings, in words for the task's owner."""
    if config.price_mode != "fixed" and config.min_price_sats == 0 and config.cost_sats is None:
        return ["no minPriceSats and no costSats: the price follows the market down without a limit"]
    return []


def dump_listing_config(config: ListingConfig) -> str:
    """Returns the config as JSON for storage."""
    return dump(config)


def load_listing_config(text: str) -> ListingConfig:
    """Reads a config that `dump_listing_config` wrote. Raises ValueError for other texts.

    Ranges are checked by `problems`.
    """
    return load(ListingConfig, text, {})


table_of(ListingConfig)  # evaluated before the workers are forked, so that they share it
