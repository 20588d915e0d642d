"""The next step for a row and a worker together."""

from __future__ import annotations

import itertools

import pytest

from models.tasks.tasks import MOVES
from workers.context import Kind
from workers.manager.child import NextStep, TaskFacts, next_step


def facts(
    row: str,
    observed: str = "stopped",
    *,
    worker: Kind | None = None,
    orders: int = 0,
    revision: int = 1,
    is_up: bool = False,
    resting: bool = False,
    given_up: bool = False,
    is_lost: bool = False,
) -> TaskFacts:
    return TaskFacts(
        is_wanted=row == "wanted",
        is_deleted=row == "deleted",
        observed=observed,
        revision=revision,
        open_orders=orders,
        worker=worker,
        worker_revision=1,
        is_up=is_up,
        resting=resting,
        given_up=given_up,
        is_lost=is_lost,
    )


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        (facts("wanted"), NextStep.START_WORKER),
        (facts("wanted", "backoff"), NextStep.START_WORKER),
        (facts("wanted", "backoff", resting=True), NextStep.REST),
        (facts("wanted", "backoff", orders=3, resting=True), NextStep.REST),
        (facts("wanted", orders=3), NextStep.START_WORKER),
        (facts("wanted", "running", worker="bidder"), NextStep.NOTHING),
        (facts("wanted", "running", worker="bidder", is_up=True), NextStep.NOTHING),
        (facts("wanted", "starting", worker="bidder"), NextStep.NOTHING),
        (facts("wanted", "starting", worker="bidder", is_up=True), NextStep.TELL),
        (facts("wanted", "starting", worker="bidder", is_up=True, revision=2), NextStep.STOP),
        (facts("unwanted", "starting", worker="bidder", is_up=True), NextStep.STOP),
        (facts("unwanted", worker="drain", is_up=True, orders=1), NextStep.NOTHING),
        (facts("wanted", "running", worker="bidder", revision=2), NextStep.STOP),
        (facts("wanted", "running", worker="bidder", revision=2, is_lost=True), NextStep.NOTHING),
        (facts("unwanted", "running", worker="bidder", revision=2, is_lost=True), NextStep.STOP),
        (facts("wanted", worker="drain", is_up=True, orders=1, is_lost=True), NextStep.NOTHING),
        (facts("wanted", "running", worker="lister"), NextStep.NOTHING),
        (facts("wanted", "running", worker="lister", revision=2), NextStep.STOP),
        (facts("unwanted", "running", worker="lister"), NextStep.STOP),
        (facts("deleted", "running", worker="lister", orders=1), NextStep.STOP),
        (facts("wanted", "crashed", worker="lister", given_up=True), NextStep.STOP),
        (facts("wanted", "running"), NextStep.SETTLE),
        (facts("wanted", worker="drain", orders=1), NextStep.STOP),
        (facts("wanted", worker="drain", orders=1, resting=True), NextStep.NOTHING),
        (facts("wanted", "crashed", given_up=True), NextStep.NOTHING),
        (facts("wanted", "crashed"), NextStep.START_WORKER),
        (facts("wanted", "crashed", given_up=True, orders=1), NextStep.START_DRAIN),
        (facts("wanted", "crashed", given_up=True, worker="drain"), NextStep.NOTHING),
        (facts("unwanted"), NextStep.NOTHING),
        (facts("unwanted", "running", worker="bidder"), NextStep.STOP),
        (facts("unwanted", "stopping", worker="bidder"), NextStep.STOP),
        (facts("unwanted", "stopping"), NextStep.SETTLE),
        (facts("unwanted", "backoff"), NextStep.SETTLE),
        (facts("unwanted", "crashed"), NextStep.SETTLE),
        (facts("unwanted", "backoff", orders=1), NextStep.SETTLE),
        (facts("unwanted", "backoff", orders=1, resting=True), NextStep.SETTLE),
        (facts("unwanted", "crashed", orders=1), NextStep.SETTLE),
        (facts("deleted", "backoff", orders=1), NextStep.SETTLE),
        (facts("unwanted", orders=2), NextStep.START_DRAIN),
        (facts("unwanted", orders=2, resting=True), NextStep.REST),
        (facts("unwanted", worker="drain", orders=2), NextStep.NOTHING),
        (facts("unwanted", worker="drain"), NextStep.NOTHING),
        (facts("deleted"), NextStep.REMOVE),
        (facts("deleted", orders=1), NextStep.START_DRAIN),
        (facts("deleted", "running", worker="bidder"), NextStep.STOP),
        (facts("deleted", worker="drain"), NextStep.NOTHING),
    ],
)
def test_next_step(seen: TaskFacts, step: NextStep) -> None:
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
            assert next_step(seen) in (NextStep.NOTHING, NextStep.STOP)


def test_a_deleted_task_is_not_removed_while_it_owes_orders() -> None:
    for observed, resting in itertools.product(MOVES, (False, True)):
        assert next_step(facts("deleted", observed, orders=1, resting=resting)) is not NextStep.REMOVE
