"""Pictures through a real gateway: fetched once, kept on disk, from strangers' hosts."""

from __future__ import annotations

import base64
import ipaddress
import logging
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core import files, public_connection
from gateway import pictures
from gateway.picture_sizes import instead_of, media_of
from gateway.pictures import KEPT_S, KeptPictures, PictureSource
from markets import client, verbs
from markets.base import MOST_PICTURE_BYTES, NoPicture, Picture, Refused
from tests.certificates import made_for
from tests.clock import Clock
from tests.gateway.conftest import Bench
from tests.gateway.hostile_pictures import GIF, HTML, PNG, SVG, Behave, Host, answer, drip, hosting
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


ISPE = b"\x00\x00\x00\x14ispe" + bytes(4) + b"\x00\x00\x00\x03\x00\x00\x00\x02"
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


def fetched(host: Host, behave: Behave, longest_s: float = 10.0) -> Picture | NoPicture:
    """Fetches from a host that may be asked although it is on this machine."""
    host.behave = behave
    return PictureSource(None, LOOPBACK, longest_s).fetch(host.url)


@pytest.mark.parametrize(
    ("head", "media"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xc0\x00\x11\x08\x00\x02\x00\x03", "image/jpeg"),
        (b"GIF87a" + GIF[6:], "image/gif"),
        (GIF, "image/gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x03\x00\x02\x00", "image/webp"),
        (b"\x00\x00\x00\x18ftypavif\x00\x00\x00\x00avifmif1" + ISPE, "image/avif"),
        (b"\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1miafavif" + ISPE, "image/avif"),
    ],
)
def test_the_five_kinds_of_pictures_are_known_by_their_first_bytes(host: Host, head: bytes, media: str) -> None:
    assert media_of(head) == media
    assert fetched(host, answer(head, "text/html")) == Picture(media, head)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "instead"),
    [
        (HTML, "html"),
        (b"\xef\xbb\xbf  <html onload=1>", "html"),
        (SVG, "svg"),
        (b"<svg/>", "svg"),
        (b"<!-- x --><svg/>", "svg"),
        (b"gm\n", "text"),
        (b'{"p":"brc-20"}', "text"),
        ("é".encode() * 9_000, "text"),
        (b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2", "video"),
        (b"\x1aE\xdf\xa3" + bytes(30), "video"),
        (b"", "file"),
        (b"RIFF\x10\x00\x00\x00WAVEfmt ", "file"),
        (b"\x00\x01\x02", "file"),
        (b"\x89PNG\r\n", "file"),
        (b"BM" + bytes(30), "file"),
        (b"\xff\xfe<\x00h\x00t\x00m\x00l\x00", "file"),
    ],
)
def test_anything_else_is_no_picture_whatever_its_sender_calls_it(host: Host, data: bytes, instead: str) -> None:
    assert media_of(data) is None
    assert instead_of(data) == instead
    assert fetched(host, answer(data, "image/png")) == NoPicture(instead)  # type: ignore[arg-type]


def test_a_picture_that_is_a_page_as_well_is_a_picture_and_never_a_page(host: Host) -> None:
    polyglot = b"GIF89a/*\x20\x00" + GIF[10:] + b"*/" + HTML  # of 10,799 by 32 pixels
    assert fetched(host, answer(polyglot, "text/html")) == Picture("image/gif", polyglot)
    behind = PNG + HTML
    assert fetched(host, answer(behind, "text/html")) == Picture("image/png", behind)
    # The other way round it is no picture.
    assert fetched(host, answer(b"<html>" + PNG, "image/png")) == NoPicture("file")


def test_two_megabytes_are_read_and_no_more(host: Host) -> None:
    most = PNG.ljust(MOST_PICTURE_BYTES, b"x")
    assert fetched(host, answer(most)) == Picture("image/png", most)
    assert fetched(host, answer(most + b"x")) == NoPicture("too_large")
    assert fetched(host, answer(most + b"x", Content_Length="")) == NoPicture("too_large"), "no length told"
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    endless = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n" + PNG[:8] + b"\r\n", *[chunk] * 50]

    def flood(connection: socket.socket) -> None:
        for each in endless:
            connection.sendall(each)

    assert fetched(host, flood) == NoPicture("too_large")


def test_a_length_of_three_megabytes_is_enough_to_read_nothing(host: Host) -> None:
    def told(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n")
        time.sleep(30)

    began = time.monotonic()
    assert fetched(host, told, longest_s=20) == NoPicture("too_large")
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "behave",
    [
        answer(PNG, Content_Length=str(len(PNG) + 1)),
        answer(b"5\r\nabc", Transfer_Encoding="chunked", Content_Length=""),
        answer(b"zz\r\n" + PNG, Transfer_Encoding="chunked", Content_Length=""),
        answer(PNG, status="404 Not Found"),
        answer(PNG, status="206 Partial Content"),
        answer(PNG, status="503 Busy"),
        lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"),
        lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 70_000),
        lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200),
        lambda connection: None,
    ],
    ids=["cut off", "half a chunk", "no chunk", "404", "206", "503", "not HTTP", "long head", "many heads", "silent"],
)
def test_what_is_broken_is_not_there_now(host: Host, behave: Behave) -> None:
    assert fetched(host, behave) == NoPicture("unreachable")


def test_of_a_length_that_is_too_short_so_much_is_read(host: Host) -> None:
    assert fetched(host, answer(PNG, Content_Length="40")) == Picture("image/png", PNG[:40])


