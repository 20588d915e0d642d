"""Sixteen processes reserve for one user at once; at no instant is the limit passed."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace

import pytest

from models import base, orders, tasks
from models.orders import Ceilings, LimitReached, NewOrder
from tests.workers_cycle.world import CATS, World

PROCESSES, TRIES, PRICE, LIMIT = 16, 30, 7_000, 1_000_000


def reserve_many(url: str, task_id: int, token: int, user_id: int, worker: int) -> None:
    base.connect(url)
    for turn in range(TRIES):
        new = NewOrder(
            intent=f"{worker:016x}{turn:016x}",
            kind="bid",
            task_id=task_id,
            user_id=user_id,
            venue="simulator",
            wallet="bc1qpayment",
            slug="cats",
            price_sats=PRICE,
            quantity="1",
            expires_ms=1_000,
            token=token,
        )
        try:
            orders.reserve(new, Ceilings(0, LIMIT, 0), 1)
        except LimitReached:
            continue
        assert orders.exposure(user_id) <= LIMIT
    base.close()
    os._exit(0)


@pytest.mark.slow
def test_sixteen_processes_never_pass_the_limit(database: str) -> None:
    world = World()
    found = [world.task(replace(CATS, slug=f"cats-{number}")) for number in range(PROCESSES)]
    tokens = [tasks.raise_token(task) for task in found]
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=reserve_many, args=(database, task, token, world.user.id, number))
        for number, (task, token) in enumerate(zip(found, tokens, strict=True))
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    assert orders.exposure(world.user.id) == LIMIT // PRICE * PRICE
