"""What the venue is asked, which must follow the number of slugs and wallets and not that of tasks.

A user has one task for each slug, so a hundred tasks on three slugs are those of 34 users, and every user has a
wallet of their own. So two things are counted apart: reads of a slug's book, which all tasks share, and reads of a
wallet (its bids and balance), a minute and slug or wallet. What the simulator counted is divided, not what we sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.installed import WITHOUT_BIDS, Home, Tasks, installed
from bench.timing import Row

SLUGS = ("c-0", "c-1", "c-2")
USERS = 34
LOOP_S = 10
WINDOW_S = 40.0


class Reads(NamedTuple):
    """A minute, of each slug's book and of each wallet."""

    book: float
    wallet: float


def rows() -> Iterator[Row]:
    with installed(max_tasks=len(SLUGS)) as home:
        home.put_collections(SLUGS, WITHOUT_BIDS)
        users = [home.user(SLUGS, loopSeconds=LOOP_S)]
        _start(home, users)
        few = _reads(home, wallets=1)
        users += [home.user(SLUGS, loopSeconds=LOOP_S) for _ in range(USERS - 1)]
        _start(home, users[1:])
        many = _reads(home, wallets=USERS)
        finished = sum(bool(task["lastCycle"]) for made in users for task in home.listed(made))
    count = USERS * len(SLUGS)
    if finished < count:
        raise RuntimeError(f"only {finished} of {count} tasks finished a cycle")
    for what, ours, peer in (
        ("book reads a minute and slug", many.book, few.book),
        ("wallet reads a minute and wallet", many.wallet, few.wallet),
    ):
        what = f"{what}, {count} tasks on {len(SLUGS)} slugs"
        yield Row(what, f"{ours:.1f}", f"{len(SLUGS)} tasks {peer:.1f}", f"{ours / peer:.2f} x", "1 x")


def _start(home: Home, users: list[Tasks]) -> None:
    home.start_all(users)
    for made in users:
        home.until_cycled(made, made.ids)


def _reads(home: Home, wallets: int) -> Reads:
    before, began = _counts(home), time.monotonic()
    time.sleep(WINDOW_S)
    after, minutes = _counts(home), (time.monotonic() - began) / 60
    book, wallet = (now - then for now, then in zip(after, before, strict=True))
    return Reads(book / minutes / len(SLUGS), wallet / minutes / wallets)


def _counts(home: Home) -> tuple[int, int]:
    """Requests so far that were about slugs, and about wallets."""
    book = wallet = 0
    for operation, by_key in home.requests().items():
        if operation in ("floors", "book"):
            book += sum(by_key.values())
        elif operation in ("own_bids", "balance"):
            wallet += sum(by_key.values())
    return book, wallet
