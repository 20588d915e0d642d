"""The parts of a bidding task's config that are more than one value, and their rules.

A part is replaced as a whole: a change names all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct

from strategy.config.table import MAX_DECIMALS, decimals

MOST_LEVELS, MOST_AT_A_LEVEL = 100, 20
MOST_DROP_MINUTES = 720
MOST_IGNORED = 50
MOST_OPEN, DEFAULT_OPEN = 500, 10
CLOCK, ADDRESS = "(?:[01][0-9]|2[0-3]):[0-5][0-9]", "[0-9A-Za-z]{14,90}"
_CLOCK = re.compile(CLOCK)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*)*")
_ADDRESS = re.compile(ADDRESS)


class BidLevel(Struct, frozen=True):
    """So many bids at one price: `at` is a fraction of the reference in percent mode, sats of a bid in fixed mode."""

    at: Decimal
    count: int


class FloorDrop(Struct, frozen=True):
    """A fall of the floor by a fraction within some minutes, and the minutes without bids after it."""

    percent: Decimal
    window_minutes: int
    for_minutes: int


class ActiveHours(Struct, frozen=True):
    """The hours of a day at which there are bids, as clocks show them in a time zone ("22:00" to "06:30")."""

    tz: str
    begin: str
    end: str


class OnFill(Struct, frozen=True):
    """The auto-list task to make of each fill. `autolist` is its stored config (listing.py), without its cost.

    With `start` it is started as well. `max_open` bounds how many of them there are, sold and deleted ones not counted.
    """

    autolist: str
    start: bool
    max_open: int = DEFAULT_OPEN


def wrong_levels(levels: tuple[BidLevel, ...], *, is_fixed: bool, most: Decimal) -> Iterator[str]:
    """Yields every fault of these levels; `most` is the greatest `at`."""
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
    """Yields the fault of two prices between which a floor is to be."""
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
        yield "percent must be from 0.001 to below 1 (0.1 is 10 %)"
    for name, minutes in (("windowMinutes", drop.window_minutes), ("forMinutes", drop.for_minutes)):
        if not 1 <= minutes <= MOST_DROP_MINUTES:
            yield f"{name} must be a whole number from 1 to {MOST_DROP_MINUTES}"


def wrong_hours(hours: ActiveHours) -> Iterator[str]:
    """Yields every fault of these hours. Whether there is such a zone is for those who know time zones."""
    if len(hours.tz) > 64 or not _ZONE.fullmatch(hours.tz):
        yield 'tz must be the name of a time zone, such as "Europe/Berlin"'
    if not (_CLOCK.fullmatch(hours.begin) and _CLOCK.fullmatch(hours.end)):
        yield 'from and to must be times such as "22:00", up to "23:59"'
    elif hours.begin == hours.end:
        yield "from and to must differ; without activeHours a task is active all day"


def wrong_on_fill(on_fill: OnFill, *, to_vault: bool) -> Iterator[str]:
    """Yields every fault of this rule, but for those of the config in it, which its own rules judge."""
    if not 1 <= on_fill.max_open <= MOST_OPEN:
        yield f"maxOpen must be a whole number from 1 to {MOST_OPEN}"
    if not to_vault:
        yield 'needs deliverTo "vault": only what is in the vault can be listed'


def wrong_addresses(addresses: tuple[str, ...]) -> Iterator[str]:
    """Yields the fault of these addresses."""
    if len(addresses) > MOST_IGNORED or not all(_ADDRESS.fullmatch(address) for address in addresses):
        yield f"must be a list of at most {MOST_IGNORED} addresses"
