"""A signer whose disk is full to the last byte signs cancels, places nothing and keeps every control state."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from core import files
from tests.disks import fill, small_disk
from tests.worlds import signer_process
from tests.worlds.signer import START_MS, USER, Bench, intent, tag_of
from tests.worlds.signer_process import Start, live_bid, live_grant
from wallet.protocol import ControlState
from wallet.signer.audit import verify_chain
from wallet.signer.signer_process import require_agreement

_DISK_BYTES = 160 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, _DISK_BYTES) as mounted:
        yield mounted


@pytest.fixture
def bench(disk: Path) -> Iterator[Bench]:
    with Bench.opened(disk) as opened:
        opened.is_short = partial(files.is_short, disk)
        yield opened


def cancels(bench: Bench, secret: str) -> None:
    """Has everything signed that cancelling may need."""
    sign_in = "Sign in to ord.net at 2026-05-08T18:00:00Z (nonce: 1)"
    asked = {"task": 17, "token": 5, "secret": secret, "text": sign_in, "key": "payment"}
    assert bench.sign_brake(USER) and bench.sign_challenge(secret) and bench.ask("sign_sign_in", **asked)


def test_on_a_full_disk_cancels_are_signed_and_bids_refused(bench: Bench, disk: Path) -> None:
    secret = bench.grant(venue="simulator-ordnet")
    bench.sign_bid(secret)
    filler = fill(disk)
    for number in range(50):
        cancels(bench, secret)
        assert tag_of(bench.sign_bid, secret, intent=intent(number + 2)) == "disk-full"
        bench.pass_time(10_000)
    bench.restart()
    cancels(bench, secret)
    assert tag_of(bench.sign_bid, secret) == "disk-full"
    assert verify_chain(bench.audit_path) == 1 + 51 * 3
    filler.unlink()
    assert bench.sign_bid(secret, intent=intent(2))
    assert require_agreement(bench.audit_path, bench.ledger_path, START_MS) == ()


def test_below_the_floor_no_bid_is_signed_and_all_else_is_stored(bench: Bench, disk: Path) -> None:
    secret = bench.grant()
    filler = fill(disk, leave=files.FLOOR_BYTES - (1 << 20))
    assert tag_of(bench.sign_bid, secret) == "disk-full"
    secret = bench.grant(token=6)
    bench.control("halt", "task", "18")
    assert bench.ledger.unstored == {}
    filler.unlink()
    assert bench.sign_bid(secret, token=6)


def test_a_halt_on_a_full_disk_holds_after_a_restart_and_is_stored_once_there_is_room(bench: Bench, disk: Path) -> None:
    secret = bench.grant()
    bench.control("reduce", "task", "17")
    pad(bench)
    filler = fill(disk)
    bench.control("halt")
    bench.control("halt", "task", "17")
    bench.control("halt", "task", "17")
    told = [
        {"scope": "task", "subject": "17", "state": "halt"},
        {"scope": "global", "subject": "", "state": "halt"},
    ]
    assert bench.ask("controls")["controls"] == told
    assert tag_of(bench.control, "run") == "disk-full"
    former = bench.ledger
    bench.audit.close()
    bench.open()
    held = require_agreement(bench.audit_path, bench.ledger_path, START_MS)
    assert {(each.scope, each.subject, each.state) for each in held} == {
        ("global", "", "halt"),
        ("task", "17", "halt"),
    }
    for each in held:
        bench.control(each.state, each.scope, each.subject)
    assert tag_of(bench.sign_bid, secret) == "control-state"
    filler.unlink()
    bench.ledger.store_unstored()
    former.close()
    bench.restart()
    assert bench.ask("controls")["controls"] == told[::-1]
    bench.control("run")
    bench.control("run", "task", "17")
    assert bench.sign_bid(secret)
    assert bench.ledger.controls() == []


def pad(bench: Bench) -> None:
    """Has the database's log of writes end where its file ends, so that the next write needs room."""
    bench.ledger._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_the_reserve_is_freed_for_what_takes_rights_away(bench: Bench, disk: Path) -> None:
    secret = bench.grant()
    files.make_reserve(disk)
    assert (disk / files.RESERVE).stat().st_blocks * 512 >= files.RESERVE_BYTES
    pad(bench)
    filler = fill(disk)
    assert bench.ask("end_rights", task=17, token=5) == {}
    assert not (disk / files.RESERVE).exists()
    assert tag_of(bench.sign_challenge, secret) == "grant-live"
    files.make_reserve(disk)
    assert not (disk / files.RESERVE).exists(), "the disk is short"
    filler.unlink()
    files.make_reserve(disk)
    assert (disk / files.RESERVE).exists()


def test_a_state_that_was_tightened_in_memory_is_loosened_in_the_file_too(bench: Bench, disk: Path) -> None:
    bench.control("reduce")
    pad(bench)
    filler = fill(disk)
    bench.control("halt")
    filler.unlink()
    bench.control("reduce")
    bench.ledger.store_unstored()
    assert bench.ledger.controls() == [ControlState("global", "", "reduce")]


@pytest.fixture
def start(disk: Path) -> Iterator[Start]:
    yield from signer_process.started_in(disk)


@pytest.mark.slow
def test_a_signer_that_ended_on_a_full_disk_starts_and_signs_cancels(start: Start, disk: Path) -> None:
    signer = start()
    client, secret = signer.client, signer.client.grant(live_grant())
    client.sign_bid(17, 5, secret, live_bid())
    assert (disk / "signer" / files.RESERVE).exists()
    (disk / "signer" / files.RESERVE).unlink()
    filler = fill(disk)
    client.set_control("user", USER, "halt")
    for number, ended_by in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)):
        code, _ = signer.end(ended_by)
        assert code == (0 if ended_by is signal.SIGTERM else -ended_by)
        signer = start()
        client = signer.client
        assert client.status().state == "ready"
        assert client.sign_challenge(17, 5, secret, f"challenge {number}")
        assert client.sign_brake(USER, "simulator", "challenge 2")
        assert [each.state for each in client.controls().states] == ["halt"]
    filler.unlink()
    client.set_control("user", USER, "run")
    assert client.sign_bid(17, 5, secret, live_bid(2))
    signer.end(signal.SIGTERM)
    assert verify_chain(disk / "signer" / "audit.jsonl") == 3 + 3 * 3 + 1  # each start sets the halt again
