"""Hearsay of leases, where it is nonsense or cannot be had: the watch begins anew. test_take_over.py has it whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from models.leases.lease_watch import Seen
from tests.ports import free_ports
from workers.manager import hearsay


def test_nobody_who_cannot_be_asked_stops_a_managers_start(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, tls_dir=tmp_path)
    there = [f"127.0.0.1:{free_ports(1)[0]}", "a..b:70", "127.0.0.1:65536", "nonsense", *["127.0.0.1:1"] * 20]
    assert hearsay.heard(settings, "slot 0", there) == []
    assert hearsay.heard(settings, "slot 0", []) == []


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"version": "1:2:3"},
        {"stood_s": 2.0},
        {"version": 5, "stood_s": 2.0},
        *({"version": "1:2:3", "stood_s": each} for each in (-0.1, float("inf"), float("nan"), "2", None, True)),
    ],
)
def test_an_answer_that_says_nothing_is_none(answer: dict[str, Any]) -> None:
    assert hearsay._seen(answer, 100.0) is None


def test_a_version_has_stood_since_the_answers_moment_at_the_earliest() -> None:
    assert hearsay._seen({"version": "1:2:3", "stood_s": 2.5}, 100.0) == Seen("1:2:3", 97.5)
