"""The practice inscriptions' content: small pictures made of their ids, some other things, and names."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from typing import Any

import pytest

from simulator.wallets import Item, content_of, kind_of, media_of, name_of
from tests.simulator.desk import PUPPETS, Desk, Trader

PICTURED = Trader(1)
IDS = [f"{number:064x}i0" for number in range(2_000)]


def pixels(data: bytes) -> tuple[list[bytes], int]:
    """Reads a PNG of eight bits a pixel and a palette, strictly; returns its lines, and the number of its colours."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, rest = [], data[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, body, check = rest[4:8], rest[8 : 8 + length], rest[8 + length : 12 + length]
        assert struct.pack(">I", zlib.crc32(kind + body)) == check
        chunks.append((kind, body))
        rest = rest[12 + length :]
    assert [kind for kind, _ in chunks] == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    (_, head), (_, palette), (_, packed), (_, end) = chunks
    width, height, *how = struct.unpack(">IIBBBBB", head)
    assert how == [8, 3, 0, 0, 0] and end == b""
    lines = zlib.decompress(packed)
    assert len(lines) == (1 + width) * height and set(lines[:: 1 + width]) == {0}
    return [lines[at + 1 : at + 1 + width] for at in range(0, len(lines), 1 + width)], len(palette) // 3


def test_each_picture_differs_and_stays_the_same() -> None:
    items = [Item(each, PUPPETS, "") for each in IDS if kind_of(each) == "picture"][:200]
    drawn = [content_of(each).data for each in items]
    assert len(set(drawn)) == len(items)
    assert [content_of(each).data for each in items] == drawn
    for each in drawn:
        rows, colours = pixels(each)
        assert (len(rows), len(rows[0])) == (192, 192)
        assert max(map(max, rows)) < colours
        assert len(each) < 2_000


def test_most_are_pictures_and_a_few_are_what_else_is_inscribed() -> None:
    kinds = Counter(map(kind_of, IDS))
    assert set(kinds) == {"picture", "svg", "text", "large"}
    assert 0.9 < kinds["picture"] / len(IDS) < 0.98
    for kind, media, begins in (
        ("picture", "image/png", b"\x89PNG"),
        ("svg", "image/svg+xml", b"<svg"),
        ("text", "text/plain;charset=utf-8", b"Puppets #"),
        ("large", "image/png", b"\x89PNG"),
    ):
        found = next(each for each in IDS if kind_of(each) == kind)
        content = content_of(Item(found, PUPPETS, name_of(PUPPETS, found)))
        assert (content.media, media_of(found)) == (media, media)
        assert content.data.startswith(begins)
        assert (len(content.data) > 2_000_000) == (kind == "large")


def test_names_are_a_collections_own() -> None:
    assert name_of("bitcoin-puppets-demo", IDS[0]).startswith("Bitcoin Puppets #")
    assert name_of("bitcoin-puppets-demo", IDS[0]) == name_of("bitcoin-puppets-demo", IDS[0])
    assert len({name_of("x", each) for each in IDS[:100]}) > 95
    assert name_of("", IDS[0]).startswith("Inscription #")


@pytest.mark.gen_test
async def test_content_is_served_of_what_is_held_or_listed(desk: Desk) -> None:
    held, listed = IDS[1], IDS[2]
    await desk.sim("PUT", f"collections/{PUPPETS}", {"asks": [{"price": 5_000, "inscriptionId": listed}], "bids": []})
    await desk.sim("PUT", f"wallets/{PICTURED.ordinals}", {"inscriptions": [{"id": held, "collection": PUPPETS}]})

    for each in (held, listed):
        answer = await desk.fetch("GET", f"/content/{each}", None)
        expected: Any = content_of(Item(each, PUPPETS, name_of(PUPPETS, each)))
        assert (answer.code, answer.body) == (200, expected.data)
        assert answer.headers["Content-Type"] == expected.media
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert (await desk.fetch("GET", f"/content/{IDS[3]}", None)).code == 404
