"""Queries whose SQL text is built once. Building it anew costs peewee many times what SQLite takes to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from models.base import Row, database

Kind = TypeVar("Kind", bound=Row)


class Prepared:
    """A query that `build` describes with any values in the places of its parameters.

    `run`, `rows` and `row` take the values in the order in which the SQL has them, and raise TypeError when their
    number is not the query's. Only for queries asked at nearly every request.
    """

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build

    @cached_property
    def _sql(self) -> tuple[str, int]:
        text, parameters = self._build().sql()
        return str(text), len(parameters)

    def run(self, *values: Any) -> Any:
        """The database's cursor: of an insert it has `lastrowid`, of other writes `rowcount`."""
        text, count = self._sql
        if len(values) != count:
            raise TypeError(f"{count} values wanted, {len(values)} given")
        return database.execute_sql(text, values)

    def rows(self, *values: Any) -> list[tuple[Any, ...]]:
        """All rows as the database gives them."""
        return list(self.run(*values).fetchall())

    def row(self, *values: Any) -> tuple[Any, ...] | None:
        """The only row there can be, or None."""
        rows = self.run(*values).fetchall()
        return rows[0] if rows else None


def instance(model: type[Kind], values: Sequence[Any]) -> Kind:
    """The row of `model` with these values of all its columns, which are numbers and texts as the database has them."""
    return model(__no_default__=True, **dict(zip(model._meta.sorted_field_names, values, strict=True)))
