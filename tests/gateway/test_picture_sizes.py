"""The sizes that pictures claim: read from each kind's head, and bounded before a browser is asked to draw them."""

from __future__ import annotations

import struct
import threading
import zlib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from gateway import picture_sizes, pictures
from gateway import pictures as kept_file
from gateway.picture_sizes import MOST_FRAMES, MOST_PARTS, MOST_PIXELS, Size, judged, media_of, number, size_of
from gateway.pictures import KeptPictures, PictureSource
from markets.base import MOST_PICTURE_BYTES, PICTURE_MEDIA, Media, NoPicture, Picture
from tests.gateway.hostile_pictures import Host, answer, hosting
from tests.gateway.test_pictures import LOOPBACK

# Three by two pixels each, by the usual libraries; PNG, GIF and WEBP have two frames.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAACGFjVEwAAAACAAAAAPONk3AAAAAaZmNUTAAAAAAAAAADAAAAAgAAAAAAAAAAAA"
    "AAAQAADoOaCQAAABVJREFUeJxjZOA6wcDAwMDAwMQAAwAOOADWhuy0bQAAABpmY1RMAAAAAQAAAAMAAAACAAAAAAAAAAAAAAABAACV8HDdAAAA"
    "GWZkQVQAAAACeJxjjOI6wcDAwMDAwMQAAwAU5gEwEOlyGwAAAABJRU5ErkJggg=="
)
GIF = b64decode(
    "R0lGODdhAwACAIEAAAAKyAAAAAAAAAAAACwAAAAAAwACAAAIBgABCBwYEAAh+QQBAAABACwAAAAAAwACAIFaCsgAAAAAAAAAAAAIBgABCBwYEAA7"
)
WEBP = b64decode(
    "UklGRoYAAABXRUJQVlA4WAoAAAACAAAAAgAAAQAAQU5JTQYAAAAAAAAAAABBTk1GKAAAAAAAAAAAAAIAAAEAAAAAAAJWUDhMEAAAAC8CQAAAB1"
    "CFKHL/AxHR/wBBTk1GKgAAAAAAAAAAAAIAAAEAAAAAAABWUDhMEQAAAC8CQAAAB1CFahW5/4GI6H8AAA=="
)
WEBP_STILL = b64decode("UklGRjoAAABXRUJQVlA4IC4AAACwAQCdASoDAAIAAUAmJaACdLoABDAAAP77VeP/hTX/hTX/hTX/CmvoUbKJfMAA")
JPEG = b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP////////////////////////////////////////////////////////////////////////////"
    "//////////2wBDAf//////////////////////////////////////////////////////////////////////////////////////wAARCAAC"
    "AAMDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAAAQL/xA"
    "AUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCAFh//2Q=="
)
AVIF = b64decode(
    "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADrbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAAAAAAAOcG"
    "l0bQAAAAAAAQAAAB5pbG9jAAAAAEQAAAEAAQAAAAEAAAETAAAAKgAAAChpaW5mAAAAAAABAAAAGmluZmUCAAAAAAEAAGF2MDFDb2xvcgAAAABq"
    "aXBycAAAAEtpcGNvAAAAFGlzcGUAAAAAAAAAAwAAAAIAAAAQcGl4aQAAAAADCAgIAAAADGF2MUOBAAwAAAAAE2NvbHJuY2x4AAEADQAGgAAAAB"
    "dpcG1hAAAAAAAAAAEAAQQBAoMEAAAAMm1kYXQSAAoIGAQrRAQ0GhAyHBTHh4ZlAgggnlAAAABIWtlc1i/6xF+Enhwy0IA="
)
FRAMES = b"\x12\0\x0a\x08"  # the first bytes of the AVIF's own
REAL: dict[str, tuple[Media, bytes, Size]] = {
    "png": ("image/png", PNG, Size(3, 2, 2)),
    "gif": ("image/gif", GIF, Size(3, 2, 2)),
    "webp": ("image/webp", WEBP, Size(3, 2, 2)),
    "webp still": ("image/webp", WEBP_STILL, Size(3, 2)),
    "jpeg": ("image/jpeg", JPEG, Size(3, 2)),
    "avif": ("image/avif", AVIF, Size(3, 2)),
}


