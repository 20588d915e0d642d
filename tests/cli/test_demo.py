"""The demo user's listings, and the printed record of its tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.demo import Demo, Figures, calls, in_words
from server.task_log import camel_keys

VAULT, OWN = "bc1pvault", "bc1qown"
GIFT, BOUGHT, NEXT = (f"{letter * 64}i0" for letter in "abc")
PUPPETS = "bitcoin-puppets-demo"


class House:
    """An installation in place of the session's: one bidding task, listings, inscriptions by address."""

    def __init__(self) -> None:
        self.is_signed_in = True
        self.task: dict[str, Any] = {"id": 1, "slug": "cats", "lastCycle": None, "lastError": None}
        self.cycles: list[dict[str, Any]] = []
        self.listings: list[dict[str, Any]] = []
        self.held: dict[str, str] = {}
        self.bids: list[dict[str, Any]] = []
        self.bought: list[str] = []
        self.sold_into = 0

    def call(self, method: str, path: str, body: Any = None) -> Any:
        match method, path.split("?")[0].split("/")[2:]:
            case "GET", ["wallet"]:
                return {"vault": VAULT}
            case "GET", ["tasks"]:
                return [self.task]
            case "GET", ["tasks", "1", "bids"]:
                return self.bids
            case "GET", ["fills"]:
                return {"fills": [{"slug": PUPPETS, "inscriptionId": each} for each in self.bought]}
            case "GET", ["tasks", "1", "cycles"]:
                return self.cycles
            case "POST", ["tasks"]:
                return {**self.task, "slug": body["slug"], "config": {"outbidEnabled": False, **body}}
            case "GET", ["autolist"]:
                return list(self.listings)
            case "GET", ["autolist", "wallet", "ordinals"]:
                items = self.held.items()
                return [{"id": id, "collectionId": "pizza-ninjas-demo", "address": where} for id, where in items]
            case "POST", ["autolist"]:
                assert self.held[body["inscriptionId"]] == VAULT
                number = len(self.listings) + 1
                shown = {"id": number, "isRunning": True, "lastCycle": None, "lastError": None}
                self.listings.append(shown | {"inscriptionId": body["inscriptionId"]})
                return self.listings[-1]
            case "DELETE", ["autolist", number]:
                self.listings = [each for each in self.listings if each["id"] != int(number)]
        return {}

    def give(self, vault: str, gifts: list[dict[str, str]]) -> None:
        self.held[GIFT] = vault

    def sell_into(self, bid: dict[str, Any]) -> None:
        assert bid["id"] == "high"
        self.sold_into += 1

    def buy(self, inscription: str) -> None:
        self.bought.append(inscription)
        self.held[inscription] = OWN

    def send(self, inscription: str, address: str) -> None:
        self.held[inscription] = address


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
def look(house: House, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Looks once more, as if there were no need to wait."""
    monkeypatch.setattr("cli.demo._READ_EVERY_S", 0)
    monkeypatch.setattr("cli.demo._LIST_EVERY_S", 0)
    monkeypatch.setattr("cli.demo._FIRST_S", 0)
    return Demo(house).step  # type: ignore[arg-type]


def test_what_was_bought_is_listed_one_at_a_time_and_a_gift_never(house: House, look: Any) -> None:
    look()
    assert (house.listings, house.held) == ([], {GIFT: VAULT}), "no bid is there yet"
    house.bids = [{"id": "low", "price": 1}, {"id": "high", "price": 2}]
    look()
    look()
    assert house.sold_into == 1, "the fill is not known yet"
    house.buy(BOUGHT)
    look()
    assert [each["inscriptionId"] for each in house.listings] == [BOUGHT]
    assert house.held[BOUGHT] == VAULT
    house.buy(NEXT)
    look()
    assert house.held[NEXT] == OWN, "the first one is still for sale"

    house.listings[0]["isRunning"] = False
    del house.held[BOUGHT]
    look()

    assert house.held[NEXT] == VAULT
    assert [each["inscriptionId"] for each in house.listings] == [NEXT], "the task of what was sold is deleted"


def test_what_its_user_has_stopped_stays_stopped(house: House, look: Any) -> None:
    house.buy(BOUGHT)
    look()
    house.listings[0]["isRunning"] = False
    look()

    assert [each["isRunning"] for each in house.listings] == [False]


def test_a_cycle_is_printed_once_and_so_is_what_repeats_itself(
    house: House, look: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    actions = ("placed 1", "kept 1", "kept 1", "kept at 9: wanted 8", "kept at 9: wanted 7", "placed 2")
    for time, action in zip(range(4 * 10**9, 5 * 10**9, 30), actions, strict=False):
        house.cycles.insert(0, {"time": time, "action": action, "error": None, "detail": {}})
        house.task |= {"lastCycle": {"time": time, "action": action}}
        look()
        look()

    lines = [line for line in capsys.readouterr().out.splitlines() if "started" not in line]
    assert [line.split(" ", 1)[1] for line in lines] == [
        "task 1 cats: placed 1",
        "task 1 cats: kept 1",
        "task 1 cats: kept at 9: wanted 8",
        "task 1 cats: placed 2",
    ]


def test_cycles_of_an_earlier_run_are_left_out(house: House, look: Any, capsys: pytest.CaptureFixture[str]) -> None:
    house.cycles = [{"time": 1, "action": "placed 1", "error": None, "detail": {}}]
    house.task |= {"lastCycle": {"time": 1, "action": "placed 1"}}
    look()

    assert "placed" not in capsys.readouterr().out


def test_a_task_that_does_not_finish_a_cycle_is_told_of(
    house: House, look: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    house.task |= {"lastError": "TypeError: no"}
    look()
    look()

    assert capsys.readouterr().out.count("task 1 cats: TypeError: no") == 1


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
