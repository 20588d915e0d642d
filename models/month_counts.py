"""The gateway's counts of its keys' calls, where several machines' gateways take turns."""

from __future__ import annotations

from peewee import CharField, TextField

from models.database.base import Row, opened


class MonthCount(Row):
    """A venue's count, as the JSON that the gateway's file would have."""

    venue = CharField(max_length=30, primary_key=True)
    kept = TextField()

    class Meta:
        table_name = "month_counts"


def kept_of(url: str, venue: str) -> str | None:
    """Returns what is kept for the venue, by a connection of its own. Raises peewee's OperationalError."""
    database = opened(url)
    with database.connection_context():
        row = database.execute_sql("SELECT kept FROM month_counts WHERE venue = %s", [venue]).fetchone()
        return None if row is None else str(row[0])


def keep(url: str, venue: str, text: str) -> None:
    """Keeps this for the venue, by a connection of its own. Raises peewee's OperationalError."""
    database = opened(url)
    with database.connection_context():
        database.execute_sql(
            "INSERT INTO month_counts (venue, kept) VALUES (%s, %s)"
            " ON CONFLICT (venue) DO UPDATE SET kept = excluded.kept",
            [venue, text],
        )
