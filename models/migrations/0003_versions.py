"""The version of Bidkeeper, and its commit, that applied each migration; null for those from before this one."""

from typing import Any


def up(migrator: Any, db: Any) -> None:
    for column in ("by_version", "by_commit"):
        db.execute_sql(f"ALTER TABLE schema_migration ADD COLUMN {column} VARCHAR(100)")
