"""The kind of what was fetched, by its own first bytes: what its sender calls it counts for nothing."""

from __future__ import annotations

from gateway.pictures.sizes import size_of
from markets.pictures import Instead, Media, NoPicture, Picture

_HEADS: tuple[tuple[bytes, Media], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_AVIF = (b"avif", b"avis")
_LOOKED_AT = 4_096  # bytes
_WEBM = b"\x1aE\xdf\xa3"


def judged(data: bytes) -> Picture | NoPicture:
    """Returns the picture that the bytes are, or the reason why a browser may not be asked to draw them."""
    media = media_of(data)
    if media is None:
        return NoPicture(instead_of(data))
    size = size_of(media, data)
    if size is None:
        return NoPicture("file")
    return Picture(media, data) if size.fits else NoPicture("too_large")


def media_of(data: bytes) -> Media | None:
    """Returns the type of a picture that browsers show without running anything in it, or None."""
    for head, media in _HEADS:
        if data.startswith(head):
            return media
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "image/avif" if any(brand in _AVIF for brand in _brands(data)) else None


def instead_of(data: bytes) -> Instead:
    """Names the kind of what is no such picture."""
    if _brands(data) or data.startswith(_WEBM):
        return "video"
    try:
        # A letter may be cut in two where the look ends.
        start = data[:_LOOKED_AT].decode("utf-8-sig", "strict" if len(data) <= _LOOKED_AT else "ignore")
    except UnicodeDecodeError:
        return "file"
    words = start.lstrip().lower()
    if "<svg" in words and words.startswith(("<svg", "<?xml", "<!--", "<!doctype svg")):
        return "svg"
    if words.startswith(("<!doctype html", "<html", "<head", "<body", "<script")):
        return "html"
    return "text" if words and all(letter.isprintable() or letter.isspace() for letter in words) else "file"


def _brands(data: bytes) -> list[bytes]:
    """Returns the brands of an ISO media file, which AVIF is as films are; none for other files."""
    if data[4:8] != b"ftyp":
        return []
    end = min(int.from_bytes(data[:4]), 256)
    return [data[8:12], *(data[at : at + 4] for at in range(16, end - 3, 4))]
