"""`python -m bench.brakes KIND|all|many|hour [...]`: measures how long brakes take on the practice market.

Each KIND (halt, reduce, stop, delete, cap, ceiling, sign-out, expel) is used `--runs` times by a new user with three
tasks of four bids, at seeded random moments of a 30 s loop after the floor has moved. A run's figure is the seconds
from the request until the market accepts the last cancel of a bid that the brake concerns. Bids on the wire at the
request are counted separately. `--while` names a fault that happens first, with a new installation for each run (disks
need root). `many` halts 200 tasks of ten wallets; `hour` uses a brake of a random kind every minute in the demo.

The exit code is 1 if a run took longer than `--most-s`, a bid was placed after the answer, an answer claimed that no
bid was open while one was, or ledger and market differ.
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
from dataclasses import dataclass
from typing import Any

import requests

from drills.faults.evidence import Quiet
from drills.soak.watch import STARTED
from simulator.calls import PER_SECOND
from strategy.config.bid import BidConfig
from tests.e2e.adversity import ADVERSITIES, Adversity, adverse
from tests.e2e.braking import (
    BRAKES,
    BY_NAME,
    FLOOR,
    Brake,
    Ladders,
    Market,
    Outcome,
    SeenBid,
    braked,
    control,
    disagreements,
    now_ms,
    with_admin,
)
from tests.e2e.installation import Installation, Trader, until

EVERY_S, LATEST_S = 60.0, 20.0  # a brake a minute, within its first 20 seconds
# A signature counts against the signer's ceilings until it expires, and an hour of the demo cannot carry 60 ladders.
EXPIRY_MINUTES = 15
_PATIENCE_S, _SETTLE_S = 40.0, 3.0


class Player(Trader):
    """The demo's user, whose key the practice market has."""

    def sign_in(self) -> Trader:
        self.address = self.installation.sim("GET", "/sim/play-wallet")["address"]
        challenge = self.ok("POST", "/api/auth/challenge", {"address": self.address})
        proof = {"challengeId": challenge["challengeId"], "address": self.address}
        proof["signature"] = self.signed(challenge["message"])
        self.session.headers["Authorization"] = "Bearer " + self.ok("POST", "/api/auth/verify", proof)["token"]
        return self

    def signed(self, message: str) -> str:
        """Returns the play wallet's signature."""
        return str(self.installation.sim("POST", "/sim/play-wallet/sign", {"message": message})["signature"])


@dataclass
class Pressed:
    """A brake and its release; `task` is the task that it is about, 0 for all."""

    brake: Brake
    release: Callable[[], object]
    task: int = 0
    is_quiet: bool = False  # True if nothing may be accepted for the task until the release


