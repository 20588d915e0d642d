from __future__ import annotations

import pytest
from peewee import IntegrityError

from core.settings import Settings
from core.subscription_plans import DEFAULT_PLANS, FIRST_PLAN
from models import accounts, summaries, users
from models.leases.leases import EVERYBODY
from models.tasks import cycles, tasks
from models.tasks.tasks import (
    BIDDING,
    LISTING,
    MOVES,
    RUNNING,
    STOPPED,
    Task,
    TaskExists,
    TaskLimitReached,
    bidding_task_list,
)
from models.users import Entitlements
from strategy.config.bid import BidConfig, dump_bid_config
from strategy.config.listing import ListingConfig, dump_listing_config
from strategy.monthly import Bidding


def user(address: str = "bc1qa") -> users.User:
    return users.find_or_create(address, DEFAULT_PLANS, 1)


def create(owner: users.User, slug: str, max_tasks: int = 20, venue: str = "simulator") -> Task:
    return tasks.create_bidding_task(
        owner.id, type="ordinals", slug=slug, slug_key=slug, config="{}", venue=venue, max_tasks=max_tasks, now_ms=1
    )


def create_listing(owner: users.User, inscription: str, venue: str = "simulator") -> Task:
    return tasks.create_autolist_task(
        owner.id, inscription_id=inscription, collection_id="cats", config="{}", venue=venue, now_ms=1
    )


def test_no_two_tasks_have_one_id_whatever_their_kinds(database: str) -> None:
    made = [create(user(), "cats"), create_listing(user(), "a"), create(user(), "dogs")]
    assert [task.id for task in made] == [1, 2, 3]
    assert tasks.outline(1) == (BIDDING, "simulator", "cats", 1, 0)
    assert tasks.outline(2) == (LISTING, "simulator", "a", 1, 0)
    assert tasks.outline(4) is None
    assert [tasks.with_owner(task.id) for task in made] == made


def test_a_task_is_found_among_its_kind_only(database: str) -> None:
    owner = user().id
    bids, listing = create(user(), "cats"), create_listing(user(), "a")
    assert (tasks.of_user(owner, BIDDING), tasks.of_user(owner, LISTING)) == ([bids], [listing])
    assert (tasks.own(owner, BIDDING, bids.id), tasks.own(owner, LISTING, listing.id)) == (bids, listing)
    assert tasks.own(owner, LISTING, bids.id) is tasks.own(owner, BIDDING, listing.id) is None
    assert [tasks.count(owner, kind) for kind in (BIDDING, LISTING)] == [1, 1]
    for task in (bids, listing):
        tasks.set_desired(task, RUNNING)
    assert [tasks.may_act(bids.id, kind, 0) for kind in (BIDDING, LISTING)] == [True, False]
    assert [tasks.may_act(listing.id, kind, 0) for kind in (BIDDING, LISTING)] == [False, True]
    assert [tasks.may_act(bids.id, BIDDING, 1), tasks.may_act(99, BIDDING, 0)] == [False, False]


def test_a_task_has_the_columns_of_its_kind(database: str) -> None:
    common = {"user": user(), "venue": "simulator", "config": "{}", "created_ms": 1}
    for wrong in (
        {"kind": BIDDING},
        {"kind": LISTING},
        {"kind": BIDDING, "type": "rune", "slug": "A", "slug_key": "a", "inscription_id": "a"},
        {"kind": LISTING, "type": "rune", "slug": "A", "slug_key": "a", "inscription_id": "a"},
        {"kind": "other"} | {"type": "rune", "slug": "A", "slug_key": "a"},
    ):
        with pytest.raises(IntegrityError, match=r"(?i)check"):
            Task.create(**common, **wrong)


def test_what_is_written_of_one_task_is_not_anothers(database: str) -> None:
    bids, listing = create(user(), "cats"), create_listing(user(), "a")

    def state(task: Task) -> tuple[object, ...]:
        row = Task.get_by_id(task.id)
        return row.token, row.observed, row.desired, row.last_error, row.cycles, row.last_cycle_action

    untouched = state(bids)
    tasks.set_desired(listing, RUNNING)
    token = tasks.raise_token(listing.id)
    tasks.observe(listing.id, "starting", 1, pid=5)
    cycles.record_cycle(listing.id, token, time_ms=1, action="listed", error="e", detail="{}", memory="{}")
    assert state(listing) == (1, "starting", "running", "e", 1, "listed")
    tasks.report_error(listing.id, token, "worse")
    tasks.stop_wanting(listing.id, "over")
    assert state(listing)[2:4] == ("stopped", "over")
    assert tasks.least_token(listing.id) == 1
    assert tasks.under_token(listing.id, token) == listing
    assert state(bids) == untouched
    assert cycles.cycles_of(bids.id) == []
    tasks.mark_deleted(listing, 5)
    tasks.remove_tombstone(listing.id)
    assert tasks.with_owner(listing.id) is None
    assert tasks.with_owner(bids.id) == bids


