"""The mark of the database's state that changes with every commit, by any process."""

from __future__ import annotations

from typing import Any

from peewee import Node

from models.base import database


def mark() -> Any:
    """Returns a value that differs from a former one if anything was committed since; it costs no read of a table.

    Take the mark before reading rows: a commit in between makes the next mark differ.
    """
    return database.obj.mark()


class MarkColumn(Node):
    """The mark as a column of another query, where that saves a way to the server; `mark_of` gets its value."""

    def __sql__(self, ctx: Any) -> Any:
        return ctx.literal(database.obj.mark_column)


def mark_of(column: str | None) -> Any:
    """Returns the mark of the moment of a query from its MarkColumn; None where `mark` must be asked for it."""
    return database.obj.mark_of(column)
