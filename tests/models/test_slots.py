"""Slots: which users are a manager's, where it is asked, and its home."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from core.errors import BidkeeperError
from core.settings import Settings
from models import summaries
from models.database import base
from models.leases import leases
from models.leases.leases import EVERYBODY, CannotChangeSlots, Holder, Slot, Taken, slot_of
from models.leases.manager_places import PeerUnavailable, place_for, places
from models.tasks import tasks
from tests import postgresql
from tests.databases import questions, rows
from tests.models import racing
from tests.models.test_orders import running_task


@postgresql.only
def test_a_manager_that_stood_by_while_the_slots_were_changed_does_not_get_a_former_slot(database: str) -> None:
    ours = base.database.obj
    leases.set_slots(4)
    former = racing.taken(racing.THERE)
    assert former is not None
    racing.run_out(database)  # or it is refused
    leases.set_slots(2)
    assert not leases.renew(ours, "slot 0", former.token, racing.SECONDS), "it has no slot any more"
    with pytest.raises(BidkeeperError, match="there is no slot 3: the number of slots was changed"):
        leases.take(ours, "slot 3", racing.HERE, racing.SECONDS)
    assert leases.slots() == 2
    found = leases.take(ours, "slot 1", racing.HERE, racing.SECONDS)
    assert found == (3, "before the slots were changed"), "whose workers' rights are to be ended"


@postgresql.only
def test_slots_are_set_while_no_manager_runs(database: str) -> None:
    assert leases.slots() == 1
    leases.set_slots(8)
    assert leases.slots() == 8
    found = leases.take(base.database.obj, "slot 3", racing.HERE, racing.SECONDS)
    assert isinstance(found, Taken)
    with pytest.raises(CannotChangeSlots, match=r"a manager runs on a \(slot 3\)"):
        leases.set_slots(4)
    leases.set_slots(8)  # they are so many
    leases.give_back(base.database.obj, "slot 3", found.token)
    leases.set_slots(4)
    assert (leases.slots(), rows(database, "SELECT count(*) FROM leases")) == (4, [(4,)])


@postgresql.only
def test_a_users_manager_is_asked_where_its_lease_says(database: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database)
    settings.run_dir.mkdir(parents=True)
    here = Holder(leases.home_of(settings.run_dir), "a")
    assert place_for(settings, 5) == settings.run_dir / "manager.sock"
    leases.set_slots(4)
    ours = base.database.obj
    for name, holder in (("slot 0", here), ("slot 1", racing.THERE), ("slot 2", Holder("there", "c"))):
        assert isinstance(leases.take(ours, name, holder, racing.SECONDS), Taken)
    assert place_for(settings, 4) == settings.run_dir / "manager-0.sock"
    assert place_for(settings, 5) == "10.0.0.2:7100"
    with pytest.raises(PeerUnavailable, match="slot 2 is kept on c, which answers no other machine"):
        place_for(settings, 6)
    racing.run_out(database)
    with pytest.raises(PeerUnavailable, match=r"nobody keeps slot 1; b did until \d+ s ago"):
        place_for(settings, 5)
    assert place_for(settings, 4) == settings.run_dir / "manager-0.sock"
    assert [type(each).__name__ for each in places(settings)] == ["PosixPath", *["PeerUnavailable"] * 2, "PosixPath"]


@postgresql.left_out("it has slots and leases")
def test_sqlite_has_one_slot_and_needs_no_lease(database: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database)
    assert (leases.slots(), place_for(settings, 7)) == (1, settings.run_dir / "manager.sock")
    leases.set_slots(1)
    with pytest.raises(CannotChangeSlots, match="several slots need PostgreSQL"):
        leases.set_slots(2)
    lease = racing.claimed(database)
    lease.alive()
    assert not lease.is_anothers
    lease.release()


@postgresql.only
def test_a_manager_is_found_by_one_question(database: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url=database)
    leases.set_slots(3)
    with questions(base.database.obj) as asked:
        assert place_for(settings, 4) == settings.run_dir / "manager-1.sock"
    assert len(asked) == 1


def test_each_user_is_of_one_slot() -> None:
    assert [slot_of(user, 3) for user in range(6)] == [0, 1, 2, 0, 1, 2]


def test_a_manager_sees_the_tasks_of_its_slot_alone(database: str) -> None:
    mine, other = running_task("birds"), running_task("cats", "bc1qb")
    assert (mine.user_id, other.user_id) == (1, 2)
    of_mine = Slot(1, 2)
    assert [glance.id for glance in summaries.glances([], of_mine)] == [mine.id]
    assert [glance.id for glance in summaries.glances([other.id], of_mine)] == [mine.id]
    assert [row.id for row in summaries.rows_of_interest([other.id], of_mine)] == [mine.id]
    assert summaries.ids_beside(of_mine) == [other.id]
    for task in (mine, other):
        tasks.observe(task.id, "starting", 1)
    tasks.forget_workers(of_mine)
    assert summaries.count_by_observed(of_mine) == {"stopped": 1}
    assert summaries.count_by_observed(EVERYBODY) == {"stopped": 1, "starting": 1}


def test_many_tokens_are_raised_in_one_commit(database: str) -> None:
    first, second, third = (running_task(slug) for slug in ("birds", "cats", "dogs"))
    tasks.raise_token(first.id)
    before = {task.id: tasks.least_token(task.id) for task in (first, second, third)}
    raised = tasks.raise_tokens([first.id, second.id])
    assert raised == {task.id: before[task.id] + 1 for task in (first, second)}
    assert tasks.least_token(third.id) == before[third.id]


def test_a_directory_is_told_from_every_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for each in (one, other):
        each.mkdir()
    assert leases.home_of(one) != leases.home_of(other), "before anybody holds anything there"
    found = leases.holder_in(one)
    assert (found.home, found.machine) == (leases.home_of(one), os.uname().nodename)
    assert leases.holder_in(one) == found, "a program that is started again is at home"
    assert len({leases.home_of(each) for each in (one, other)}) == 2
    assert [path.name for path in one.iterdir()] == ["home"]


def test_a_directory_that_was_made_anew_is_another_home(tmp_path: Path) -> None:
    """Its locks are other ones, too: who held them may still live, and the file system may give its number again."""
    before = leases.holder_in(tmp_path)
    for each in tmp_path.iterdir():
        each.unlink()
    assert tmp_path.stat().st_ino and leases.home_of(tmp_path) != before.home
    assert leases.holder_in(tmp_path).home != before.home


@pytest.mark.slow
def test_programs_that_start_together_are_at_one_home(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as processes:
        for number in range(10):
            (made := tmp_path / str(number)).mkdir()
            assert len(set(processes.map(leases.holder_in, [made] * 8))) == 1
            assert [path.name for path in made.iterdir()] == ["home"]
