"""The checker of listings finds each planted bug, and nothing where there is none."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from drills.faults import listing_checker
from drills.faults.evidence import Quiet
from drills.faults.listing_evidence import ListingEvidence, Pledge, Signed
from strategy.config.listing import ListingConfig
from tests.shapes import replace

Row = dict[str, Any]
Plant = Callable[[ListingEvidence], object]
PAYOUT, POSTAGE, MINUTE = "0014aa", 546, 60_000


def event(number: int, time_ms: int, price: int, what: str = "accepted", slug: str = "cat", reason: str = "") -> Row:
    return {
        "time": time_ms,
        "event": what,
        "kind": "ask",
        "orderId": f"id{number}",
        "slug": slug,
        "price": price,
        "signature": signature(price, slug),
        **({"reason": reason} if reason else {}),
    }


def signature(price: int, slug: str = "cat") -> str:
    """Makes a signature, the same for the same price of the same output."""
    return f"{slug} at {price}"


def row(number: int, time_ms: int, price: int, **changes: Any) -> Row:
    found = {
        "id": number,
        "intent": f"{number:064x}",
        "task_id": 1,
        "slug": "cat",
        "outpoint": "a:0",
        "price_sats": price,
        "token": 1,
        "revision": 1,
        "state": "closed",
        "close_reason": "replaced",
        "proceeds_sats": None,
        "created_ms": time_ms - 200,
        "closed_ms": None,
    }
    return found | changes


def signed(row: Row) -> Signed:
    price, mark = row["price_sats"], signature(row["price_sats"], row["slug"])
    pledges = tuple(Pledge(f"{mark}{form}", PAYOUT, price + POSTAGE) for form in ("", " secure"))
    return Signed(row["intent"], row["task_id"], row["outpoint"], price, row["created_ms"] + 100, pledges)


def audit_line(one: Signed) -> Row:
    return {
        "operation": "list",
        "intent": one.intent,
        "task": one.task,
        "outpoint": one.outpoint,
        "price": one.price,
    }


def cycle(number: int, price: int, time_ms: int, task: int = 1) -> Row:
    planned = {"action": "list", "price_sats": price, "reason": "list"}
    detail = json.dumps({"planned": planned, "fate": "listed"})
    return {"id": number, "task_id": task, "time_ms": time_ms, "action": f"listed at {price}", "detail": detail}


def clean() -> ListingEvidence:
    """Makes evidence without faults. A cat: listed, raised, dropped by the venue, listed again, sold. A dog: listed
    and there. A fox: deleted.
    """
    history = [
        event(1, 1_000, 100_000),
        event(1, 2 * MINUTE, 100_000, "cancelled", reason="listed again"),
        event(2, 2 * MINUTE, 120_000),
        event(2, 4 * MINUTE, 120_000, "cancelled", reason="delisted by the venue"),
        event(3, 6 * MINUTE, 120_000),
        event(3, 7 * MINUTE, 120_000, "filled"),
        event(4, 8 * MINUTE, 90_000, slug="dog"),
        event(5, 9 * MINUTE, 90_000, slug="fox"),
        event(5, 10 * MINUTE, 90_000, "cancelled", slug="fox"),
        event(6, 20 * MINUTE, 90_000, "cancelled", slug="end of the run") | {"signature": ""},
    ]
    rows = [
        row(1, 1_000, 100_000, closed_ms=2 * MINUTE),
        row(2, 2 * MINUTE, 120_000, close_reason="lost", closed_ms=5 * MINUTE),
        row(
            3,
            6 * MINUTE,
            120_000,
            close_reason="sold",
            closed_ms=8 * MINUTE,
            proceeds_sats=120_000,
            token=2,
            revision=2,
        ),
        row(4, 8 * MINUTE, 90_000, state="live", close_reason=None, slug="dog", outpoint="b:0", task_id=2),
        row(
            5,
            9 * MINUTE,
            90_000,
            close_reason="cancelled",
            closed_ms=10 * MINUTE,
            slug="fox",
            outpoint="c:0",
            task_id=3,
        ),
    ]
    all_signed = [signed(each) for each in rows]
    return ListingEvidence(
        history,
        rows,
        all_signed,
        [audit_line(each) for each in all_signed],
        PAYOUT,
        cycles=[cycle(1, 100_000, 1_500), cycle(2, 90_000, 8 * MINUTE + 500, task=2)],
        configs={
            (1, 1): ListingConfig(min_price_sats=80_000),
            (1, 2): ListingConfig(min_price_sats=80_000),
            (2, 1): ListingConfig(price_mode="fixed", price_sats=90_000),
            (3, 1): ListingConfig(min_price_sats=80_000),
        },
        quiet=[Quiet(1, 3 * MINUTE, 5 * MINUTE), Quiet(2, 9 * MINUTE)],
        deleted={3: 10 * MINUTE + 500},
    )


def test_a_clean_run_has_no_disagreement() -> None:
    assert listing_checker.disagreements(clean()) == []


def list_more(run: ListingEvidence, happened: Row, **changes: Any) -> None:
    """One more listing that the venue took, with its row, its signature and its audit line."""
    added = row(len(run.rows) + 1, happened["time"], happened["price"], slug=happened["slug"], **changes)
    run.history.append(happened)
    run.history.sort(key=lambda each: each["time"])
    run.rows.append(added)
    run.signed.append(signed(added))
    run.audit.append(audit_line(run.signed[-1]))


def relist_dog(run: ListingEvidence, price: int, time_ms: int) -> None:
    """The dog is listed anew by its task; its former row ends as it should."""
    run.history.append(event(4, time_ms, 90_000, "cancelled", slug="dog", reason="listed again"))
    run.rows[3].update(state="closed", close_reason="replaced", closed_ms=time_ms)
    run.quiet.clear()
    of_dog = {"state": "live", "close_reason": None, "outpoint": "b:0", "task_id": 2}
    list_more(run, event(9, time_ms, price, slug="dog"), **of_dog)


def pledge(**changes: Any) -> Plant:
    def plant(run: ListingEvidence) -> None:
        first, second = run.signed[0].pledges
        run.signed[0] = replace(run.signed[0], pledges=(first, replace(second, **changes)))

    return plant


PLANTED: dict[str, tuple[str, Plant]] = {
    "signed by somebody else": ("not_signed", lambda run: run.signed.pop(3)),
    "a listing that no row stands for": ("untracked", lambda run: run.rows.pop(3)),
    "a listing after the ledger was lost": ("untracked", lambda run: run.rows.clear()),
    "another price than reserved": ("another_listing", lambda run: run.rows[3].update(price_sats=91_000)),
    "another output than reserved": ("another_listing", lambda run: run.rows[3].update(outpoint="z:0")),
    "for another task than reserved": ("another_listing", lambda run: run.rows[3].update(task_id=1)),
    "an audit line taken out": ("not_audited", lambda run: run.audit.pop(1)),
    "an audit line of another price": ("not_audited", lambda run: run.audit[1].update(price=1)),
    "signed before it was reserved": (
        "signed_without_row",
        lambda run: run.signed.append(replace(run.signed[0], intent="f" * 64)),
    ),
    "recorded after it was sent": ("out_of_order", lambda run: run.rows[3].update(created_ms=8 * MINUTE + 1)),
    "sent when its deadline was long over": (
        "late",
        lambda run: run.signed.__setitem__(3, replace(run.signed[3], created_ms=7 * MINUTE)),
    ),
    "two listings of one inscription": ("two_live", lambda run: run.history.pop(1)),
    "sent again after a timeout": (
        "sent_twice",
        lambda run: run.history.append(event(9, 9 * MINUTE, 90_000, slug="dog")),
    ),
    "signed again after a timeout": ("churn", lambda run: relist_dog(run, 90_000, 12 * MINUTE)),
    "below the least price": (
        "below_guard",
        lambda run: run.configs.update({(1, 2): ListingConfig(min_price_sats=120_001)}),
    ),
    "below the fixed price": (
        "below_guard",
        lambda run: run.configs.update({(2, 1): ListingConfig(price_mode="fixed", price_sats=90_001)}),
    ),
    "more than a tenth down": ("falls_too_fast", lambda run: relist_dog(run, 80_999, 12 * MINUTE)),
    "listing anew as a way around slow falling": (
        "falls_too_fast",
        lambda run: list_more(run, event(9, 12 * MINUTE, 107_999), token=2, close_reason="gone", closed_ms=13 * MINUTE),
    ),
    "a stop that is only a flag": ("in_the_quiet", lambda run: run.quiet.append(Quiet(2, 7 * MINUTE))),
    "a worker that outlives its task": ("after_delete", lambda run: run.deleted.update({3: 8 * MINUTE})),
    "a worker that outlives its right": ("stale_token", lambda run: run.rows[0].update(token=2)),
    "somebody else is paid": ("wrong_payout", pledge(script="0014bb")),
    "too little is paid": ("wrong_payout", pledge(value=99_999)),
    "a lost answer taken for no": (
        "forgotten",
        lambda run: run.rows[3].update(state="closed", close_reason="lost", closed_ms=9 * MINUTE),
    ),
    "a delisting taken for a sale": (
        "wrong_end",
        lambda run: run.rows[1].update(close_reason="sold", proceeds_sats=119_000),
    ),
    "a timeout taken for a refusal": ("wrong_end", lambda run: run.rows[0].update(close_reason="refused")),
    "says that it listed and did not": ("claimed", lambda run: run.cycles.append(cycle(3, 95_000, MINUTE, task=2))),
    "a decision without a reason": (
        "unexplained",
        lambda run: run.cycles[0].update(detail=json.dumps({"planned": {"action": "list", "reason": ""}})),
    ),
    "a raise that the ledger takes for done": ("another_price", lambda run: run.rows[3].update(price_sats=95_000)),
    "a delisting that went unnoticed": (
        "another_price",
        lambda run: run.rows[1].update(state="live", close_reason=None, closed_ms=None),
    ),
    "a sale that went unnoticed": ("unsold", lambda run: run.rows[2].update(close_reason="gone", proceeds_sats=None)),
    "a deleted task's listing left": ("outlives_its_task", lambda run: run.history.pop(8)),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_named(bug: str) -> None:
    check, plant = PLANTED[bug]
    run = copy.deepcopy(clean())
    plant(run)
    found = listing_checker.disagreements(run)
    assert any(line.startswith(f"{check}: ") for line in found), found


def test_every_check_has_a_planted_bug() -> None:
    checks = (*listing_checker.ALWAYS, *listing_checker.AT_LAST)
    assert {check for check, _ in PLANTED.values()} == {check.__name__ for check in checks}


def test_what_follows_a_delisting_or_a_sale_is_no_churn() -> None:
    run = clean()
    run.history[1]["reason"] = "delisted by the venue"
    assert listing_checker.disagreements(run) == []
