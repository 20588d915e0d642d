"""Joins what the venue took with both ledgers, audit log and cycles, and names every way in which they disagree.

As drills/faults/checker.py does for bids: each check is one function over the evidence, and none finds anything about a
service that keeps its promises. AT_LAST are those that need a quiet venue and a minute in which every task ran.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from drills.faults.evidence import Row
from drills.faults.listing_evidence import SETTLED_MS, ListingEvidence, Signed, Taken, taken
from strategy.config.listing import ListingConfig

OPEN_END = 1 << 62
LATE_MS = 15_000  # from a signature until its listing arrives: a deadline of 10 s, and a slow venue's last steps
HOUR_MS = 3_600_000


class JoinedListings:
    """The evidence with the listings that the venue took, and the signature and ledger's row of each.

    Signing the same price of the same output again gives the same signature: of such, the newest free one that was
    reserved before the venue took it counts.
    """

    def __init__(self, evidence: ListingEvidence) -> None:
        self.evidence = evidence
        self.taken = taken(evidence.history)
        self.rows = [_as_of(row, evidence.as_of_ms) for row in evidence.rows]
        self.row_of_intent = {row["intent"]: row for row in self.rows}
        self.with_signature: dict[str, list[Signed]] = defaultdict(list)
        for signed in evidence.signed:
            for signature in {pledge.signature for pledge in signed.pledges}:
                self.with_signature[signature].append(signed)
        self.signed_of = self._signed_of()
        self.of_item: dict[str, list[Taken]] = defaultdict(list)
        for each in self.taken:
            self.of_item[each.slug].append(each)

    def _signed_of(self) -> dict[str, Signed]:
        found: dict[str, Signed] = {}
        used: set[str] = set()
        for each in self.taken:
            fits = [
                signed
                for signed in self.with_signature.get(each.signature, ())
                if signed.created_ms <= each.accepted_ms and signed.intent not in used
            ]
            if fits:
                newest = max(fits, key=lambda signed: signed.created_ms)
                found[each.order_id] = newest
                used.add(newest.intent)
        return found

    def pairs(self) -> Iterator[tuple[Taken, Row]]:
        """Yields each listing that has a row, with it."""
        for each in self.taken:
            signed = self.signed_of.get(each.order_id)
            if signed is not None and (row := self.row_of_intent.get(signed.intent)):
                yield each, row

    def configs(self, row: Row) -> list[ListingConfig]:
        """Returns the config that asked for this listing; all of its task when that one was not seen."""
        found = self.evidence.configs.get((row["task_id"], row["revision"]))
        if found is not None:
            return [found]
        return [config for (number, _), config in self.evidence.configs.items() if number == row["task_id"]]


def _as_of(row: Row, time_ms: int) -> Row:
    """Returns the row as of the history's reading: a later closing says nothing about it."""
    is_later = row["state"] == "closed" and row["closed_ms"] >= time_ms
    opened = {"state": "unknown", "close_reason": None, "closed_ms": None, "proceeds_sats": None}
    return row | opened if is_later else row


ListingCheck = Callable[[JoinedListings], Iterator[str]]


def not_signed(run: JoinedListings) -> Iterator[str]:
    """Finds listings whose signature our signer never made."""
    for each in run.taken:
        if each.signature not in run.with_signature:
            yield f"{each.price} of {each.slug} ({each.order_id})"


def untracked(run: JoinedListings) -> Iterator[str]:
    for each in run.taken:
        signed = run.signed_of.get(each.order_id)
        if signed is not None and signed.intent not in run.row_of_intent:
            yield f"{each.price} of {each.slug} ({each.order_id}) is in no ledger"


def another_listing(run: JoinedListings) -> Iterator[str]:
    for each, row in run.pairs():
        signed = run.signed_of[each.order_id]
        known = (row["price_sats"], row["outpoint"], row["task_id"], row["slug"])
        said = (signed.price, signed.outpoint, signed.task, each.slug)
        if known != said or each.price != signed.price:
            yield f"listing {row['id']} is {known}, {said} was signed, the venue took {each.price}"


def not_audited(run: JoinedListings) -> Iterator[str]:
    lines = {line["intent"]: line for line in run.evidence.audit if line["operation"] == "list"}
    for signed in run.evidence.signed:
        line = lines.get(signed.intent)
        if line is None:
            yield f"{signed.price} for {signed.outpoint} has no line in the audit log"
        elif (line["price"], line["outpoint"], line["task"]) != (signed.price, signed.outpoint, signed.task):
            yield f"{signed.price} for {signed.outpoint}: the audit log has {line['price']} for {line['outpoint']}"


