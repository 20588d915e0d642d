"""Write time."""

from __future__ import annotations

WRITE_MS = 10_000  # a write that has not reached the venue after this long is given up
