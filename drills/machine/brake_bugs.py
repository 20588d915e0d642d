"""Bugs of brakes to plant, and for each a way through the rules that has to find it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from core.files import BrakeFile
from drills.machine.braked import Braked
from models.ledger.closing import Owed
from workers.manager import brakes
from workers.manager.brakes import Brakes, Cancelled

FLOOR = 100_000
Walk = Callable[[Braked], None]


def waits_for_a_cycle(patch: pytest.MonkeyPatch) -> None:
    """The manager takes nothing off: each worker does when it wakes up."""
    patch.setattr(Brakes, "_look", lambda self, lowered=(): frozenset())


def needs_a_row(patch: pytest.MonkeyPatch) -> None:
    """A cancel is sent only once its note is in the ledger."""
    patch.setattr(brakes, "_written", lambda to_do, write: write() is None)


def lost_by_a_kill(patch: pytest.MonkeyPatch) -> None:
    """A brake without a row is in the manager's memory alone."""
    patch.setattr(BrakeFile, "_write", lambda self, at, text: None)


def counts_by_an_older_read(patch: pytest.MonkeyPatch) -> None:
    """A bid counts as cancelled when a read does not show it, whenever that read began."""
    take_off = brakes.take_off

    def without_the_rule(settings: Any, wallet: Any, bids: Sequence[Owed], *more: Any) -> Cancelled:
        changed = [bid.order.updated_ms for bid in bids]
        for bid in bids:
            bid.order.updated_ms = 0
        try:
            return take_off(settings, wallet, bids, *more)
        finally:
            for bid, updated_ms in zip(bids, changed, strict=True):
                bid.order.updated_ms = updated_ms

    patch.setattr(brakes, "take_off", without_the_rule)


def _halted(*, is_full: bool = False, dies_at: int = 0) -> Walk:
    def walk(machine: Braked) -> None:
        machine.halt_is_followed("global", 0, FLOOR, is_full, dies_at, "", False)

    return walk


def _read_under_way(machine: Braked) -> None:
    machine.halt_while_a_read_is_under_way("global", 0, FLOOR, 3)


# The bug, the walk, and the promises of which one at least must be named.
BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Walk, tuple[str, ...]]] = {
    "a brake that waits for a cycle": (waits_for_a_cycle, _halted(), ("not_followed",)),
    "a brake that needs a row": (needs_a_row, _halted(is_full=True), ("not_followed",)),
    "a brake that is lost by a kill on a full disk": (
        lost_by_a_kill,
        _halted(is_full=True, dies_at=1),
        ("not_followed",),
    ),
    "a count of zero from a read begun before": (counts_by_an_older_read, _read_under_way, ("forgotten",)),
}
