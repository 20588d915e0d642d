"""The evidence of a run: the venue's history, ledger, audit log, cycles and task logs; and the requests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

from models.tasks.tasks import BIDDING
from strategy.config.bid import BidConfig, load_bid_config
from tests.databases import tables
from tests.e2e.installation import Installation

Row = dict[str, Any]


@dataclass(frozen=True)
class Quiet:
    """From `from_ms` until `to_ms` (None: the end) nothing may be accepted for the task: it was stopped or halted."""

    task_id: int
    from_ms: int
    to_ms: int | None = None


@dataclass(frozen=True)
class AskMove:
    """The lowest ask of a slug (sats) from `time_ms` on."""

    time_ms: int
    slug: str
    lowest: int


@dataclass
class Evidence:
    """One run. `history` is the venue's, in its order; `exposure` the limit of each user, by id.

    `configs` holds every config that a task had in the run. `accepted_twice`: the venue was made to accept bids twice.
    `as_of_ms`: when the history was read, in a run that goes on; the rest was read after it.
    """

    history: list[Row]
    orders: list[Row]
    audit: list[Row]
    cycles: list[Row] = field(default_factory=list)
    logs: dict[int, list[str]] = field(default_factory=dict)
    configs: dict[int, list[BidConfig]] = field(default_factory=dict)
    exposure: dict[int, int] = field(default_factory=dict)
    quiet: list[Quiet] = field(default_factory=list)
    asks: list[AskMove] = field(default_factory=list)
    accepted_twice: bool = False
    as_of_ms: int = 1 << 62


@dataclass(frozen=True)
class Bid:
    """A bid that the venue took, as its signed text has it; `end_ms` None while it is there."""

    order_id: str
    slug: str
    wallet: str
    price: int
    quantity: Decimal
    expires_ms: int
    signed_ms: int
    accepted_ms: int
    message: str
    end_ms: int | None
    end: str | None

    @property
    def mark(self) -> tuple[str, int]:
        return self.wallet, self.expires_ms


def bids(history: Iterable[Row]) -> list[Bid]:
    """Returns the signed bids that the venue took, in its order, each with its end."""
    ends: dict[str, Row] = {}
    rows = list(history)
    for row in rows:
        if row["event"] in ("cancelled", "expired") or (row["event"] == "filled" and not _is_part(row)):
            ends.setdefault(row["orderId"], row)
    found = []
    for row in rows:
        if row["event"] != "accepted" or row["kind"] != "bid" or not row["message"]:
            continue
        wallet, _, _, price, quantity, expires_ms, slug, signed_ms = row["message"].split(":")
        end = ends.get(row["orderId"])
        found.append(
            Bid(
                row["orderId"],
                slug,
                wallet,
                int(price),
                Decimal(quantity),
                int(expires_ms),
                int(signed_ms),
                row["time"],
                row["message"],
                # The venue notices an expiry when it next looks.
                min(end["time"], int(expires_ms)) if end else None,
                end["event"] if end else None,
            )
        )
    return found


def _is_part(row: Row) -> bool:
    return Decimal(str(row.get("remaining", 0))) > 0


def read(service: Installation, exposure: int) -> Evidence:
    """Reads what an installation has written, without disturbing it; `exposure` is every user's limit.

    The venue's history first, then the signer's, then the ledger: while tasks go on, what one of them shows was in the
    next one before.
    """
    as_of_ms = time.time_ns() // 1_000_000
    history = service.history()
    audit = audit_lines(service.data_dir)
    rows = tables(service.database_url, "orders", "cycles", "tasks")
    found = Evidence(history, rows["orders"], audit, cycles=rows["cycles"], as_of_ms=as_of_ms)
    for task in (row for row in rows["tasks"] if row["kind"] == BIDDING):
        found.configs[task["id"]] = [load_bid_config(task["config"])]
        found.exposure[task["user_id"]] = exposure
        found.logs[task["id"]] = task_log(service.data_dir, task["id"])
    return found


def audit_lines(data_dir: Path) -> list[Row]:
    """Reads the audit log, each line with the hash that the next must name."""
    path = data_dir / "signer" / "audit.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) | {"line_sha256": sha256(line).hexdigest()} for line in lines]


def task_log(data_dir: Path, task_id: int) -> list[str]:
    """Returns the lines of a task's log that are still there, oldest first."""
    rotated = sorted((data_dir / "logs").glob(f"task-{task_id}.log*"), reverse=True)
    return [line for path in rotated for line in path.read_text(errors="replace").splitlines()]
