"""The evidence of a run with listings: the venue's history, both ledgers, audit log, cycles; and the requests.

Each inscription is alone in its collection, so that the slug of an event identifies it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from drills.faults.evidence import Quiet, Row, audit_lines
from models.tasks.tasks import BIDDING
from strategy.config.listing import ListingConfig
from tests.databases import tables
from tests.e2e.installation import Installation
from wallet import address
from wallet.psbt.decode import decode, from_base64
from wallet.psbt.script import script_of

SETTLED_MS = 60_000  # after something happened at the venue, until the ledger must know of it
_TAP_KEY_SIG = bytes([0x13])


@dataclass(frozen=True)
class Pledge:
    """The terms of one signed PSBT: script and value for the input. `signature` and `script` are hex."""

    signature: str
    script: str
    value: int


@dataclass(frozen=True)
class Signed:
    """One listing that the signer signed, by its own ledger."""

    intent: str
    task: int
    outpoint: str
    price: int
    created_ms: int
    pledges: tuple[Pledge, ...]


@dataclass(frozen=True)
class Taken:
    """A listing that the venue took; `end_ms` None while it is there. `why` is the venue's reason for a cancel."""

    order_id: str
    slug: str
    price: int
    signature: str
    accepted_ms: int
    end_ms: int | None
    end: str | None
    why: str | None


@dataclass
class ListingEvidence:
    """One run. `history` is the venue's, in its order; `rows` are the ledger's.

    `configs` holds the config of each task's id and revision, as far as it was seen; `quiet` and `deleted` (moment
    of the answer) go by id, too; nobody looks at the listings of those `asleep`. `payout` is the script (hex) that
    every listing is to pay. `as_of_ms`: when the history was read, in a run that goes on; the rest was read after it.
    """

    history: list[Row]
    rows: list[Row]
    signed: list[Signed]
    audit: list[Row]
    payout: str
    cycles: list[Row] = field(default_factory=list)
    configs: dict[tuple[int, int], ListingConfig] = field(default_factory=dict)
    quiet: list[Quiet] = field(default_factory=list)
    deleted: dict[int, int] = field(default_factory=dict)
    asleep: frozenset[int] = frozenset()
    as_of_ms: int = 1 << 62


def taken(history: Iterable[Row]) -> list[Taken]:
    """Returns the signed listings that the venue took, in its order, each with its end."""
    rows = [row for row in history if row["kind"] == "ask" and row["signature"]]
    ends: dict[str, Row] = {}
    for row in rows:
        if row["event"] in ("cancelled", "expired", "filled"):
            ends.setdefault(row["orderId"], row)
    found = []
    for row in rows:
        if row["event"] == "accepted":
            end = ends.get(row["orderId"], {})
            found.append(
                Taken(
                    row["orderId"],
                    row["slug"],
                    row["price"],
                    row["signature"],
                    row["time"],
                    end.get("time"),
                    end.get("event"),
                    end.get("reason"),
                )
            )
    return found


def script_hex(text: str) -> str:
    """Returns the script that pays this address, in hex."""
    script = script_of(address.parse(text))
    assert script is not None
    return script.hex()


def read(service: Installation, payment: str) -> ListingEvidence:
    """Reads what an installation has written, in the order of `evidence.read`; `payment` is the seller's address."""
    as_of_ms = time.time_ns() // 1_000_000
    history = service.history()
    signers = tables(f"sqlite:///{service.data_dir / 'signer' / 'signer.db'}", "listings")
    signed = [_signed(row) for row in signers["listings"]]
    audit = audit_lines(service.data_dir)
    found = tables(service.database_url, "listings", "cycles", "tasks")
    bidding = {row["id"] for row in found["tasks"] if row["kind"] == BIDDING}
    cycles = [row for row in found["cycles"] if row["task_id"] not in bidding]  # of tasks that are gone, too
    return ListingEvidence(history, found["listings"], signed, audit, script_hex(payment), cycles, as_of_ms=as_of_ms)


def _signed(row: Row) -> Signed:
    pledges = tuple(map(_pledge, json.loads(row["answer"])))
    return Signed(row["intent"], row["task"], row["outpoint"], row["price"], row["created_ms"], pledges)


def _pledge(text: str) -> Pledge:
    psbt = decode(from_base64(text))
    (output,) = psbt.transaction.outputs
    return Pledge(psbt.inputs[0][_TAP_KEY_SIG].hex(), output.script.hex(), output.value)
