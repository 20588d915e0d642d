from __future__ import annotations

import pytest

from core.plans import DEFAULT_PLANS
from models import cycles, tasks, users
from models.tasks import BiddingTask, TaskExists, TaskLimitReached


def user(address: str = "bc1qa") -> users.User:
    return users.find_or_create(address, DEFAULT_PLANS, 1)


def create(owner: users.User, slug: str, max_tasks: int = 20) -> BiddingTask:
    return tasks.create_bidding_task(
        owner.id, type="ordinals", slug=slug, slug_key=slug, config="{}", max_tasks=max_tasks, now_ms=1
    )


def test_an_id_is_never_handed_out_twice(database: str) -> None:
    first = create(user(), "cats")
    tasks.mark_deleted(first, 2)
    tasks.remove_tombstone(first.id)
    assert create(user(), "cats").id > first.id
    gone = user("bc1qgone")
    gone.delete_instance()
    assert user("bc1qnew").id > gone.id


def test_a_second_task_of_a_slug_is_refused_before_the_limit_is_looked_at(database: str) -> None:
    create(user(), "cats", max_tasks=1)
    with pytest.raises(TaskExists):
        create(user(), "cats", max_tasks=1)
    with pytest.raises(TaskLimitReached):
        create(user(), "dogs", max_tasks=1)
    create(user("bc1qb"), "cats", max_tasks=1)


def test_a_deleted_task_frees_its_slug_and_its_place(database: str) -> None:
    first = create(user(), "cats", max_tasks=1)
    tasks.mark_deleted(first, 2)
    assert create(user(), "cats", max_tasks=1).id != first.id
    assert tasks.bidding_task(first.user.id, first.id) is None


def test_nobody_sees_anothers_task(database: str) -> None:
    mine = create(user(), "cats")
    assert tasks.bidding_task(user("bc1qb").id, mine.id) is None
    assert tasks.bidding_tasks(user("bc1qb").id) == []


def test_tokens_only_grow_and_a_missing_task_has_none_low_enough(database: str) -> None:
    task = create(user(), "cats")
    assert [tasks.raise_token(task.id) for _ in range(3)] == [1, 2, 3]
    assert tasks.least_token(task.id) == 3
    assert tasks.least_token(999) > 2**61


@pytest.mark.parametrize(("start", "end"), [(a, b) for a in tasks.MOVES for b in tasks.MOVES if a != b])
def test_observed_goes_only_where_the_table_says(database: str, start: str, end: str) -> None:
    task = create(user(), "cats")
    BiddingTask.update(observed=start).where(BiddingTask.id == task.id).execute()
    if end in tasks.MOVES[start]:
        tasks.observe(task.id, end)
        assert BiddingTask.get_by_id(task.id).observed == end
    else:
        with pytest.raises(ValueError, match="cannot go"):
            tasks.observe(task.id, end)


def test_an_overtaken_worker_writes_no_cycle(database: str) -> None:
    task = create(user(), "cats")
    old, new = tasks.raise_token(task.id), tasks.raise_token(task.id)
    for token in (old, new):
        cycles.record_cycle(task.id, token, time_ms=1, action=f"by {token}", error=None, detail="{}", memory="{}")
    assert [cycle.action for cycle in cycles.cycles_of(task.id)] == [f"by {new}"]
    assert BiddingTask.get_by_id(task.id).last_cycle_action == f"by {new}"


def test_only_the_newest_cycles_are_kept(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "KEPT", 3)
    task = create(user(), "cats")
    token = tasks.raise_token(task.id)
    for number in range(5):
        cycles.record_cycle(task.id, token, time_ms=number, action="", error=None, detail="{}", memory="{}")
    assert [cycle.time_ms for cycle in cycles.cycles_of(task.id, 10)] == [4, 3, 2]


def test_a_plan_that_is_over_or_a_lost_whitelisting_ends_the_right_to_trade(database: str) -> None:
    owner = user()
    everybody: frozenset[str] = frozenset("*")
    nobody: frozenset[str] = frozenset()
    end = 1 + 365 * users.DAY_MS
    assert users.refusal_to_trade(owner, DEFAULT_PLANS, everybody, nobody, end - 1) is None
    assert users.refusal_to_trade(owner, DEFAULT_PLANS, everybody, nobody, end) == "plan expired"
    assert "whitelisted" in str(users.refusal_to_trade(owner, DEFAULT_PLANS, nobody, nobody, 1))
    assert users.refusal_to_trade(owner, DEFAULT_PLANS, nobody, frozenset({"bc1qa"}), 1) is None
