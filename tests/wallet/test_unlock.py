"""The signer with a keystore for real money: locked, unlocked by command or unattended, and never by mistake."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import PeerRefused
from tests.json_lines import ask
from tests.shapes import replace
from tests.worlds.signer import OTHER_USER, USER, tag_of
from tests.worlds.signer_process import (
    DEADLINE_S,
    PASSPHRASE,
    WORDS,
    SignerProcess,
    Start,
    live_bid,
    live_grant,
    now_ms,
    sealed_keystore,
)
from wallet.bip322 import verify_ownership
from wallet.keystore import keystore
from wallet.keystore.keys import Imported, KeystoreError, derive_user, seed_of
from wallet.keystore.seal import Work
from wallet.protocol import ControlState, SignerStatus
from wallet.signer.audit import verify_chain
from wallet.signer_client import SignerLocked, SignerRefused, SignerUnavailable

pytestmark = pytest.mark.slow

READY = SignerStatus("ready", play=False)
MARKET = "satflow"


def refusal(signer: SignerProcess, passphrase: str) -> tuple[str, str]:
    with pytest.raises(PeerRefused) as refused:
        signer.unlock(passphrase)
    return refused.value.code, refused.value.message


def test_it_waits_locked_and_signs_once_it_is_unlocked(start: Start, tmp_path: Path) -> None:
    sealed_keystore(tmp_path, OTHER_USER)
    signer = start(MARKET)
    client = signer.client
    status = client.status()
    assert (status.state, status.play) == ("locked", False)
    assert "bidkeeper keys unlock" in status.reason
    with pytest.raises(SignerLocked, match="keys unlock"):
        client.grant(live_grant(venue=MARKET))

    assert signer.unlock(PASSPHRASE) == {}
    assert client.status() == READY
    keys = client.addresses(USER)
    assert replace(keys, escrows={}) == derive_user(seed_of(WORDS), 1).public
    secret = client.grant(live_grant(venue=MARKET))
    bid = live_bid()
    first = client.sign_bid(17, 5, secret, bid)
    assert verify_ownership(keys.payment, first.message, first.signature)
    with pytest.raises(SignerRefused) as refused:
        client.grant(live_grant(6))
    assert refused.value.tag == "market"

    signer.end(signal.SIGKILL)
    signer = start(MARKET)
    assert client.status().state == "locked"
    with pytest.raises(SignerLocked):
        client.sign_bid(17, 5, secret, bid)
    signer.unlock(PASSPHRASE)
    assert client.sign_bid(17, 5, secret, bid) == first
    assert client.addresses(USER) == keys
    assert verify_chain(tmp_path / "signer" / "audit.jsonl") == 3, "the keys of two users, and the bid"


def test_what_takes_rights_away_works_while_locked(start: Start, tmp_path: Path) -> None:
    sealed_keystore(tmp_path)
    client = start(MARKET).client
    client.set_control("global", "", "halt")
    client.end_rights(17, 5)
    assert client.controls().states[0].state == "halt"


def test_three_wrong_passphrases_a_minute_also_over_restarts(start: Start, tmp_path: Path) -> None:
    sealed_keystore(tmp_path)
    still = {"CLOCK_STANDS_AT_MS": str(now_ms())}  # so that all tries are of one minute, however long they take
    signer = start(MARKET, environment=still)
    said = {refusal(signer, wrong) for wrong in ("wrong", PASSPHRASE[:-1])}
    assert said == {("wrong-passphrase", "the passphrase is wrong, or the keystore was changed")}
    signer.end(signal.SIGKILL)
    signer = start(MARKET, environment=still)
    assert refusal(signer, "x" * 200)[0] == "wrong-passphrase"
    for passphrase in ("wrong", PASSPHRASE):
        assert refusal(signer, passphrase) == ("too-many-tries", "three tries within a minute: wait one")
    assert signer.client.status().state == "locked"
    count = tmp_path / "signer" / "unlock-tries.json"
    count.unlink()  # as a minute does: test_keystore.py
    assert refusal(signer, "wrong")[0] == "wrong-passphrase"
    assert count.exists()
    signer.unlock(PASSPHRASE)
    assert signer.client.status() == READY
    assert not count.exists()


@pytest.mark.thorough_cases("request_1", "request_2")
@pytest.mark.parametrize("request_", [{}, {"passphrase": ""}, {"passphrase": 7}, {"passphrase": "x", "more": 1}])
def test_a_misshapen_unlock_is_no_try(start: Start, tmp_path: Path, request_: dict[str, object]) -> None:
    sealed_keystore(tmp_path)
    signer = start(MARKET)
    for _ in range(4):
        assert tag_of(ask, signer.socket, "signer", {"op": "unlock", **request_}, timeout=DEADLINE_S) == "bad-request"
    signer.unlock(PASSPHRASE)


def answers_meanwhile(signer: SignerProcess, tries: Path) -> bool:
    """Unlocks a signer; tells whether it answered at least five times meanwhile, most of them at once."""
    unlocking = threading.Thread(target=signer.unlock, args=(PASSPHRASE,))
    answers = []
    began = time.monotonic()
    unlocking.start()
    while unlocking.is_alive():
        has_begun = tries.exists()  # the try is counted right before it is made
        before = time.monotonic()
        state = signer.client.status().state
        answers.append((has_begun and state != "ready", time.monotonic() - before))
        time.sleep(0.01)
    unlocking.join()
    lasted = time.monotonic() - began
    is_enough = sum(is_meanwhile for is_meanwhile, _ in answers) >= 5
    return is_enough and sorted(took for _, took in answers)[len(answers) // 2] < lasted / 10


@pytest.mark.thorough
def test_it_goes_on_answering_while_it_is_unlocked(start: Start, tmp_path: Path) -> None:
    sealed_keystore(tmp_path, work=Work(n=1 << 18))  # about one second
    # On a busy machine this process may not come to ask meanwhile: then once more. A signer that waits always waits.
    for _ in range(10):
        signer = start(MARKET)
        if answers_meanwhile(signer, tmp_path / "signer" / "unlock-tries.json"):
            break
        signer.end(signal.SIGTERM)
    else:
        pytest.fail("it did not go on answering, ten times")
    assert signer.client.status() == READY


def test_unlocking_twice_is_no_second_guess(start: Start, tmp_path: Path) -> None:
    sealed_keystore(tmp_path)
    signer = start(MARKET)
    signer.unlock(PASSPHRASE)
    for _ in range(5):
        assert signer.unlock("whatever") == {}
    assert signer.client.status() == READY


def test_its_own_user_may_unlock_it_where_others_are_its_clients(start: Start, tmp_path: Path) -> None:
    sealed_keystore(tmp_path)
    signer = start(MARKET, environment={"ALLOWED_UIDS": "61100"})
    assert signer.socket.stat().st_mode & 0o777 == 0o660
    signer.unlock(PASSPHRASE)
    assert signer.client.status() == READY


class TestUnattended:
    def test_a_file(self, start: Start, tmp_path: Path) -> None:
        sealed_keystore(tmp_path)
        file = tmp_path / "passphrase"
        file.touch(mode=0o600)
        file.write_text(PASSPHRASE + "\n")
        signer = start(MARKET, file)
        assert signer.client.status() == READY
        signer.end(signal.SIGTERM)
        file.chmod(0o644)
        signer = start(MARKET, file)
        assert "chmod 600" in signer.client.status().reason
        signer.unlock(PASSPHRASE)
        assert signer.client.status() == READY

    def test_a_file_with_another_passphrase_leaves_it_locked(self, start: Start, tmp_path: Path) -> None:
        sealed_keystore(tmp_path)
        file = tmp_path / "passphrase"
        file.touch(mode=0o600)
        file.write_text("another passphrase")
        signer = start(MARKET, file)
        assert signer.client.status().reason == "the passphrase is wrong, or the keystore was changed"
        signer.unlock(PASSPHRASE)
        assert signer.client.status() == READY

    def test_a_systemd_credential(self, start: Start, tmp_path: Path) -> None:
        sealed_keystore(tmp_path)
        (tmp_path / "credentials").mkdir()
        (tmp_path / "credentials" / "keystore-passphrase").write_text(PASSPHRASE)
        signer = start(MARKET, environment={"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")})
        assert signer.client.status() == READY

    def test_a_descriptor(self, start: Start, tmp_path: Path) -> None:
        sealed_keystore(tmp_path)
        reader, writer = os.pipe()
        os.write(writer, PASSPHRASE.encode())
        os.close(writer)
        signer = start(MARKET, f"/dev/fd/{reader}", pass_fds=(reader,))
        os.close(reader)
        assert signer.client.status() == READY


def test_real_keys_are_not_for_the_practice_marketplace(start: Start, tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path)
    before = path.read_bytes()
    file = tmp_path / "passphrase"
    file.touch(mode=0o600)
    file.write_text(PASSPHRASE)
    signer = start("simulator", file)
    assert "not a play keystore" in signer.client.status().reason
    assert refusal(signer, PASSPHRASE)[0] == "locked"
    with pytest.raises(SignerLocked):
        signer.client.addresses(USER)
    assert path.read_bytes() == before


def test_play_keys_are_for_nothing_else(start: Start, tmp_path: Path) -> None:
    start("simulator").end(signal.SIGTERM)
    signer = start(MARKET)
    assert "play keystore" in signer.client.status().reason
    assert "play keystore" in refusal(signer, PASSPHRASE)[1]
    assert signer.client.status().state == "locked"


def test_keys_that_were_imported_sign(start: Start, tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path, USER)
    mine = keystore.unlock(path, PASSPHRASE).put_imported(USER, Imported(bytes([7] * 32), bytes([8] * 32))).public
    signer = start(MARKET)
    signer.unlock(PASSPHRASE)
    assert replace(signer.client.addresses(USER), escrows={}) == mine
    secret = signer.client.grant(live_grant(venue=MARKET))
    signed = signer.client.sign_bid(17, 5, secret, live_bid())
    assert signed.message.startswith(f"{mine.payment}:")
    assert verify_ownership(mine.payment, signed.message, signed.signature)


def test_the_keystore_is_closed_to_others_while_it_is_open(start: Start, tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path)
    signer = start(MARKET)
    os.close(keystore.lock(path))
    signer.unlock(PASSPHRASE)
    with pytest.raises(KeystoreError, match="running signer"):
        keystore.lock(path)
    signer.end(signal.SIGKILL)
    os.close(keystore.lock(path))


def test_while_somebody_else_writes_it_stays_locked_and_can_be_tried_again(start: Start, tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path)
    signer = start(MARKET)
    with keystore.locked(path):
        assert refusal(signer, PASSPHRASE)[0] == "locked"
    signer.unlock(PASSPHRASE)
    assert signer.client.status() == READY


def test_a_new_user_is_sealed_with_the_rest(start: Start, tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path)
    signer = start(MARKET)
    signer.unlock(PASSPHRASE)
    signer.client.addresses(USER)
    assert USER not in path.read_text()
    assert keystore.unlock(path, PASSPHRASE).users == (USER,)


@pytest.mark.thorough_cases("log")
@pytest.mark.parametrize("loss", ["log", "ledger"])
def test_it_stays_locked_when_it_does_not_remember_what_it_signed(start: Start, tmp_path: Path, loss: str) -> None:
    sealed_keystore(tmp_path)
    signer = start(MARKET)
    signer.unlock(PASSPHRASE)
    secret = signer.client.grant(live_grant(venue=MARKET, outstanding_sats=10_000_000))
    bids = [live_bid(number) for number in range(1, 6)]
    signed = [signer.client.sign_bid(17, 5, secret, bid) for bid in bids]
    signer.end(signal.SIGTERM)

    log, copy = tmp_path / "signer" / "audit.jsonl", tmp_path / "audit.copy"
    copy.write_bytes(log.read_bytes())
    if loss == "log":
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:4]))
        expected = "put signer.db and audit.jsonl back from one copy"
    else:
        with closing(sqlite3.connect(tmp_path / "signer" / "signer.db", isolation_level=None)) as database:
            database.execute("DELETE FROM signatures")
        expected = "signer.db is older"
    signer = start(MARKET)
    assert expected in refusal(signer, PASSPHRASE)[1]
    assert expected in signer.client.status().reason
    with pytest.raises(SignerLocked):
        signer.client.sign_bid(17, 5, secret, bids[0])

    if loss == "log":
        signer.end(signal.SIGTERM)
        log.write_bytes(copy.read_bytes())
        signer = start(MARKET)
        signer.unlock(PASSPHRASE)
        assert [signer.client.sign_bid(17, 5, secret, bid) for bid in bids] == signed


def test_the_play_signer_compares_too(start: Start, tmp_path: Path) -> None:
    signer = start("simulator")
    secret = signer.client.grant(live_grant())
    signer.client.sign_bid(17, 5, secret, live_bid())
    signer.end(signal.SIGKILL)
    (tmp_path / "signer" / "audit.jsonl").write_bytes(b"")
    assert "audit log does not have" in start("simulator").client.status().reason


def test_a_halt_outlives_the_ledger_that_had_it(start: Start, tmp_path: Path) -> None:
    """An older signer.db is put back: a user's halt is set again, and everything waits for somebody who has looked."""
    path, log = tmp_path / "signer" / "signer.db", tmp_path / "signer" / "audit.jsonl"
    signer = start("simulator")
    secret = signer.client.grant(live_grant())
    signer.end(signal.SIGTERM)
    older = path.read_bytes()
    signer = start("simulator")
    end_ms = now_ms() + 900_000
    for number in range(4):
        signer.client.sign_bid(17, 5, secret, replace(live_bid(number), expires_ms=end_ms))
    signer.client.set_control("user", USER, "halt")
    signer.end(signal.SIGTERM)
    path.write_bytes(older)
    later = {"CLOCK_STANDS_AT_MS": str(end_ms + 1)}  # until then it stays locked
    signer = start("simulator", environment=later)

    assert set(signer.client.controls().states) == {
        ControlState("global", "", "halt"),
        ControlState("user", USER, "halt"),
    }
    signer.client.set_control("global", "", "run")
    with pytest.raises(SignerRefused, match="the user is on halt"):
        signer.client.sign_bid(17, 5, secret, live_bid(9))
    signer.client.set_control("user", USER, "run")
    signer.end(signal.SIGTERM)
    signer = start("simulator", environment=later)
    assert signer.client.controls().states == ()
    assert signer.client.sign_bid(17, 5, secret, live_bid(9))
    assert verify_chain(log) == 10


@pytest.mark.thorough
def test_the_keystore_file_is_whole_whenever_the_signer_is_killed(start: Start, tmp_path: Path) -> None:
    path = sealed_keystore(tmp_path)
    for at in range(3):
        signer = start(MARKET)
        signer.unlock(PASSPHRASE)
        killer = threading.Timer(0.02 * (at + 1), signer.process.kill)
        killer.start()
        seen = 0
        with contextlib.suppress(SignerUnavailable):
            for account in range(200):
                signer.client.addresses(derive_user(bytes([at] * 32), account).public.payment)
                seen += 1
        killer.join()
        signer.process.wait(DEADLINE_S)
        assert len(keystore.unlock(path, PASSPHRASE).users) >= seen
        json.loads(path.read_text())
