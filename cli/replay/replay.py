"""`bidkeeper replay`: a task's recorded cycles, or recorded order books, through the present decision."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from cli.replay.books import BookTerms, is_book, read_books
from cli.replay.report import changes_between, values
from cli.replay.text import lines
from core.outside_text import NotText, read_text
from core.settings import Settings
from core.task_files import journal_path, older
from server.http.json_out import dumps
from server.replay.comparison import after_fills, undecidable
from server.replay.journal import Recording, ReplayError, read_journal
from strategy.bid_config import MAX_SATS, BidConfig, normal_slug
from strategy.replay import Simulation, UndecidableError, simulate, verify


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
        return _replay_books(options, given)
    recording = read_journal(_journal_files(settings, options))
    verified = verify(recording.entries)
    if options.verify:
        _print(values(recording, verified, {}, None), options.json)
        return 1 if verified.differences else 0
    outcome = _simulated(recording, _changing(options, given, recording), is_journal=True)
    changes = _changes(recording.entries[-1].config, outcome.config)
    _print(values(recording, verified, changes, outcome), options.json)
    return 0


def _replay_books(options: argparse.Namespace, given: dict[str, Any]) -> int:
    if options.config is None and "slug" not in given:
        raise ReplayError("order books have no config: name one with --config FILE or --set slug=... --set ...")
    config = _merged(_from_file(options.config) | given, None)
    terms = BookTerms(options.tick, options.min_bid, options.balance, options.fee_reserve)
    recording = read_books(options.file, config, terms)
    outcome = _simulated(recording, lambda recorded: recorded, is_journal=False)
    _print(values(recording, None, {}, outcome), options.json)
    return 0


def _simulated(recording: Recording, config_of: Callable[[BidConfig], BidConfig], *, is_journal: bool) -> Simulation:
    try:
        return simulate(recording.entries, config_of, after_fills, is_journal=is_journal)
    except UndecidableError as error:
        raise undecidable(error) from None


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
    """Returns the change of each recorded config. Only here, and only if needed, are the request's rules loaded."""
    if options.config is None and not given:
        return lambda recorded: recorded
    fixed = None if options.config is None else _merged(_from_file(options.config), None)

    @cache
    def changed(recorded: BidConfig) -> BidConfig:
        config = fixed or recorded
        config = _merged(given, config) if given else config
        if (config.type, normal_slug(config.type, config.slug)) != (
            recorded.type,
            normal_slug(recorded.type, recorded.slug),
        ):
            raise ReplayError(f"{recording.name} is about {recorded.slug}, not {config.slug}")
        return config

    return changed


def _merged(given: dict[str, Any], stored: BidConfig | None) -> BidConfig:
    from server.config.bids import merged

    config, faults = merged(given, stored)
    if faults:
        raise ReplayError("; ".join(faults))
    return config


def _changes(recorded: BidConfig, config: BidConfig) -> dict[str, Any]:
    if recorded == config:
        return {}
    from server.http.shapes import camel

    return changes_between(recorded, config, camel)


def _from_file(path: Path | None) -> dict[str, Any]:
    from core.strict_json import BadJson, read_object

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
    """Reads the fields of --set: each value is JSON, or else text."""
    from core.strict_json import BadJson, read_object

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


def _print(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(dumps(found))
    else:
        for line in lines(found):
            print(line)
