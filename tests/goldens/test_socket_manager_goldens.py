"""Each operation of the manager's socket once, with real workers, and each refusal, as the server sees them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused, PeerUnavailable
from core.layout import log_path
from models.leases.held_lease import Seen
from models.tasks.tasks import RUNNING, STOPPED
from server.http import services
from server.http.services import ManagerClient, answer_to
from tests.goldens.socket_files import Session, Tap, failed, hold
from tests.shapes import replace
from tests.workers.conftest import installation, patient_with_zygotes
from tests.worlds.manager import DRAIN_S, PATIENCE_S, Installation, eventually
from workers.manager import rights

__all__ = ["installation", "patient_with_zygotes"]  # fixtures, for this module's own use
pytestmark = pytest.mark.slow
# The codes by which a manager, or a signer and gateway behind it, refuse; one that is not known here is the last.
CODES = (
    "not_entitled",
    "too_many_workers",
    "signer_unavailable",
    "signer_locked",
    "gateway_unavailable",
    "start_failed",
    "stop_failed",
    "database_damaged",
    "unknown_task",
    "unknown_op",
    "unreadable",
    "internal",
    "stopping",
    "another_one",
)


def as_it_is(value: Any) -> Any:
    return value


async def answers(session: Session, client: ManagerClient, opened: Installation) -> None:
    """Asks each operation once."""
    user, keep = opened.user.id, session.wait_for
    await keep("state", client.state(PATIENCE_S))
    await keep("ready", client.ready(user))
    task = opened.task()
    opened.want(task, RUNNING)
    await keep("settle, a start", client.settle(user, task))
    await keep("settle, nothing to do", client.settle(user, task, drain_s=0.5))
    await keep("status", client.status(PATIENCE_S))
    await keep("heed, a task", client.heed("task", task, user, "reduce", 1_700_000_000_000))
    await keep("heed, another limit", client.heed("user", user, user, None, 1_700_000_000_001))
    await keep("enforce", client.enforce())
    log_path(opened.settings.data_dir, task + 1).write_text("one\ntwo\nthree •\n")
    await keep("log", client.log(user, task + 1, 2))
    opened.want(task, STOPPED)
    await keep("settle, a stop", client.settle(user, task))


async def refusals(session: Session, client: ManagerClient, opened: Installation) -> None:
    """Asks for what is refused; no worker runs."""
    user, keep = opened.user.id, session.wait_for
    odd: Any = client
    await keep("settle, no such task", client.settle(user, 999))
    await keep("settle, no task", odd.settle(user, "x"))
    await keep("settle, too long a drain", client.settle(user, 1, drain_s=61))
    await keep("heed, an odd scope", client.heed("world", 0, user, "halt", 1))
    await keep("heed, an odd state", client.heed("task", 1, user, "stop", 1))
    await keep("heed, no time", odd.heed("task", 1, user, "halt", "x"))
    await keep("log, none is there", client.log(user, 999, 2))
    await keep("log, too many lines", client.log(user, 1, 1001))
    for slug, code in enumerate(("locked", "internal", "grant-live", "disk-full")):
        task = opened.task(f"cats-{slug}")
        opened.want(task, RUNNING)
        opened.signer.refusal = code
        await keep(f"settle, the signer says {code}", client.settle(user, task))
        opened.want(task, STOPPED)
        opened.signer.refusal = None


async def test_each_operation_and_each_refusal_at_the_managers_socket_are_as_before(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tap.sock"
    # As if the manager were on another host: then its log is asked for, too.
    monkeypatch.setattr(services, "place_for", lambda settings, user_id: "far")
    monkeypatch.setattr(services, "places", lambda settings: ["far"])
    for module in (services, rights):
        monkeypatch.setattr(module, "address_at", lambda settings, place: path)
    monkeypatch.setattr(services, "_PING_S", PATIENCE_S)
    monkeypatch.setattr(rights, "_PATIENCE_S", PATIENCE_S)
    client = ManagerClient(installation.settings, wait_s=0.3, drain_s=DRAIN_S)
    async with installation.running():
        manager = installation.manager
        assert manager is not None
        await eventually(lambda: manager._shared.spawner.is_ready)
        tap = Tap(path, installation.settings.manager_socket)
        session = Session(tap, as_it_is)
        await answers(session, client, installation)
        assert not [each for each in session.meanings if "raises" in each]
        await refusals(session, client, installation)
        assert await ask_what_stood(installation) == []
        session.wire.append({"call": "stood, not known"} | dict(zip(("sent", "answered"), tap.exchange(), strict=True)))
        monkeypatch.setattr(manager._lease, "stood", lambda name: ("1:2:3", 2.5))
        [seen] = await ask_what_stood(installation)
        session.wire.append({"call": "stood"} | dict(zip(("sent", "answered"), tap.exchange(), strict=True)))
        session.meanings.append({"call": "stood", "returns": {"version": seen.version}})
        tap.close()
    path.unlink()
    await session.wait_for("state, away", client.state())
    await session.wait_for("ready, away", client.ready(installation.user.id))
    await session.wait_for("settle, away", client.settle(installation.user.id, 1))
    client.close()
    await session.wait_for("settle, the server stops", client.settle(installation.user.id, 1))
    hold("socket_manager_meanings.jsonl", session.meanings)
    hold("socket_manager_wire.jsonl", session.wire)


async def ask_what_stood(opened: Installation) -> list[Seen]:
    return await asyncio.to_thread(rights.heard, opened.settings, "slot 1", ["far"])


async def test_a_task_whose_owner_has_no_plan_is_refused_as_before(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Installation(tmp_path, whitelist="bc1qsomebody")
    async with opened.running():
        client = ManagerClient(replace(opened.settings))
        task = opened.task()
        opened.want(task, RUNNING)
        with pytest.raises(PeerRefused) as refused:
            await client.settle(opened.user.id, task)
        client.close()
    hold("socket_manager_no_plan_meanings.jsonl", [failed(refused.value), failed(answer_to(refused.value))])


def test_the_servers_answer_to_each_refusal_of_a_manager_is_as_before() -> None:
    errors = [PeerRefused("manager", code, text) for code in CODES for text in ("the reason", "")]
    told = [failed(answer_to(error)) for error in (*errors, PeerUnavailable("manager", "is away"))]
    named = [*(f"{error.code}, {error.message!r}" for error in errors), "unavailable"]
    hold(
        "socket_manager_answers_meanings.jsonl",
        [{"refusal": name} | each for name, each in zip(named, told, strict=True)],
    )
