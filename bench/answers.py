"""The time of our answer to a rival's bid: from the read of the book that shows it until our own bid is accepted.

The peer is a careless script: it reads the book, signs and places, but has no ledger and no limits, cancels nothing and
reads nothing back.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import requests

from bench.installed import Home, Tasks, installed
from bench.measuring import Row
from server.replay.journal import read_journal
from strategy.book import Snapshot
from tests.simulator.desk import Trader as Rival
from wallet.keystore.keys import sign_message

SLUG = "answers"
ROUNDS = 9
_FLOOR, _FIRST, _STEP = 1_000_000, 100_000, 5_000
_PATIENCE_S = 60.0
_HOUR_MS = 3_600_000


def rows() -> Iterator[Row]:
    # The practice market answers without delay, and a bid may be replaced immediately.
    with installed(max_tasks=1, BIDKEEPER_MIN_AGE_SECONDS="0") as home:
        config = {"bidMode": "fixed", "bidFixedLow": _FIRST, "bidFixedHigh": _FLOOR - _STEP}
        made = home.user([SLUG], **config, outbidEnabled=True, outbidAmount=1_000, loopSeconds=5)
        _put(home, _FIRST)
        home.start_all([made])
        ours = [_answered(home, made, _FIRST + number * _STEP) for number in range(1, ROUNDS + 1)]
        home.stop_all([made])
        peer = [_script(home, _FIRST + number * _STEP) for number in range(1, ROUNDS + 1)]
    mine, theirs = statistics.median(ours), statistics.median(peer)
    what = "a rival's bid in a reading of the book, to our bid at the venue"
    yield Row(what, f"{mine:.0f} ms", f"bare script {theirs:.0f} ms", f"{mine / theirs:.1f} x", "<= 250 ms")


def _put(home: Home, rival: int) -> None:
    home.sim("PUT", f"/sim/collections/{SLUG}", {"asks": [{"price": _FLOOR}], "bids": [{"price": rival}]})


def _answered(home: Home, made: Tasks, rival: int) -> int:
    """Returns the milliseconds from the read that first showed the rival's bid to our bid above it."""
    _put(home, rival)
    deadline = time.monotonic() + _PATIENCE_S
    while (placed_ms := _placed_ms(home, rival)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"a rival's bid of {rival} was not answered in {_PATIENCE_S:.0f} s")
        time.sleep(0.05)
    home.until_cycled(made, made.ids)
    return placed_ms - _seen_ms(home, made.ids[0], rival, deadline)


def _placed_ms(home: Home, rival: int) -> int | None:
    """Returns when a bid above the rival's was accepted, by the venue's own clock."""
    for event in home.sim("GET", "/sim/history"):
        if event["event"] == "accepted" and event["kind"] == "bid" and event["price"] > rival:
            return int(event["time"])
    return None


def _seen_ms(home: Home, task: int, rival: int, deadline: float) -> int:
    """Returns the start time of the first read in which a cycle of the task saw the rival's bid."""
    journal = Path(home.data_dir / "journal" / f"task-{task}.jsonl")
    while True:
        for entry in read_journal([journal]).entries:
            if entry.snapshot is not None and _shows(entry.snapshot, rival):
                return entry.snapshot.taken_ms
        if time.monotonic() > deadline:
            raise TimeoutError(f"no cycle saw a rival's bid of {rival}")
        time.sleep(0.05)


def _shows(snapshot: Snapshot, rival: int) -> bool:
    return any(bid.price == rival for bid in snapshot.bids or ())


_ids = itertools.count(1)


def _script(home: Home, rival: int) -> float:
    """Returns the script's time in milliseconds, from its request for the book."""
    _put(home, rival)
    time.sleep(0.5)  # to stay within the venue's 5 requests a second
    bot, base = Rival(7_000_000), f"{home.simulator_url}/satflow/v1"
    session = requests.Session()
    session.headers["x-api-key"] = "practice"
    began = time.perf_counter()
    params = {"collectionSlug": SLUG, "active": "true", "sortBy": "price", "sortDirection": "desc"}
    book: dict[str, Any] = session.get(f"{base}/activity/bids", params=params, timeout=10).json()
    price = max(int(Decimal(str(row["price"]))) for row in next(iter(book["data"].values()))) + 1_000
    now_ms = time.time_ns() // 1_000_000
    expiry_ms = now_ms + _HOUR_MS + next(_ids)
    text = f"{bot.payment}:{bot.pubkey}:{bot.ordinals}:{price}:1:{expiry_ms}:{SLUG}:{now_ms}"
    body = {
        "price": price,
        "quantity": 1,
        "metaType": "ordinals",
        "collectionSlug": SLUG,
        "bidderAddress": bot.payment,
        "bidderAddressPublicKey": bot.pubkey,
        "bidderTokenReceiveAddress": bot.ordinals,
        "bidExpiry": expiry_ms,
        "timestamp": now_ms,
        "signedBiddingMessage": sign_message(bot.key, "p2wpkh", text),
    }
    answer = session.post(f"{base}/bid/place", json=body, timeout=10)
    took_ms = (time.perf_counter() - began) * 1000
    if answer.status_code != 200:
        raise RuntimeError(f"the script's bid was refused: {answer.text[:200]}")
    return took_ms
