"""The order of events at PostgreSQL, where a lower number may be committed after a higher one: locks tell readers."""

from __future__ import annotations

# The locks of those who are about to write events: this number, and the newest event's when they took it.
_EVENTS = 0x45 << 56
HOLD_BACK = (
    f"SELECT pg_advisory_xact_lock_shared({_EVENTS} + last_value - CASE WHEN is_called THEN 0 ELSE 1 END)"
    " FROM events_id_seq"
)
# One snapshot has the newest event, and it is taken before the locks are looked at: who drew a lesser number before has
# let go of its lock meanwhile, and then its event is there for the next statement, or still stands among the locks.
SETTLED = f"""
    SELECT LEAST(
        GREATEST(
            (SELECT COALESCE(MAX(id), 0) FROM events),
            (SELECT COALESCE(MAX(GREATEST(lasting_id, passing_id)), 0) FROM forgotten_events)
        ),
        (
            SELECT MIN((classid::bigint << 32 | objid::bigint) - {_EVENTS}) FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 1
            AND classid::bigint BETWEEN {_EVENTS >> 32} AND {(_EVENTS >> 32) + 0xFF_FF_FF}
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        )
    )
"""
