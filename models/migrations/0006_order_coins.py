"""The coins that an order is paid with, where orders are transactions. Frozen.

The column is added by ALTER TABLE, which rewrites no row.
"""

from typing import Any


def up(migrator: Any, db: Any) -> None:
    db.execute_sql("ALTER TABLE orders ADD COLUMN coins TEXT NOT NULL DEFAULT ''")