def signed_without_row(run: JoinedListings) -> Iterator[str]:
    for signed in run.evidence.signed:
        if signed.intent not in run.row_of_intent:
            yield f"{signed.price} for {signed.outpoint}"


def out_of_order(run: JoinedListings) -> Iterator[str]:
    """Reserved, then signed, then taken."""
    for each, row in run.pairs():
        moments = [row["created_ms"], run.signed_of[each.order_id].created_ms, each.accepted_ms]
        if moments != sorted(moments):
            yield f"listing {row['id']}: reserved, signed, taken at {moments}"


def late(run: JoinedListings) -> Iterator[str]:
    for each in run.taken:
        signed = run.signed_of.get(each.order_id)
        if signed is not None and each.accepted_ms > signed.created_ms + LATE_MS:
            yield f"{each.price} of {each.slug} was taken {each.accepted_ms - signed.created_ms} ms after its signature"


def two_live(run: JoinedListings) -> Iterator[str]:
    for slug, own in run.of_item.items():
        for earlier, later in pairwise(own):
            if _end(earlier.end_ms) > later.accepted_ms:
                yield f"{slug}: {earlier.price} was live when {later.price} was taken"


def sent_twice(run: JoinedListings) -> Iterator[str]:
    for signature, count in Counter(each.signature for each in run.taken).items():
        if count > len(run.with_signature.get(signature, ())) > 0:
            yield f"{count} listings of what was signed {len(run.with_signature[signature])} times"


def churn(run: JoinedListings) -> Iterator[str]:
    """Listed anew at the price at which it was listed: a lost answer was taken for no."""
    for slug, own in run.of_item.items():
        for earlier, later in pairwise(own):
            if earlier.why == "listed again" and earlier.price == later.price:
                yield f"{slug} at {later.price}, {later.accepted_ms - earlier.accepted_ms} ms after the same"


def below_guard(run: JoinedListings) -> Iterator[str]:
    for each, row in run.pairs():
        guards = [max(c.min_price_sats, c.price_sats if c.price_mode == "fixed" else 0) for c in run.configs(row)]
        if guards and each.price < min(guards):
            yield f"{each.price} of {each.slug}, at least {min(guards)} was asked for"


def falls_too_fast(run: JoinedListings) -> Iterator[str]:
    """More than a tenth below what it was listed for at any time within the hour before."""
    for slug, own in run.of_item.items():
        for at, each in enumerate(own):
            before = [one.price for one in own[:at] if _end(one.end_ms) > each.accepted_ms - HOUR_MS]
            if 10 * each.price < 9 * max(before, default=0):
                yield f"{slug}: {each.price} within an hour of {max(before)}"


def in_the_quiet(run: JoinedListings) -> Iterator[str]:
    """Taken after a stop was answered."""
    for each, row in run.pairs():
        for quiet in run.evidence.quiet:
            if quiet.task_id == row["task_id"] and quiet.from_ms < each.accepted_ms < _end(quiet.to_ms):
                yield f"{each.price} of {each.slug}, {each.accepted_ms - quiet.from_ms} ms after the stop's answer"


def after_delete(run: JoinedListings) -> Iterator[str]:
    for each, row in run.pairs():
        if each.accepted_ms > run.evidence.deleted.get(row["task_id"], OPEN_END):
            yield f"{each.price} of {each.slug} for a task that was deleted"


def stale_token(run: JoinedListings) -> Iterator[str]:
    """Taken under a token after a listing under a newer one was: a worker outlived its right."""
    newest: dict[int, int] = {}
    for _, row in sorted(run.pairs(), key=lambda pair: pair[0].accepted_ms):
        highest = newest.get(row["task_id"], 0)
        if row["token"] < highest:
            yield f"listing {row['id']} of token {row['token']} after one of token {highest}"
        newest[row["task_id"]] = max(highest, row["token"])


def wrong_payout(run: JoinedListings) -> Iterator[str]:
    """Finds any signed PSBT that pays another script, or less than the price."""
    for signed in run.evidence.signed:
        for pledge in signed.pledges:
            if pledge.script != run.evidence.payout or pledge.value < signed.price:
                yield f"{signed.price} for {signed.outpoint}: {pledge.value} to {pledge.script}"


def forgotten(run: JoinedListings) -> Iterator[str]:
    """Live at the venue, and no open row stands for its output."""
    open_ = {row["outpoint"] for row in run.rows if row["state"] != "closed"}
    for each, row in run.pairs():
        if each.end_ms is None and row["outpoint"] not in open_:
            yield f"{each.price} of {each.slug} is live, listing {row['id']} is closed ({row['close_reason']})"