def box(kind: bytes, *parts: bytes) -> bytes:
    """Makes a box of an ISO media file."""
    inside = b"".join(parts)
    return struct.pack(">I", 8 + len(inside)) + kind + inside


def put(data: bytes, at: int, pattern: str, *values: int) -> bytes:
    """Returns `data` with numbers of its own at this place."""
    packed = struct.pack(pattern, *values)
    return data[:at] + packed + data[at + len(packed) :]


def animated(kind: str, frames: int) -> bytes:
    """Makes a picture that claims that number of frames, of 3 by 2 pixels."""
    if kind == "png":
        return put(PNG, PNG.index(b"acTL") + 4, ">I", frames)
    if kind == "gif":
        frame = GIF[GIF.index(b"\x2c") : GIF.index(b"\x21\xf9")]
        return GIF[: GIF.index(b"\x2c")] + frame * frames + b";"
    if kind == "webp":
        first = WEBP.index(b"ANMF")
        return WEBP[:first] + WEBP[first : WEBP.index(b"ANMF", first + 4)] * frames
    return film(3, 2, frames)


def frames_of(width: int, height: int) -> bytes:
    """Makes the head of AV1 frames: a delimiter and a sequence header."""
    bits = 0b0001100000_1111_1111 << 32 | width - 1 << 16 | height - 1
    return b"\x12\0\x0a\x07" + (bits << 6).to_bytes(7)


def film(width: int, height: int, frames: int, inside: bytes = b"") -> bytes:
    """Makes the head of an animated AVIF, before the frames `inside`."""
    tkhd = box(b"tkhd", bytes(76), struct.pack(">II", width << 16, height << 16))
    stsz = box(b"stsz", bytes(8), struct.pack(">I", frames))
    head = box(b"ftyp", b"avis\0\0\0\0avis")
    inside = inside or frames_of(width, height)
    stco = box(b"stco", bytes(4), struct.pack(">II", 1, len(head) + 8))
    track = box(b"trak", tkhd, box(b"mdia", box(b"minf", box(b"stbl", stsz, stco))))
    return head + box(b"mdat", inside) + box(b"moov", track)


def large(kind: str, width: int, height: int) -> bytes:
    """Makes a picture that claims this size in the place where its kind has it."""
    made = {
        "png": lambda: put(PNG, 16, ">II", width, height),
        "gif": lambda: put(GIF, 6, "<HH", width, height),
        "gif by a frame": lambda: put(GIF, GIF.index(b"\x2c") + 5, "<HH", width, height),
        "webp": lambda: put(WEBP, 24, "<HBHB", width - 1, 0, height - 1, 0),
        "webp still": lambda: put(WEBP_STILL, 26, "<HH", width, height),
        "webp lossless": lambda: (
            b"RIFF\0\0\0\0WEBPVP8L\x05\0\0\0\x2f" + struct.pack("<I", width - 1 | height - 1 << 14)
        ),
        "jpeg": lambda: put(JPEG, JPEG.index(b"\xff\xc0") + 5, ">HH", height, width),
        "avif": lambda: put(AVIF, AVIF.index(b"ispe") + 8, ">II", width, height),
        "avif by its frames": lambda: AVIF[: AVIF.index(FRAMES)] + frames_of(width, height).ljust(42, b"\x80"),
        "avif film": lambda: film(width, height, 1),
        "avif film by its frames": lambda: film(3, 2, 1, frames_of(width, height)),
    }
    return made[kind]()


KINDS = ("png", "gif", "gif by a frame", "webp", "webp still", "webp lossless", "jpeg")
KINDS += ("avif", "avif by its frames", "avif film", "avif film by its frames")


@pytest.fixture
def host() -> Iterator[Host]:
    with hosting() as made:
        yield made


