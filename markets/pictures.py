"""Pictures of inscriptions, and what is found where none is. Workers import it."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

Media = Literal["image/png", "image/jpeg", "image/webp", "image/gif", "image/avif"]
# The venue names no picture; it cannot be read now; else what is there in its place.
Instead = Literal["none", "unreachable", "too_large", "svg", "html", "text", "video", "file"]
MEDIA: tuple[Media, ...] = get_args(Media)
INSTEAD: tuple[Instead, ...] = get_args(Instead)
MOST_BYTES = 2_000_000


class Picture(Struct, frozen=True, forbid_unknown_fields=True, tag="picture"):
    """A picture, and its type by its own first bytes."""

    media: Media
    data: bytes


class NoPicture(Struct, frozen=True, forbid_unknown_fields=True, tag="none"):
    """The reason why there is no picture to show."""

    instead: Instead
