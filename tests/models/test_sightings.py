"""Leases that the programs of a home have seen, and one that is started there after a loss."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from models.leases.held_lease import Seen, Sightings, seen_in
from tests import postgresql
from tests.models.racing import in_a_process, said
from tests.needs import need_root


def test_a_version_is_known_since_it_was_seen_first(tmp_path: Path) -> None:
    seen = Sightings(tmp_path, "slot 1")
    seen.note({"slot 0": "a", "slot 2": "x"}, 10, 30)
    seen.note({"slot 0": "a", "slot 2": "y"}, 14, 30)
    assert seen_in(tmp_path, "slot 0", 25) == Seen("a", 10)
    assert seen_in(tmp_path, "slot 2", 25) == Seen("y", 14)
    assert seen_in(tmp_path, "slot 3", 25) is None
    seen.note({"slot 0": "b"}, 18, 30)
    seen.note({"slot 0": "a"}, 22, 30)
    assert seen_in(tmp_path, "slot 0", 25) == Seen("a", 22), "it went away in between"


def test_the_newest_version_that_any_program_has_seen_counts_since_the_first_has(tmp_path: Path) -> None:
    early, late = Sightings(tmp_path, "slot 1"), Sightings(tmp_path, "gateway")
    late.note({"slot 0": "a"}, 10, 30)
    early.note({"slot 0": "b"}, 11, 30)
    late.note({"slot 0": "b"}, 13, 30)
    assert seen_in(tmp_path, "slot 0", 25) == Seen("b", 11)


def _of_another_clock(noted: dict[str, Any]) -> None:
    noted["clock"] = "before the machine was restarted"


def _of_no_shape(noted: dict[str, Any]) -> None:
    noted["seen"]["slot 0"] = ["a", 10, 11]


def _empty(noted: dict[str, Any]) -> None:
    noted.clear()


@pytest.mark.parametrize("spoil", [_of_another_clock, _of_no_shape, _empty])
def test_a_record_that_says_nothing_about_this_clock_is_left_alone(tmp_path: Path, spoil: Any) -> None:
    Sightings(tmp_path, "slot 1").note({"slot 0": "a"}, 10, 30)
    (path,) = tmp_path.glob("seen-*.json")
    noted = json.loads(path.read_text())
    spoil(noted)
    path.write_text(json.dumps(noted))
    assert seen_in(tmp_path, "slot 0", 25) is None
    path.write_text("{")
    assert seen_in(tmp_path, "slot 0", 25) is None


def test_a_program_that_has_lost_its_lease_tells_nothing_any_more(tmp_path: Path) -> None:
    """It does not look again, and a database that goes back shows a version again whose holder may live."""
    Sightings(tmp_path, "slot 1").note({"slot 0": "a"}, 10, 30)
    assert seen_in(tmp_path, "slot 0", 29.9) == Seen("a", 10)
    assert seen_in(tmp_path, "slot 0", 30) is None


def test_a_record_of_another_user_is_not_believed(tmp_path: Path) -> None:
    need_root("give a file to another user")
    Sightings(tmp_path, "slot 1").note({"slot 0": "a"}, 10, 30)
    (path,) = tmp_path.glob("seen-*.json")
    os.chown(path, 12345, 12345)
    assert seen_in(tmp_path, "slot 0", 25) is None


def test_what_cannot_be_noted_is_said_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Sightings(tmp_path / "gone", "slot 1").note({"slot 0": "a"}, 10, 30)
    assert "failed to note which leases were seen" in caplog.text


@postgresql.only
@pytest.mark.slow
@pytest.mark.parametrize("is_seen", [True, False])
def test_one_that_is_started_after_a_loss_waits_for_the_rest_of_the_lease_only(
    database: str, tmp_path: Path, is_seen: bool
) -> None:
    """As Ray does, which starts a lost machine's manager on one where others have seen its lease all along."""
    seconds, lost_s = 20, 14
    with in_a_process(database, "here", seconds=seconds) as first:
        assert said(first) == "held\n"
        with in_a_process(database, "there", name="gateway", directory=tmp_path, seconds=seconds) as other:
            assert said(other) == "held\n"
            first.kill()
            time.sleep(lost_s)
            began = time.monotonic()
            with in_a_process(database, "there", directory=tmp_path if is_seen else None) as second:
                assert said(second) == "held\n"
            waited_s = time.monotonic() - began
    assert (waited_s < seconds) is is_seen, f"{waited_s:.1f} s"
    assert lost_s + waited_s > seconds - seconds / 4 - 1, "it was the dead one's, as far as anybody could know"