class Demo(Ladders):
    """The demo's tasks, as the subject of brakes."""

    def __init__(self, service: Installation, admin: Trader, rng: random.Random) -> None:
        self.service, self.admin, self.trader = service, admin, Player(service).sign_in()
        self.configs: dict[int, list[BidConfig]] = {}
        self._rng = rng
        for task in self._tasks():
            self._change(task["id"], bidExpiryMinutes=EXPIRY_MINUTES)

    def owns(self, bid: SeenBid) -> bool:
        return True  # no other user bids by signed texts

    def another_session(self) -> Trader:
        return Player(self.service).sign_in()

    def choose(self, market: Market) -> Pressed:
        """Returns a brake of a random kind on a random task, if possible one with bids."""
        market.read()
        tasks = self._tasks()
        with_bids = [task for task in tasks if market.open(_of(task))] or tasks
        return self._rng.choice(self._kinds())(self._rng.choice(with_bids), market)

    def _kinds(self) -> list[Callable[[dict[str, Any], Market], Pressed]]:
        one = [self._halt_task, self._stop, self._delete, self._cap]
        return [self._halt, self._halt_all, self._reduce, self._ceiling, self._sign_out, *one]

    # The kinds

    def _halt(self, task: dict[str, Any], market: Market) -> Pressed:
        return Pressed(BY_NAME["halt"], lambda: self._loosen(self.trader, {"scope": "user"}))

    def _halt_all(self, task: dict[str, Any], market: Market) -> Pressed:
        halted = {"scope": "global", "state": "halt"}
        brake = Brake("halt all", lambda _: [self.admin.call("PUT", "/api/control", halted)])
        return Pressed(brake, lambda: self._loosen(self.admin, {"scope": "global"}))

    def _halt_task(self, task: dict[str, Any], market: Market) -> Pressed:
        which = {"scope": "task", "taskId": task["id"]}
        brake = self._of_task("halt task", task, "PUT", "/api/control", which | {"state": "halt"})
        return Pressed(brake, lambda: self._loosen(self.trader, which), task["id"])

    def _reduce(self, task: dict[str, Any], market: Market) -> Pressed:
        # The market moves by itself here, so it is unknown which bids are too high; no bid may be placed.
        brake = Brake("reduce", BY_NAME["reduce"].press, concerns=lambda bid: False, is_counted=False)
        return Pressed(brake, lambda: self._loosen(self.trader, {"scope": "user"}))

    def _stop(self, task: dict[str, Any], market: Market) -> Pressed:
        brake = self._of_task("stop", task, "POST", f"/api/tasks/{task['id']}/stop")
        return Pressed(brake, lambda: self._start(task["id"]), task["id"], is_quiet=True)

    def _delete(self, task: dict[str, Any], market: Market) -> Pressed:
        brake = self._of_task("delete", task, "DELETE", f"/api/tasks/{task['id']}")
        return Pressed(brake, lambda: self._make_again(task["config"]), task["id"], is_quiet=True)

    def _cap(self, task: dict[str, Any], market: Market) -> Pressed:
        former, cap = task["config"]["hardcapSats"], _lowest(market.open(_of(task)))
        brake = self._of_task("cap", task, "PUT", f"/api/tasks/{task['id']}", {"hardcapSats": cap}, above=cap)
        return Pressed(brake, lambda: self._change(task["id"], hardcapSats=former), task["id"])

    def _ceiling(self, task: dict[str, Any], market: Market) -> Pressed:
        cap = _lowest(market.open(_of(task)))

        def is_above(bid: SeenBid) -> bool:
            return bid.price > cap

        lowered = {"maxHardcap": cap}
        brake = Brake("ceiling", lambda _: [self.trader.call("PUT", "/api/ceilings", lowered)], is_above, is_above)
        return Pressed(brake, self._raise_ceiling)

    def _sign_out(self, task: dict[str, Any], market: Market) -> Pressed:
        return Pressed(BY_NAME["sign-out"], self.trader.sign_in)

    def _of_task(
        self, name: str, task: dict[str, Any], method: str, path: str, body: Any = None, above: int = 0
    ) -> Brake:
        """Returns a brake made by one request, about the bids of the task above a price."""

        def is_concerned(bid: SeenBid) -> bool:
            return bid.price > above and _of(task)(bid)

        return Brake(name, lambda _: [self.trader.call(method, path, body)], is_concerned, is_concerned)

    # Afterwards

    def _loosen(self, who: Trader, which: dict[str, Any]) -> None:
        self._until_ok(lambda: who.call("PUT", "/api/control", which | {"state": "run"}), "control to be loosened")

    def _start(self, task: int) -> None:
        self._until_ok(lambda: self.trader.call("POST", f"/api/tasks/{task}/start"), f"the start of task {task}")

    def _make_again(self, config: dict[str, Any]) -> None:
        made = self._until_ok(lambda: self.trader.call("POST", "/api/tasks", config), "the task to be made again")
        self.note_configs([made["id"]])
        self._start(made["id"])

    def _change(self, task: int, **change: Any) -> None:
        path = f"/api/tasks/{task}"
        self.note_configs([task])
        self._until_ok(lambda: self.trader.call("PUT", path, change), f"a change of task {task}")
        self.note_configs([task])

    def _raise_ceiling(self) -> None:
        change = {"maxHardcap": None}
        asked = self.trader.ok("POST", "/api/auth/approval", change)
        player = self.trader
        assert isinstance(player, Player)
        consent = {"approvalId": asked["challengeId"], "approvalSignature": player.signed(asked["message"])}
        self.trader.ok("PUT", "/api/ceilings", change | consent)

    def _until_ok(self, call: Callable[[], requests.Response], what: str) -> Any:
        found: list[requests.Response] = []

        def is_ok() -> bool:
            found[:] = [call()]
            return found[0].status_code < 300

        until(is_ok, what)
        return found[0].json()

    def _tasks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.trader.ok("GET", "/api/tasks")
        return found

    def stop_all(self) -> list[Quiet]:
        """Stops every task, and waits until its bids have ended."""
        quiet = []
        for task in self._tasks():
            self.trader.stop_and_drain(task["id"])
            quiet.append(Quiet(task["id"], now_ms()))
        return quiet


