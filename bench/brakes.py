"""`python -m bench.brakes KIND|all|many|hour [...]`: how long brakes take on the practice market at its own pace.

Each KIND (halt, reduce, stop, delete, cap, ceiling, sign-out, expel) is pressed `--runs` times, at seeded random
moments of a 30 s loop in which the floor has moved, by a new user with three tasks of four bids: the seconds from the
request until the market has accepted the last cancel of a bid that the brake concerns. Bids that were on the wire at
the request count apart. `--while` names a fault that strikes first, in an installation of its own for each run (disks
need root). `many` halts 200 tasks of ten wallets, `hour` presses a brake of a random kind every minute in the demo.

Exit code 1 where a run took longer than `--most-s`, something was placed after an answer, an answer claimed that no bid
was open while one was, or the ledger and the market disagree.
"""

from __future__ import annotations

import argparse
import math
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests

from simulator.calls import PER_SECOND
from strategy.bid_config import BidConfig
from tests.e2e.adversity import ADVERSITIES, Adversity, adverse
from tests.e2e.brake_outcome import Outcome
from tests.e2e.braking import BRAKES, BY_NAME, FLOOR, Brake, Ladders, Market, braked, control, disagreements, with_admin
from tests.e2e.installation import Installation, Trader, until

LOOP_S = 30
TASKS, BIDS_EACH = 3, 4
WALLETS, TASKS_OF_WALLET = 10, 20
GLOBAL, EACH = "halt for all", "each user halts"
CALLS_OF_WALLET = 3  # a challenge, a cancel of at most a hundred bids, and a read
_HEALED_S = 120.0


def main(words: list[str] | None = None) -> int:
    """Runs one measurement and returns the exit code."""
    signal.signal(signal.SIGTERM, _end)  # so that every program that was started is ended
    options = _options(words)
    if options.what == "many":
        return _many(options)
    if options.what == "hour":
        from bench.brakes_hour import hour

        return hour(options.minutes, options.seed, options.most_s)
    kinds = BRAKES if options.what == "all" else (BY_NAME[options.what],)
    return max([_runs(kind, options) for kind in kinds])


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*BY_NAME, "all", "many", "hour"])
    parser.add_argument("--runs", type=int, help="how often (default 20; under a fault 3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--while", dest="adversity", choices=ADVERSITIES, default="nothing", help="the fault")
    parser.add_argument("--minutes", type=float, default=60.0, help="of `hour` (default 60)")
    parser.add_argument("--most-s", type=float, default=math.inf, help="fail where a brake took longer")
    return parser.parse_args(words)


def _end(*_: Any) -> None:
    raise KeyboardInterrupt


# One user's twelve bids


def _runs(brake: Brake, options: argparse.Namespace) -> int:
    adversity = ADVERSITIES[options.adversity]
    runs = options.runs or (20 if adversity is Adversity else 3)
    rng = random.Random(f"{options.seed} {brake.name}")
    say(f"{brake.name}, {runs} runs, seed {options.seed}, loop {LOOP_S} s, while: {options.adversity}")
    configs: dict[int, list[BidConfig]] = {}
    if adversity is Adversity:
        with adverse(adversity, rng) as (fault, admin):
            found = [_run(number, brake, fault, admin, rng, configs) for number in range(runs)]
            wrong = _wrong(fault.service, configs)
    else:
        found, wrong = [], []
        for number in range(runs):
            with adverse(adversity, rng) as (fault, admin):
                configs = {}
                found.append(_run(number, brake, fault, admin, rng, configs))
                wrong += _wrong(fault.service, configs)
    return _judged(brake.name, found, wrong, options.most_s)


def _run(
    number: int,
    brake: Brake,
    fault: Adversity,
    admin: Trader,
    rng: random.Random,
    configs: dict[int, list[BidConfig]],
) -> Outcome:
    """Brakes a new user's bids once; `configs` gets those that the tasks had."""
    market, service = Market(fault.service), fault.service
    slugs = [f"{brake.name}-{number}-{at}" for at in range(TASKS)]
    for slug in slugs:
        service.put_collection(slug, [FLOOR])
    ladders = Ladders(service, admin, slugs, bidCount=BIDS_EACH)
    try:
        ladders.start()
        ladders.until_whole(market)
        ladders.put_floor(round(FLOOR * rng.uniform(0.93, 1.07)))  # so that a loop that comes meanwhile replaces bids
        time.sleep(rng.uniform(0, LOOP_S))
        try:
            outcome = braked(brake, ladders, market, fault)
            ready = _readiness(service)
        finally:
            fault.heal()
        say(f"{number + 1:>3}  {outcome}{f'   {fault.note}' if fault.note else ''}{ready}")
        return outcome
    finally:
        ladders.note_configs(ladders.tasks)
        configs |= ladders.configs
        ladders.remove()


