"""The drawing in place of a picture that there is not: a pattern of its inscription's own, and one word."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from markets.pictures import Instead

MEDIA = "image/svg+xml"
_WORDS: Mapping[Instead, str] = {
    "none": "no picture",
    "unreachable": "no picture",
    "too_large": "too large",
    "svg": "SVG",
    "html": "HTML",
    "text": "text",
    "video": "video",
    "file": "file",
}
_CELLS, _CELL = 5, 40
_SIDE = _CELLS * _CELL
# Ground and two tones above it; all dark enough for the word in white.
_TONES = (
    ("#26323f", "#2f4052", "#3a4f66"),
    ("#2b2f45", "#383d5c", "#474e75"),
    ("#233a38", "#2d4a48", "#395d5a"),
    ("#3d2f3f", "#4e3c51", "#614b65"),
    ("#3f3529", "#514434", "#655541"),
)


def drawn(inscription_id: str, instead: Instead) -> bytes:
    """Draws an SVG of 200 by 200, always the same one for an inscription and a kind."""
    digest = hashlib.sha256(inscription_id.encode()).digest()
    ground, *tones = _TONES[digest[0] % len(_TONES)]
    word = _WORDS[instead]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIDE} {_SIDE}" width="{_SIDE}" height="{_SIDE}" '
        f'role="img" aria-label="{word}">',
        f'<rect width="{_SIDE}" height="{_SIDE}" fill="{ground}"/>',
        *_pattern(digest, tones),
        f'<rect y="{_SIDE - 2 * _CELL}" width="{_SIDE}" height="{_CELL}" fill="{ground}"/>',
        f'<text x="{_SIDE // 2}" y="{_SIDE - _CELL - 13}" fill="#ffffff" font-family="system-ui, sans-serif" '
        f'font-size="20" text-anchor="middle">{word}</text>',
        "</svg>",
    ]
    return "".join(parts).encode()


def _pattern(digest: bytes, tones: list[str]) -> Iterator[str]:
    """Draws cells, the same on both sides."""
    half = (_CELLS + 1) // 2
    for row in range(_CELLS):
        for column in range(half):
            chosen = digest[1 + row * half + column] % 4
            if chosen < len(tones):
                for at in {column, _CELLS - 1 - column}:
                    yield (
                        f'<rect x="{at * _CELL}" y="{row * _CELL}" width="{_CELL}" height="{_CELL}" '
                        f'fill="{tones[chosen]}"/>'
                    )
