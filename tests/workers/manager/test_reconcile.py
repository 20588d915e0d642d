"""The next step for a row and a worker together."""

from __future__ import annotations

import itertools

import pytest

from models.tasks.table import MOVES
from workers.context import Kind
from workers.manager.reconcile import Step, TaskFacts, next_step


def facts(
    row: str,
    observed: str = "stopped",
    *,
    worker: Kind | None = None,
    orders: int = 0,
    revision: int = 1,
    resting: bool = False,
    given_up: bool = False,
) -> TaskFacts:
    return TaskFacts(
        is_wanted=row == "wanted",
        is_deleted=row == "deleted",
        observed=observed,
        revision=revision,
        open_orders=orders,
        worker=worker,
        worker_revision=1,
        resting=resting,
        given_up=given_up,
    )


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (facts("wanted"), Step.START_WORKER),
        (facts("wanted", "backoff"), Step.START_WORKER),
        (facts("wanted", "backoff", resting=True), Step.REST),
        (facts("wanted", "backoff", orders=3, resting=True), Step.REST),
        (facts("wanted", orders=3), Step.START_WORKER),
        (facts("wanted", "running", worker="bidder"), Step.NOTHING),
        (facts("wanted", "running", worker="bidder", revision=2), Step.STOP),
        (facts("wanted", "running", worker="lister"), Step.NOTHING),
        (facts("wanted", "running", worker="lister", revision=2), Step.STOP),
        (facts("unwanted", "running", worker="lister"), Step.STOP),
        (facts("deleted", "running", worker="lister", orders=1), Step.STOP),
        (facts("wanted", "crashed", worker="lister", given_up=True), Step.STOP),
        (facts("wanted", "running"), Step.SETTLE),
        (facts("wanted", worker="drain", orders=1), Step.STOP),
        (facts("wanted", worker="drain", orders=1, resting=True), Step.NOTHING),
        (facts("wanted", "crashed", given_up=True), Step.NOTHING),
        (facts("wanted", "crashed"), Step.START_WORKER),
        (facts("wanted", "crashed", given_up=True, orders=1), Step.START_DRAIN),
        (facts("wanted", "crashed", given_up=True, worker="drain"), Step.NOTHING),
        (facts("unwanted"), Step.NOTHING),
        (facts("unwanted", "running", worker="bidder"), Step.STOP),
        (facts("unwanted", "stopping", worker="bidder"), Step.STOP),
        (facts("unwanted", "stopping"), Step.SETTLE),
        (facts("unwanted", "backoff"), Step.SETTLE),
        (facts("unwanted", "crashed"), Step.SETTLE),
        (facts("unwanted", "backoff", orders=1), Step.SETTLE),
        (facts("unwanted", "backoff", orders=1, resting=True), Step.SETTLE),
        (facts("unwanted", "crashed", orders=1), Step.SETTLE),
        (facts("deleted", "backoff", orders=1), Step.SETTLE),
        (facts("unwanted", orders=2), Step.START_DRAIN),
        (facts("unwanted", orders=2, resting=True), Step.REST),
        (facts("unwanted", worker="drain", orders=2), Step.NOTHING),
        (facts("unwanted", worker="drain"), Step.NOTHING),
        (facts("deleted"), Step.REMOVE),
        (facts("deleted", orders=1), Step.START_DRAIN),
        (facts("deleted", "running", worker="bidder"), Step.STOP),
        (facts("deleted", worker="drain"), Step.NOTHING),
    ],
)
def test_next_step(seen: TaskFacts, step: Step) -> None:
    assert next_step(seen) is step


def test_a_worker_is_only_ever_started_where_there_is_none() -> None:
    flags = (False, True)
    kinds: tuple[Kind, ...] = ("bidder", "lister", "drain")
    for row, observed, worker in itertools.product(("wanted", "unwanted", "deleted"), MOVES, kinds):
        for orders, revision, resting, given_up in itertools.product((0, 1), (1, 2), flags, flags):
            seen = facts(
                row,
                observed,
                worker=worker,
                orders=orders,
                revision=revision,
                resting=resting,
                given_up=given_up,
            )
            assert next_step(seen) in (Step.NOTHING, Step.STOP)


def test_a_deleted_task_is_not_removed_while_it_owes_orders() -> None:
    for observed, resting in itertools.product(MOVES, (False, True)):
        assert next_step(facts("deleted", observed, orders=1, resting=resting)) is not Step.REMOVE
