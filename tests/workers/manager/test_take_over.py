"""A slot's way from one machine's manager to another's: in time, never two, the former one's rights ended first.

The machines are two data directories on one database, with one signer and one gateway. (`make test-postgresql`)
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from models import users
from models.database import base
from models.leases import leases
from models.tasks import tasks
from tests import postgresql
from tests.authority import Authority
from tests.ports import free_ports
from tests.worlds.manager import ROOT, Installation, eventually, lives, now_ms

pytestmark = [
    pytest.mark.slow,
    postgresql.only,
]
LEASE_S = 15  # as usual: a busy machine may not keep a shorter one


@contextmanager
def manager(
    installation: Installation, home: Path, slot: int | None = None, **settings: str
) -> Iterator[subprocess.Popen[str]]:
    """Runs a manager of this slot with its files in `home`; ends it, and all that it started, afterwards."""
    home.mkdir(exist_ok=True)
    environment = installation.environment | {
        "BIDKEEPER_DATA_DIR": str(home),
        "BIDKEEPER_SIGNER_RUN_DIR": str(installation.settings.run_dir),
        "BIDKEEPER_GATEWAY_RUN_DIR": str(installation.settings.run_dir),
        "BIDKEEPER_LEASE_SECONDS": str(LEASE_S),
        "BIDKEEPER_SLOT": "" if slot is None else str(slot),
        **settings,
    }
    command = [sys.executable, "-m", "tests.workers.run_manager"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def family(pid: int) -> list[int]:
    """Returns the process and all that descend from it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in family(int(child)))]


def wanted_tasks(installation: Installation, count: int) -> list[int]:
    """Makes tasks that are to run, of users in turn."""
    made = []
    for number in range(count):
        installation.user = users.find_or_create(f"bc1q{number}", dict(installation.settings.plans), now_ms())
        made.append(installation.task(f"cats-{number}"))
        installation.want(made[-1])
    return made


def acted_in(home: Path) -> list[int]:
    path = home / "acts"
    return [int(line.split()[0]) for line in path.read_text().splitlines()] if path.exists() else []


async def all_act(home: Path, task_ids: list[int]) -> None:
    await eventually(lambda: set(task_ids) <= set(acted_in(home)), f"that all tasks act in {home.name}")


async def test_without_slots_a_second_machines_manager_refuses_to_start(
    installation: Installation, tmp_path: Path
) -> None:
    [task] = wanted_tasks(installation, 1)
    async with installation.peers():
        with manager(installation, tmp_path / "a"):
            await all_act(tmp_path / "a", [task])
            with manager(installation, tmp_path / "b") as second:
                _, said = second.communicate(timeout=60)
            assert second.returncode == 1
            assert "another manager runs on the database postgresql://" in said and os.uname().nodename in said
            assert installation.row(task).observed == "running"


@pytest.mark.parametrize("end", ["killed", "stopped", "asked to end"])
async def test_another_machines_manager_takes_a_slot_over(installation: Installation, tmp_path: Path, end: str) -> None:
    leases.set_slots(2)
    mine = wanted_tasks(installation, 4)
    of_slot = [task for task in mine if installation.row(task).user_id % 2 == 1]
    a, b = tmp_path / "a", tmp_path / "b"
    async with installation.peers():
        with ExitStack() as second, manager(installation, a, 1) as first:
            await all_act(a, of_slot)
            second.enter_context(manager(installation, b, 1))
            assert not acted_in(b) and set(acted_in(a)) == set(of_slot), "another slot's tasks are nobody's here"
            tokens = {task: tasks.least_token(task) for task in of_slot}
            former = family(first.pid)
            assert len(former) >= 2 + len(of_slot)
            asked_before = len(installation.signer.asked)
            began = time.monotonic()
            if end == "asked to end":
                first.send_signal(signal.SIGTERM)
            else:
                for pid in former:
                    with suppress(ProcessLookupError):  # it has ended with the manager
                        os.kill(pid, signal.SIGKILL if end == "killed" else signal.SIGSTOP)
            await all_act(b, of_slot)
            took_s = time.monotonic() - began
            assert not any(lives(pid) for pid in former), "the former ones still live, though stopped"
            assert took_s < 120
            assert all(tasks.least_token(task) >= tokens[task] + 2 for task in of_slot)
            asked: list[dict[str, Any]] = installation.signer.asked[asked_before:]
            ops = [each["op"] for each in asked if each["op"] in ("end_all_rights", "grant")]
            assert ops == ["end_all_rights", *["grant"] * len(of_slot)], "rights are ended before any is given"
            fences = [each for each in installation.gateway.asked if each["verb"] == "fence_all"]
            assert {task for task, _ in fences[-1]["args"]["tokens"]} == set(of_slot)


