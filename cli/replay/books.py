"""Order books recorded by others, one JSON object a line; `docs/replay.md` describes them.

They are written by hand and by other programs, so anything but a clear value ends the reading with the line's number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

from markets import wire
from markets.wire import Unreadable
from server.replay.journal import Recording, ReplayError, lines_of
from strategy.bid_config import MAX_SATS, BidConfig, normal_slug
from strategy.book import Ask, Bid, Snapshot, VenueProfile
from strategy.plan import Entry, Limits, Memory, Rules, SaleIntoBid

_FIELDS = {"time", "slug", "asks", "bids", "sales", "complete", "divisibility"}
_MOST_ROWS = 100_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class BookTerms:
    """Terms that a recorded book does not tell: the venue's grid and minimum, and the task's limit (sats)."""

    tick: int | None
    min_bid: int | None
    balance_sats: int
    fee_reserve_sats: int


def is_book(path: Path) -> bool:
    """Tells whether the file begins as a recording of books, not as a journal."""
    try:
        first = json.loads(next((line for line in lines_of(path) if line.strip()), b"null"))
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "time" in first


def read_books(path: Path, config: BidConfig, terms: BookTerms) -> Recording:
    """Reads the books of the config's slug as the cycles of a task with that config. Raises ReplayError."""
    wanted, others = normal_slug(config.type, config.slug), set[str]()
    entries = list[Entry]()
    for number, line in enumerate(lines_of(path), start=1):
        if not line.strip():
            continue
        try:
            slug, entry = _entry(line, config, terms)
            if slug != wanted:
                others.add(slug)
                continue
            if entries and entry.now_ms <= entries[-1].now_ms:
                raise Unreadable("time: is not later than that of the line before it")
        except (Unreadable, ValueError) as error:
            raise ReplayError(f"{path.name} line {number}: {error}") from None
        entries.append(entry)
    if not entries:
        there = ", ".join(sorted(others)) or "nothing"
        raise ReplayError(f"{path.name} holds no book of {config.slug}, but of {there}")
    return Recording(path.name, entries, [])


def _entry(line: bytes, config: BidConfig, terms: BookTerms) -> tuple[str, Entry]:
    row = wire.table(wire.parse(line), "the line")
    if unknown := sorted(row.keys() - _FIELDS):
        raise Unreadable(f"unknown field {unknown[0][:60]!r}")
    now_ms = _time(row.get("time"), "time")
    is_complete = row.get("complete", True)
    if not isinstance(is_complete, bool):
        raise Unreadable("complete: must be true or false")
    is_rune = config.is_rune
    divisibility = row.get("divisibility")
    snapshot = Snapshot(
        taken_ms=now_ms,
        asks=tuple(_asks(row, is_rune)),
        complete=is_complete,
        bids=None if row.get("bids") is None else tuple(_bids(row, is_rune)),
        divisibility=None if divisibility is None else wire.whole(divisibility, "divisibility"),
    )
    entry = Entry(
        now_ms=now_ms,
        config=config,
        profile=_profile(config, terms),
        snapshot=snapshot,
        own=(),
        limits=Limits(config.max_bid_total, MAX_SATS, config.bid_count, terms.balance_sats, terms.fee_reserve_sats),
        rules=Rules.of(config.loop_s),
        memory=Memory(),
        sales=None if row.get("sales") is None else tuple(_sales(row, now_ms)),
    )
    return normal_slug(config.type, wire.text(row.get("slug"), "slug")), entry


def _profile(config: BidConfig, terms: BookTerms) -> VenueProfile:
    tick, least = (1, 1) if config.is_rune else (1_000, 10_000)
    return VenueProfile(
        venue="recorded",
        tick=terms.tick or tick,
        min_bid=least if terms.min_bid is None else terms.min_bid,
        min_duration_s=900,
        equal_bids_allowed=True,
        balance_model="per_bid",
    )


def _asks(row: Mapping[str, Any], is_rune: bool) -> Iterator[Ask]:
    found = []
    for what, (price, quantity, maker) in _rows(row, "asks", 3):
        sats, many = wire.sats(price, f"{what} price", least=1), _quantity(quantity, what) or Decimal(1)
        found.append(Ask(what, sats, many, _unit(sats, many, is_rune), _maker(maker, what)))
    return iter(sorted(found, key=lambda ask: ask.unit_price))


def _bids(row: Mapping[str, Any], is_rune: bool) -> Iterator[Bid]:
    found = []
    for what, (price, quantity, maker, placed) in _rows(row, "bids", 4):
        sats, many = wire.sats(price, f"{what} price", least=1), _quantity(quantity, what) or Decimal(1)
        placed_ms = None if placed is None else _time(placed, f"{what} time")
        found.append(Bid(what, sats, many, _unit(sats, many, is_rune), _maker(maker, what), placed_ms))
    return iter(sorted(found, key=lambda bid: -bid.unit_price))


def _sales(row: Mapping[str, Any], now_ms: int) -> Iterator[SaleIntoBid]:
    for what, (price, quantity, sold, placed) in _rows(row, "sales", 4):
        sold_ms = now_ms if sold is None else _time(sold, f"{what} time")
        if sold_ms > now_ms:
            raise Unreadable(f"{what} time: is later than the line's")
        yield SaleIntoBid(
            sale_id=f"{now_ms} {what}",
            price=wire.sats(price, f"{what} price", least=1),
            quantity=_quantity(quantity, what),
            sold_ms=sold_ms,
            placed_ms=None if placed is None else _time(placed, f"{what} time of the bid"),
        )


def _rows(row: Mapping[str, Any], name: str, most: int) -> Iterator[tuple[str, list[Any]]]:
    """Yields each row under its name in errors (counted from 0), filled up with None."""
    for index, values in enumerate(wire.rows(row.get(name), name, most=_MOST_ROWS)):
        what = f"{name}[{index}]"
        if not isinstance(values, list) or not 1 <= len(values) <= most:
            raise Unreadable(f"{what}: not a list of 1 to {most} values")
        yield what, values + [None] * (most - len(values))


def _quantity(value: Any, what: str) -> Decimal | None:
    return None if value is None else wire.amount(value, f"{what} quantity")


def _maker(value: Any, what: str) -> str:
    return "" if value is None else wire.text(value, f"{what} maker")


def _unit(price: int, quantity: Decimal, is_rune: bool) -> Decimal:
    if not is_rune:
        return Decimal(price)
    with localcontext() as context:
        context.prec = 50
        return price / quantity


def _time(value: Any, what: str) -> int:
    """Reads milliseconds since 1970, given as such or in ISO 8601."""
    if not isinstance(value, str):
        return wire.milliseconds(value, what)
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
        return wire.milliseconds((moment - _EPOCH) // timedelta(milliseconds=1), what)
    except (ValueError, OverflowError):
        raise Unreadable(f"{what}: {value[:60]!r} is no ISO 8601 time with its zone (2026-01-31T12:00:00Z)") from None
