"""The names that practice inscriptions have unless a script names them."""

from __future__ import annotations

import hashlib

_MOST = 10_000  # as large as such collections are


def name_of(slug: str, inscription: str) -> str:
    """Returns for example "Bitcoin Puppets #4711": always the same name for an inscription of a collection."""
    number = int.from_bytes(hashlib.sha256(f"name {inscription}".encode()).digest()[:4]) % _MOST + 1
    title = " ".join(word.capitalize() for word in slug.removesuffix("-demo").replace("-", " ").split())
    return f"{title or 'Inscription'} #{number}"
