"""`.venv-postgresql/bin/python -m bench.thousand_hosts [--tasks N]`: a thousand tasks on one host, then on three.

Every host is a separate network on a bridge, so it needs root. The database has two hosts, and every commit waits for
the second; the signer, the gateways and the server have one each. No bid is possible. Cycles are a minute apart,
because each opens a TLS connection to the database, and one machine does all of that here. Memory is PSS: memory that a
host's processes share counts once, but files that all hosts read here, such as libraries, count only partly for each
host. Every wait is limited. The exit code is 1 if a task has not finished a cycle.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.installed import PLAN, WITHOUT_BIDS, Home, Tasks
from bench.measuring import call, cpu_seconds, pss_mib
from bench.thousand import TASKS_EACH
from drills.hosts import networks
from drills.hosts.far_site import FarSite
from drills.hosts.machine import family

HOSTS = (1, 3)
_WATCHED_S = 60.0
_AT_ONCE = 8
_TRIES = 20
_LOOP_S = 60
_PATIENCE_S = 600.0


def main() -> int:
    """Measures each number of trading hosts in turn; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000, help="how many, in twenties (default 1000)")
    options = parser.parse_args()
    if reason := networks.why_not():
        print(reason, file=sys.stderr)
        return 1
    return max([_measure(hosts, options.tasks // TASKS_EACH) for hosts in HOSTS])


@contextlib.contextmanager
def _site(hosts: int) -> Iterator[FarSite]:
    with tempfile.TemporaryDirectory(prefix="bk-bench-") as directory:
        config = Path(directory) / "bidkeeper.toml"
        config.write_text(PLAN.format(max_tasks=TASKS_EACH))
        # The same number of slots and the shipped lease in both cases, so that both do the same work.
        site = FarSite(hosts, max(HOSTS), BIDKEEPER_CONFIG=str(config), BIDKEEPER_LEASE_SECONDS="15")
        try:
            site.up()
            yield site
        finally:
            site.destroy()


def _measure(hosts: int, count: int) -> int:
    with _site(hosts) as site:
        home = Home(site)
        slugs = [f"c-{number}" for number in range(TASKS_EACH)]
        home.put_collections(slugs, WITHOUT_BIDS)
        users = [home.user(slugs, loopSeconds=_LOOP_S) for _ in range(count)]
        tasks = sum(len(user.ids) for user in users)
        began = time.monotonic()
        again = _start_all(home, users)
        started_s = time.monotonic() - began
        cycled = _until_all_have_cycled(site, tasks)
        print(
            f"\n{tasks} tasks of {count} users, trading on {hosts}: all started after {started_s:.1f} s, "
            f"{again} starts asked for again"
        )
        print(f"{cycled} have finished a cycle after {time.monotonic() - began:.1f} s")
        time.sleep(_WATCHED_S)  # until the starts' own work is over
        before = {name: _cpu(pids) for name, pids in _hosts(site).items()}
        cycles = _cycles(site)
        time.sleep(_WATCHED_S)
        after = {name: _cpu(pids) for name, pids in _hosts(site).items()}
        print(f"{_cycles(site) - cycles} cycles in {_WATCHED_S:.0f} s\n")
        print(f"{'host':<20} {'workers':>8} {'processes':>10} {'PSS, MiB':>10} {'of one core':>12}")
        for name, pids in _hosts(site).items():
            used = sum(seconds - before[name].get(pid, 0.0) for pid, seconds in after[name].items())
            memory, workers = sum(map(_memory, pids)), sum(map(_is_worker, pids))
            print(f"{name:<20} {workers:>8} {len(pids):>10} {memory:>10,.0f} {used / _WATCHED_S:>12.1%}", flush=True)
        failed = site.rows("SELECT count(*) FROM tasks WHERE last_error IS NOT NULL")[0][0]
        print(f"\ntasks with an error: {failed}")
        return 0 if cycled == tasks and not failed else 1


def _start_all(home: Home, users: list[Tasks]) -> int:
    """Starts all tasks; returns the number of repeated requests, which were refused because a program was too busy.

    One machine does the work of seven here, and correctly answers 503 in its worst moments.
    """
    refused: list[int] = []

    def start(token: str, task: int) -> None:
        for _ in range(_TRIES):
            try:
                call(home.port, "POST", f"/api/tasks/{task}/start", token)
                return
            except RuntimeError as error:
                if ": 503 " not in str(error):
                    raise
                refused.append(task)
                time.sleep(1)
        raise RuntimeError(f"task {task} could not be started in {_TRIES} tries")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda job: start(*job), [(user.token, task) for user in users for task in user.ids]))
    return len(refused)


def _until_all_have_cycled(site: FarSite, tasks: int) -> int:
    """Waits until each task has finished a cycle; returns how many have."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        found = int(site.rows("SELECT count(*) FROM tasks WHERE cycles > 0")[0][0])
        if found == tasks or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


def _cycles(site: FarSite) -> int:
    return int(site.rows("SELECT sum(cycles) FROM tasks")[0][0])


def _hosts(site: FarSite) -> dict[str, list[int]]:
    """Returns the processes of each host, by the host's role."""
    named = {"hub": "server and market", "vault": "signer", "g1": "gateway", "g2": "standby gateway"}
    found = {named.get(machine.name, f"trading {machine.name}"): machine.pids() for machine in site.machines}
    for name, server in (("database", site.database.primary), ("database's standby", site.database.standby)):
        found[name] = family(int((server.directory / "data" / "postmaster.pid").read_text().split()[0]))
    return found


def _cpu(pids: list[int]) -> dict[int, float]:
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            found[pid] = cpu_seconds(pid)
    return found


def _memory(pid: int) -> float:
    with contextlib.suppress(OSError):
        return pss_mib(pid)
    return 0.0


def _is_worker(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"bidkeeper: bidder")
    return False


if __name__ == "__main__":
    sys.exit(main())
