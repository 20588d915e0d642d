"""Pictures of inscriptions, and what is found where none is. Standard library only: workers import it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

Media = Literal["image/png", "image/jpeg", "image/webp", "image/gif", "image/avif"]
# The venue names no picture; it cannot be read now; else what is there in its place.
Instead = Literal["none", "unreachable", "too_large", "svg", "html", "text", "video", "file"]
MEDIA: tuple[Media, ...] = get_args(Media)
INSTEAD: tuple[Instead, ...] = get_args(Instead)
MOST_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, and its type by its own first bytes."""

    media: Media
    data: bytes


@dataclass(frozen=True, slots=True)
class NoPicture:
    """The reason why there is no picture to show."""

    instead: Instead


def as_text(found: Picture | NoPicture) -> str:
    """Returns the JSON in which a picture, or its lack, crosses the gateway's socket."""
    if isinstance(found, NoPicture):
        return json.dumps({"instead": found.instead})
    return json.dumps({"media": found.media, "data": base64.b64encode(found.data).decode()})


def read(answer: Any) -> Picture | NoPicture:
    """Reads what `as_text` wrote. Raises one of codec.MALFORMED."""
    if "instead" in answer:
        return NoPicture(INSTEAD[INSTEAD.index(answer["instead"])])
    media = MEDIA[MEDIA.index(answer["media"])]
    return Picture(media, base64.b64decode(answer["data"], validate=True))
