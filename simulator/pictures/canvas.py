"""A grid of cells to draw pixel art on."""

from __future__ import annotations

SIDE = 24


class Canvas:
    """SIDE by SIDE cells, each a number of the palette; all 0 at first. What is outside is left out."""

    def __init__(self) -> None:
        self.rows = [bytearray(SIDE) for _ in range(SIDE)]

    def dot(self, x: int, y: int, colour: int) -> None:
        """Colours one cell."""
        if 0 <= x < SIDE and 0 <= y < SIDE:
            self.rows[y][x] = colour

    def pair(self, x: int, y: int, colour: int) -> None:
        """Colours a cell and the one opposite, on the other side of the middle."""
        self.dot(x, y, colour)
        self.dot(SIDE - 1 - x, y, colour)

    def box(self, left: int, top: int, right: int, bottom: int, colour: int) -> None:
        """Colours a rectangle, its ends included."""
        for y in range(top, bottom + 1):
            for x in range(left, right + 1):
                self.dot(x, y, colour)

    def disc(self, x: float, y: float, wide: float, high: float, colour: int) -> None:
        """Colours an ellipse around (x, y), half as wide and high as `wide` and `high` twice."""
        for row in range(SIDE):
            for column in range(SIDE):
                if ((column - x) / wide) ** 2 + ((row - y) / high) ** 2 <= 1:
                    self.dot(column, row, colour)
