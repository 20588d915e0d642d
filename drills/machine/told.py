"""The requests to a house, for the checker."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from drills.faults.evidence import AskMove, Quiet
from strategy.config.bid import BidConfig


@dataclass
class Told:
    """`asks` and `rune_asks` are lowest asks: sats, and sats a token."""

    configs: dict[int, list[BidConfig]] = field(default_factory=lambda: defaultdict(list))
    asks: list[AskMove] = field(default_factory=list)
    rune_asks: list[AskMove] = field(default_factory=list)
    quiet: list[Quiet] = field(default_factory=list)
    quiet_since: dict[tuple[int, str], int] = field(default_factory=dict)
    accepted_twice: bool = False
    done: Counter[str] = field(default_factory=Counter)

    def be_quiet(self, task_id: int, why: str, now_ms: int) -> None:
        self.quiet_since.setdefault((task_id, why), now_ms)

    def end_quiet(self, task_id: int, why: str, now_ms: int) -> None:
        if (since := self.quiet_since.pop((task_id, why), None)) is not None:
            self.quiet.append(Quiet(task_id, since, now_ms))

    def all_quiet(self) -> list[Quiet]:
        return self.quiet + [Quiet(task_id, since) for (task_id, _), since in self.quiet_since.items()]
