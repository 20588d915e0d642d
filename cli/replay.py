"""`bidkeeper replay`: runs recorded cycles of a task, or recorded order books, through the current decision code."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from core.fields import BadJson, NotText, iso, read_object, read_text
from core.layout import journal_path, older
from core.settings import Settings
from markets import parse
from markets.parse import Unreadable
from server.http.shapes import camel, dumps
from server.replay.journal import Recording, ReplayError, lines_of, read_journal
from server.replay.program import after_fills, fill_prices, fill_shown, undecidable
from strategy.book import Ask, Bid, Snapshot, VenueProfile, plain
from strategy.config.bid import MAX_SATS, BidConfig, normal_slug
from strategy.decision import Entry, Limits, Memory, Rules, SaleIntoBid
from strategy.replay import (
    FILL_RULE,
    Difference,
    ReplayStep,
    Simulation,
    UndecidableError,
    Verified,
    action,
    changes,
    simulate,
    verify,
)


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds FILE | --task N, and the options to try on it."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a journal, or recorded order books")
    source.add_argument("--task", type=int, metavar="N", help="the journal of this task in the data directory")
    parser.add_argument("--config", type=Path, metavar="FILE", help="a task's config as the API takes it, in JSON")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="one field of the config, such as bidCount=3"
    )
    parser.add_argument("--verify", action="store_true", help="only check that recorded decisions come out the same")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    books = parser.add_argument_group("values that recorded order books lack")
    books.add_argument("--tick", type=_positive, metavar="SATS", help="the venue's price step (default 1000; runes 1)")
    books.add_argument("--min-bid", type=_whole, metavar="SATS", help="its minimum bid (default 10000; runes 1)")
    books.add_argument(
        "--balance", type=_whole, default=MAX_SATS, metavar="SATS", help="the wallet's balance (default unlimited)"
    )
    books.add_argument("--fee-reserve", type=_whole, default=0, metavar="SATS", help="fees of one purchase (default 0)")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the replay's result. Returns 1 when `--verify` finds a difference."""
    given = _given(options)
    if options.file is not None and is_book(options.file):
        if options.verify:
            raise ReplayError(f"{options.file.name} holds order books: there are no decisions to verify")
        if options.config is None and "slug" not in given:
            raise ReplayError("order books have no config: name one with --config FILE or --set slug=... --set ...")
        config = _merged(_from_file(options.config) | given, None)
        terms = BookTerms(options.tick, options.min_bid, options.balance, options.fee_reserve)
        _print(read_books(options.file, config, terms), None, lambda recorded: recorded, options.json)
        return 0
    recording = read_journal(_journal_files(settings, options))
    verified = verify(recording.entries)
    changing = None if options.verify else _changing(options, given, recording)
    _print(recording, verified, changing, options.json)
    return 1 if options.verify and verified.differences else 0


def _journal_files(settings: Settings, options: argparse.Namespace) -> list[Path]:
    if options.file is not None:
        return [options.file]
    path = journal_path(settings.data_dir, options.task)
    found = [each for each in (older(path), path) if each.exists()]
    if not found:
        raise ReplayError(f"task {options.task} has no journal in {path.parent}")
    return found


def _changing(
    options: argparse.Namespace, given: dict[str, Any], recording: Recording
) -> Callable[[BidConfig], BidConfig]:
    """Returns a function that changes each recorded config; loads the request's rules only if there is a change."""
    if options.config is None and not given:
        return lambda recorded: recorded
    fixed = None if options.config is None else _merged(_from_file(options.config), None)

    @cache
    def changed(recorded: BidConfig) -> BidConfig:
        config = fixed or recorded
        config = _merged(given, config) if given else config
        kinds = ((each.type, normal_slug(each.type, each.slug)) for each in (config, recorded))
        if len(set(kinds)) > 1:
            raise ReplayError(f"{recording.name} is about {recorded.slug}, not {config.slug}")
        return config

    return changed


def _merged(given: dict[str, Any], stored: BidConfig | None) -> BidConfig:
    from server.task_config import merged

    config, faults = merged(given, stored)
    if faults:
        raise ReplayError("; ".join(faults))
    return config