def wrong_end(run: JoinedListings) -> Iterator[str]:
    """Finds false ends: a sold listing was sold for these proceeds; a refused one was never taken."""
    sold = {(each.slug, each.price) for each in run.taken if each.end == "filled"}
    for row in run.rows:
        if row["close_reason"] == "sold" and (row["slug"], row["proceeds_sats"]) not in sold:
            yield f"listing {row['id']} is closed as sold for {row['proceeds_sats']}"
    for _, row in run.pairs():
        if row["close_reason"] == "refused":
            yield f"listing {row['id']} is closed as refused, and the venue took it"


def claimed(run: JoinedListings) -> Iterator[str]:
    """Finds cycles that claim a listing at a price that the venue never took for its task."""
    prices: dict[int, set[int]] = defaultdict(set)
    for each, row in run.pairs():
        prices[row["task_id"]].add(each.price)
    for cycle in run.evidence.cycles:
        detail = json.loads(cycle["detail"])
        if detail.get("fate") != "listed" or cycle["time_ms"] >= run.evidence.as_of_ms:
            continue
        if detail["planned"]["price_sats"] not in prices[cycle["task_id"]]:
            yield f"cycle {cycle['id']} of task {cycle['task_id']}: {cycle['action']}"


def unexplained(run: JoinedListings) -> Iterator[str]:
    for cycle in run.evidence.cycles:
        planned = json.loads(cycle["detail"]).get("planned")
        if planned is not None and not planned.get("reason"):
            yield f"cycle {cycle['id']} of task {cycle['task_id']}: {planned}"


def another_price(run: JoinedListings) -> Iterator[str]:
    """Finds listings whose price at the venue is not that of the ledger's live row."""
    live = {each.slug: each for each in run.taken if each.end_ms is None}
    for row in run.rows:
        if row["state"] != "live" or row["task_id"] in {*run.evidence.deleted, *run.evidence.asleep}:
            continue
        shown = live.get(row["slug"])
        if shown is None and _last_end(run, row["slug"]) < _now(run) - SETTLED_MS:
            yield f"listing {row['id']} at {row['price_sats']} is live, the venue shows none"
        elif shown is not None and shown.price != row["price_sats"]:
            yield f"listing {row['id']} is live at {row['price_sats']}, the venue shows {shown.price}"


def unsold(run: JoinedListings) -> Iterator[str]:
    """Finds sales that the ledger does not know."""
    known = {(row["slug"], row["proceeds_sats"]) for row in run.rows if row["close_reason"] == "sold"}
    for each, row in run.pairs():
        is_old = each.end == "filled" and _end(each.end_ms) < _now(run) - SETTLED_MS
        if is_old and (each.slug, each.price) not in known and row["task_id"] not in run.evidence.asleep:
            yield f"{each.slug} for {each.price}, listing {row['id']} is {row['state']} ({row['close_reason']})"


def outlives_its_task(run: JoinedListings) -> Iterator[str]:
    for each, row in run.pairs():
        if each.end_ms is None and row["task_id"] in run.evidence.deleted:
            yield f"{each.price} of {each.slug}, deleted {_now(run) - run.evidence.deleted[row['task_id']]} ms ago"


def _end(time_ms: int | None) -> int:
    return OPEN_END if time_ms is None else time_ms


def _last_end(run: JoinedListings, slug: str) -> int:
    return max((each.end_ms or 0 for each in run.of_item[slug]), default=0)


def _now(run: JoinedListings) -> int:
    """Returns when the history was read, or its last moment if that is unknown."""
    last = max((row["time"] for row in run.evidence.history), default=0)
    return run.evidence.as_of_ms if run.evidence.as_of_ms < OPEN_END else last


ALWAYS: tuple[ListingCheck, ...] = (
    not_signed,
    untracked,
    another_listing,
    not_audited,
    signed_without_row,
    out_of_order,
    late,
    two_live,
    sent_twice,
    churn,
    below_guard,
    falls_too_fast,
    in_the_quiet,
    after_delete,
    stale_token,
    wrong_payout,
    forgotten,
    wrong_end,
    claimed,
    unexplained,
)
AT_LAST: tuple[ListingCheck, ...] = (another_price, unsold, outlives_its_task)


def disagreements(evidence: ListingEvidence, *, at_last: bool = True) -> list[str]:
    """Returns everything that any check finds; without `at_last` while the storm still rages."""
    run = JoinedListings(evidence)
    checks = (*ALWAYS, *AT_LAST) if at_last else ALWAYS
    return [f"{check.__name__}: {found}" for check in checks for found in check(run)]