@pytest.mark.parametrize("kind", REAL)
def test_the_size_of_a_real_picture_is_read(kind: str) -> None:
    media, data, size = REAL[kind]
    assert (media_of(data), size_of(media, data)) == (media, size)
    assert judged(data) == Picture(media, data)


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_of_too_many_pixels_is_refused(kind: str, host: Host) -> None:
    most = large(kind, 4_000, MOST_PIXELS // 4_000)
    host.behave = answer(most)
    source = PictureSource(None, LOOPBACK)
    assert isinstance(source.fetch(host.url), Picture)
    for width, height in ((4_001, 10_000), (16_000, 16_000)):
        host.behave = answer(large(kind, width, height))
        assert source.fetch(host.url) == NoPicture("too_large")


def test_a_small_file_of_nine_hundred_million_pixels_is_refused(host: Host) -> None:
    """A true picture, all of one colour: 109 kB that a browser would unpack to 900 million pixels."""
    packer = zlib.compressobj(9)
    line = bytes(1 + 30_000 // 8)
    packed = b"".join(packer.compress(line) for _ in range(30_000)) + packer.flush()

    def chunk(kind: bytes, inside: bytes) -> bytes:
        return struct.pack(">I", len(inside)) + kind + inside + struct.pack(">I", zlib.crc32(kind + inside))

    head = struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    assert len(bomb) < 120_000
    host.behave = answer(bomb)
    assert PictureSource(None, LOOPBACK).fetch(host.url) == NoPicture("too_large")


@pytest.mark.parametrize("kind", ["png", "gif", "webp", "avif"])
def test_the_number_of_frames_is_bounded(kind: str) -> None:
    assert isinstance(judged(animated(kind, MOST_FRAMES)), Picture)
    assert judged(animated(kind, MOST_FRAMES + 1)) == NoPicture("too_large")


def test_the_pixels_of_all_frames_together_are_bounded() -> None:
    assert isinstance(judged(film(4_000, 4_000, 25)), Picture)
    assert judged(film(4_000, 4_000, 26)) == NoPicture("too_large")


@pytest.mark.parametrize("kind", REAL)
def test_a_head_without_a_size_is_refused(kind: str) -> None:
    media, data, _ = REAL[kind]
    needed = {"png": 24, "gif": 12, "webp": 30, "webp still": 30, "jpeg": JPEG.index(b"\xff\xc0") + 8}
    for length in range(12, needed.get(kind, AVIF.index(b"ispe") + 12)):
        assert judged(data[:length]) == NoPicture("file"), (media, length)
    if kind not in ("webp", "avif"):  # a canvas has one pixel at least, and the frames have a size of their own
        assert judged(large(kind, 0, 5)[: 20 if kind == "gif" else None]) == NoPicture("file")


def test_an_avif_whose_frames_have_no_size_is_refused() -> None:
    for frames in (b"", b"\x12\0", b"\x0a\x01\x18", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xff" * 40):
        assert judged(AVIF[: AVIF.index(FRAMES)] + frames) == NoPicture("file"), frames


def test_an_avif_that_is_made_of_others_is_refused() -> None:
    assert b"av01Color" in AVIF
    for kind in (b"grid", b"iovl"):
        assert judged(AVIF.replace(b"av01Color", kind + b"Color")) == NoPicture("file")


@pytest.mark.parametrize("media", PICTURE_MEDIA)
def test_a_head_is_read_in_a_bounded_number_of_steps_whatever_it_has(
    media: Media, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 0

    def counted(data: bytes, at: int, length: int, order: Literal["big", "little"] = "big") -> int:
        nonlocal steps
        steps += 1
        return number(data, at, length, order)

    monkeypatch.setattr(picture_sizes, "number", counted)
    monkeypatch.setattr(picture_sizes, "number", counted)
    heads = {"image/png": PNG[:33], "image/jpeg": JPEG[:2], "image/gif": GIF[:13], "image/webp": WEBP[:30]}
    head = heads.get(media, AVIF[:32])
    repeated = (
        b"\xff",
        b"\x12\0",
        b"\0",
        b"\0\0\0\x08free",
        b"ANMF\0\0\0\0",
        b"\x21\xff\0",
        b"\0\0\0\0tEXt\0\0\0\0",
        b"\xff\x01",
        b"\xff\xd0",
        b"\x21\xf9\0",
        b"\x21\xf9\1\1",
        b"\1\1",
        b"ABCD\0\0\0\0",
        b"\0\0\0\x10iloc\x02\0\0\0\0\0\xff\xff",
    )
    for part in repeated:
        data = (head + part * (MOST_PICTURE_BYTES // len(part)))[:MOST_PICTURE_BYTES]
        steps = 0
        judged(data)
        assert steps < 10 * MOST_PARTS, part


def test_fill_bytes_of_a_jpeg_are_not_read_as_markers() -> None:
    at = JPEG.index(b"\xff\xc0")
    filled = JPEG[:at] + b"\xff" * 1_900_000 + JPEG[at:]
    assert judged(filled) == Picture("image/jpeg", filled)


def test_more_parts_than_a_real_picture_has_are_refused() -> None:
    at = JPEG.index(b"\xff\xc0")
    for data in (
        JPEG[:at] + b"\xff\x01" * (MOST_PARTS + 1) + JPEG[at:],
        PNG[:33] + b"\0\0\0\0tEXt\0\0\0\0" * (MOST_PARTS + 1) + PNG[33:],
        GIF[:-1] + b"\x21\xfe\0" * (MOST_PARTS + 1) + b";",
        WEBP + b"ABCD\0\0\0\0" * (MOST_PARTS + 1),
        AVIF + box(b"free") * (MOST_PARTS + 1),
    ):
        assert judged(data) == NoPicture("file"), data[:12]


def test_a_gif_of_two_megabytes_and_a_thousand_frames_is_a_picture() -> None:
    frame = GIF[GIF.index(b"\x2c") : GIF.index(b"\x2c") + 11] + (b"\xff" + bytes(255)) * 7 + b"\0"
    film = GIF[: GIF.index(b"\x2c")] + (b"\x21\xf9\4" + bytes(4) + b"\0" + frame) * MOST_FRAMES + b";"
    assert 1_800_000 < len(film) < MOST_PICTURE_BYTES and judged(film) == Picture("image/gif", film)


def test_boxes_in_boxes_are_followed_to_a_depth_of_sixteen() -> None:
    for depth, is_read in ((15, True), (17, False), (5_000, False)):
        inside = b""
        for _ in range(depth):
            inside = box(b"moov", inside)
        assert isinstance(judged(AVIF + inside), Picture) == is_read, depth


def test_the_greatest_number_of_frames_that_a_png_claims_counts() -> None:
    at = PNG.index(b"acTL") - 4
    control = PNG[at : at + 20]
    many, few = put(control, 8, ">I", MOST_FRAMES + 1), put(control, 8, ">I", 1)
    assert judged(PNG[:at] + many + few + PNG[at + 20 :]) == NoPicture("too_large")


def test_an_error_while_a_picture_is_judged_leaves_no_picture(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(data: bytes) -> Picture:
        raise RecursionError

    monkeypatch.setattr(pictures, "judged", fail)
    host.behave = answer(PNG)
    assert PictureSource(None, LOOPBACK).fetch(host.url) == NoPicture("file")
    assert "RecursionError" in caplog.text


def test_a_kept_picture_is_judged_after_a_start_alone_and_others_are_read_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = KeptPictures(tmp_path)
    for address in "ab":
        before.keep(address, Picture("image/png", PNG))
    kept, looked = KeptPictures(tmp_path), list[bytes]()

    def judge(data: bytes) -> Picture | NoPicture:
        looked.append(data)
        if len(looked) == 1:
            reader = threading.Thread(target=kept.read, args=("b",), daemon=True)
            reader.start()
            reader.join(20)
            assert not reader.is_alive()
        return judged(data)

    monkeypatch.setattr(kept_file, "judged", judge)
    for _ in range(3):
        assert kept.read("a") == kept.read("b") == Picture("image/png", PNG)
    assert looked == [PNG, PNG]


def test_a_kept_picture_that_claims_too_much_is_dropped(tmp_path: Path) -> None:
    """It was kept before sizes were looked at."""
    kept = KeptPictures(tmp_path)
    kept.keep("a", Picture("image/png", PNG))
    assert kept.read("a") == Picture("image/png", PNG)
    kept.keep("a", Picture("image/png", large("png", 30_000, 30_000)))
    assert KeptPictures(tmp_path).read("a") is None
    assert list(tmp_path.iterdir()) == []
