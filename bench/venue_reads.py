"""The venue's load, which must grow with the number of slugs and wallets, not of tasks.

A user has one task for each slug, so a hundred tasks on three slugs are those of 34 users, and every user has a wallet
of their own. So two things are counted apart: reads of a slug's book, which all tasks share, and reads of a wallet (its
bids and balance), a minute and slug or wallet. The simulator's counts are divided, not ours.

More tasks than one for each slug and wallet exist only where users share a wallet, which the keystore refuses. Their
cost is counted with askers: threads that look at the market as a worker does, at the turns of a worker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.installed import WITHOUT_BIDS, Home, Tasks, installed
from bench.timing import Row
from markets.client import MarketClient
from markets.look import BidderWallet, Looker
from strategy.book import NO_HISTORY
from strategy.config.bid import BidConfig
from tests.wallet.listings import key
from wallet.keystore.keys import user_secrets
from workers.cycle import until_cycle
from workers.faults import Faults

SLUGS = ("c-0", "c-1", "c-2")
USERS = 34
LOOP_S = 10
LOOPS = 6
# Workers look in the first two fifths of a loop: a count that begins in the pause after them has only whole rounds.
PAUSE = 0.7
WALLETS, ASKERS = 10, 100


class Reads(NamedTuple):
    """Reads a minute, of each slug's book and of each wallet."""

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


def shared_rows() -> Iterator[Row]:
    """Yields a hundred tasks on three slugs and ten wallets, beside one task for each slug and wallet."""
    pairs = [(slug, number) for slug in SLUGS for number in range(WALLETS)]
    with installed(max_tasks=1) as home:
        home.put_collections(SLUGS, WITHOUT_BIDS)
        few = _asked(home, pairs)
        many = _asked(home, [pairs[number % len(pairs)] for number in range(ASKERS)])
    what = f"venue reads a minute, {ASKERS} tasks on {len(SLUGS)} slugs and {WALLETS} wallets"
    yield Row(what, f"{many:.1f}", f"{len(pairs)} tasks {few:.1f}", f"{many / few:.2f} x", "1.05 x")


def _asked(home: Home, pairs: list[tuple[str, int]]) -> float:
    """Counts all reads a minute while each of `pairs` (slug, number of the wallet) has its asker."""
    enough = threading.Event()
    with ThreadPoolExecutor(len(pairs)) as pool:
        askers = [pool.submit(_ask, home.gateway_socket, slug, number, enough) for slug, number in pairs]
        try:
            time.sleep(2 * LOOP_S)
            reads = _reads(home, wallets=1)
        finally:
            enough.set()
        for asker in askers:
            asker.result()
    return reads.book * len(SLUGS) + reads.wallet


def _ask(socket: Path, slug: str, number: int, enough: threading.Event) -> None:
    """Looks at the market at the turns of a task on `slug`, as a cycle that places nothing."""
    config = BidConfig(slug, outbid_enabled=True, hardcap_sats=5_000_000, loop_seconds=LOOP_S)
    keys, faults = user_secrets(key(f"payment {number}"), key(f"vault {number}")).public, Faults()
    wallet = BidderWallet(keys.payment, keys.payment_pubkey, keys.vault, frozenset({keys.payment}))
    with MarketClient(socket) as market:
        looker = Looker(market, lambda: time.time_ns() // 1_000_000)
        while not enough.wait(until_cycle(slug, LOOP_S, time.time())):
            market.own_bids(wallet.payment, LOOP_S / 2)
            looker.look(config, wallet, NO_HISTORY, LOOP_S / 2, faults)
            if faults.text:
                raise RuntimeError(f"failed to look: {faults.text}")


def _start(home: Home, users: list[Tasks]) -> None:
    home.start_all(users)
    for made in users:
        home.until_cycled(made, made.ids)


def _reads(home: Home, wallets: int) -> Reads:
    time.sleep((PAUSE * LOOP_S - time.time()) % LOOP_S)
    before = _counts(home)
    time.sleep(LOOPS * LOOP_S)
    book, wallet = (now - then for now, then in zip(_counts(home), before, strict=True))
    minutes = LOOPS * LOOP_S / 60
    return Reads(book / minutes / len(SLUGS), wallet / minutes / wallets)


def _counts(home: Home) -> tuple[int, int]:
    """Counts the requests so far about slugs, and about wallets."""
    book = wallet = 0
    for operation, by_key in home.requests().items():
        if operation in ("floors", "book"):
            book += sum(by_key.values())
        elif operation in ("own_bids", "balance"):
            wallet += sum(by_key.values())
    return book, wallet
