"""The play wallet: one key for everybody at this market, really signing, kept over restarts and resets."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from simulator.world import StateFile, World
from tests.simulator.desk import Desk
from tests.simulator.test_running import Program, program  # noqa: F401
from wallet.bip322 import verify_ownership

TEXT = "Sign in to Bidkeeper at 127.0.0.1:8888\nAddress: bc1q\nNonce: 00"


@pytest.mark.gen_test
async def test_its_signature_proves_its_address_and_no_other_text(desk: Desk) -> None:
    address = (await desk.sim("GET", "play-wallet"))["address"]
    signed = await desk.sim("POST", "play-wallet/sign", {"message": TEXT})

    assert signed["address"] == address
    assert verify_ownership(address, TEXT, signed["signature"])
    assert not verify_ownership(address, TEXT + "1", signed["signature"])


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "body",
    [{}, *({"message": wrong} for wrong in ("", 5, "x" * 2001, "a\x00b", "\ud800")), {"message": "a", "address": "b"}],
)
async def test_what_is_no_text_is_refused_by_name(desk: Desk, body: dict[str, object]) -> None:
    status, answer = await desk.ask("POST", "/sim/play-wallet/sign", body)

    assert status == 400
    assert "message" in answer["error"] or "unknown fields" in answer["error"]


@pytest.mark.gen_test
async def test_a_reset_forgets_the_market_and_keeps_the_wallet(desk: Desk) -> None:
    before = await desk.sim("GET", "play-wallet")
    await desk.sim("POST", "reset", {"seed": 9})

    assert await desk.sim("GET", "play-wallet") == before


def test_no_two_markets_have_the_same_one_and_the_seed_does_not_make_it() -> None:
    assert World(seed=1).play_wallet.address != World(seed=1).play_wallet.address


def test_it_is_made_of_the_randomness_that_is_given_at_its_first_use() -> None:
    drawn: list[int] = []

    def random_bytes(count: int) -> bytes:
        drawn.append(count)
        return bytes([7]) * count

    world = World(seed=1, random_bytes=random_bytes)
    assert (world.dump()["playWallet"], drawn) == (None, [])

    assert world.play_wallet.address == world.play_wallet.address
    assert (world.dump()["playWallet"], drawn) == ("07" * 32, [32])


@pytest.mark.parametrize("key", ["07" * 31, "no hex", 7])
def test_a_state_file_with_a_broken_key_is_put_aside(tmp_path: Path, key: object) -> None:
    path = tmp_path / "simulator.json"
    path.write_text(json.dumps(World(seed=1).dump() | {"playWallet": key}))

    assert StateFile(path, World(seed=1)).load() is False


@pytest.mark.slow
def test_a_kill_right_after_the_first_answer_does_not_change_it(program: Program) -> None:  # noqa: F811
    program.start()
    before = program.ask("GET", "/sim/play-wallet").json()
    program.end(signal.SIGKILL)
    program.start()

    assert program.ask("GET", "/sim/play-wallet").json() == before
