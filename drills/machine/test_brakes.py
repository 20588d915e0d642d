"""Brakes in every state of a house, on a simulated clock; and the bugs that this has to find."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from drills.machine.brake_bugs import BUGS, FLOOR, Walk
from drills.machine.braked import Braked
from drills.machine.machine import SLUGS
from drills.machine.running import SEED, run
from strategy.config.bid import BidConfig

pytestmark = pytest.mark.slow
DEATHS = range(7)  # 0: none; a halt of one user has six steps that a manager may die at


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)  # what is expected here, thousands of times
    yield
    logging.disable(logging.NOTSET)


def walked(*walks: Walk) -> Braked:
    """Takes the walks through the rules with two tasks of two users. Raises AssertionError for what does not hold."""
    machine = Braked()
    try:
        ladders = [BidConfig(slug, bid_count=3, hardcap_sats=99_000, max_bid_total=140_000) for slug in SLUGS]
        machine.two_tasks(*ladders, FLOOR, [])
        for walk in walks:
            walk(machine)
            machine.promises_hold()
            machine.closing_counts_every_bid()
    finally:
        machine.teardown()
    return machine


@pytest.mark.parametrize("away", ["", "signer", "gateway"])
def test_halt_takes_all_bids_off_whatever_dies_on_a_full_disk_or_not(away: str) -> None:
    def halt(is_full: bool, dies_at: int) -> Walk:
        return lambda machine: machine.halt_is_followed("global", 0, FLOOR, is_full, dies_at, away, is_full)

    Braked.start_counting()
    machine = walked(*(halt(is_full, dies_at) for is_full in (False, True) for dies_at in DEATHS))
    assert machine.tally["bids taken off"] >= 2 * 14, "the run is void"
    assert machine.hits["manager amid a brake"] >= 5


@pytest.mark.parametrize("what", ["cycle", "manager", "gateway", "signer", "sale", "away"])
def test_whatever_falls_between_two_steps_of_a_brake_breaks_no_promise(what: str) -> None:
    def beside(nth: int) -> Walk:
        return lambda machine: machine.something_beside_a_brake(nth, "user", 0, what)

    Braked.start_counting()
    assert walked(*(beside(nth) for nth in DEATHS[1:])).hits["during a brake"] >= 4


def test_brake_during_any_step_of_a_worker_breaks_no_promise() -> None:
    def at_point(after: int) -> Walk:
        return lambda machine: machine.halt_beside_a_worker(after, "task", after, 2.0, after % 3 == 0)

    def at_question(after: int) -> Walk:
        return lambda machine: machine.halt_beside_a_question(after, "user", after, 2.0)

    Braked.start_counting()
    machine = walked(*(at(after) for after in range(1, 25) for at in (at_point, at_question)))
    assert machine.hits["during a question"] >= 16


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    plant, walk, promises = BUGS[bug]
    walked(walk)  # nothing is found without it
    with pytest.MonkeyPatch.context() as patch, pytest.raises(AssertionError) as found:
        plant(patch)
        walked(walk)
    assert any(f"{name}: " in str(each) for name in promises for each in _chain(found.value)), found.value


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__context__


def test_2_examples() -> None:
    """Anything, in any order; more of it in `make faults`."""
    tally = run(Braked, 2, 20).tally
    print(f"seed {SEED}: {tally}, {Braked.hits}")
    assert tally["steps"] >= 20


@pytest.mark.faults
def test_100_examples() -> None:
    tally = run(Braked, 100, 60).tally
    print(f"seed {SEED}: {tally}, {Braked.hits}")
    assert tally["bids taken off"] >= 100, "the run is void"