async def test_one_that_has_just_been_started_learns_from_another_machine_how_long_a_lease_has_stood(
    installation: Installation, tmp_path: Path
) -> None:
    """Else it would have to watch the lease for all of its time, as on a machine that nobody has used so far."""
    leases.set_slots(2)
    a, b, c = (tmp_path / name for name in "abc")
    authority, seconds = Authority(tmp_path / "authority"), 24
    with ExitStack() as running:

        def begins(home: Path, slot: int) -> subprocess.Popen[str]:
            tls = {"BIDKEEPER_TLS_DIR": str(authority.certificate("trader", home.name))}
            at = {"BIDKEEPER_MANAGER_LISTEN": f"127.0.0.1:{free_ports(1)[0] - slot}"}
            lease = {"BIDKEEPER_LEASE_SECONDS": str(seconds)}
            return running.enter_context(manager(installation, home, slot, **tls, **at, **lease))

        def seen_there() -> str:
            path = b / "run" / "seen-slot-1.json"
            return str(json.loads(path.read_text())["seen"].get("slot 0")) if path.exists() else ""

        first, _ = begins(a, 0), begins(b, 1)
        await eventually(lambda: seen_there() not in ("", "None"))
        first.kill()
        await eventually(lambda: leases.versions(base.database.obj)["slot 0"] in seen_there())
        await asyncio.sleep(seconds / 2)
        third = begins(c, 0)
        assert third.stderr is not None
        said = await asyncio.to_thread(lambda: next(line for line in third.stderr or () if "stands by" in line))
        began = time.monotonic()
        home = leases.home_of(c / "run")
        await eventually(lambda: (held := leases.held("slot 0")) is not None and held.home == home)
        assert time.monotonic() - began < seconds - 1, said


def test_a_manager_that_stood_by_while_the_slots_were_changed_keeps_none(
    installation: Installation, tmp_path: Path
) -> None:
    """The slot of its number is another one now: its users are others."""
    leases.set_slots(2)
    former = leases.take(base.database.obj, "slot 1", leases.Holder("elsewhere", "another"), 300)
    assert isinstance(former, leases.Taken)
    with manager(installation, tmp_path / "b", 1) as second:
        assert second.stderr is not None
        next(line for line in second.stderr if "this one stands by" in line)
        base.database.execute_sql("UPDATE leases SET until_ms = 0")  # nobody takes it, but the slots may be changed
        leases.set_slots(4)
        _, said = second.communicate(timeout=60)
    assert second.returncode == 1
    assert "the number of slots was changed while this manager stood by" in said
    held = leases.held("slot 1")
    assert held is not None and (held.token, held.left_ms < 0) == (former.token + 2, True), "it is given back"


async def test_nothing_is_started_before_the_former_workers_rights_are_ended(
    installation: Installation, tmp_path: Path
) -> None:
    leases.set_slots(2)
    task = next(task for task in wanted_tasks(installation, 2) if installation.row(task).user_id % 2 == 1)
    former = leases.take(base.database.obj, "slot 1", leases.Holder("elsewhere", "another"), LEASE_S)
    assert isinstance(former, leases.Taken)
    leases.give_back(base.database.obj, "slot 1", former.token)
    async with installation.peers():
        installation.signer.refusal = "locked"
        with manager(installation, tmp_path / "b", 1) as killed:
            await eventually(lambda: "end_all_rights" in installation.signer.ops())
            killed.kill()  # the next one here has it to do, too
        asked_before = len(installation.signer.ops())
        with manager(installation, tmp_path / "b", 1) as second:
            await eventually(lambda: "end_all_rights" in installation.signer.ops()[asked_before:])
            await asyncio.sleep(1.5)
            assert set(installation.signer.ops()) == {"end_all_rights"} and not acted_in(tmp_path / "b")
            installation.signer.refusal = None
            await all_act(tmp_path / "b", [task])
            second.kill()
            _, said = second.communicate(timeout=60)
        assert "nothing is started before its former workers' rights are ended" in said


async def test_former_rights_end_also_where_the_database_has_gone_back(
    installation: Installation, tmp_path: Path
) -> None:
    """As at an asynchronous standby: the former workers' tokens are above those that their rows are raised to."""
    leases.set_slots(2)
    mine = [task for task in wanted_tasks(installation, 6) if installation.row(task).user_id % 2 == 1]
    behind, at_gateway, even = mine
    former = leases.take(base.database.obj, "slot 1", leases.Holder("elsewhere", "another"), LEASE_S)
    assert isinstance(former, leases.Taken)
    leases.give_back(base.database.obj, "slot 1", former.token)
    installation.signer.highest |= {behind: 40}
    installation.gateway.least |= {behind: 30, at_gateway: 50}
    async with installation.peers():
        with manager(installation, tmp_path / "b", 1):
            await all_act(tmp_path / "b", mine)
    withdrawn = [each["tokens"] for each in installation.signer.asked if each["op"] == "end_all_rights"]
    assert [sorted(pairs) for pairs in withdrawn] == [
        [[behind, 1], [at_gateway, 1], [even, 1]],
        [[behind, 41], [at_gateway, 51]],
    ]
    begun = [each["op"] for each in installation.signer.asked if each["op"] in ("end_all_rights", "grant")]
    assert begun[:2] == ["end_all_rights"] * 2, "rights are ended before any is given"
    assert len(installation.signer.grants(behind)) == 1, "its token is above all at once"