def test_a_change_of_the_config_leaves_the_venue(database: str) -> None:
    task = create(user(), "cats", venue="simulator-ordnet")
    tasks.change_bidding_task(task, type="ordinals", slug="dogs", slug_key="dogs", config=task.config)
    assert tasks.outline(task.id) == (BIDDING, "simulator-ordnet", "dogs", task.user_id, 0)
    assert [listed.venue for listed in bidding_task_list(user().id)] == ["simulator-ordnet"]


def test_a_config_is_written_only_over_the_one_that_was_read(database: str) -> None:
    made = create(user(), "cats")
    first, second = (tasks.with_owner(made.id) for _ in range(2))
    assert first is not None and second is not None
    tasks.change_bidding_task(first, type="ordinals", slug="dogs", slug_key="dogs", config="{1}")
    with pytest.raises(tasks.TaskChanged):
        tasks.change_bidding_task(second, type="ordinals", slug="owls", slug_key="owls", config="{2}")
    now = tasks.with_owner(made.id)
    assert now is not None and (now.slug, now.config, now.revision) == ("dogs", "{1}", 2)


def test_what_runs_at_one_venue_adds_up_there_only(database: str) -> None:
    owner = user()
    at = {"cats": "satflow", "dogs": "satflow", "rats": "ordnet", "bats": "satflow"}
    made = {slug: create(owner, slug, venue=venue) for slug, venue in at.items()}
    for slug, task in made.items():
        Task.update(config=dump_bid_config(BidConfig(slug=slug, hardcap_sats=1))).where(Task.id == task.id).execute()
        tasks.set_desired(task, STOPPED if slug == "bats" else RUNNING)
    item = create_listing(owner, "a", venue="ordnet")
    Task.update(config=dump_listing_config(ListingConfig())).where(Task.id == item.id).execute()
    tasks.set_desired(item, RUNNING)
    unreadable = create(owner, "mice", venue="unisat")
    Task.update(config="[").where(Task.id == unreadable.id).execute()
    tasks.set_desired(unreadable, RUNNING)

    def slugs(venue: str, but: int | None = None) -> list[str]:
        found = summaries.running_tasks(but=but).get(venue, [])
        return [task.config.slug if isinstance(task, Bidding) else task.slug for task in found]

    assert slugs("satflow") == ["cats", "dogs"]
    assert slugs("satflow", made["cats"].id) == ["dogs"]
    assert slugs("ordnet") == ["rats", "cats"]
    assert slugs("unisat") == []


def test_a_manager_is_shown_both_kinds(database: str) -> None:
    bids, idle = create(user(), "cats"), create(user(), "dogs")
    listing, other = create_listing(user(), "a"), create_listing(user(), "b")
    for task in (bids, listing):
        tasks.set_desired(task, RUNNING)
    tasks.mark_deleted(other, 5)
    wanted = [bids.id, listing.id, other.id]
    with_idle = [bids.id, idle.id, listing.id, other.id]
    assert [glance.id for glance in summaries.glances([], EVERYBODY)] == wanted
    assert [row.id for row in summaries.rows_of_interest([], EVERYBODY)] == wanted
    assert [glance.id for glance in summaries.glances([idle.id], EVERYBODY)] == with_idle
    assert summaries.count_by_observed(EVERYBODY) == {"stopped": 4}
    tasks.observe(listing.id, "starting", 1)
    tasks.forget_workers(EVERYBODY)
    assert summaries.count_by_observed(EVERYBODY) == {"stopped": 4}


def test_a_listings_new_config_is_a_new_revision(database: str) -> None:
    listing = create_listing(user(), "a")
    assert tasks.change_autolist_task(listing, collection_id=None, config="{1}") == 2
    changed = Task.get_by_id(listing.id)
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
    assert tasks.own(first.user.id, BIDDING, first.id) is None


