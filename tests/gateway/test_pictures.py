"""Pictures through a real gateway: fetched once, kept on disk, and in nobody's way."""

from __future__ import annotations

import base64
import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core import files
from gateway import pictures
from gateway.pictures import KEPT_S, KeptPictures
from markets import client, verbs
from markets.base import NoPicture, Picture, Refused
from tests.clock import Clock
from tests.gateway.conftest import Bench
from tests.gateway.hostile_pictures import GIF, HTML, PNG, Host, answer, hosting
from tests.shapes import replace

INSCRIPTION = "7" * 64 + "i0"
URL = "https://ordinals.com/content/x"


@pytest.fixture
def host() -> Iterator[Host]:
    with hosting() as made:
        yield made


@pytest.fixture
def bench(make_bench: Callable[..., Bench], host: Host) -> Bench:
    """A gateway on the practice market, whose pictures `host` has."""
    return make_bench(simulator_port=host.port)


def ask(bench: Bench, inscription: str = INSCRIPTION) -> Picture | NoPicture:
    return bench.client().picture(inscription, URL)


def test_a_picture_is_fetched_and_a_second_question_asks_nobody(bench: Bench, host: Host) -> None:
    assert ask(bench) == Picture("image/png", PNG)
    assert ask(bench) == Picture("image/png", PNG)
    assert host.asked == [f"/content/{INSCRIPTION}"]


def test_two_megabytes_come_through_the_socket_whole(bench: Bench, host: Host) -> None:
    large = PNG + os.urandom(2_000_000 - len(PNG))
    host.behave = answer(large)
    assert ask(bench) == Picture("image/png", large)


def test_the_same_picture_asked_for_at_once_is_fetched_once(bench: Bench, host: Host) -> None:
    is_open = threading.Event()

    def late(connection: object) -> None:
        is_open.wait(20)
        answer(PNG)(connection)  # type: ignore[arg-type]

    host.behave = late
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(ask, bench) for _ in range(8)]
        time.sleep(0.3)
        is_open.set()
        assert {each.result(20) for each in asked} == {Picture("image/png", PNG)}
    assert len(host.asked) == 1


def test_a_page_of_sixty_is_shown_and_six_at_a_time_are_fetched(bench: Bench, host: Host) -> None:
    there, most, lock = 0, 0, threading.Lock()

    def counted(connection: object) -> None:
        nonlocal there, most
        with lock:
            there += 1
            most = max(most, there)
        time.sleep(0.02)
        with lock:
            there -= 1
        answer(PNG)(connection)  # type: ignore[arg-type]

    host.behave = counted
    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(lambda number: ask(bench, f"{number:064x}i0"), range(60)))
    assert found == [Picture("image/png", PNG)] * 60
    assert 1 < most <= pictures.SLOTS


def test_pictures_are_no_calls_to_a_marketplace(bench: Bench) -> None:
    left = bench.gateway.venues.markets["simulator"].budget.left()
    for number in range(10):
        bench.client().by(5, "look").picture(f"{number:064x}i0", URL)
    assert bench.gateway.venues.markets["simulator"].budget.left() >= left
    assert len(bench.gateway._lookups) == 0
    assert all(not venue.status()["calls"] for venue in bench.gateway.venues.all())


