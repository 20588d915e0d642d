"""The way to pictures of strangers' hosts: which are asked, and what comes of hostile answers."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core import public_connection
from gateway.picture_sizes import instead_of, media_of
from gateway.pictures import PictureSource
from markets.base import MOST_PICTURE_BYTES, NoPicture, Picture
from tests.certificates import made_for
from tests.gateway.hostile_pictures import GIF, HTML, PNG, SVG, Behave, Host, answer, drip, hosting

INSCRIPTION = "7" * 64 + "i0"
ISPE = b"\x00\x00\x00\x14ispe" + bytes(4) + b"\x00\x00\x00\x03\x00\x00\x00\x02"
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


@pytest.fixture
def host() -> Iterator[Host]:
    with hosting() as made:
        yield made


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
