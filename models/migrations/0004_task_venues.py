"""The venue of each task; NULL is the installation's default, which is where tasks of before this trade. Frozen.

Columns are added by ALTER TABLE, which rewrites no row.
"""

from typing import Any


def up(migrator: Any, db: Any) -> None:
    for table in ("bidding_tasks", "autolist_tasks"):
        db.execute_sql(f"ALTER TABLE {table} ADD COLUMN venue VARCHAR(30)")
