"""Joins what the venue took with ledger, audit log, cycles and task logs, and names every way in which they disagree.

Each check is one function over the evidence; what it finds, it says in words that begin with the check's name. None
finds anything about a service that keeps its promises.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise

from drills.faults import standing
from drills.faults.evidence import Bid, Evidence, Row, bids
from strategy.config.bid import BidConfig
from wallet.signer.audit import FIRST

OPEN_END = 1 << 62
LATE_MS = 15_000  # from a signature until its bid arrives: a deadline of 10 s, and a slow venue's last steps
BOOK_AGE_MS = 30_000  # how old the book may be on which a bid is placed, its way to the venue included
SETTLED_MS = 60_000  # after a bid's end at the venue, until the ledger must know of it


class Joined:
    """The evidence with its bids, and each bid's order."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.bids = bids(evidence.history)
        if evidence.accepted_twice:
            # What the venue made of one bid of ours counts once.
            self.bids = list({bid.mark: bid for bid in reversed(self.bids)}.values())[::-1]
        self.orders = [_as_of(row, evidence.as_of_ms) for row in evidence.orders]
        self.order_of_mark = {(row["wallet"], row["expires_ms"]): row for row in self.orders if not row["dry_run"]}
        self.order_of_intent = {row["intent"]: row for row in self.orders}
        self.signed = {line["intent"]: line for line in evidence.audit if line["operation"] == "bid"}

    def pairs(self) -> Iterator[tuple[Bid, Row]]:
        """Yields each bid that has an order, with it."""
        for bid in self.bids:
            if order := self.order_of_mark.get(bid.mark):
                yield bid, order

    def configs(self, task_id: int) -> list[BidConfig]:
        return self.evidence.configs.get(task_id, [])


def _as_of(order: Row, time_ms: int) -> Row:
    """Returns the order as of the history's reading: a later closing says nothing about it."""
    is_later = order["state"] == "closed" and order["closed_ms"] >= time_ms
    return order | {"state": "cancelling", "close_reason": None, "closed_ms": None} if is_later else order


Check = Callable[[Joined], Iterator[str]]


def untracked(run: Joined) -> Iterator[str]:
    for bid in run.bids:
        if bid.mark not in run.order_of_mark:
            yield f"{bid.price} on {bid.slug} ({bid.order_id}) is in no ledger"


def another_bid(run: Joined) -> Iterator[str]:
    for bid, order in run.pairs():
        known = (order["price_sats"], order["slug"], Decimal(order["quantity"]))
        if known != (bid.price, bid.slug, bid.quantity):
            yield f"order {order['id']} is {known}, the venue took {bid.message}"


def sent_twice(run: Joined) -> Iterator[str]:
    for mark, count in Counter(bid.mark for bid in run.bids).items():
        if count > 1:
            yield f"{count} bids of {mark}"


def over_hardcap(run: Joined) -> Iterator[str]:
    for bid, order in run.pairs():
        caps = [config.hardcap_sats or config.bid_fixed_high for config in run.configs(order["task_id"])]
        if caps and bid.price > max(caps):
            yield f"{bid.price} on {bid.slug}, above {max(caps)}"


def out_of_fixed_range(run: Joined) -> Iterator[str]:
    for bid, order in run.pairs():
        configs = run.configs(order["task_id"])
        if configs and not any(_is_within(config, bid.price) for config in configs):
            yield f"{bid.price} on {bid.slug}"


def _is_within(config: BidConfig, price: int) -> bool:
    return config.bid_mode != "fixed" or config.bid_fixed_low <= price <= config.bid_fixed_high


def at_ask(run: Joined) -> Iterator[str]:
    """Finds bids that are not below the lowest ask, nor below the one of a moment ago."""
    for bid in run.bids:
        moves = [move for move in run.evidence.asks if move.slug == bid.slug and move.time_ms <= bid.accepted_ms]
        recent = [move.lowest for move in moves if move.time_ms > bid.accepted_ms - BOOK_AGE_MS]
        before = [move.lowest for move in moves if move.time_ms <= bid.accepted_ms - BOOK_AGE_MS][-1:]
        if (seen := [*before, *recent]) and bid.price >= max(seen):
            yield f"{bid.price} on {bid.slug} at {bid.accepted_ms}, lowest ask {max(seen)}"


