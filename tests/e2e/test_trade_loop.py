"""The loop from a bid to a profit on the practice market, with every program killed on the way."""

from __future__ import annotations

import secrets
import time
from typing import Any

import pytest
import requests

from drills.faults.fleet import strike
from tests.e2e.installation import Installation, Trader, until

pytestmark = pytest.mark.thorough

SETTINGS = {"BIDKEEPER_SIMULATOR_SELLER_FEE_PPM": "20000"}  # the practice market keeps 2 % of sales
PROGRAMS = ("worker", "manager", "gateway", "signer", "server")
STEPS = ("bid", "fill", "task", "listing", "sale")
FEE_S = 2.5  # a fill's fee is known by a balance that was read so long before it


class Loop:
    """One trader's loop; `deaths` names the programs that are killed once a step's fact is there."""

    def __init__(self, service: Installation, deaths: dict[str, tuple[str, ...]]) -> None:
        self.service, self.deaths = service, deaths
        self.trader = Trader(service).sign_in()
        self.vault = self.trader.ok("GET", "/api/wallet")["vault"]
        self.killed, self.struck_s = 0, 0
        self.delivered: list[str] = []

    def told(self, path: str) -> Any:
        """Returns the server's answer; None while it has none."""
        try:
            answer = self.trader.call("GET", path)
        except requests.RequestException:
            return None
        return answer.json() if answer.status_code == 200 else None

    def begun(self, slug: str, **config: Any) -> int:
        """The started task of one bid, whose worker has read the balance a while ago."""
        self.service.put_collection(slug, [100_000])
        body = {"slug": slug, "hardcapSats": 100_000, "bidCount": 1, "bidPercentLow": 0.5, "loopSeconds": 5}
        task = self.trader.task(**body | config)
        self.trader.start(task)
        until(lambda: self.service.live_prices(slug), "the bid")
        return task

    def bought(self, task: int, slug: str) -> dict[str, Any]:
        """The fill, once its fee is known."""
        until(lambda: self._last_cycle_s(task) > self.struck_s, "a cycle of a worker that was not killed")
        time.sleep(FEE_S)
        sale = self.service.sim("POST", "/sim/sell", {"slug": slug, "networkFee": 600})
        self.delivered.append(sale["sold"]["receive"])
        return until(lambda: next((f for f in self.fills(task) if f["networkFee"] is not None), None), "the fill")

    def _last_cycle_s(self, task: int) -> int:
        return int(((self.told(f"/api/tasks/{task}") or {}).get("lastCycle") or {"time": 0})["time"])

    def fills(self, task: int) -> list[dict[str, Any]]:
        return (self.told(f"/api/fills?taskId={task}") or {"fills": []})["fills"]

    def strikes(self, step: str) -> None:
        """Kills what is to die at this step, and waits until all of it is back."""
        for program in self.deaths.get(step, ()):
            kinds = ("bidder", "lister") if program == "worker" else ()
            names = [f"bidkeeper: {kind} task" for kind in kinds] or [f"cli.main {program}"]
            running = lambda names=names: [pid for name in names for pid in self.service.processes(name)]  # noqa: E731
            strike(until(running, f"a {program} to kill after {step}"), "kill")
            self.killed += 1
            self.struck_s = int(time.time())
            until(self.service.ready_again, f"the return of {program} after {step}")

    def run(self) -> None:
        slugs = [f"loop-{secrets.token_hex(4)}" for _ in range(2)]
        other = self.begun(slugs[1], bidMode="fixed", bidFixedLow=80_000, bidFixedHigh=80_000, maxFills=1)
        held = self.bought(other, slugs[1])
        assert (held["price"], held["networkFee"], held["autolist"]) == (80_000, 600, None)
        self.trader.stop(other)
        time.sleep(FEE_S)
        self.trader.ok("POST", "/api/tasks/preview", {"taskId": other})  # the balance is read anew, after that fill

        rule = {"autolist": {"pricePercent": 1.05, "minMargin": 0.1, "loopSeconds": 5}, "start": True}
        task = self.begun(slugs[0], deliverTo="vault", onFill=rule)
        assert self.service.live_prices(slugs[0]) == [75_000]
        self.strikes("bid")
        fill = self.bought(task, slugs[0])
        assert (fill["price"], fill["networkFee"], fill["floorAtFill"]) == (75_000, 600, 100_000)
        self.strikes("fill")
        made = until(lambda: self._listed(task), "the auto-list task")
        self.strikes("task")
        until(lambda: self._listing(made).get("state") == "live", "the listing")
        self.strikes("listing")
        told = until(lambda: self.told(f"/api/autolist/{made}"), "the auto-list task's answer")
        assert (told["config"]["costSats"], told["costSource"], told["sourceFillId"]) == (75_600, "fill", fill["id"])
        assert (told["inscriptionId"], told["listing"]["price"]) == (fill["inscriptionId"], 105_000)
        assert (told["collectionId"], told["isRunning"]) == (slugs[0], True)

        self.service.sim("POST", "/sim/sell", {"inscriptionId": fill["inscriptionId"]})
        self.strikes("sale")
        until(lambda: self._listing(made).get("closeReason") == "sold", "the sale")
        assert "payment address" in self._listing(made)["proceedsNote"]
        self._check_the_books(slugs, task, fill, held)

    def _listed(self, task: int) -> int | None:
        wish = next((f["autolist"] for f in self.fills(task) if f["autolist"]), {"state": ""})
        assert wish["state"] != "dropped", wish
        return int(wish["taskId"]) if wish["state"] == "listed" else None

    def _listing(self, made: int) -> dict[str, Any]:
        return (self.told(f"/api/autolist/{made}") or {}).get("listing") or {}

    def _check_the_books(self, slugs: list[str], task: int, fill: dict[str, Any], held: dict[str, Any]) -> None:
        """Each thing was bought, listed and sold once; the goods are where they were to be; the gain is right."""
        asks = self.service.history(kind="ask", slug=slugs[0], maker=self.vault)
        assert {event["price"] for event in asks} == {105_000} and asks[-1]["event"] == "filled"
        assert len(self.trader.ok("GET", "/api/autolist")) == 1
        assert [f["id"] for f in self.fills(task)] == [fill["id"]]
        assert self.delivered == [self.trader.address, self.vault]
        inventory = self.trader.ok("GET", "/api/autolist/wallet/ordinals?refresh=1")
        assert [(item["id"], item["address"]) for item in inventory] == [(held["inscriptionId"], self.trader.address)]
        (row,) = self.trader.ok("GET", "/api/pnl")["rows"]
        assert (row["bought"], row["sold"]) == ({"count": 2, "sats": 155_000}, {"count": 1, "sats": 105_000})
        assert (row["matched"], row["feesSats"], row["realizedSats"]) == (1, 2_700, 27_300)
        assert (row["realizedPercent"], row["held"]["count"], row["held"]["costSats"]) == (36.1, 1, 80_600)
        assert row["unknownFees"] == 0


@pytest.mark.slow
def test_a_loop_ends_in_its_profit_though_each_program_dies_once(service: Installation) -> None:
    loop = Loop(service, {step: (program,) for step, program in zip(STEPS, PROGRAMS, strict=True)})
    began = time.monotonic()
    loop.run()
    assert loop.killed == len(PROGRAMS)
    print(f"a loop with {loop.killed} deaths: {time.monotonic() - began:.0f} s")


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_loop_ends_in_its_profit_though_one_program_dies_at_each_step(service: Installation, program: str) -> None:
    loop = Loop(service, dict.fromkeys(STEPS, (program,)))
    loop.run()
    assert loop.killed == len(STEPS), program