def test_nobody_sees_anothers_task(database: str) -> None:
    mine = create(user(), "cats")
    assert tasks.own(user("bc1qb").id, BIDDING, mine.id) is None
    assert tasks.of_user(user("bc1qb").id, BIDDING) == []


def test_tokens_only_grow_and_a_missing_task_has_none_low_enough(database: str) -> None:
    task = create(user(), "cats")
    assert [tasks.raise_token(task.id) for _ in range(3)] == [1, 2, 3]
    assert tasks.least_token(task.id) == 3
    assert tasks.raise_token(task.id, above=2) == 4
    assert tasks.raise_token(task.id, above=7) == tasks.least_token(task.id) == 8
    assert tasks.least_token(999) > 2**61


def test_a_start_is_observed_and_gets_its_token_in_one_commit(database: str) -> None:
    task = create(user(), "cats")
    tasks.raise_token(task.id)
    assert tasks.begin_start(task.id, 5) == tasks.least_token(task.id) == 2
    assert Task.get_by_id(task.id).observed == "starting"
    with pytest.raises(ValueError, match="from running to starting"):
        tasks.observe(task.id, "running", 6)
        tasks.begin_start(task.id, 7)
    assert tasks.least_token(task.id) == 2
    outline = tasks.outline(task.id)
    assert outline is not None
    assert outline.token == 2


def test_only_the_newest_token_is_taken_above_what_others_have_seen(database: str) -> None:
    task, other = create(user(), "cats"), create(user(), "dogs")
    old, new = tasks.raise_token(task.id), tasks.raise_token(task.id)
    assert tasks.overtake(task.id, old, 50) is None
    assert tasks.least_token(task.id) == new
    assert tasks.overtake(task.id, new, 50) == tasks.least_token(task.id) == 51
    assert tasks.least_token(other.id) == 0


@pytest.mark.parametrize(("start", "end"), [(a, b) for a in MOVES for b in MOVES if a != b])
def test_observed_goes_only_where_the_table_says(database: str, start: str, end: str) -> None:
    task = create(user(), "cats")
    Task.update(observed=start).where(Task.id == task.id).execute()
    if end in MOVES[start]:
        tasks.observe(task.id, end, 1)
        assert Task.get_by_id(task.id).observed == end
    else:
        with pytest.raises(ValueError, match="cannot go"):
            tasks.observe(task.id, end, 1)


def test_an_overtaken_worker_writes_no_cycle(database: str) -> None:
    task = create(user(), "cats")
    old, new = tasks.raise_token(task.id), tasks.raise_token(task.id)
    for token in (old, new):
        cycles.record_cycle(task.id, token, time_ms=1, action=f"by {token}", error=None, detail="{}", memory="{}")
    assert [cycle.action for cycle in cycles.cycles_of(task.id)] == [f"by {new}"]
    assert Task.get_by_id(task.id).last_cycle_action == f"by {new}"


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


def test_a_deleted_tasks_cycles_go_with_it_and_stay_counted(database: str) -> None:
    kept, gone = create(user(), "cats"), create(user(), "dogs")
    for task in (kept, gone, gone):
        cycles.record_cycle(task.id, 0, time_ms=1, action="", error=None, detail="{}", memory="{}")
    tasks.remove_tombstone(gone.id)
    assert cycles.Cycle.select().count() == 3, "it is not deleted yet"
    tasks.mark_deleted(gone, 5)
    tasks.remove_tombstone(gone.id)
    assert [row.task_id for row in cycles.Cycle.select()] == [kept.id]
    assert summaries.cycles_finished() == 3


def test_no_cycle_yet_is_none_finished(database: str) -> None:
    assert summaries.cycles_finished() == 0


def test_another_plan_has_running_bidders_started_anew(database: str) -> None:
    """Their grants at the signer are of the former plan's limits."""
    owner, other = user(), users.find_or_create("bc1qother", DEFAULT_PLANS, 1)
    running, stopped, others = create(owner, "cats"), create(owner, "dogs"), create(other, "cats")
    listing = create_listing(owner, "a")
    for task in (running, others, listing):
        tasks.set_desired(task, RUNNING)

    def revisions() -> list[int]:
        return [Task.get_by_id(task.id).revision for task in (running, stopped, others, listing)]

    before = revisions()
    accounts.set_plan(owner.id, FIRST_PLAN, 5_000, 2)
    assert revisions() == before, "the same plan until another day"
    accounts.set_plan(owner.id, "larger", 5_000, 3)
    assert revisions() == [before[0] + 1, *before[1:]]