def over_count(run: Joined) -> Iterator[str]:
    """Beside each bid at most the one that it replaces, whose cancel may have failed: those never pile up."""
    for task_id, taken in _by_task(run).items():
        most = max((_most_at_once(config) for config in run.configs(task_id)), default=OPEN_END)
        for time_ms, held in _at_once((bid.accepted_ms, _end(bid.end_ms), 1) for bid in taken):
            if held > most:
                yield f"{held} bids of task {task_id} at {time_ms}, {most} wanted"
                break


def _most_at_once(config: BidConfig) -> int:
    return config.bid_count if config.replace_mode == "breakFirst" else 2 * config.bid_count


def over_fills(run: Joined) -> Iterator[str]:
    """Finds fills, past and still possible, above the limit, old bids beside the new ones included."""
    for task_id, taken in _by_task(run).items():
        most = max((config.max_fills or OPEN_END for config in run.configs(task_id)), default=OPEN_END)
        yield from _over(f"fills of task {task_id}", most, ((bid.accepted_ms, _unsold_end(bid), 1) for bid in taken))


def over_spend_cap(run: Joined) -> Iterator[str]:
    for task_id, taken in _by_task(run).items():
        most = max((config.spend_cap_sats or OPEN_END for config in run.configs(task_id)), default=OPEN_END)
        held = ((bid.accepted_ms, _unsold_end(bid), bid.price) for bid in taken)
        yield from _over(f"spending of task {task_id}", most, held)


def _unsold_end(bid: Bid) -> int:
    return OPEN_END if bid.end == "filled" else _end(bid.end_ms)


def over_task_total(run: Joined) -> Iterator[str]:
    """By what the venue holds, and by what the ledger says."""
    for task_id, taken in _by_task(run).items():
        held = ((bid.accepted_ms, _end(bid.end_ms), bid.price) for bid in taken)
        yield from _over(f"sats of task {task_id} at the venue", _total(run, task_id), held)
    for task_id, orders in _grouped(run, "task_id").items():
        yield from _over(f"sats of task {task_id} in the ledger", _total(run, task_id), map(_counted, orders))


def over_user_exposure(run: Joined) -> Iterator[str]:
    user_of = {row["task_id"]: row["user_id"] for row in run.orders}
    held: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for task_id, taken in _by_task(run).items():
        held[user_of[task_id]] += [(bid.accepted_ms, _end(bid.end_ms), bid.price) for bid in taken]
    for user_id, limit in run.evidence.exposure.items():
        yield from _over(f"sats of user {user_id} at the venue", limit, held[user_id])
        yield from _over(
            f"sats of user {user_id} in the ledger", limit, map(_counted, _grouped(run, "user_id")[user_id])
        )


def _total(run: Joined, task_id: int) -> int:
    totals = [config.max_bid_total or OPEN_END for config in run.configs(task_id)]
    return max(totals, default=OPEN_END)


def _counted(order: Row) -> tuple[int, int, int]:
    return order["created_ms"], _end(order["closed_ms"]), order["price_sats"]


def _over(whose: str, limit: int, held: Iterable[tuple[int, int, int]]) -> Iterator[str]:
    for time_ms, sats in _at_once(held):
        if sats > limit:
            yield f"{sats} of {whose} at {time_ms}, {limit} allowed"
            return


