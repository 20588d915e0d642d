"""The reads that one connection to PostgreSQL is asked often: prepared at the server, and asked without a cursor.

A cursor of the driver takes three times as much of our CPU as the question itself, and a request of the HTTP API asks
one to three of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

_OFTEN = 5  # as the driver's own: a connection of one cycle prepares nothing
_NEVER = -(2**62)


class PreparedReads:
    """The reads of one connection, outside of transactions."""

    def __init__(self, connection: Any) -> None:
        from psycopg import Error, adapt, errors, generators, pq

        self._connection, self._server = connection, connection.pgconn
        self._values, self._text = adapt.Transformer(connection), adapt.PyFormat.TEXT
        self._answered, self._good = generators.execute, (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
        self._fault, self._told = Error, errors.error_from_result
        self._out_of_time = errors.QueryCanceled, errors.LockNotAvailable
        self._names: dict[str, bytes] = {}
        self._asked: Counter[str] = Counter()
        self._count = 0  # of the names that were given

    def rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """Returns the rows of a SELECT; None where it must be asked the usual way, which also says what is wrong.

        Raises psycopg's QueryCanceled or LockNotAvailable when the server ends it, which it may after a minute only: to
        ask again would take as long.
        """
        try:
            name = self._names.get(sql) or self._prepare(sql)
            return self._ask(name, values) if name else None
        except self._out_of_time:
            raise
        except self._fault:  # from now on the usual way
            self._names.pop(sql, None)
            self._asked[sql] = _NEVER
            return None

    def _prepare(self, sql: str) -> bytes | None:
        """Prepares a read that is asked often; returns its name at the server."""
        self._asked[sql] += 1
        if self._asked[sql] <= _OFTEN or "%%" in sql:
            return None
        self._count += 1
        name = b"read %d" % self._count
        text, *others = sql.split("%s")
        for place, other in enumerate(others, 1):
            text += f"${place}{other}"
        self._server.send_prepare(name, text.encode())
        self._answer()
        self._names[sql] = name
        return name

    def _ask(self, name: bytes, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        self._server.send_query_prepared(name, self._values.dump_sequence(values, [self._text] * len(values)))
        result = self._answer()
        self._values.set_pgresult(result)
        return list(self._values.load_rows(0, result.ntuples, tuple))

    def _answer(self) -> Any:
        [result] = self._connection.wait(self._answered(self._server))
        if result.status not in self._good:
            raise self._told(result)
        return result