def _from_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return read_object(read_text(path).encode())
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}") from None
    except NotText as error:
        raise ReplayError(f"{path} {error}") from None
    except BadJson as error:
        raise ReplayError(f"{path}: {error}") from None


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Reads the fields of --set; a value that is not JSON is text."""
    given: dict[str, Any] = {}
    for each in options.set:
        name, equals, value = each.partition("=")
        if not equals or name in given:
            raise ReplayError(f"--set {each}: must be NAME=VALUE, and each name given once")
        try:
            (given[name],) = read_object(b'{"value": ' + value.encode() + b"}").values()
        except (BadJson, ValueError):
            given[name] = value
    return given


def _positive(value: str) -> int:
    if _whole(value) == 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return int(value)


def _whole(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 16):
        raise argparse.ArgumentTypeError("must be a whole number of sats")
    return int(value)


def _print(
    recording: Recording, verified: Verified | None, changing: Callable[[BidConfig], BidConfig] | None, as_json: bool
) -> None:
    """Prints the verification, if it was made (of a journal), and the simulation with `changing`, if given."""
    outcome = None
    if changing is not None:
        try:
            outcome = simulate(recording.entries, changing, after_fills, is_journal=verified is not None)
        except UndecidableError as error:
            raise undecidable(error) from None
    found = values(recording, verified, outcome)
    if as_json:
        print(dumps(found))
    else:
        print("\n".join(lines(found)))


# ---- the result as values; the same recording always gives the same bytes


def values(recording: Recording, verified: Verified | None, outcome: Simulation | None) -> dict[str, Any]:
    """Returns the whole result as JSON values: money in sats, exact numbers as Decimal, times in ISO 8601."""
    first, last = recording.entries[0], recording.entries[-1]
    found: dict[str, Any] = {
        "recording": recording.name,
        "slug": last.config.slug,
        "type": last.config.type,
        "cycles": len(recording.entries),
        "from": iso(first.now_ms),
        "to": iso(last.now_ms),
        "notes": recording.notes + ([] if outcome is None else _notes(recording, outcome)),
        "verified": None,
    }
    if verified is not None:
        differences = [_difference(each) for each in verified.differences]
        found["verified"] = {"decisions": verified.decided, "different": len(differences), "differences": differences}
    if outcome is not None:
        found["fillRule"] = FILL_RULE
        changed = {} if verified is None else changes(last.config, outcome.config)
        found["changes"] = {camel(name): list(pair) for name, pair in changed.items()}
        found["decisions"] = [_decision(step) for step in _notable(outcome.steps)]
        found["fills"] = to_builtins(
            [fill_shown(fill, outcome) for fill in outcome.fills], builtin_types=(Decimal,), enc_hook=Decimal
        )
        found["summary"] = _summary(outcome)
    return found


def _difference(found: Difference) -> dict[str, Any]:
    values = {"time": iso(found.now_ms), "fields": found.fields}
    return values | ({"recorded": found.recorded, "now": found.now} if found.fields else {"error": found.error})


def _notes(recording: Recording, outcome: Simulation) -> list[str]:
    notes = []
    if outcome.without_sales:
        notes.append(f"sales are not known for {outcome.without_sales} of {len(recording.entries)} cycles")
    if outcome.without_bids:
        notes.append(
            f"bids of others are wanted and not known in {outcome.without_bids} of {len(outcome.steps)} cycles"
        )
    if outcome.config.bid_type == "trait":
        notes.append("sales do not name traits, so a bid on a trait is filled only where your recorded bid was")
    return notes


def _notable(steps: list[ReplayStep]) -> Iterator[ReplayStep]:
    """Yields the steps that acted, or that skipped rungs for other reasons than the step before."""
    former = None
    for step in steps:
        skipped = [note.label for note in step.plan.rungs if note.is_skipped]
        if step.plan.to_place or step.plan.to_cancel or step.fills or step.expired or skipped != former:
            yield step
        former = skipped


def _decision(step: ReplayStep) -> dict[str, Any]:
    plan = step.plan
    return {
        "time": iso(step.now_ms),
        "action": action(plan),
        "reference": plan.reference,
        "marks": [str(mark) for mark in plan.marks],
        "filled": [fill.order.price_sats for fill in step.fills],
        "expired": [order.price_sats for order in step.expired],
        "cancelled": [{"price": cancel.price_sats, "reason": str(cancel.reason)} for cancel in plan.to_cancel],
        "placed": [{"price": place.price_sats, "quantity": place.quantity} for place in plan.to_place],
        "live": step.prices,
    }


def _summary(outcome: Simulation) -> dict[str, Any]:
    prices = fill_prices(outcome)
    return {
        "cycles": outcome.cycles,
        "fills": len(outcome.fills),
        "spentSats": prices.spent_sats,
        "averagePrice": prices.average,
        "averagePriceToFloor": prices.to_floor,
        "averagePriceToFloor24hLater": prices.to_later,
        "fillsWithFloor24hLater": prices.with_later,
        "topBidderSeconds": outcome.top_ms // 1000,
        "rankKnownSeconds": outcome.ranked_ms // 1000,
        "skipped": dict(sorted(outcome.skipped.items())),
        "calls": {name: outcome.calls[name] for name in ("asks", "bids", "own_bids", "place", "cancel")},
    }


# ---- the result as lines of text


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of the values that `values` returned."""
    yield f"{found['recording']}: {found['slug']} ({found['type']}), {found['cycles']} cycles"
    yield f"from {found['from']} to {found['to']}"
    yield from (f"note: {note}" for note in found["notes"])
    if (verified := found["verified"]) is not None:
        same = verified["decisions"] - verified["different"]
        yield f"verified: {same} of {verified['decisions']} recorded decisions come out the same"
        for each in verified["differences"]:
            if not each["fields"]:
                yield f"  {each['time']} cannot be decided: {each['error']}"
                continue
            yield f"  {each['time']} differs in {', '.join(each['fields'])}"
            yield f"    recorded: {each['recorded']}"
            yield f"    now:      {each['now']}"
    if "summary" in found:
        yield from _simulation_lines(found)


