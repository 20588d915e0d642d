"""Samples of each user: the worth of the holdings and the sats of open bids, once an hour."""

from typing import Any

_TABLE = """
CREATE TABLE worth_samples (
    user_id {whole} NOT NULL, hour {whole} NOT NULL, at_ms {whole} NOT NULL, exposure_sats {whole} NOT NULL,
    cost_sats {whole}, mark_sats {whole}, unknown_items {whole} NOT NULL,
    PRIMARY KEY (user_id, hour), FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
)
"""


def up(migrator: Any, db: Any) -> None:
    if db.has_rowid:
        db.execute_sql(_TABLE.format(whole="INTEGER").rstrip() + " WITHOUT ROWID")
    else:
        db.execute_sql(_TABLE.format(whole="BIGINT"))
