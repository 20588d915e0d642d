"""The program: start, state file, restart; and all venues beside each other."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from simulator.crowd import DEMOS, DRIFT_EVERY, Course
from simulator.engine import wall_clock_ms
from simulator.world import StateFile, World
from tests.clock import Clock
from tests.ports import free_ports
from tests.simulator.desk import ANN, HEADERS, PUPPETS, SATFLOW, Desk
from tests.simulator.seller import PUPPET, hold, listed, ow_listed, token, unisat_listed

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0


class Program:
    """A practice market in a process of its own."""

    def __init__(self, folder: Path, *, background: bool = False) -> None:
        (self.port,) = free_ports(1)
        self.state = folder / "simulator.json"
        self.background = background
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        code = (
            "from pathlib import Path; from simulator.app import run; "
            f"run(port={self.port}, seed=1, background={self.background}, state_file=Path({str(self.state)!r}))"
        )
        self.process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
        _until(self._answers)

    def _answers(self) -> bool:
        try:
            return self.ask("GET", "/healthz").status_code == 200
        except requests.ConnectionError:
            return False

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        url = f"http://127.0.0.1:{self.port}{path}"
        return requests.request(method, url, json=body, headers=HEADERS, timeout=PATIENCE)

    def prices(self) -> list[int]:
        answer = self.ask("GET", f"{SATFLOW}/address/bids?address={ANN.payment}")
        return [bid["price"] for bid in answer.json()["data"]["results"]] if answer.status_code == 200 else []

    def end(self, number: int) -> int:
        """Exit status after a signal."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _until(ready: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "the deadline passed"
        time.sleep(0.05)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = Program(tmp_path)
    yield found
    found.close()


@pytest.mark.slow
def test_orders_and_history_survive_the_end_of_the_process(program: Program) -> None:
    program.start()
    program.ask("PUT", f"/sim/collections/{PUPPETS}", {"asks": [{"price": 90_000}]}).raise_for_status()
    program.ask("PUT", f"/sim/wallets/{ANN.payment}", {"balance": 77_000}).raise_for_status()
    program.ask("POST", f"{SATFLOW}/bid/place", ANN.bid(wall_clock_ms())).raise_for_status()

    status = program.end(signal.SIGTERM)
    program.start()

    assert status == 0
    assert program.prices() == [50_000]
    assert program.ask("GET", f"{SATFLOW}/collection-stats?collectionId={PUPPETS}").json()["data"]["floor"] == 90_000
    assert [event["event"] for event in program.ask("GET", "/sim/history").json()] == ["accepted"]
    stats = program.ask("GET", f"/mempool/api/address/{ANN.payment}").json()["chain_stats"]
    assert stats["funded_txo_sum"] == 77_000


@pytest.mark.slow
def test_a_killed_process_has_lost_two_seconds_at_most(program: Program) -> None:
    program.start()
    program.ask("PUT", f"/sim/collections/{PUPPETS}", {"asks": [{"price": 90_000}]}).raise_for_status()
    program.ask("POST", f"{SATFLOW}/bid/place", ANN.bid(wall_clock_ms())).raise_for_status()
    _until(lambda: program.state.exists() and ANN.payment in program.state.read_text())

    program.end(signal.SIGKILL)
    program.start()

    assert program.prices() == [50_000]
    ids = {event["orderId"] for event in program.ask("GET", "/sim/history").json()}
    program.ask("POST", f"{SATFLOW}/bid/place", ANN.bid(wall_clock_ms(), price=60_000)).raise_for_status()
    assert len({event["orderId"] for event in program.ask("GET", "/sim/history").json()} - ids) == 1
    program.end(signal.SIGTERM)  # while it runs it may be writing its next state
    assert [path.name for path in program.state.parent.iterdir()] == ["simulator.json"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_time_even_while_a_caller_hangs(program: Program, number: int) -> None:
    program.start()
    hang = {"operation": "floors", "mode": "timeout", "delaySeconds": 3600}  # far longer than the end is waited for
    program.ask("PUT", "/sim/faults", [hang]).raise_for_status()
    with socket.create_connection(("127.0.0.1", program.port)) as caller:
        caller.sendall(f"GET {SATFLOW}/collection-stats?collectionId=a HTTP/1.0\r\nx-api-key: k\r\n\r\n".encode())
        _until(lambda: program.ask("GET", "/sim/requests").json() != {})

        status = program.end(number)

    assert status == 0


@pytest.mark.slow
def test_it_listens_on_the_loopback_address_only(program: Program) -> None:
    program.start()
    assert program.process is not None
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]

    mine = [row[1] for row in listening if row[3] == "0A" and row[1].endswith(f":{program.port:04X}")]

    assert mine == [f"0100007F:{program.port:04X}"]


@pytest.mark.thorough
@pytest.mark.slow
def test_background_traders_move_the_floor_of_a_running_market(tmp_path: Path) -> None:
    program = Program(tmp_path, background=True)
    try:
        program.start()

        def floors() -> dict[str, Any]:
            state = program.ask("GET", "/sim/state").json()
            return {slug: row["floor"] for slug, row in (state["collections"] | state["runes"]).items()}

        before = floors()
        assert len(before) == 5
        _until(lambda: floors() != before, DRIFT_EVERY[1] + PATIENCE)
    finally:
        program.close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 99}', '{"version": 1, "startedWith": false}'])