def _simulation_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"fill rule: {found['fillRule']}."
    for name, (old, new) in found["changes"].items():
        yield f"changed: {name} from {_shown(old)} to {_shown(new)}"
    yield "simulated cycles that did something:"
    for each in found["decisions"]:
        yield f"  {each['time']} {each['action']}{_prices(each)}"
    yield "fills:" if found["fills"] else "fills: none"
    for fill in found["fills"]:
        yield (
            f"  {fill['time']} {_shown(fill['price'])} for {_shown(fill['quantity'])}, "
            f"sold at {_shown(fill['soldAt'])}; "
            f"floor {_shown(fill['floor'])}, 24 h later {_shown(fill['floor24hLater'])}"
        )
    total = found["summary"]
    yield f"simulated: {total['cycles']} cycles, {total['fills']} fills, {_shown(total['spentSats'])} sats spent"
    yield (
        f"average fill price {_shown(total['averagePrice'])}; of the floor {_shown(total['averagePriceToFloor'])}, "
        f"of the floor 24 h later {_shown(total['averagePriceToFloor24hLater'])} "
        f"({total['fillsWithFloor24hLater']} of {total['fills']} known)"
    )
    yield f"top bidder for {total['topBidderSeconds']} s of {total['rankKnownSeconds']} s in which the others are known"
    skipped = ", ".join(f"{count} {reason}" for reason, count in total["skipped"].items())
    yield f"skipped rungs: {skipped or 'none'}"
    yield "calls of the venue, nothing shared: " + ", ".join(f"{n} {name}" for name, n in total["calls"].items())


def _prices(decision: dict[str, Any]) -> str:
    parts = {
        "filled": decision["filled"],
        "expired": decision["expired"],
        "cancelled": [each["price"] for each in decision["cancelled"]],
        "placed": [each["price"] for each in decision["placed"]],
    }
    return "".join(f"; {word} {' '.join(map(_shown, prices))}" for word, prices in parts.items() if prices)


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, Decimal):
        return plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)


_FIELDS = {"time", "slug", "asks", "bids", "sales", "complete", "divisibility"}
_MOST_ROWS = 100_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# ---- order books recorded by others, one JSON object a line; docs/replay.md describes them
# People and other programs write them, so any unclear value stops the reading, with its line number in the error.


class BookTerms(Struct, frozen=True):
    """Terms that a recorded book lacks: the venue's price step and minimum bid, the balance, and the fees (sats)."""

    tick: int | None
    min_bid: int | None
    balance_sats: int
    fee_reserve_sats: int


