"""The content of the practice inscriptions: mostly pictures, and some of what else people inscribe."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal, NamedTuple

from simulator.pictures.figures import picture
from simulator.wallets.wallets import Item

Kind = Literal["picture", "svg", "text", "large"]
_OTHERS: tuple[Kind, ...] = ("svg", "text", "large")
_MEDIA: Mapping[Kind, str] = {"svg": "image/svg+xml", "text": "text/plain;charset=utf-8"}
_ONE_IN = 24  # inscriptions that are no picture
_LARGE = 2_300_000


class Content(NamedTuple):
    """An inscription's content and its type."""

    media: str
    data: bytes


def kind_of(inscription: str) -> Kind:
    """Returns the kind of an inscription's content, by its id."""
    drawn = int.from_bytes(hashlib.sha256(f"kind {inscription}".encode()).digest()[:4])
    if drawn % _ONE_IN:
        return "picture"
    return _OTHERS[drawn // _ONE_IN % len(_OTHERS)]


def media_of(inscription: str) -> str:
    """Returns the type of an inscription's content."""
    return _MEDIA.get(kind_of(inscription), "image/png")


def content_of(item: Item) -> Content:
    """Returns the content of an inscription, always the same."""
    kind = kind_of(item.id)
    if kind == "svg":
        return Content(_MEDIA[kind], _SVG.format(item.id[:6]).encode())
    if kind == "text":
        return Content(_MEDIA[kind], f"{item.name or 'gm'}\n".encode())
    drawn = picture(item.id, item.collection, next((value for name, value in item.traits if name == "Hat"), None))
    # A picture with bytes behind its end, as large as some that are inscribed.
    return Content("image/png", drawn if kind == "picture" else drawn + bytes(_LARGE))


_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">'
    '<rect width="10" height="10" fill="#{}"/><circle cx="5" cy="5" r="3" fill="#fff"/></svg>'
)
