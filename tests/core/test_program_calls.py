"""The odd requests that the manager refuses before any of them does something."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.call import Verbs
from core.errors import PeerRefused
from core.program_calls import AskStanding, Enforce, Heed, Ping, ReadLog, Settle


def never(asked: object) -> None:
    raise AssertionError(asked)


VERBS = Verbs("manager", dict.fromkeys((Ping, Settle, ReadLog, Enforce, Heed, AskStanding), never))
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
        VERBS.read(json.dumps(asked).encode())
    assert refused.value.code == "unreadable"


def test_an_ordinary_request_to_a_manager_is_read() -> None:
    assert VERBS.read(json.dumps(HEED | {"state": None}).encode()) == Heed("task", 1, None, 1)
    assert VERBS.read(b'{"op": "settle", "task": 17}') == Settle(17, 0)
    assert VERBS.read(b'{"op": "settle", "task": 17, "drain_s": 60}') == Settle(17, 60)