def is_book(path: Path) -> bool:
    """Returns True if the file begins as recorded books, not as a journal."""
    try:
        first = json.loads(next((line for line in lines_of(path) if line.strip()), b"null"))
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "time" in first


def read_books(path: Path, config: BidConfig, terms: BookTerms) -> Recording:
    """Reads the books of the config's slug as cycles of a task with that config. Raises ReplayError."""
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
    row = parse.table(parse.decoded(line), "the line")
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
        divisibility=None if divisibility is None else parse.whole(divisibility, "divisibility"),
    )
    tick, least = (1, 1) if is_rune else (1_000, 10_000)
    profile = VenueProfile(
        venue="recorded",
        tick=terms.tick or tick,
        min_bid=least if terms.min_bid is None else terms.min_bid,
        min_duration_s=900,
        equal_bids_allowed=True,
        balance_model="per_bid",
    )
    entry = Entry(
        now_ms=now_ms,
        config=config,
        profile=profile,
        snapshot=snapshot,
        own=(),
        limits=Limits(config.max_bid_total, MAX_SATS, config.bid_count, terms.balance_sats, terms.fee_reserve_sats),
        rules=Rules.of(config.loop_s),
        memory=Memory(),
        sales=None if row.get("sales") is None else tuple(_sales(row, now_ms)),
    )
    return normal_slug(config.type, parse.text(row.get("slug"), "slug")), entry


def _asks(row: Mapping[str, Any], is_rune: bool) -> list[Ask]:
    found = [Ask(*_order(what, rest, is_rune)) for what, rest in _rows(row, "asks", 3)]
    return sorted(found, key=lambda ask: ask.unit_price)


def _bids(row: Mapping[str, Any], is_rune: bool) -> list[Bid]:
    found = []
    for what, (*rest, placed) in _rows(row, "bids", 4):
        placed_ms = None if placed is None else _time(placed, f"{what} time")
        found.append(Bid(*_order(what, rest, is_rune), placed_ms))
    return sorted(found, key=lambda bid: -bid.unit_price)


def _order(what: str, row: list[Any], is_rune: bool) -> tuple[str, int, Decimal, Decimal, str]:
    """Reads the fields common to asks and bids: a name, the price, the quantity, the unit price, and the maker."""
    price, quantity, maker = row
    sats, many = parse.sats(price, f"{what} price", least=1), _quantity(quantity, what) or Decimal(1)
    with localcontext(prec=50):
        unit = sats / many if is_rune else Decimal(sats)
    return what, sats, many, unit, "" if maker is None else parse.text(maker, f"{what} maker")


def _sales(row: Mapping[str, Any], now_ms: int) -> Iterator[SaleIntoBid]:
    for what, (price, quantity, sold, placed) in _rows(row, "sales", 4):
        sold_ms = now_ms if sold is None else _time(sold, f"{what} time")
        if sold_ms > now_ms:
            raise Unreadable(f"{what} time: is later than the line's")
        yield SaleIntoBid(
            sale_id=f"{now_ms} {what}",
            price=parse.sats(price, f"{what} price", least=1),
            quantity=_quantity(quantity, what),
            sold_ms=sold_ms,
            placed_ms=None if placed is None else _time(placed, f"{what} time of the bid"),
        )


def _rows(row: Mapping[str, Any], name: str, most: int) -> Iterator[tuple[str, list[Any]]]:
    """Yields each row, padded with None, with its name in errors (counted from 0)."""
    for index, values in enumerate(parse.rows(row.get(name), name, most=_MOST_ROWS)):
        what = f"{name}[{index}]"
        if not isinstance(values, list) or not 1 <= len(values) <= most:
            raise Unreadable(f"{what}: not a list of 1 to {most} values")
        yield what, values + [None] * (most - len(values))


def _quantity(value: Any, what: str) -> Decimal | None:
    return None if value is None else parse.amount(value, f"{what} quantity")


def _time(value: Any, what: str) -> int:
    """Reads a time as milliseconds since 1970 or in ISO 8601."""
    if not isinstance(value, str):
        return parse.milliseconds(value, what)
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
        return parse.milliseconds((moment - _EPOCH) // timedelta(milliseconds=1), what)
    except (ValueError, OverflowError):
        raise Unreadable(f"{what}: {value[:60]!r} is no ISO 8601 time with its zone (2026-01-31T12:00:00Z)") from None
