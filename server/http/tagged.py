"""Entity tags of answers that are polled (RFC 9110, 8.8.3)."""

from __future__ import annotations

import hashlib
from functools import cached_property


class Tagged(bytes):
    """A body that is kept for many answers: its tag is computed once."""

    @cached_property
    def tag(self) -> str:
        """Its tag."""
        return tag_of(self)


def tag_of(body: bytes) -> str:
    """Computes a body's tag; a weak one, since the packed answer has the same."""
    return f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
