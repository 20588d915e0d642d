"""Figures for the inscriptions of the practice collections: each collection has its kind, each inscription its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from simulator.pictures.canvas import SIDE, Canvas
from simulator.pictures.png import Colour, png

_SCALE = 8
_GROUNDS: tuple[Colour, ...] = (
    (247, 178, 103),
    (132, 190, 220),
    (244, 132, 127),
    (152, 206, 160),
    (178, 160, 220),
    (236, 214, 140),
    (120, 144, 168),
    (238, 170, 196),
)
_SKINS: tuple[Colour, ...] = (
    (226, 172, 128),
    (170, 112, 76),
    (120, 180, 120),
    (214, 206, 196),
    (96, 104, 120),
    (232, 196, 90),
    (150, 120, 190),
)
_CLOTHES: tuple[Colour, ...] = ((58, 70, 110), (150, 52, 60), (44, 110, 96), (60, 60, 66), (190, 120, 40))
_HATS: Mapping[str, Colour] = {"Red": (206, 50, 52), "Blue": (48, 92, 190), "Gold": (240, 190, 50)}
# Numbers of the palette.
_GROUND, _SKIN, _SHADE, _CLOTH, _HAT, _WHITE, _INK, _ACCENT, _CHEESE, _CRUST = range(10)
_MIDDLE = (SIDE - 1) / 2


class Traits:
    """An inscription's looks: whole numbers drawn from its id, always the same ones."""

    def __init__(self, inscription: str) -> None:
        self._left = int.from_bytes(hashlib.sha256(f"looks {inscription}".encode()).digest())

    def draw(self, choices: int) -> int:
        """Draws a number from 0 to `choices` - 1."""
        self._left, drawn = divmod(self._left, choices)
        return drawn


