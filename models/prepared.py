"""Queries whose SQL text is built once: peewee takes many times longer to build it than a database to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakSet

from peewee import Value

from models.base import Row, database, forgets_texts

Kind = TypeVar("Kind", bound=Row)


@dataclass(frozen=True, slots=True)
class _Given:
    """The place of a value that is given with each query."""

    name: str


def given(name: str) -> Value:
    """Makes a placeholder, used where peewee takes a value; `Prepared.run` gets the value under this name."""
    return Value(_Given(name), converter=False)


def given_each(name: str, count: int) -> list[Value]:
    """Makes placeholders of `count` values in a list; `each` names the values."""
    return [given(f"{name} {place}") for place in range(count)]


def each(name: str, values: Sequence[Any]) -> dict[str, Any]:
    """Names the values for the places of `given_each`."""
    return {f"{name} {place}": value for place, value in enumerate(values)}


class Prepared:
    """A query that `build` describes, with `given(...)` in the places of changing values.

    All that run it take the values by their names, and raise TypeError unless exactly these are given. Only for queries
    asked at nearly every request.
    """

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build = build
        _all.add(self)

    @cached_property
    def _sql(self) -> tuple[str, tuple[str, ...], frozenset[str]]:
        text, parameters = self._build().sql()
        places = tuple(each.name for each in parameters)
        return str(text), places, frozenset(places)

    def run(self, **values: Any) -> Any:
        """Runs the query; returns the database's cursor, which has the `rowcount` of a change."""
        return database.execute_sql(*self._filled(values))

    def insert(self, **values: Any) -> int | None:
        """Inserts a row; returns its id, None when none was written."""
        written: int | None = database.obj.inserted(self.run(**values))
        return written

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """Returns all rows as the database gives them."""
        found: list[tuple[Any, ...]] = database.obj.rows(*self._filled(values))
        return found

    def row(self, **values: Any) -> tuple[Any, ...] | None:
        """Returns the only possible row, or None."""
        rows = database.obj.rows(*self._filled(values))
        return rows[0] if rows else None

    def _filled(self, values: dict[str, Any]) -> tuple[str, list[Any]]:
        text, places, names = self._sql
        if values.keys() != names:
            raise TypeError(f"wanted: {sorted(names)}; given: {sorted(values)}")
        return text, [values[place] for place in places]


_all: WeakSet[Prepared] = WeakSet()


def compile_all() -> None:
    """Builds the text of every query that there is now, for the kind of database in use; it needs no connection."""
    for prepared in list(_all):
        _ = prepared._sql


def _forget_texts() -> None:
    for prepared in list(_all):
        prepared.__dict__.pop("_sql", None)


forgets_texts.append(_forget_texts)


def instance(model: type[Kind], values: Sequence[Any]) -> Kind:
    """Makes the row of `model` with these values of all its columns, which are numbers and texts as in the database.

    They go in at once: by its attributes, each of thirty columns would be a Python call.
    """
    row = model(__no_default__=True)
    row.__data__.update(zip(model._meta.sorted_field_names, values, strict=True))
    return row
