"""Statements as SQL text with named values: one text for both kinds of database, ready after its first use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from models.base import Row, database

Kind = TypeVar("Kind", bound=Row)
_NAME = re.compile(r"(?<!:):(\w+)|\$(\w+)")


class Statement:
    """A statement, with `:name` in the place of a value and `$word` for a word of the kind of database.

    The words are in `words` of the database's class. All that run it take the values by their names, and raise
    TypeError unless exactly these are given. Only the text of a SELECT may begin with SELECT.
    """

    def __init__(self, text: str) -> None:
        self._source = " ".join(text.split())
        self._kind = ""  # of database that the text is ready for
        self._text = ""
        self._places: tuple[str, ...] = ()
        self._names: frozenset[str] = frozenset()
        STATEMENTS.append(self)

    def run(self, **values: Any) -> Any:
        """Runs the statement; returns the database's cursor, which has the `rowcount` of a change."""
        return database.execute_sql(*self._filled(values))

    def insert(self, **values: Any) -> int | None:
        """Inserts a row; returns its id, None when none was written. The text ends with $returning_id."""
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

    def value(self, **values: Any) -> Any:
        """Returns the only value of the only row, which is always there."""
        return database.obj.rows(*self._filled(values))[0][0]

    def _filled(self, values: dict[str, Any]) -> tuple[str, list[Any]]:
        if self._kind != database.obj.name:
            self.prepare()
        if values.keys() != self._names:
            raise TypeError(f"wanted: {sorted(self._names)}; given: {sorted(values)}")
        return self._text, [values[place] for place in self._places]

    def prepare(self) -> None:
        """Makes the text for the kind of database in use; it needs no connection."""
        kind, places = database.obj, []

        def written(found: re.Match[str]) -> str:
            if found[2]:
                return str(kind.words[found[2]])
            places.append(found[1])
            return str(kind.param)

        self._text = _NAME.sub(written, self._source)
        self._places, self._names, self._kind = tuple(places), frozenset(places), kind.name


STATEMENTS: list[Statement] = []


def prepare_all() -> None:
    """Makes the text of every statement that there is now, for the kind of database in use."""
    for statement in STATEMENTS:
        statement.prepare()


def columns(model: type[Row], of: str = "") -> str:
    """Returns the names of all columns in the order that `instance` wants; `of` is the table's name in the statement.

    A table may have them in another order: later migrations add theirs at its end.
    """
    return ", ".join(f"{of}.{name}" if of else name for name in _column_names(model))


def insertion(model: type[Row], *, with_id: bool = False) -> str:
    """Returns the text that inserts a row with values for all columns, except its id unless `with_id`."""
    names = [name for name in _column_names(model) if with_id or name != "id"]
    places = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {model._meta.table_name} ({', '.join(names)}) VALUES ({places})"


def _column_names(model: type[Row]) -> list[str]:
    return [field.column_name for field in model._meta.sorted_fields]


def listed(name: str, count: int) -> str:
    """Returns the places of `count` values, with commas between them; `each` names the values."""
    return ", ".join(f":{name}_{place}" for place in range(count))


def each(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """Names the values for the places of `listed`."""
    return {f"{name}_{place}": value for place, value in enumerate(values)}


def instance(model: type[Kind], values: Sequence[Any]) -> Kind:
    """Makes the row of `model` with these values of all its columns, which are numbers and texts as in the database.

    They go in at once: by its attributes, each of thirty columns would be a Python call.
    """
    row = model(__no_default__=True)
    row.__data__.update(zip(model._meta.sorted_field_names, values, strict=True))
    return row