def test_what_is_no_picture_is_remembered_for_an_hour_and_what_is_away_for_a_minute(
    bench: Bench, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.behave = answer(HTML)
    assert ask(bench) == ask(bench) == NoPicture("html")
    assert len(host.asked) == 1
    host.behave = answer(b"", status="503 Busy")
    other = "8" * 64 + "i0"
    assert ask(bench, other) == ask(bench, other) == NoPicture("unreachable")
    assert len(host.asked) == 2

    host.behave = answer(GIF)
    now = time.monotonic
    monkeypatch.setattr(bench.gateway.pictures, "_clock", lambda: now() + 61)
    assert ask(bench, other) == Picture("image/gif", GIF)
    assert ask(bench) == NoPicture("html")
    monkeypatch.setattr(bench.gateway.pictures, "_clock", lambda: now() + 3_601)
    assert ask(bench) == Picture("image/gif", GIF)


def test_a_bad_question_is_refused(bench: Bench, host: Host) -> None:
    for arguments in ({"inscription_id": INSCRIPTION, "url": 5}, {"inscription_id": "../x", "url": None}, {}):
        with pytest.raises(Refused):
            bench.ask({"verb": "picture", "args": arguments})
    assert host.asked == []


def test_files_are_for_our_own_user_and_a_restart_finds_them(bench: Bench, host: Host) -> None:
    ask(bench)
    directory = bench.settings.data_dir / "pictures"
    [file] = directory.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert KeptPictures(directory).read(f"http://127.0.0.1:{host.port}/content/{INSCRIPTION}") == Picture(
        "image/png", PNG
    )


def test_a_gateway_with_a_directory_of_its_own_keeps_them_there(make_bench: Callable[..., Bench], host: Host) -> None:
    bench = make_bench(simulator_port=host.port)
    run_dir = bench.settings.data_dir / "gw"
    assert bench.settings.pictures_dir == bench.settings.data_dir / "pictures"

    assert replace(bench.settings, gateway_run_dir=run_dir).pictures_dir == run_dir / "pictures"


class TestKept:
    """The files on disk."""

    def picture(self, size: int = 1_000) -> Picture:
        return Picture("image/png", PNG + bytes(size - len(PNG)))

    def test_the_one_unused_for_longest_goes_first(self, tmp_path: Path) -> None:
        kept = KeptPictures(tmp_path / "p", most_bytes=3 * 4_096)
        for name in "abc":
            kept.keep(name, self.picture())
        assert kept.read("a") is not None
        kept.keep("d", self.picture(4_096))

        assert [name for name in "abcd" if kept.read(name)] == ["a", "c", "d"]
        assert len(list((tmp_path / "p").iterdir())) == 3
        kept.keep("e", self.picture(2 * 4_096))
        assert [name for name in "abcde" if kept.read(name)] == ["d", "e"]

    def test_below_the_floor_none_is_kept_and_one_line_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        kept = KeptPictures(tmp_path / "p")
        for floor, names in ((0, "a"), (1 << 60, "bc"), (0, "d")):
            monkeypatch.setattr(files, "FLOOR_BYTES", floor)
            for name in names:
                kept.keep(name, self.picture())
        assert [name for name in "abcd" if kept.read(name)] == ["a", "d"]
        assert len(caplog.records) == 1

    def test_the_bound_counts_what_an_earlier_run_left_and_what_it_left_half_done_goes(self, tmp_path: Path) -> None:
        before = KeptPictures(tmp_path)
        for age, name in enumerate("abc"):
            before.keep(name, self.picture())
            [new] = [file for file in tmp_path.iterdir() if file.stat().st_mtime > 10**9]
            os.utime(new, (10**8 + age, 10**8 + age))
        (tmp_path / f"{'0' * 64}.half").write_bytes(PNG)
        (tmp_path / "notes.txt").write_text("not ours")

        kept = KeptPictures(tmp_path, most_bytes=3 * 4_096, clock=lambda: 10**8 + 9.0)
        kept.keep("d", self.picture())

        assert [name for name in "abcd" if kept.read(name)] == ["b", "c", "d"]
        assert not list(tmp_path.glob("*.half"))
        assert (tmp_path / "notes.txt").exists()

    def test_the_same_picture_kept_twice_counts_once(self, tmp_path: Path) -> None:
        kept = KeptPictures(tmp_path, most_bytes=2 * 4_096)
        kept.keep("a", self.picture())
        for _ in range(5):
            kept.keep("b", self.picture())
        assert kept.read("a") is not None

    def test_a_damaged_file_is_as_if_it_were_not_kept(self, tmp_path: Path) -> None:
        kept = KeptPictures(tmp_path)
        for damage in (b"", HTML.ljust(1_000), PNG):
            kept.keep("a", self.picture())
            [file] = tmp_path.iterdir()
            file.write_bytes(damage)
            assert kept.read("a") is None
            assert not list(tmp_path.iterdir())

    def test_after_a_month_it_is_fetched_again(self, tmp_path: Path) -> None:
        clock = Clock(1_700_000_000_000)
        kept = KeptPictures(tmp_path, clock=clock.seconds)
        kept.keep("a", self.picture())
        clock.now_ms += int(KEPT_S * 1000) - 1_000
        assert kept.read("a") is not None
        clock.now_ms += 2_000
        assert kept.read("a") is None

    def test_a_full_disk_costs_the_copy_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def full(handle: int) -> None:
            raise OSError(28, "No space left on device")

        kept = KeptPictures(tmp_path)
        monkeypatch.setattr(os, "fsync", full)
        with caplog.at_level(logging.WARNING):
            kept.keep("a", self.picture())
        assert "No space left" in caplog.text
        assert kept.read("a") is None
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("found", [Picture("image/webp", b"\x00\xff"), NoPicture("too_large")])
def test_an_answer_crosses_the_socket_unchanged(found: Picture | NoPicture) -> None:
    answer = verbs.text({"ok": found}).encode()
    assert client.read_answer(answer, verbs.Picture).ok == found


@pytest.mark.parametrize(
    "told",
    [
        {"type": "none", "instead": "nonsense"},
        {"type": "picture", "media": "text/html", "data": base64.b64encode(HTML).decode()},
        {"type": "picture", "media": "image/svg+xml", "data": ""},
        {"type": "picture", "media": "image/png", "data": "?"},
        {"instead": "text"},
        {},
        [],
        None,
    ],
)
def test_another_type_is_none_that_the_server_takes_from_the_socket(told: object) -> None:
    with pytest.raises(ValueError, match=r"\$.ok"):
        client.read_answer(verbs.text({"ok": told}).encode(), verbs.Picture)
