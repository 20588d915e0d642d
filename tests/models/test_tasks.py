from __future__ import annotations

import pytest

from core.plans import DEFAULT_PLANS
from core.settings import Settings
from models import users
from models.entitlements import Entitlements
from models.tasks import cycles, tasks
from models.tasks.numbers import file_stem, is_autolist, label, row_id
from models.tasks.tasks import AUTOLIST_BASE, AutolistTask, BiddingTask, Task, TaskExists, TaskLimitReached


def user(address: str = "bc1qa") -> users.User:
    return users.find_or_create(address, DEFAULT_PLANS, 1)


def create(owner: users.User, slug: str, max_tasks: int = 20) -> BiddingTask:
    return tasks.create_bidding_task(
        owner.id, type="ordinals", slug=slug, slug_key=slug, config="{}", max_tasks=max_tasks, now_ms=1
    )


def create_listing(owner: users.User, inscription: str) -> AutolistTask:
    return tasks.create_autolist_task(owner.id, inscription_id=inscription, collection_id="cats", config="{}", now_ms=1)


def test_a_number_tells_the_table(database: str) -> None:
    bids, listing = create(user(), "cats"), create_listing(user(), "a")
    assert (bids.id, listing.id) == (1, 1)
    assert (bids.number, listing.number) == (1, AUTOLIST_BASE + 1)
    assert [is_autolist(each.number) for each in (bids, listing)] == [False, True]
    assert [row_id(each.number) for each in (bids, listing)] == [1, 1]
    assert [label(each.number) for each in (bids, listing)] == ["task 1", "listing 1"]
    assert [file_stem(each.number) for each in (bids, listing)] == ["task-1", "listing-1"]
    assert [tasks.subject_of(each.number) for each in (bids, listing)] == ["cats", "a"]
    for each in (bids, listing):
        found = tasks.with_owner(each.number)
        assert found == each and type(found) is type(each)


def test_what_is_written_of_one_kind_is_not_the_others(database: str) -> None:
    """Both have the same id."""
    bids, listing = create(user(), "cats"), create_listing(user(), "a")

    def state(task: Task) -> tuple[object, ...]:
        row = type(task).get_by_id(task.id)
        return row.token, row.observed, row.desired, row.last_error, row.cycles, row.last_cycle_action

    untouched = state(bids)
    tasks.set_desired(listing, tasks.RUNNING)
    token = tasks.raise_token(listing.number)
    tasks.observe(listing.number, "starting", pid=5)
    cycles.record_cycle(listing.number, token, time_ms=1, action="listed", error="e", detail="{}", memory="{}")
    assert state(listing) == (1, "starting", "running", "e", 1, "listed")
    tasks.report_error(listing.number, token, "worse")
    tasks.stop_wanting(listing.number, "over")
    assert state(listing)[2:4] == ("stopped", "over")
    assert tasks.least_token(listing.number) == 1
    assert tasks.under_token(listing.number, token) == listing
    assert state(bids) == untouched
    assert cycles.cycles_of(bids.number) == []
    tasks.mark_deleted(listing, 5)
    tasks.remove_tombstone(listing.number)
    assert tasks.with_owner(listing.number) is None
    assert tasks.with_owner(bids.number) == bids


def test_a_manager_is_shown_both_kinds(database: str) -> None:
    bids, idle = create(user(), "cats"), create(user(), "dogs")
    listing, other = create_listing(user(), "a"), create_listing(user(), "b")
    for task in (bids, listing):
        tasks.set_desired(task, tasks.RUNNING)
    tasks.mark_deleted(other, 5)
    wanted = [bids.number, listing.number, other.number]
    assert [glance.number for glance in tasks.glances([])] == wanted
    assert [row.number for row in tasks.rows_of_interest([])] == wanted
    assert [glance.number for glance in tasks.glances([idle.number])] == [bids.number, idle.number, *wanted[1:]]
    assert tasks.count_by_observed() == {"stopped": 4}
    tasks.observe(listing.number, "starting")
    tasks.forget_workers()
    assert tasks.count_by_observed() == {"stopped": 4}


def test_a_listings_new_config_is_a_new_revision(database: str) -> None:
    listing = create_listing(user(), "a")
    assert tasks.change_autolist_task(listing, collection_id=None, config="{1}") == 2
    changed = AutolistTask.get_by_id(listing.id)
    assert (changed.revision, changed.config, changed.collection_id) == (2, "{1}", None)


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
    everybody, nobody = Entitlements(Settings(whitelist=frozenset("*"))), Entitlements(Settings())
    end = 1 + 365 * users.DAY_MS
    assert everybody.refusal(owner, end - 1) is None
    assert everybody.refusal(owner, end) == "plan expired"
    assert "whitelisted" in str(nobody.refusal(owner, 1))
    assert Entitlements(Settings(admins=frozenset({"bc1qa"}))).refusal(owner, 1) is None