def picture(inscription: str, slug: str, hat: str | None) -> bytes:
    """Returns the picture of an inscription, a PNG; `hat` is the trait of that name, None to draw one."""
    looks = Traits(inscription)
    skin = _SKINS[looks.draw(len(_SKINS))]
    hats = (*_HATS, "None")
    hat = hat if hat in hats else hats[looks.draw(len(hats))]
    palette: list[Colour] = [
        _GROUNDS[looks.draw(len(_GROUNDS))],
        skin,
        (skin[0] * 3 // 4, skin[1] * 3 // 4, skin[2] * 3 // 4),
        _CLOTHES[looks.draw(len(_CLOTHES))],
        _HATS.get(hat, (178, 58, 44)),
        (250, 248, 240),
        (34, 32, 40),
        _GROUNDS[looks.draw(len(_GROUNDS))],
        (250, 214, 110),
        (186, 116, 52),
    ]
    canvas = Canvas()
    draw = next((each for word, each in _KINDS.items() if word in slug), _emblem)
    draw(canvas, looks)
    if hat in _HATS and draw is not _emblem:
        _hat(canvas, looks)
    return png([bytes(row) for row in canvas.rows], palette, _SCALE)


def _puppet(canvas: Canvas, looks: Traits) -> None:
    canvas.disc(_MIDDLE, 25, 9, 6, _CLOTH)
    canvas.box(10, 17, 13, 20, _SHADE)
    canvas.disc(_MIDDLE, 12, 7.6, 7, _SKIN)
    for y in range(9, 12):
        for x in range(6, 10):
            canvas.pair(x, y, _WHITE)
    look = looks.draw(3)
    canvas.dot(7 + look, 10, _INK)
    canvas.dot(15 + look, 10, _INK)
    canvas.box(11, 12, 12, 13 + looks.draw(2), _SHADE)
    # A puppet's jaw.
    canvas.box(8, 15, 15, 15, _INK)
    canvas.pair(8, 16, _INK)
    canvas.pair(8, 17, _INK)
    if looks.draw(3) == 0:
        canvas.box(9, 16, 14, 16, _WHITE)


def _cat(canvas: Canvas, looks: Traits) -> None:
    canvas.disc(_MIDDLE, 25, 8, 5, _SKIN)
    for row in range(5):
        for x in range(4, 5 + row):
            canvas.pair(x, 4 + row, _SKIN)
    canvas.pair(5, 7, _ACCENT)
    canvas.disc(_MIDDLE, 13, 8.4, 6.4, _SKIN)
    if looks.draw(2):
        for x in (9, 11):
            canvas.pair(x, 7, _SHADE)
            canvas.pair(x, 8, _SHADE)
    for y in range(10, 13):
        for x in range(6, 9):
            canvas.pair(x, y, _ACCENT)
    slit = 6 + looks.draw(3)
    for y in range(10, 13):
        canvas.pair(slit, y, _INK)
    canvas.box(11, 14, 12, 14, _INK)
    canvas.pair(10, 16, _INK)
    canvas.pair(11, 15, _INK)
    for y in (14, 16):
        for x in range(1, 5):
            canvas.pair(x, y + (x % 2 if looks.draw(2) else 0), _WHITE)


def _monke(canvas: Canvas, looks: Traits) -> None:
    canvas.disc(_MIDDLE, 25, 9, 6, _CLOTH)
    canvas.disc(3.6, 12, 2.6, 2.8, _SKIN)
    canvas.disc(SIDE - 1 - 3.6, 12, 2.6, 2.8, _SKIN)
    canvas.pair(3, 12, _ACCENT)
    canvas.disc(_MIDDLE, 11.5, 7.4, 7.6, _SKIN)
    canvas.disc(_MIDDLE, 15.4, 5.8, 3.6, _SHADE)
    for y in range(8, 11):
        canvas.pair(8, y, _WHITE)
        canvas.pair(9, y, _WHITE)
    canvas.pair(9 - looks.draw(2), 9, _INK)
    canvas.pair(10, 14, _INK)
    canvas.box(9, 16, 14, 16, _INK)
    if looks.draw(3) == 0:
        canvas.box(14, 16, 19, 16, _WHITE)
        canvas.dot(20, 16, _ACCENT)


def _ninja(canvas: Canvas, looks: Traits) -> None:
    canvas.disc(_MIDDLE, 25, 9, 6, _INK)
    canvas.disc(_MIDDLE, 12, 7.8, 7.4, _CLOTH)
    canvas.box(5, 10, 18, 13, _SKIN)
    canvas.pair(8, 11, _INK)
    canvas.pair(8, 12, _INK)
    canvas.pair(9, 11 + looks.draw(2), _WHITE)
    canvas.box(4, 8, 19, 8, _ACCENT)
    # The band's ends, and a slice in the hand.
    canvas.box(20, 9, 22, 9, _ACCENT)
    canvas.box(21, 10, 23, 10, _ACCENT)
    for row in range(6):
        canvas.box(1 + row // 2, 17 + row, 7 - (row + 1) // 2, 17 + row, _CHEESE)
    canvas.box(0, 16, 8, 16, _CRUST)
    for _ in range(3):
        canvas.dot(2 + looks.draw(4), 17 + looks.draw(3), _HAT)


def _emblem(canvas: Canvas, looks: Traits) -> None:
    """Draws a pattern, the same on both sides."""
    for row in range(2, SIDE - 2, 2):
        for column in range(2, SIDE // 2, 2):
            colour = (_GROUND, _GROUND, _CLOTH, _ACCENT, _WHITE)[looks.draw(5)]
            for x in (column, column + 1):
                canvas.pair(x, row, colour)
                canvas.pair(x, row + 1, colour)


def _hat(canvas: Canvas, looks: Traits) -> None:
    if looks.draw(2):  # a cap
        for row in range(2, 7):
            canvas.box(max(4, 9 - row), row, min(19, 14 + row), row, _HAT)
        canvas.box(3, 7, 20, 7, _INK)
    else:  # a top hat
        canvas.box(7, 0, 16, 5, _HAT)
        canvas.box(7, 4, 16, 4, _INK)
        canvas.box(4, 6, 19, 6, _HAT)


_KINDS: Mapping[str, Callable[[Canvas, Traits], None]] = {
    "puppet": _puppet,
    "cat": _cat,
    "monke": _monke,
    "ninja": _ninja,
}
