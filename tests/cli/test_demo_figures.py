"""The figures that the demo prints are those of the cycles that it saw."""

from __future__ import annotations

import json
from typing import Any

from cli.demo import Figures, calls, in_words
from server.task_log import camel_keys

METRICS = """\
# HELP bidkeeper_venue_calls_total Requests to a venue since the gateway's start.
bidkeeper_venue_calls_total{venue="simulator",operation="own_bids",outcome="ok"} 1200
bidkeeper_venue_calls_total{venue="simulator",operation="own_bids",outcome="failed"} 3
bidkeeper_venue_calls_total{venue="mempool",operation="fees",outcome="ok"} 7
bidkeeper_venue_budget_left{venue="simulator"} 7.99
"""


def _cycle(error: str | None = None, action: str = "", **detail: Any) -> dict[str, Any]:
    """Returns a cycle as the API shows it, whose detail a worker has recorded so."""
    return {"time": 1, "action": action, "error": error, "detail": json.loads(camel_keys(json.dumps(detail)))}


def test_places_cancels_fills_and_errors_are_counted() -> None:
    figures = Figures()
    kept = {"rung": 1, "reason": "kept"}
    figures.count("task 1", _cycle(rungs=[{"rung": 0, "reason": "place", "fate": "placed"}, kept], cancelled=[4]))
    patient = "placed 0, kept 2, cancelled 0; patience x 2.05 (signatures 64 %)"
    figures.count("task 1", _cycle(action=patient, rungs=[kept, kept], cancelled=[], filled=[]))
    figures.count("task 1", _cycle("failed", rungs=[{"rung": 0, "fate": "not_signed"}], filled=[7]))
    figures.count("auto-list task 1", _cycle(fate="listed", planned={}))
    figures.count("auto-list task 1", _cycle(errors=[], listing={"state": "live", "close_reason": None}))
    figures.count("auto-list task 1", _cycle(fate=None, listing={"state": "closed", "close_reason": "sold"}))

    assert list(figures.lines(3900, METRICS)) == [
        "results after 1 h 5 min:",
        "  task 1: 3 cycles, 1 without changes; placed 1, cancelled 1, filled 1, errors 1, patience x 2.05",
        "  auto-list task 1: 3 cycles, 1 without changes; listed or repriced 1, sold 1, errors 0",
        "  calls to marketplaces and data sources: 1,210 (1,203 own_bids, 7 fees)",
    ]


def test_there_are_no_figures_before_the_first_cycle() -> None:
    assert list(Figures().lines(3, None)) == []


def test_many_operations_are_summed_up() -> None:
    lines = [f'bidkeeper_venue_calls_total{{venue="v",operation="o{n}",outcome="ok"}} {n}' for n in range(1, 9)]

    assert calls("\n".join(lines)) == "36 (8 o8, 7 o7, 6 o6, 5 o5, 4 o4, 3 o3, 3 other)"


def test_times_in_words() -> None:
    assert [in_words(seconds) for seconds in (4.6, 61, 7260)] == ["0 min 5 s", "1 min 1 s", "2 h 1 min"]