def hour(minutes: float, seed: int, most_s: float) -> int:
    """Uses a brake a minute, prints each and a table; returns the exit code."""
    rng, quiet, found = random.Random(seed), [], []
    print(f"the demo for {minutes:g} minutes, a brake a minute, seed {seed}", flush=True)
    with with_admin("demo", BIDKEEPER_WHITELIST="*") as (service, admin):
        until(lambda: STARTED.search(service.output()), "the start of the demo's tasks")
        demo, market = Demo(service, admin, rng), Market(service)
        began = time.monotonic()
        for minute in range(max(1, round(minutes))):
            due = began + EVERY_S * minute + rng.uniform(0, LATEST_S)
            time.sleep(max(0.0, due - time.monotonic()))
            pressed = demo.choose(market)
            outcome = braked(pressed.brake, demo, market, patience_s=_PATIENCE_S)
            released_ms = now_ms()
            pressed.release()
            if pressed.is_quiet:
                quiet.append(Quiet(pressed.task, outcome.began_ms + round(1000 * outcome.answered_s), released_ms))
            found.append(outcome)
            print(f"{minute + 1:>3}  {outcome}", flush=True)
        wrong = disagreements(service, demo.configs, quiet)
        quiet += demo.stop_all()
        time.sleep(_SETTLE_S)
        wrong += [each for each in disagreements(service, demo.configs, quiet) if each not in wrong]
    return _judged_hour(found, wrong, most_s)


def _judged_hour(found: list[Outcome], wrong: list[str], most_s: float) -> int:
    print(f"\n{'kind':<10} {'brakes':>6} {'with bids':>9} {'median s':>9} {'worst s':>8} {'wire':>5} {'faults':>7}")
    for name in sorted({each.name for each in found}):
        mine = [each for each in found if each.name == name]
        seconds = [each.whole_seconds for each in mine if each.ends or each.wire or each.access_s is not None]
        median = f"{statistics.median(seconds):9.2f} {max(seconds):8.2f}" if seconds else f"{'-':>9} {'-':>8}"
        wire, faults = sum(len(each.wire) for each in mine), sum(bool(each.faults) for each in mine)
        print(f"{name:<10} {len(mine):>6} {len(seconds):>9} {median} {wire:>5} {faults:>7}")
    print(f"\n{len(wrong)} disagreements between ledger and market", *wrong, sep="\n", flush=True)
    is_slow = max((each.seconds for each in found), default=0.0) > most_s
    return int(is_slow or bool(wrong) or any(each.faults for each in found))


def _of(task: dict[str, Any]) -> Callable[[SeenBid], bool]:
    slug = _plain(task["slug"])
    return lambda bid: _plain(bid.slug) == slug


def _plain(slug: str) -> str:
    """Returns a rune's ticker without bullets, which not every spelling has."""
    return slug.replace("•", "").upper()


def _lowest(bids: list[SeenBid]) -> int:
    return min((bid.price for bid in bids), default=100_000)


LOOP_S = 30
TASKS, BIDS_EACH = 3, 4
WALLETS, TASKS_OF_WALLET = 10, 20
GLOBAL, EACH = "halt for all", "each user halts"
CALLS_OF_WALLET = 3  # a challenge, a cancel of at most a hundred bids, and a read
_HEALED_S = 120.0


def main(words: list[str] | None = None) -> int:
    """Runs one measurement and returns the exit code."""
    signal.signal(signal.SIGTERM, _end)  # so that it ends every program that it started
    options = _options(words)
    if options.what == "many":
        return _many(options)
    if options.what == "hour":
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
    """Brakes a new user's bids once; `configs` gets the configs of that user's tasks."""
    market, service = Market(fault.service), fault.service
    slugs = [f"{brake.name}-{number}-{at}" for at in range(TASKS)]
    for slug in slugs:
        service.put_collection(slug, [FLOOR])
    ladders = Ladders(service, admin, slugs, bidCount=BIDS_EACH)
    try:
        ladders.start()
        ladders.until_whole(market)
        ladders.put_floor(round(FLOOR * rng.uniform(0.93, 1.07)))  # so that a loop that starts meanwhile replaces bids
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
    """Describes what /readyz reports after the brake, unless all is well."""
    try:
        answer = requests.get(service.url + "/readyz", timeout=15)
    except requests.RequestException as error:
        return f"   readyz: {type(error).__name__}"
    return "" if answer.status_code == 200 else f"   readyz {answer.status_code}: {answer.json().get('details')}"


def _wrong(service: Installation, configs: dict[int, list[BidConfig]]) -> list[str]:
    """Compares the ledger with the market's history, once the service is well again."""
    wrong = []
    try:
        until(service.ready_again, "readiness", _HEALED_S)
    except AssertionError:
        wrong.append(f"not ready again {_HEALED_S:.0f} s after the fault{_readiness(service)}")
    return wrong + disagreements(service, configs)


def _judged(name: str, found: list[Outcome], wrong: list[str], most_s: float) -> int:
    """Prints median and maximum; returns the exit code."""
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
            # An administrator's answers count all users' bids; otherwise each user would have to be asked.
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
