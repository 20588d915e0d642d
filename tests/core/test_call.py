"""The odd requests that the manager refuses before any of them does something."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, structs

from core.call import OTHER_VERSION, Request, Shape, Verbs, call
from core.errors import PeerRefused, PeerUnavailable
from core.fields import Id, Sats
from core.local_server import serve
from core.program_calls import AskStanding, Enforce, Heed, Ping, ReadLog, Settle


class Coin(Shape, frozen=True):
    sats: Sats


class Paid(Shape, frozen=True):
    task: Id
    price: Decimal
    coins: tuple[Coin, ...]


class Pay(Request[Paid], frozen=True, tag="pay"):
    task: Id
    coins: tuple[Coin, ...] = ()
    drain_s: Annotated[float, Meta(ge=0, le=60)] = 0
    scope: Literal["user", "task"] = "task"


class Rest(Request[None], frozen=True, tag="rest"):
    pass


class Find(Request[Coin | None], frozen=True, tag="find"):
    text: str = ""


class Refuse(Request[None], frozen=True, tag="refuse"):
    highest: int | None = None


class Fail(Request[None], frozen=True, tag="fail"):
    pass


class Misbehave(Request[Coin], frozen=True, tag="misbehave"):
    answer: Any


async def pay(asked: Pay) -> Paid:
    return Paid(asked.task, Decimal("0.1"), asked.coins)


def refuse(asked: Refuse) -> None:
    raise PeerRefused("peer", "not-today", "come back tomorrow", asked.highest)


def fail(asked: Fail) -> None:
    raise ZeroDivisionError("a secret")


VERBS = Verbs(
    "peer",
    {
        Pay: pay,
        Rest: lambda asked: None,
        Find: lambda asked: Coin(1) if asked.text else None,
        Refuse: refuse,
        Fail: fail,
        Misbehave: lambda asked: asked.answer,
    },
    misshapen="bad-request",
    most_values=50,
)


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Path]:
    """A program that answers on its own thread, as another process would."""
    path = tmp_path / "peer.sock"
    ready, ended = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        door = await serve(path, VERBS)
        ready.set()
        await ended.wait()
        door.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(60)
    yield path
    loops[0].call_soon_threadsafe(ended.set)
    thread.join(60)


def told(line: bytes | dict[str, Any]) -> dict[str, Any]:
    given = line if isinstance(line, bytes) else json.dumps(line).encode()
    found = asyncio.run(VERBS.answer(given + b"\n"))
    assert found.endswith(b"\n") and found.count(b"\n") == 1
    answer: dict[str, Any] = json.loads(found)
    return answer


def test_an_answer_arrives_as_its_class(peer: Path) -> None:
    coins = (Coin(1), Coin(2))
    assert call(peer, "peer", Pay(17, coins), timeout=60) == Paid(17, Decimal("0.1"), coins)
    call(peer, "peer", Rest(), timeout=60)
    assert call(peer, "peer", Find(), timeout=60) is None
    assert call(peer, "peer", Find("ü\n"), timeout=60) == Coin(1)


@pytest.mark.parametrize("highest", [None, 7])
def test_a_refusal_keeps_its_code_and_highest_token(highest: int | None, peer: Path) -> None:
    with pytest.raises(PeerRefused) as caught:
        call(peer, "peer", Refuse(highest), timeout=60)
    assert (caught.value.code, caught.value.message) == ("not-today", "come back tomorrow")
    assert caught.value.highest == highest


def test_an_exception_becomes_a_refusal_without_details(peer: Path) -> None:
    with pytest.raises(PeerRefused) as caught:
        call(peer, "peer", Fail(), timeout=60)
    assert caught.value.code == "internal" and "secret" not in caught.value.message
    assert told({"op": "refuse", "highest": None}) == {"error": "not-today", "message": "come back tomorrow"}


@pytest.mark.parametrize("answer", [{}, {"sats": -1}, {"sats": "1"}, {"sats": 1, "more": 1}, [], 5, None])
def test_an_answer_of_another_shape_names_the_two_versions(answer: Any, peer: Path) -> None:
    with pytest.raises(PeerUnavailable, match="of different versions"):
        call(peer, "peer", Misbehave(answer), timeout=60)


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"null",
        b"{",
        b'{"error": "\xff"}',
        b'{"error": 5}',
        b'{"ok": {"sats": 1e999}}',
        b'{"x": ' + b"[" * 200_000,
        b'{"error": "stale-token", "message": "x", "highest": "7"}',
    ],
)
def test_an_unreadable_answer_counts_as_unavailable(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(line + b"\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(PeerUnavailable, match="not understood"):
            call(path, "peer", Misbehave(1), timeout=60)
        thread.join(60)


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        (b"{", "unreadable", "request: is not valid JSON"),
        (b"\xff", "unreadable", "request: is not valid JSON"),
        (b"[" * 200_000, "unreadable", "request: is not valid JSON"),
        (b'{"op": "rest", "x": ' + b"[" * 200_000, "unreadable", "request: is not valid JSON"),
        (b"9" * 5_000, "unreadable", "request: must be a JSON object"),
        (b"[]", "unreadable", "request: must be a JSON object"),
        (b'{"op": "pay", "op": "rest"}', "unreadable", "op: is given more than once"),
        (b'{"op": "pay", "task": 1, "task": 2}', "unreadable", "task: is given more than once"),
        (b'{"op": "misbehave", "answer": {"a": 1, "a": 1}}', "unreadable", "a: is given more than once"),
        (b'{"op": "find", "text": "\\ud800"}', "unreadable", "request: has text that is not valid Unicode"),
        (b'{"op": "pay", "task": NaN}', "unreadable", "request: NaN is not a JSON number"),
        ({"op": "misbehave", "answer": [[[[[[[[[[[]]]]]]]]]]]}, "unreadable", "request: is nested too deeply"),
        ({"op": "misbehave", "answer": [0] * 50}, "unreadable", "request: has more than 50 values"),
        ({}, "unknown_op", f"unknown operation None: {OTHER_VERSION}"),
        ({"op": ["pay"]}, "unknown_op", f"unknown operation ['pay']: {OTHER_VERSION}"),
        ({"op": "nonsense"}, "unknown_op", f"unknown operation 'nonsense': {OTHER_VERSION}"),
        ({"op": "pay"}, "bad-request", f"pay: missing required field task: {OTHER_VERSION}"),
        ({"op": "rest", "": 1}, "bad-request", f"rest: contains unknown field : {OTHER_VERSION}"),
        ({"op": "rest", "a\nb": 1}, "bad-request", f"rest: contains unknown field a?b: {OTHER_VERSION}"),
        (
            {"op": "pay", "task": 1, "coins": [{"sats": 1, "more": 1}]},
            "bad-request",
            f"pay: coins[0]: contains unknown field more: {OTHER_VERSION}",
        ),
        ({"op": "pay", "task": "1"}, "bad-request", "pay: task: expected int, got str"),
        ({"op": "pay", "task": True}, "bad-request", "pay: task: expected int, got bool"),
        ({"op": "pay", "task": 1.0}, "bad-request", "pay: task: expected int, got decimal"),
        ({"op": "pay", "task": 0}, "bad-request", "pay: task: expected int >= 1"),
        ({"op": "pay", "task": 10**30}, "bad-request", "pay: task: expected int <= 9223372036854775807"),
        (b'{"op": "pay", "task": 1, "drain_s": 1e999}', "bad-request", "pay: drain_s: expected float <= 60.0"),
        (b'{"op": "pay", "task": 1, "drain_s": 1e9999999999}', "bad-request", "pay: drain_s: expected float <= 60.0"),
        ({"op": "pay", "task": 1, "scope": "x"}, "bad-request", "pay: scope: invalid enum value 'x'"),
        ({"op": "pay", "task": 1, "coins": [{"sats": -1}]}, "bad-request", "pay: coins[0].sats: expected int >= 0"),
    ],
)
def test_a_faulty_request_is_refused_by_name(line: bytes | dict[str, Any], code: str, text: str) -> None:
    assert told(line) == {"error": code, "message": text}


def test_a_long_unknown_field_is_cut() -> None:
    assert len(told({"op": "rest", "x" * 100_000: 1})["message"]) < 400
    assert len(told({"op": "x" * 100_000})["message"]) < 400


def test_a_request_reads_as_it_was_made() -> None:
    given = {"op": "pay", "task": 17, "coins": [{"sats": 3}], "drain_s": 0.5, "scope": "user"}
    asked = VERBS.read(json.dumps(given).encode())
    assert asked == Pay(17, (Coin(3),), 0.5, "user")
    assert structs.asdict(Pay(1))["drain_s"] == 0


def test_an_answer_that_cannot_be_sent_is_a_failure() -> None:
    assert asyncio.run(Verbs("peer", {Find: lambda asked: "\ud800"}).answer(b'{"op": "find"}')).startswith(
        b'{"error":"internal"'
    )


def never(asked: object) -> None:
    raise AssertionError(asked)


PROGRAM_VERBS = Verbs("manager", dict.fromkeys((Ping, Settle, ReadLog, Enforce, Heed, AskStanding), never))
HEED: dict[str, Any] = {"op": "heed", "scope": "task", "subject": 1, "state": "halt", "at_ms": 1}


@pytest.mark.parametrize(
    "asked",
    [
        HEED | {"scope": "installation"},
        HEED | {"scope": ["task"]},
        HEED | {"subject": "1"},
        HEED | {"subject": True},
        HEED | {"subject": None},
        HEED | {"subject": -1},
        HEED | {"state": "stop"},
        HEED | {"state": 0},
        HEED | {"at_ms": None},
        HEED | {"at_ms": 1.5},
        HEED | {"at_ms": 10**19},
        {name: value for name, value in HEED.items() if name != "state"},
        {"op": "settle"},
        {"op": "settle", "task": 0},
        {"op": "settle", "task": "1"},
        {"op": "settle", "task": True},
        {"op": "settle", "task": 1, "drain_s": 61},
        {"op": "settle", "task": 1, "drain_s": -0.1},
        {"op": "settle", "task": 1, "drain_s": None},
        {"op": "settle", "task": 1, "drain_s": True},
        {"op": "log", "task": 1},
        {"op": "log", "task": 1, "lines": 0},
        {"op": "log", "task": 1, "lines": 1001},
        {"op": "log", "task": 1, "lines": True},
        {"op": "log", "task": 1, "lines": "2"},
        {"op": "stood"},
        {"op": "stood", "lease": 5},
        {"op": "entitlements", "more": 1},
    ],
)
def test_an_odd_request_to_a_manager_is_unreadable(asked: dict[str, Any]) -> None:
    with pytest.raises(PeerRefused) as refused:
        PROGRAM_VERBS.read(json.dumps(asked).encode())
    assert refused.value.code == "unreadable"


def test_an_ordinary_request_to_a_manager_is_read() -> None:
    assert PROGRAM_VERBS.read(json.dumps(HEED | {"state": None}).encode()) == Heed("task", 1, None, 1)
    assert PROGRAM_VERBS.read(b'{"op": "settle", "task": 17}') == Settle(17, 0)
    assert PROGRAM_VERBS.read(b'{"op": "settle", "task": 17, "drain_s": 60}') == Settle(17, 60)


FIRST_USES = """
import sys, threading
from typing import Generic, TypeVar
from msgspec import Struct
from core.fields import reader_of

sys.setswitchinterval(1e-6)
T = TypeVar("T")
for _ in range(150):
    class Part(Struct, frozen=True):
        number: int = 0
        words: str = ""

    class Whole(Struct, Generic[T], frozen=True):
        one: T
        other: Part | None = None

    begin = threading.Barrier(6)

    def read():
        begin.wait()
        reader_of(Whole[Part]).decode(b'{"one": {"number": 1}, "other": {"words": "x"}}')

    threads = [threading.Thread(target=read) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print("read")
"""


def test_threads_that_read_a_type_for_the_first_time_do_not_crash() -> None:
    """Without the lock, Python ends with SIGSEGV within the first few types."""
    done = subprocess.run([sys.executable, "-c", FIRST_USES], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "read\n", "")