def test_an_unreadable_state_is_put_aside(tmp_path: Path, text: str) -> None:
    path = tmp_path / "simulator.json"
    path.write_text(text)
    world = World(seed=1)

    assert StateFile(path, world).load() is False

    assert not path.exists()
    assert (tmp_path / "simulator.json.unreadable").read_text() == text
    assert world.engine.markets == {}


def test_a_state_file_is_written_only_after_changes(tmp_path: Path) -> None:
    path = tmp_path / "simulator.json"
    world = World(seed=1)
    state = StateFile(path, world)
    state.save()
    path.unlink()

    state.save_if_changed()
    assert not path.exists()

    world.reset(2, background=False)
    StateFile(path, world).save_if_changed()
    assert json.loads(path.read_text())["seed"] == 2


def test_a_state_file_of_an_older_version_is_read(tmp_path: Path) -> None:
    """former_state.json was written by 5c2b9fa7, which knew no daily limit and no times of blocks."""
    path = tmp_path / "simulator.json"
    path.write_text((Path(__file__).parent / "former_state.json").read_text())
    former, world = json.loads(path.read_text())["engine"], World(seed=2)

    assert StateFile(path, world).load() is True

    taken = world.dump()["engine"]
    assert (taken["sequence"], taken["history"]) == (former["sequence"], former["history"])
    assert taken["wallets"]["balances"] == former["wallets"]["balances"]
    ids = [
        [[order["order_id"] for order in market["orders"]] for market in each["markets"]] for each in (taken, former)
    ]
    assert ids[0] == ids[1]


def test_a_state_file_brings_everything_back(tmp_path: Path) -> None:
    clock = Clock()
    world = World(seed=1, background=True, clock=clock.ms, monotonic=clock.seconds)
    for _ in range(700):
        clock.advance(1)
        world.step()
    world.limits.change(per_second=100, burst=200, monthly=10**9)
    world.engine.markets["ordinals", "nodemonkes-demo"].listing_traits = False
    world.engine.markets["ordinals", "nodemonkes-demo"].creator = "bc1qcreator"
    StateFile(tmp_path / "simulator.json", world).save()

    again = World(background=True, clock=clock.ms, monotonic=clock.seconds)
    assert StateFile(tmp_path / "simulator.json", again).load() is True

    assert again.dump() == world.dump()
    assert again.engine.markets["ordinals", "nodemonkes-demo"].creator == "bc1qcreator"
    assert {sale.bid_id is None for sale in again.engine.sales.of(("ordinals", "nodemonkes-demo"))} == {True, False}


@pytest.mark.gen_test
async def test_each_venue_has_its_own_listing_of_one_inscription(desk: Desk) -> None:
    await hold(desk)
    await listed(desk, price=900_000)
    await ow_listed(desk, 800_000)
    await unisat_listed(desk, 700_000)
    engine = desk.world.engine

    found = {ask.venue: ask.price for ask in engine.asks_of(PUPPET)}

    assert found == {"satflow": 900_000, "ordinalswallet": 800_000, "unisat": 700_000}
    floor = engine.market("ordinals", PUPPETS)
    assert floor is not None
    assert {venue: engine.floor(floor, venue) for venue in found} == found
    assert engine.floor(floor) == 700_000


@pytest.mark.gen_test
@pytest.mark.parametrize("route", ["move", "delist"])
async def test_moving_ends_all_and_delisting_one(desk: Desk, route: str) -> None:
    await hold(desk)
    await listed(desk)
    await ow_listed(desk)
    where = (await desk.sim("GET", "history"))[0]["maker"]

    await desk.sim("POST", route, {"inscriptionId": PUPPET} | ({"address": where} if route == "move" else {}))

    left = [ask.venue for ask in desk.world.engine.asks_of(PUPPET)]
    assert left == ([] if route == "move" else ["ordinalswallet"])


@pytest.mark.gen_test
async def test_a_sweep_buys_what_two_venues_list_once(desk: Desk) -> None:
    await hold(desk)
    await desk.list_puppets()
    await listed(desk)
    await ow_listed(desk)
    engine, world = desk.world.engine, desk.world
    market = engine.market("ordinals", PUPPETS)
    assert market is not None
    for price in range(1_000_000, 1_060_000, 10_000):
        engine.add(market, "ask", "somebody", price, origin="trader", inscription=engine.new_inscription())
    world.traders.open_markets()

    world.traders.sweep(DEMOS[0], market, Course(1_000_000.0, 5))

    assert [event["event"] for event in await desk.events("filled", "cancelled") if event["maker"] != "somebody"] == [
        "filled",
        "cancelled",
    ]
    assert len(engine.sales.of(market.key)) == 4


@pytest.mark.gen_test
async def test_listings_and_sessions_outlive_a_restart(desk: Desk, clock: Clock, tmp_path: Path) -> None:
    await hold(desk)
    await ow_listed(desk)
    auction, said = await unisat_listed(desk, 800_000), await token(desk)
    StateFile(tmp_path / "state.json", desk.world).save()
    again = World(seed=9, clock=clock.ms, monotonic=clock.seconds)

    assert StateFile(tmp_path / "state.json", again).load()

    assert [(ask.venue, ask.price) for ask in again.engine.asks_of(PUPPET)] == [
        ("ordinalswallet", 900_000),
        ("unisat", 800_000),
    ]
    assert again.engine.asks_of(PUPPET)[1].order_id == auction
    assert again.wallet_sessions.owner(said) == desk.world.wallet_sessions.owner(said) is not None