@pytest.mark.parametrize("behave", [drip, lambda connection: time.sleep(30)], ids=["drip", "silence"])
def test_one_that_drips_holds_its_thread_for_so_long_and_no_longer(host: Host, behave: Behave) -> None:
    began = time.monotonic()
    assert fetched(host, behave, longest_s=0.5) == NoPicture("unreachable")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("there", ["http://127.0.0.1:{}/secret", "https://10.0.0.1/", "//192.168.1.1/", "/other.png"])
def test_a_redirect_is_not_followed(host: Host, there: str) -> None:
    location = there.format(host.port)
    assert fetched(host, answer(b"", status="302 Found", Location=location)) == NoPicture("unreachable")
    assert host.asked == ["/1.png"]


def test_nothing_of_ours_goes_along(host: Host) -> None:
    fetched(host, answer(PNG))
    head = host.requests[0].decode().lower()
    assert [line.partition(":")[0] for line in head.splitlines()[1:] if line] == [
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
        "connection",
    ]


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "http://example.org/1.png",
        "https://127.0.0.1/1.png",
        "https://[::1]/1.png",
        "https://[::ffff:10.0.0.1]/1.png",
        "https://10.1.2.3/1.png",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/",
        "https://192.168.0.1:443/",
        "https://0.0.0.0/",
        "https://me@example.org/1.png",
        "https://example.org:22/1.png",
        "https://example.org:notaport/",
        "https://example.org/a b.png",
        "https://example.org/\r\nX-Evil: 1",
        "https:///1.png",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "javascript:alert(1)",
        "ftp://example.org/1.png",
        "https://example.org/" + "x" * 1_000,
    ],
)
def test_only_https_on_public_hosts_is_asked(url: str | None) -> None:
    assert PictureSource().address_of(INSCRIPTION, url) is None


def test_a_public_address_is_asked_as_it_is_told() -> None:
    url = f"https://ordinals.com/content/{INSCRIPTION}?x=1"
    assert PictureSource().address_of(INSCRIPTION, url) == url


@pytest.mark.parametrize(
    "leads_to", ["127.0.0.1", "10.0.0.8", "192.168.1.1", "169.254.169.254", "::1", "fd00::1", "::ffff:127.0.0.1"]
)
def test_a_public_name_that_leads_home_is_not_connected_to(monkeypatch: pytest.MonkeyPatch, leads_to: str) -> None:
    """Also where only one of its addresses does."""

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        return [(2, 1, 6, "", ("93.184.216.34", port)), (2, 1, 6, "", (leads_to, port))]

    def create_connection(address: Any, timeout: float) -> socket.socket:
        raise AssertionError(f"connected to {address}")

    monkeypatch.setattr(public_connection.socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(public_connection.socket, "create_connection", create_connection)
    assert PictureSource().fetch("https://pictures.example/1.png") == NoPicture("unreachable")


def test_on_the_practice_market_its_own_pictures_alone_are_asked_for() -> None:
    source = PictureSource("http://127.0.0.1:8890")
    for url in (None, "https://ordinals.com/content/x"):
        assert source.address_of(INSCRIPTION, url) == f"http://127.0.0.1:8890/content/{INSCRIPTION}"
    assert source.address_of("a/../b?c", None) == "http://127.0.0.1:8890/content/a%2F..%2Fb%3Fc"


class TestByTls:
    """As pictures come from real hosts: a name, a certificate, and bytes that come packed in records."""

    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Path:
        return made_for("pictures.example", tmp_path)

    @pytest.fixture
    def secure(self, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
        """A host by names that lead to this machine, and whose certificate is trusted."""

        def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

        monkeypatch.setattr(public_connection.socket, "getaddrinfo", getaddrinfo)
        monkeypatch.setattr(public_connection.certifi, "where", lambda: str(certificate))
        with hosting(certificate) as made:
            yield made

    def fetched(self, host: Host, name: str = "pictures.example", longest_s: float = 10.0) -> Picture | NoPicture:
        return PictureSource(None, LOOPBACK, longest_s).fetch(f"https://{name}:{host.port}/1.png")

    def test_a_picture_is_read_whole(self, secure: Host) -> None:
        large = PNG.ljust(MOST_PICTURE_BYTES, b"x")
        secure.behave = answer(large)
        assert self.fetched(secure) == Picture("image/png", large)
        secure.behave = answer(large + b"x", Content_Length="", Connection="close")
        assert self.fetched(secure) == NoPicture("too_large")

    @pytest.mark.slow
    def test_one_that_drips_is_over_in_time(self, secure: Host) -> None:
        secure.behave = drip
        began = time.monotonic()
        assert self.fetched(secure, longest_s=1.0) == NoPicture("unreachable")
        assert time.monotonic() - began < 10

    @pytest.mark.slow
    def test_one_that_never_shakes_hands_is_over_in_time(self, host: Host, secure: Host) -> None:
        host.behave = lambda connection: time.sleep(30)
        began = time.monotonic()
        assert self.fetched(host, longest_s=1.0) == NoPicture("unreachable")
        assert time.monotonic() - began < 10

    def test_a_certificate_of_another_name_is_not_taken(self, secure: Host) -> None:
        assert self.fetched(secure, "other.example") == NoPicture("unreachable")
        assert secure.asked == []

    def test_the_same_host_is_not_asked_where_its_name_may_not_lead(self, secure: Host) -> None:
        source = PictureSource()
        assert source.fetch(f"https://pictures.example:{secure.port}/1.png") == NoPicture("unreachable")
        assert secure.asked == []
