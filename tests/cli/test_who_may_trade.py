"""The commands that say who may trade: what they write, and that the manager hears of it at once."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from cli import users as people
from cli.main import main
from core.call import Verbs
from core.local_server import serve
from core.program_calls import Enforce, Stopped
from core.settings import Settings, load
from models import users
from models.database import base
from models.database.base import connect
from models.schema import migrate
from models.users import Entitlements

OWNER = "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu"


@pytest.fixture
def settings(environment: dict[str, str]) -> Settings:
    return load(environment | {"BIDKEEPER_WHITELIST": "bc1qsomebodyelse"})


@pytest.fixture
def owner(settings: Settings) -> Iterator[users.User]:
    """A user who is on the list and signed in; the database is open in this process."""
    connect(settings.database_url)
    opened = base.database.obj  # a command in a thread of its own puts another in its place
    migrate()
    now_ms = time.time_ns() // 1_000_000
    user = users.find_or_create(OWNER, dict(settings.plans), now_ms)
    users.Whitelist.create(address=OWNER, added_ms=now_ms)
    users.open_session("hash", user.id, now_ms)
    yield user
    opened.close()


def asked_of_manager(settings: Settings, command: Callable[[], int]) -> tuple[int, list[Enforce]]:
    """Runs the command; returns its result, and its requests to a manager that answers."""
    asked: list[Enforce] = []

    def answer(request: Enforce) -> Stopped:
        asked.append(request)
        return Stopped(3)

    async def story() -> int:
        server = await serve(settings.manager_socket, Verbs("manager", {Enforce: answer}))
        try:
            return await asyncio.to_thread(command)
        finally:
            server.close()

    return asyncio.run(story()), asked


def remove(settings: Settings) -> int:
    return people.run(settings, argparse.Namespace(verb="whitelist", action="remove", address=OWNER))


def test_who_is_added_again_stays_an_administrator(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    for is_admin in (False, True, False):
        people.run(settings, argparse.Namespace(verb="whitelist", action="add", address=OWNER, admin=is_admin))
    people.run(settings, argparse.Namespace(verb="whitelist", action="list"))
    assert capsys.readouterr().out.splitlines()[-4:] == [
        f"{OWNER} may sign in",
        f"{OWNER} may sign in as an administrator",
        f"{OWNER} may sign in as an administrator",
        f"{OWNER} admin",
    ]


def test_whom_the_list_loses_is_stopped_before_the_command_ends(
    settings: Settings, owner: users.User, capsys: pytest.CaptureFixture[str]
) -> None:
    code, asked = asked_of_manager(settings, lambda: remove(settings))
    connect(settings.database_url)
    assert (code, asked) == (0, [Enforce()])
    assert "can no longer sign in\n3 tasks were stopped\n" in capsys.readouterr().out
    assert not Entitlements(settings).may_sign_in(OWNER)
    assert users.user_and_mark("hash", time.time_ns() // 1_000_000) is None


def test_without_a_manager_the_list_is_changed_all_the_same(
    settings: Settings, owner: users.User, capsys: pytest.CaptureFixture[str]
) -> None:
    assert remove(settings) == 0
    connect(settings.database_url)
    assert not Entitlements(settings).may_sign_in(OWNER)
    assert "the manager was not notified" in capsys.readouterr().out


def test_whom_the_settings_allow_stays(
    settings: Settings, owner: users.User, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = load(environment | {"BIDKEEPER_WHITELIST": OWNER})
    code, asked = asked_of_manager(allowed, lambda: remove(allowed))
    assert (code, asked) == (1, [])
    assert "the settings allow it" in capsys.readouterr().out


def test_a_plan_that_is_ended_is_enforced_at_once(settings: Settings, owner: users.User) -> None:
    options = argparse.Namespace(verb="plan", action="set", address=OWNER, plan="beta", days=0)
    code, asked = asked_of_manager(settings, lambda: people.run(settings, options))
    connect(settings.database_url)
    assert (code, asked) == (0, [Enforce()])
    now_ms = time.time_ns() // 1_000_000
    user = users.User.get_by_id(owner.id)
    assert Entitlements(settings).refusal(user, now_ms) == "plan expired"


@pytest.mark.parametrize("days", ["-5", "36501", "999999999999999", "many"])
def test_a_plan_ends_at_a_date_that_can_be_shown(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "set", OWNER, "beta", "--days", days])
    assert "argument --days: " in capsys.readouterr().err
