"""`bidkeeper doctor`: examines everything that Bidkeeper needs, and prints a remedy for each fault; changes nothing."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping

from cli.doctor import data_check, machine_check, program_check, settings_check, venue_check
from cli.doctor.check import Check, ok, safely
from cli.doctor.questions import about_of, add_about
from core import logs, version

PARTS = ("machine", "settings", "data", "programs", "venues")
LIVE = "live"  # added by --live, or checked alone by --only live


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds [--only PART ...] [--json] [--live] [--collection SLUG] [--rune TICKER]."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.add_argument("--only", action="append", choices=(*PARTS, LIVE), help="check only this part; can be repeated")
    parser.add_argument("--live", action="store_true", help="add the checklist for real money (docs/going-live.md)")
    add_about(parser)


def run_alone(options: argparse.Namespace) -> int:
    """Runs the doctor, which reads the settings itself to explain wrong ones. Returns 1 if any check fails."""
    logs.set_up("doctor", "ERROR")
    running = version.running()
    if not options.json:
        print(ok(str(running), "bidkeeper").line(), flush=True)
    checks = []
    for check in examine(options, os.environ, lambda: time.time_ns() // 1_000_000):
        checks.append(check)
        if not options.json:
            print(check.line(), flush=True)
    has_failed = any(check.status == "FAIL" for check in checks)
    if options.json:
        summary = {"version": running.number, "commit": running.commit or None, "ok": not has_failed}
        print(json.dumps(summary | {"checks": [check.as_json() for check in checks]}, indent=1))
    return 1 if has_failed else 0


def examine(
    options: argparse.Namespace, environment: Mapping[str, str], clock_ms: Callable[[], int]
) -> Iterator[Check]:
    """Yields the checks that `options` select. `clock_ms` is this machine's clock (epoch)."""
    parts = (*(options.only or PARTS), *([LIVE] if options.live else []))
    if "machine" in parts:
        yield from safely("machine", machine_check.examine())
    settings, problems = settings_check.read(environment)
    yield from problems
    if settings is None:
        return
    if "settings" in parts:
        yield from safely("settings", settings_check.examine(settings, environment))
    seen = data_check.DatabaseState()
    own = machine_check.own_processes(settings.data_dir)
    # Runs even if it is not printed, because later checks need the number of tasks and their slugs.
    for check in safely("data", data_check.examine(settings, seen)):
        if "data" in parts:
            yield check
    if "machine" in parts:
        manager = program_check.manager_of(own)
        yield from safely("machine", machine_check.examine_for(settings, seen.tasks, manager))
    if "programs" in parts:
        yield from safely("hosts", program_check.examine_hosts(settings, clock_ms))
        yield from safely("programs", program_check.examine(settings, own))
        yield from safely("month", program_check.examine_months(settings, seen.running))
    if "venues" in parts:
        subjects = about_of(options, settings.market, seen.collection, seen.rune)
        yield from safely("venues", venue_check.examine(settings, subjects, clock_ms))
    if LIVE in parts:
        yield from safely("live", settings_check.examine_live(settings, seen))
