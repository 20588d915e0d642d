"""What a task recorded by itself, tried with another config; and the whole installation as an administrator sees it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.commands import in_this_process
from tests.e2e.installation import Installation, Trader, until

pytestmark = pytest.mark.slow


def test_a_tasks_own_journal_is_replayed_in_a_process_of_its_own(service: Installation, trader: Trader) -> None:
    service.put_collection("look-back", [100_000, 105_000])
    task = trader.task(slug="look-back", hardcapSats=90_000, bidCount=2, loopSeconds=5, outbidEnabled=True)
    early = trader.call("POST", f"/api/tasks/{task}/replay", {})
    assert (early.status_code, early.json()["error"]) == (409, "Nothing is recorded")
    trader.start(task)
    trader.next_cycle(task, 3)

    def ranks() -> list[tuple[str, int]]:
        (cycle,) = trader.ok("GET", f"/api/tasks/{task}/cycles?limit=1")
        return [(rung["quantity"], rung["rank"]) for rung in cycle["detail"].get("rungs", ())]

    until(lambda: ranks() == [("1", 1), ("1", 2)], "a cycle that keeps both bids")

    def replayed() -> Any:
        answer = trader.call("POST", f"/api/tasks/{task}/replay", {"bidPercentHigh": 0.5, "bidCount": 1})
        if answer.status_code == 503:  # it has fifty seconds, behind everything else on the machine
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()

    found = until(replayed, "a replay", 900)
    own, changed = found["own"], found["changed"]
    assert found["cycles"] >= 3 and own["placed"] >= 2 and 1 <= changed["placed"] < own["placed"]
    assert own["firstShare"] == changed["firstShare"] == 1.0  # nobody else bids
    assert (own["fills"], own["newestFills"]) == (None, None)
    assert {gap["what"]: gap["isWhole"] for gap in own["unknown"]} == {"sales": True}
    assert until(lambda: not service.processes("server.replay.program"), "the replay's process has ended")

    (known,) = trader.ok("GET", "/api/tasks/slugs?q=look")["slugs"]
    assert (known["taskId"], known["sources"]) == (task, ["task", "order"]) and known["floor"] == 100_000


def test_an_administrator_sees_the_whole_and_ends_a_plan(service: Installation, trader: Trader) -> None:
    service.put_collection("over-soon", [100_000])
    task = trader.task(slug="over-soon", hardcapSats=90_000, bidCount=1, loopSeconds=5)
    trader.start(task)
    until(lambda: service.live_prices("over-soon"), "a bid")
    assert trader.call("GET", "/api/admin/users").status_code == 403
    admin = Trader(service).sign_in()
    code, said, complained = in_this_process(service.environment, "whitelist", "add", admin.address, "--admin")
    assert code == 0, said + complained

    def whole() -> bool:
        """Tells whether all is there: a peer that does not answer within two seconds is left out."""
        seen: Any = admin.ok("GET", "/api/admin/readiness")
        venues = [venue["name"] for venue in seen["venues"] or ()]
        return bool(seen["isReady"] and (seen["workers"] or 0) >= 1 and venues != [])

    until(whole, "every program, a worker and a marketplace")
    (user,) = admin.ok("GET", f"/api/admin/users?address={trader.address}")["users"]
    assert user["running"] >= 1 and user["openBids"] >= 1 and user["exposure"] > 0

    ended = admin.ok("PUT", f"/api/admin/users/{user['id']}", {"endsAt": "2020-01-01"})
    assert ended["planIsOver"] and ended["tasksStopped"] >= 1
    until(lambda: not service.live_prices("over-soon"), "its bids are gone")
    admin.ok("PUT", f"/api/admin/users/{user['id']}", {"plan": "beta"})
    assert trader.start(task)["isRunning"]
