"""Hearsay of leases, where it is nonsense or cannot be had: the watch begins anew. test_take_over.py has it whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import call
from core.settings import Settings
from models.leases.held_lease import Seen
from tests.ports import free_ports
from workers.manager import rights


def test_nobody_who_cannot_be_asked_stops_a_managers_start(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, tls_dir=tmp_path)
    there = [f"127.0.0.1:{free_ports(1)[0]}", "a..b:70", "127.0.0.1:65536", "nonsense", *["127.0.0.1:1"] * 20]
    assert rights.heard(settings, "slot 0", there) == []
    assert rights.heard(settings, "slot 0", []) == []


def heard(answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    monkeypatch.setattr(call, "exchange", lambda *asked, timeout: b'{"ok": %s}\n' % answer.encode())
    monkeypatch.setattr(rights, "address_at", lambda settings, address: tmp_path)
    monkeypatch.setattr(rights, "now_s", lambda: 100.0)
    return rights.heard(Settings(data_dir=tmp_path), "slot 0", ["far"])


@pytest.mark.parametrize(
    "answer",
    [
        "null",
        "{}",
        '{"version": "1:2:3"}',
        '{"stood_s": 2.0}',
        '{"version": 5, "stood_s": 2.0}',
        *(f'{{"version": "1:2:3", "stood_s": {each}}}' for each in ("-0.1", "1e999", "NaN", '"2"', "null", "true")),
    ],
)
def test_an_answer_without_a_version_and_its_age_is_ignored(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert heard(answer, tmp_path, monkeypatch) == []


def test_a_version_has_stood_since_the_answers_moment_at_the_earliest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert heard('{"version": "1:2:3", "stood_s": 2.5}', tmp_path, monkeypatch) == [Seen("1:2:3", 97.5)]
