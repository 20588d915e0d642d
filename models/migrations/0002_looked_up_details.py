"""An index of the details of inscriptions, which are dropped when they are too old to be told."""

from typing import Any


def up(migrator: Any, db: Any) -> None:
    db.execute_sql("CREATE INDEX inscriptions_detailed ON inscriptions (fetched_ms) WHERE (detail IS NOT NULL)")