def _readiness(service: Installation) -> str:
    """Describes what /readyz says after the brake, unless all is well."""
    try:
        answer = requests.get(service.url + "/readyz", timeout=15)
    except requests.RequestException as error:
        return f"   readyz: {type(error).__name__}"
    return "" if answer.status_code == 200 else f"   readyz {answer.status_code}: {answer.json().get('details')}"


def _wrong(service: Installation, configs: dict[int, list[BidConfig]]) -> list[str]:
    """Holds the ledger against the market's history, once the service is well again."""
    wrong = []
    try:
        until(service.ready_again, "readiness", _HEALED_S)
    except AssertionError:
        wrong.append(f"not ready again {_HEALED_S:.0f} s after the fault{_readiness(service)}")
    return wrong + disagreements(service, configs)


def _judged(name: str, found: list[Outcome], wrong: list[str], most_s: float) -> int:
    """Prints median and worst; returns the exit code."""
    seconds = [each.seconds for each in found if each.ends or each.access_s is not None]
    wire = [second for each in found for second in each.wire]
    if seconds:
        say(f"{name}: median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s, of {len(seconds)} runs")
    if wire:
        say(f"{name}: {len(wire)} bids were on the wire; the last of them ended after {max(wire):.2f} s")
    for each in wrong:
        say(f"DISAGREEMENT: {each}")
    say(f"{name}: {sum(bool(each.faults) for each in found)} runs with faults, {len(wrong)} disagreements\n")
    return int(bool(wrong) or any(each.faults for each in found) or max(seconds, default=math.inf) > most_s)


# Many users


def _many(options: argparse.Namespace) -> int:
    slugs = [f"many-{number}" for number in range(TASKS_OF_WALLET)]
    rng = random.Random(options.seed)
    say(f"{WALLETS * TASKS_OF_WALLET} tasks of {WALLETS} wallets on {len(slugs)} slugs, one bid each")
    with with_admin() as (service, admin):
        for slug in slugs:
            service.put_collection(slug, [FLOOR])
        users = [Ladders(service, admin, slugs, bidCount=1) for _ in range(WALLETS)]
        all_of_them = _All(users, admin)
        market = Market(service)
        for user in users:
            user.start()
        found, is_late = [], False
        for name, users_concerned, press, loosen in _halts(users, admin):
            for user in users:
                user.until_whole(market, 300)
            time.sleep(rng.uniform(0, LOOP_S))
            say(name)
            # The administrator's answers count everyone's bids; of several users each one's would have to be asked.
            asked = admin if name == GLOBAL else users[0].trader
            brake = Brake(name, press, is_asked_about=name != EACH)
            outcome = braked(brake, _All(users_concerned, asked), market, patience_s=180)
            found.append(outcome)
            aim_s = len(users_concerned) * CALLS_OF_WALLET / PER_SECOND + 2
            is_late |= outcome.seconds > aim_s
            others = sum(len(market.open(user.owns)) for user in users if user not in users_concerned)
            say(f"  {outcome}")
            say(f"  aim: {CALLS_OF_WALLET} calls a wallet / {PER_SECOND} + 2 s = {aim_s:.1f} s; others' bids: {others}")
            loosen()
        wrong = _wrong(service, {})
        all_of_them.remove()
    for each in wrong:
        say(f"DISAGREEMENT: {each}")
    return int(is_late or bool(wrong) or any(each.faults for each in found))


class _All(Ladders):
    """Several users as one subject of a brake."""

    def __init__(self, users: list[Ladders], trader: Trader) -> None:
        self.users, self.service, self.trader = users, users[0].service, trader

    def owns(self, bid: Any) -> bool:
        return any(user.owns(bid) for user in self.users)

    def of_each(self, method: str, path: str, body: Any = None) -> list[requests.Response]:
        return [answer for user in self.users for answer in user.of_each(method, path, body)]


Halt = tuple[str, list[Ladders], Callable[[Ladders], list[requests.Response]], Callable[[], object]]


def _halts(users: list[Ladders], admin: Trader) -> Iterator[Halt]:
    def globally(state: str) -> list[requests.Response]:
        return [admin.call("PUT", "/api/control", {"scope": "global", "state": state})]

    def each(state: str, some: list[Ladders]) -> list[requests.Response]:
        with ThreadPoolExecutor(len(some)) as pool:
            return [answer for found in pool.map(control(state), some) for answer in found]

    yield GLOBAL, users, lambda _: globally("halt"), lambda: globally("run")
    yield EACH, users, lambda _: each("halt", users), lambda: each("run", users)
    yield "one user halts", users[:1], lambda _: each("halt", users[:1]), lambda: each("run", users[:1])


def say(words: str) -> None:
    print(words, flush=True)


if __name__ == "__main__":
    sys.exit(main())
