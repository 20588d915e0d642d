"""What the server at each socket answers to malformed frames. Stricter answers may come: then say which, and why."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import Bench, make_bench
from tests.gateway.listing_examples import TXID
from tests.gateway.test_facts_program import ANSWERS, FactsBench
from tests.goldens.socket_files import by_http, by_line, frames, hold, odd_fields
from tests.shapes import asdict, replace
from tests.wallet import withdrawal_cases
from tests.workers.conftest import installation, patient_with_zygotes
from tests.worlds.manager import Installation, eventually
from tests.worlds.signer import BID, GRANT, START_MS, USER, intent, listing, offer
from tests.worlds.signer_process import PASSPHRASE, Start, house, sealed_keystore, started_in
from wallet.signer.audit import AuditLog

__all__ = ["installation", "make_bench", "patient_with_zygotes"]  # fixtures, for this module's own use
pytestmark = pytest.mark.slow
Ask = Callable[[Path, bytes], Any]


def rows(path: Path, ask: Ask, verb: str, *good: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in good:
        for name, frame in frames(verb, each):
            yield {"request": each[verb], "frame": name, "answer": ask(path, frame)}


def test_the_signer_answers_malformed_frames_as_before(tmp_path: Path) -> None:
    with house(tmp_path) as running:
        running.client.addresses(USER)
        found = list(rows(running.socket, by_line, "op", {"op": "status"}, {"op": "was_signed", "intent": intent(1)}))
    assert running.audit_path.read_bytes() == b""
    hold("socket_frames_signer.jsonl", found)


async def test_the_manager_answers_malformed_frames_as_before(installation: Installation) -> None:
    async with installation.running():
        manager = installation.manager
        assert manager is not None
        await eventually(lambda: manager._shared.spawner.is_ready)
        asked = {"op": "heed", "scope": "task", "subject": 1, "state": None, "at_ms": 1}
        path = installation.settings.manager_socket
        found = await asyncio.to_thread(lambda: list(rows(path, by_line, "op", {"op": "ping"}, asked)))
    hold("socket_frames_manager.jsonl", found)


@pytest.mark.parametrize("kind", [Bench, FactsBench], ids=["gateway", "facts"])
def test_the_gateways_programs_answer_malformed_frames_as_before(
    kind: type[Bench], make_bench: Callable[..., Bench]
) -> None:
    bench = make_bench(kind=kind, unisat_url=None, with_ord=True)
    bench.venue.answers |= ANSWERS
    where = {"verb": "transaction", "args": {"txid": "x"}, "max_age_s": 60}
    found = list(rows(bench.settings.gateway_socket, by_http, "verb", where))
    name = "facts" if kind is FactsBench else "gateway"
    for verb, member, odd in odd_members():
        answer = by_http(bench.settings.gateway_socket, json.dumps(verb | member).encode())
        found.append({"request": verb["verb"], "frame": odd, "answer": answer})
    hold(f"socket_frames_{name}.jsonl", found)


def odd_members() -> Iterator[tuple[dict[str, Any], dict[str, Any], str]]:
    """Yields requests, each with a member whose value is odd."""
    known = {"verb": "transaction", "args": {"txid": TXID}, "max_age_s": 60}
    rules = {"verb": "profile", "args": {"kind": "ordinals"}}
    where = {"args": known, "max_age_s": known, "venue": rules, "user": known, "purpose": known, "patience_s": known}
    for name, request in where.items():
        for value in (None, [], {}, "x", -1, 1.5, True, 10**30, float("inf"), float("nan")):
            yield request, {name: value}, f"{name}: {value!r}"


def good_requests(secret: str) -> list[dict[str, Any]]:
    """Returns a faultless request of each operation of the signer."""
    right = {"task": 17, "token": 5, "secret": secret}
    out = "ab" * 32 + ":0"
    grant = asdict(replace(GRANT, task=30, token=1)) | {"operations": ["bid"]}
    withdrawal = asdict(withdrawal_cases.from_payment())
    return [
        {"op": "status"},
        {"op": "addresses", "user": USER},
        {"op": "grant", "grant": grant},
        {"op": "revoke_place", "task": 40, "token": 1},
        {"op": "end_rights", "task": 40, "token": 1},
        {"op": "end_all_rights", "tokens": [[40, 1]]},
        {"op": "control", "scope": "task", "subject": "40", "state": "halt"},
        {"op": "controls"},
        {"op": "rooms", **right},
        {"op": "rooms_under", "task": 17, "user": USER, "outstanding_task_sats": 1, "outstanding_sats": 1},
        {"op": "sign_bid", **right, "bid": asdict(BID)},
        {"op": "sign_offer", **right, "offer": offer(7)},
        {"op": "sign_listing", **right, "listing": listing(7)},
        {"op": "judge", "user": USER, "venue": "simulator", "min_price_sats": 0, "listing": listing(7)},
        {"op": "sign_withdrawal", "withdrawal": withdrawal},
        {"op": "judge_withdrawal", "withdrawal": withdrawal},
        {"op": "sign_challenge", **right, "challenge": "challenge 1f2e", "key": "payment"},
        {"op": "sign_brake", "user": USER, "venue": "simulator", "challenge": "challenge 1f2e"},
        {"op": "sign_sign_in", **right, "text": "x", "key": "payment"},
        {"op": "sign_delist", **right, "outpoint": out, "psbt": "cHNidP8B"},
        {"op": "lowest_listing", "outpoint": out},
        {"op": "was_signed", "intent": intent(1)},
    ]


def test_the_signer_answers_each_odd_value_of_each_field_as_before(tmp_path: Path) -> None:
    """One line a field; an answer to many values is said once for them all."""
    found: list[dict[str, Any]] = []
    with house(tmp_path) as running:
        running.client.addresses(USER)
        for good in good_requests(running.client.grant(GRANT)):
            fields: dict[str, dict[str, list[str]]] = {}
            for name, value, frame in odd_fields(good, "op"):
                answer = by_line(running.socket, frame)
                text = "ok" if "ok" in answer else f"{answer['error']}: {answer['message']}"
                fields.setdefault(name, {}).setdefault(text, []).append(value)
            found += [{"op": good["op"], "field": name, "answers": answers} for name, answers in fields.items()]
    hold("signer_fields.jsonl", found)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    yield from started_in(tmp_path)


def test_unlocking_is_answered_as_before(start: Start, tmp_path: Path) -> None:
    """The passphrase is the only request of a client that has no function of its own: `bidkeeper keys unlock` asks."""
    sealed_keystore(tmp_path, USER)
    signer = start("satflow", environment={"CLOCK_STANDS_AT_MS": str(START_MS)})
    right, wrong = {"op": "unlock", "passphrase": PASSPHRASE}, {"op": "unlock", "passphrase": "another one"}
    sent: list[dict[str, Any]] = [
        {"op": "status"},
        {"op": "addresses", "user": USER},
        {"op": "unlock"},
        {"op": "unlock", "passphrase": 5},
        {"op": "unlock", "passphrase": "x" * 257},
        right | {"more": 1},
        wrong,
        wrong,
        wrong,
        wrong,
        {"op": "status"},
        {"op": "addresses", "user": USER},
    ]
    found = [{"sent": each, "answered": by_line(signer.socket, json.dumps(each).encode())} for each in sent]
    signer.end(signal.SIGTERM)
    again = start("satflow", environment={"CLOCK_STANDS_AT_MS": str(START_MS + 61_000)})
    sent = [wrong, right, right, wrong, {"op": "status"}, {"op": "addresses", "user": USER}]
    found += [{"sent": each, "answered": by_line(again.socket, json.dumps(each).encode())} for each in sent]
    again.end(signal.SIGTERM)
    path = tmp_path / "signer" / "audit.jsonl"
    audit = AuditLog(path)  # as the signer that could not store what it had signed
    audit.append(START_MS, {"operation": "bid", "intent": intent(1)})
    audit.undo(0)
    audit.close()
    lines = [json.loads(line) | {"previous": "<hash>"} for line in path.read_text().splitlines()]
    hold("signer_unlock_wire.jsonl", found)
    hold("signer_audit_lines_of_keys.jsonl", lines)
