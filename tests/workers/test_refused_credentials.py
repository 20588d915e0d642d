"""Refused credentials: a task ends when a read is refused, too, or when a write is refused again hours later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from markets.base import AuthFailed, InsufficientFunds, Unavailable
from strategy.reasons import FaultCode
from tests.worlds.listing import ListingWorld
from tests.worlds.worker import ONE, World, seconds
from workers.context import BadCredentials, Job
from workers.cycle import REFUSED_APART_MS

HOURS_S = REFUSED_APART_MS / 1000
NO = AuthFailed("this key may not do that")


@pytest.fixture(params=["bidder", "lister"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Desk:
    """A task of one kind with its worker; `write` and `read` name its operations at the venue."""

    def __init__(self, kind: str, world: World, shop: ListingWorld) -> None:
        self.world: World = world if kind == "bidder" else shop
        self.write, self.read = ("place", "own_bids") if kind == "bidder" else ("list", "own_listings")
        self.task = world.task(ONE) if kind == "bidder" else shop.task()
        self.start: Callable[[], Job] = lambda: world.bidder(self.task) if kind == "bidder" else shop.lister(self.task)
        self.worker = self.start()

    def reads_then(self, error: Exception | None, after: int) -> None:
        """Lets `after` reads pass and then has the next one fail."""
        self.world.market.script[self.read] = [None] * after + [error]

    def refused_cycle(self) -> float | None:
        self.world.market.fail(self.write, NO)
        return self.worker.cycle()


@pytest.fixture
def desk(kind: str, world: World, shop: ListingWorld) -> Desk:
    return Desk(kind, world, shop)


def _reads_of_a_refused_cycle(desk: Desk) -> int:
    """Counts the reads of a cycle whose write is refused, without the one that looks."""
    seen: list[str] = []
    desk.world.market.witness = seen.append
    desk.refused_cycle()
    desk.world.market.witness = lambda operation: None
    return seen.count(desk.read) - 1


def test_one_refusal_is_reported_and_the_task_backs_off(desk: Desk) -> None:
    assert seconds(desk.refused_cycle()) <= 1
    row = desk.world.row(desk.task)
    assert (row.last_error_code, "this key may not do that" in row.last_error) == (FaultCode.AUTH_FAILED, True)
    assert row.last_error.startswith("failed to")
    desk.world.clock.advance(2)
    desk.worker.cycle()
    assert desk.world.row(desk.task).last_error is None


def test_refused_write_and_refused_read_end_the_task(desk: Desk) -> None:
    reads = _reads_of_a_refused_cycle(desk)
    desk.worker = desk.start()
    desk.reads_then(AuthFailed("bad key"), reads)
    with pytest.raises(BadCredentials, match="this key may not do that; a read with the same credentials is refused"):
        desk.refused_cycle()
    assert desk.world.row(desk.task).last_error_code == FaultCode.AUTH_FAILED


def test_read_that_fails_otherwise_proves_nothing(desk: Desk) -> None:
    reads = _reads_of_a_refused_cycle(desk)
    desk.worker = desk.start()
    desk.reads_then(Unavailable("silence"), reads)
    assert seconds(desk.refused_cycle()) <= 1
    assert "silence" not in str(desk.world.row(desk.task).last_error)


def test_write_refused_again_hours_later_ends_the_task(desk: Desk) -> None:
    desk.refused_cycle()
    desk.world.clock.advance(HOURS_S / 2)
    desk.refused_cycle()
    desk.world.clock.advance(HOURS_S / 2)
    with pytest.raises(BadCredentials, match="accepted no write for 2 hours"):
        desk.refused_cycle()


def test_accepted_write_between_begins_the_hours_anew(desk: Desk) -> None:
    desk.refused_cycle()
    desk.world.clock.advance(HOURS_S - 60)
    desk.worker.cycle()  # accepted
    assert desk.world.row(desk.task).last_error is None
    for _ in range(20):  # until another write is due
        desk.world.clock.advance(600)
        desk.world.floor(300_000) if isinstance(desk.world, ListingWorld) else desk.world.market.expire()
        desk.world.market.script[desk.write] = [NO]
        desk.worker.cycle()
        if desk.world.row(desk.task).last_error_code == FaultCode.AUTH_FAILED:
            break
    assert desk.world.row(desk.task).last_error_code == FaultCode.AUTH_FAILED, "refused, and it continues"


def test_refusal_for_another_reason_between_does_not_count_as_accepted(desk: Desk) -> None:
    desk.refused_cycle()
    desk.world.clock.advance(HOURS_S / 2)
    desk.world.market.fail(desk.write, InsufficientFunds("short"))
    desk.worker.cycle()
    desk.world.clock.advance(HOURS_S / 2)
    with pytest.raises(BadCredentials):
        desk.refused_cycle()


def test_worker_that_is_started_again_counts_from_the_beginning(desk: Desk) -> None:
    desk.refused_cycle()
    desk.world.clock.advance(HOURS_S)
    desk.worker = desk.start()
    assert seconds(desk.refused_cycle()) <= 1