def _at_once(held: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """(moment, sum) at each change, of things that are there from their first until before their second moment."""
    changes: dict[int, int] = defaultdict(int)
    for begin, end, weight in held:
        changes[begin] += weight
        changes[end] -= weight
    total = 0
    for time_ms in sorted(changes):
        total += changes[time_ms]
        yield time_ms, total


def _end(time_ms: int | None) -> int:
    return OPEN_END if time_ms is None else time_ms


def _by_task(run: Joined) -> dict[int, list[Bid]]:
    found: dict[int, list[Bid]] = defaultdict(list)
    for bid, order in run.pairs():
        found[order["task_id"]].append(bid)
    return found


def _grouped(run: Joined, key: str) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for order in run.orders:
        if not order["dry_run"]:
            found[order[key]].append(order)
    return found


def forgotten(run: Joined) -> Iterator[str]:
    """Live at the venue, closed in the ledger."""
    for bid, order in run.pairs():
        if bid.end_ms is None and order["state"] == "closed":
            yield f"order {order['id']} is closed ({order['close_reason']}), its bid {bid.order_id} is live"
        elif bid.end_ms is not None and order["state"] == "closed" and order["closed_ms"] < bid.end_ms:
            yield f"order {order['id']} was closed {bid.end_ms - order['closed_ms']} ms before its bid ended"


def ghost(run: Joined) -> Iterator[str]:
    """Live in the ledger, long gone at the venue: it holds back a slot and sats of its user."""
    last_ms = max((row["time"] for row in run.evidence.history), default=0)
    for bid, order in run.pairs():
        if order["state"] == "live" and bid.end_ms is not None and bid.end_ms < last_ms - SETTLED_MS:
            yield f"order {order['id']} is live, its bid ended ({bid.end}) at {bid.end_ms}"


def wrong_end(run: Joined) -> Iterator[str]:
    """Finds ends that contradict the sales: a sale is a fill, and only a sale is one.

    Bids of one task and price without known ids cannot be told apart, and some may never have arrived: of them as many
    are filled as were sold.
    """
    arrived = {order["id"] for _, order in run.pairs()}
    more: Counter[tuple[object, ...]] = Counter()
    open_: Counter[tuple[object, ...]] = Counter()
    for bid, order in run.pairs():
        alike = _alike(order)
        is_wrong = (order["close_reason"] == "filled") - (bid.end == "filled")
        if order["close_reason"] == "refused":
            yield f"order {order['id']} is closed as refused, and the venue took it"
        if order["state"] != "closed":
            open_[alike] -= is_wrong
        elif order["venue_id"] is None:
            more[alike] += is_wrong
        elif is_wrong:
            yield f"order {order['id']} is closed as {order['close_reason']}, its bid ended as {bid.end}"
    for order in run.orders:
        if order["close_reason"] == "filled" and order["id"] not in arrived and not order["dry_run"]:
            more[_alike(order)] += 1
    for alike, count in more.items():
        if not 0 <= count <= open_[alike]:
            yield f"of {alike}, orders without an id, {abs(count)} {'more' if count > 0 else 'less'} filled than sold"


def _alike(order: Row) -> tuple[object, ...]:
    return order["task_id"], order["slug"], order["price_sats"], order["quantity"]


def not_audited(run: Joined) -> Iterator[str]:
    for bid, order in run.pairs():
        line = run.signed.get(order["intent"])
        if line is None:
            yield f"order {order['id']} has no line in the audit log"
        elif line["message_sha256"] != sha256(bid.message.encode()).hexdigest():
            yield f"order {order['id']}: the venue has another text than the audit log"


def signed_without_order(run: Joined) -> Iterator[str]:
    for intent, line in run.signed.items():
        order = run.order_of_intent.get(intent)
        if order is None:
            yield f"{line['price']} on {line['slug']} ({intent})"
        elif (order["task_id"], order["price_sats"]) != (line["task"], line["price"]):
            yield f"order {order['id']}: {line['price']} of task {line['task']}"


def out_of_order(run: Joined) -> Iterator[str]:
    """Reserved, then signed, then taken."""
    for bid, order in run.pairs():
        line = run.signed.get(order["intent"])
        moments = [order["created_ms"], *([line["time_ms"]] if line else []), bid.accepted_ms]
        if moments != sorted(moments):
            yield f"order {order['id']}: reserved, signed, taken at {moments}"


def late(run: Joined) -> Iterator[str]:
    for bid in run.bids:
        if bid.accepted_ms > bid.signed_ms + LATE_MS:
            yield f"{bid.price} on {bid.slug} was taken {bid.accepted_ms - bid.signed_ms} ms after its text was made"


def in_the_quiet(run: Joined) -> Iterator[str]:
    """Taken after a stop or a halt was answered."""
    for bid, order in run.pairs():
        for quiet in run.evidence.quiet:
            if quiet.task_id == order["task_id"] and quiet.from_ms < bid.accepted_ms < _end(quiet.to_ms):
                yield f"{bid.price} of task {quiet.task_id}, {bid.accepted_ms - quiet.from_ms} ms after the answer"


def stale_token(run: Joined) -> Iterator[str]:
    """Taken under a token after a bid under a newer one was: a worker outlived its right."""
    newest: dict[int, int] = {}
    for _, order in sorted(run.pairs(), key=lambda pair: pair[0].accepted_ms):
        highest = newest.get(order["task_id"], 0)
        if order["token"] < highest:
            yield f"order {order['id']} of token {order['token']} after one of token {highest}"
        newest[order["task_id"]] = max(highest, order["token"])


def lives_too_long(run: Joined) -> Iterator[str]:
    for bid, order in run.pairs():
        lives = [config.expiry_ms for config in run.configs(order["task_id"])]
        if lives and bid.expires_ms - bid.signed_ms > max(lives) + LATE_MS:
            yield f"order {order['id']}: {bid.expires_ms - bid.signed_ms} ms"


def dry_run_at_venue(run: Joined) -> Iterator[str]:
    dry = {(row["wallet"], row["expires_ms"]): row["id"] for row in run.orders if row["dry_run"]}
    for bid in run.bids:
        if bid.mark in dry and bid.mark not in run.order_of_mark:
            yield f"dry-run order {dry[bid.mark]}"


def other_users_wallet(run: Joined) -> Iterator[str]:
    owners: dict[str, set[int]] = defaultdict(set)
    for order in run.orders:
        owners[order["wallet"]].add(order["user_id"])
    for wallet, users in owners.items():
        if len(users) > 1:
            yield f"{wallet} signs for users {sorted(users)}"


def unexplained(run: Joined) -> Iterator[str]:
    """Finds rungs, and own bids, of a cycle without a reason."""
    for cycle in run.evidence.cycles:
        detail = json.loads(cycle["detail"])
        for row in (*detail.get("rungs", ()), *detail.get("bids", ())):
            if not row.get("reason"):
                yield f"cycle {cycle['id']} of task {cycle['task_id']}: {row}"


def stands_too_high(run: Joined) -> Iterator[str]:
    """Left alone by a cycle above the hard cap, at an ask, or above the range by more than is tolerated."""
    quantity_of = {row["id"]: Decimal(row["quantity"]) for row in run.orders}
    for cycle in run.evidence.cycles:
        detail = json.loads(cycle["detail"])
        # After a second look nobody can tell on what the first plan hung.
        seen = detail.get("seen", {}) if detail.get("looks") == 1 else {}
        for row in detail.get("bids", ()):
            if row.get("state") != "live" or row["reason"] in standing.GOING or row["order"] not in quantity_of:
                continue
            quantity, configs = quantity_of[row["order"]], run.configs(cycle["task_id"])
            if configs and not any(standing.may_stand(c, row["price_sats"], quantity, seen) for c in configs):
                yield f"order {row['order']} at {row['price_sats']} ({row['reason']}) in cycle {cycle['id']}, {seen}"


_BEGINS = re.compile(r"worker begins, token (\d+), pid (\d+)")


def tokens_go_back(run: Joined) -> Iterator[str]:
    """Workers of a task come one after the other, each under a higher token."""
    for task_id, lines in run.evidence.logs.items():
        tokens = [int(found[1]) for line in lines if (found := _BEGINS.search(line))]
        if any(later <= earlier for earlier, later in pairwise(tokens)):
            yield f"task {task_id}: {tokens}"


def broken_chain(run: Joined) -> Iterator[str]:
    previous, number = FIRST, 0
    for line in run.evidence.audit:
        if (line["previous"], line["number"]) != (previous, number + 1):
            yield f"audit line {line['number']} does not follow the one before it"
        previous, number = line["line_sha256"], line["number"]


CHECKS: tuple[Check, ...] = (
    untracked,
    another_bid,
    sent_twice,
    over_hardcap,
    out_of_fixed_range,
    at_ask,
    over_count,
    over_fills,
    over_spend_cap,
    over_task_total,
    over_user_exposure,
    forgotten,
    ghost,
    wrong_end,
    not_audited,
    signed_without_order,
    out_of_order,
    late,
    in_the_quiet,
    stale_token,
    lives_too_long,
    dry_run_at_venue,
    other_users_wallet,
    unexplained,
    stands_too_high,
    tokens_go_back,
    broken_chain,
)


def disagreements(evidence: Evidence) -> list[str]:
    """Returns everything that any check finds."""
    run = Joined(evidence)
    return [f"{check.__name__}: {found}" for check in CHECKS for found in check(run)]
