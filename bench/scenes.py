"""`python -m bench.scenes`: checks how our adapters, gateway and tasks handle the oddities of real venues' answers.

Each seed is a practice market with all four dialects and its own scenes, on which an installation in this process reads
and trades. It prints the faults of each seed, and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from simulator.scenes import BY_NAME, SCENES
from tests.scenes.run import faults

# The sizes of books, in turn: few asks, more than a page at Ordinals Wallet, more than two pages at UniSat.
_SIZES = (6, 7, 130, 240)


def main(words: list[str]) -> int:
    options = _options(words)
    began = time.monotonic()
    if options.table:
        return _table(options)
    names = options.scene or None
    judge = partial(_judged, names=names, ahead=options.ahead)
    broken: Counter[str] = Counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        seeds = range(options.first, options.first + options.seeds)
        for seed, found in zip(seeds, pool.map(judge, seeds, chunksize=4), strict=True):
            if found:
                broken[_kind(found[0])] += 1
                print(f"seed {seed}: {len(found)} faults, the first: {found[0][:200]}", flush=True)
    told = "scenes drawn" if names is None else ", ".join(names) or "no scenes"
    print(f"{options.seeds} seeds of four dialects, {told}: {sum(broken.values())} with faults", end="")
    print(f"; {time.monotonic() - began:.0f} s")
    for kind, count in broken.most_common():
        print(f"  {count} x {kind}")
    return 1 if broken else 0


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.scenes", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many markets (20)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument("--scene", action="append", choices=sorted(BY_NAME), help="these scenes instead of drawn ones")
    parser.add_argument(
        "--ahead", action="store_true", help="odd rows before the best: a read may be refused, not wrong"
    )
    parser.add_argument("--table", action="store_true", help="each scene by itself, in a table")
    return parser.parse_args(words)


def _judged(seed: int, names: list[str] | None, *, ahead: bool, asks: int | None = None) -> list[str]:
    return faults(seed, names, ahead=ahead, asks=asks)


def _table(options: argparse.Namespace) -> int:
    """Prints each scene's first faults by dialect, in both forms of Satflow's answers and with three book sizes."""
    names = options.scene or [scene.name for scene in SCENES]
    broken = 0
    print("| scene | what is wrong |\n|---|---|")
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, found in zip(names, pool.map(partial(_alone, ahead=options.ahead), names), strict=True):
            broken += bool(found)
            print(f"| `{name}` | {'; '.join(_in_short(found)) or 'nothing'} |", flush=True)
    return 1 if broken else 0


def _alone(name: str, *, ahead: bool) -> list[str]:
    """Returns the faults of a scene, except kinds that the same markets have without it."""
    found = []
    for seed, asks in enumerate(_SIZES, 1):
        without = {_kind(each) for each in faults(seed, [], asks=asks)}
        found += [each for each in faults(seed, [name], ahead=ahead, asks=asks) if _kind(each) not in without]
    return found


def _in_short(found: Iterable[str]) -> Iterator[str]:
    """Yields the first fault of each kind."""
    seen: dict[str, str] = {}
    for each in found:
        seen.setdefault(_kind(each), each)
    for each in list(seen.values())[:8]:
        yield each[:150].replace("|", "/")


def _kind(fault: str) -> str:
    """Returns the dialect and the kind of fault, without collection and figures."""
    return ": ".join(fault.split(": ")[:2]).split(" of ")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
