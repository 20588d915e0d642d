"""The mark of the database's state that changes with every commit, by any process."""

from __future__ import annotations

from typing import Any

from models.base import database


def mark() -> Any:
    """Returns a value that differs from a former one if anything was committed since; it costs no read of a table.

    Take the mark before reading rows: a commit in between makes the next mark differ.
    """
    return database.obj.mark()


def mark_of(column: str | None) -> Any:
    """Returns the mark of the moment of a query from its column `$mark`; None where `mark` must be asked for it.

    The column saves a way to the server.
    """
    return database.obj.mark_of(column)
