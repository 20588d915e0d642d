"""Queries whose SQL text is built once. Building it anew costs peewee many times what SQLite takes to run it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from models.base import database


class Prepared:
    """A select that `build` describes with any values in the places of its parameters.

    `rows` takes the values in the order in which the SQL has them. Only for queries asked at nearly every request.
    """

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build

    @cached_property
    def _sql(self) -> tuple[str, int]:
        text, parameters = self._build().sql()
        return str(text), len(parameters)

    def rows(self, *values: Any) -> list[tuple[Any, ...]]:
        """The rows as the database gives them. Raises TypeError when the number of values is not the query's."""
        text, count = self._sql
        if len(values) != count:
            raise TypeError(f"{count} values wanted, {len(values)} given")
        return list(database.execute_sql(text, values).fetchall())
