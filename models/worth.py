"""The worth of each user's holdings, and the sats of their open bids, once an hour.

The gain of sales is not kept, because it follows from the trades. The worth at the floor, and what was open, are known
only at the time.
"""

from __future__ import annotations

from typing import NamedTuple

from peewee import BigIntegerField, CompositeKey, ForeignKeyField, IntegerField

from models.database.base import Row, Statement, insertion, transaction
from models.users import User

# Rows of a user: the newest two months by hours, then two years by the first of each day (UTC). By number, not by age,
# so that a clock that is wrong for a while lets none of them go.
HOURS_KEPT, DAYS_KEPT = 62 * 24, 731
_HOUR_MS, _DAY = 3_600_000, 24


class Worth(NamedTuple):
    """The sats of one moment, of real trades.

    `cost_sats` and `mark_sats` are what the held items with a known floor cost, and what they are worth at it; None
    when something is held, and no floor of it is known. `unknown_items` counts those without a known floor.
    """

    exposure_sats: int
    cost_sats: int | None
    mark_sats: int | None
    unknown_items: int

    @property
    def unrealized_sats(self) -> int | None:
        """The gain that a sale at the floor would make, before fees; None when it is not known of anything."""
        return None if self.cost_sats is None or self.mark_sats is None else self.mark_sats - self.cost_sats


class WorthSample(Row):
    """A user's worth at `at_ms`, in the hour `hour` since 1970."""

    user = ForeignKeyField(User, on_delete="CASCADE", index=False)
    hour = IntegerField()
    at_ms = BigIntegerField()
    exposure_sats = BigIntegerField()
    cost_sats = BigIntegerField(null=True)
    mark_sats = BigIntegerField(null=True)
    unknown_items = IntegerField()

    class Meta:
        primary_key = CompositeKey("user", "hour")
        without_rowid = True


_DUE = Statement(
    """
    SELECT id FROM users WHERE (
        EXISTS (SELECT 1 FROM tasks WHERE tasks.user_id = users.id)
        OR EXISTS (SELECT 1 FROM orders WHERE orders.user_id = users.id AND close_reason = 'filled')
    ) AND NOT EXISTS (SELECT 1 FROM worth_samples WHERE worth_samples.user_id = users.id AND hour = :hour) ORDER BY id
    """
)
_IS_DUE = Statement("SELECT COUNT(*) FROM worth_samples WHERE user_id = :user_id AND hour = :hour")
_INSERT = Statement(f"{insertion(WorthSample)} ON CONFLICT (user_id, hour) DO NOTHING")
# A row of the future was made by a wrong clock; those of two machines may differ by a little.
_UNDO = Statement("DELETE FROM worth_samples WHERE user_id = :user_id AND hour > :next_hour")
_AFTER = Statement("SELECT hour FROM worth_samples WHERE user_id = :user_id ORDER BY hour DESC LIMIT 1 OFFSET :newer")
_FORGET = Statement("DELETE FROM worth_samples WHERE user_id = :user_id AND hour <= :last")
_THIN = Statement(
    f"""
    DELETE FROM worth_samples WHERE user_id = :user_id AND hour <= :last AND EXISTS (
        SELECT 1 FROM worth_samples AS earlier WHERE earlier.user_id = worth_samples.user_id
        AND earlier.hour < worth_samples.hour AND earlier.hour > worth_samples.hour - {_DAY}
        AND earlier.hour / {_DAY} = worth_samples.hour / {_DAY}
    )
    """
)
_BETWEEN = Statement(
    """
    SELECT at_ms, exposure_sats, cost_sats, mark_sats, unknown_items FROM worth_samples
    WHERE user_id = :user_id AND hour >= :first AND at_ms >= :from_ms AND at_ms < :to_ms ORDER BY hour
    """
)


def due(now_ms: int) -> list[int]:
    """Returns the users who have a task, or ever bought something, and no sample of this hour yet."""
    return [user_id for (user_id,) in _DUE.rows(hour=now_ms // _HOUR_MS)]


def is_due(user_id: int, now_ms: int) -> bool:
    """Tells whether the user has no sample of this hour yet."""
    return not _IS_DUE.value(user_id=user_id, hour=now_ms // _HOUR_MS)


def add(user_id: int, worth: Worth, now_ms: int) -> bool:
    """Writes the hour's sample, and lets old ones go; False, with nothing changed, when the hour has one already.

    Several processes may try: one of them writes.
    """
    hour = now_ms // _HOUR_MS
    with transaction():
        if not _INSERT.run(user_id=user_id, hour=hour, at_ms=now_ms, **worth._asdict()).rowcount:
            return False
        _UNDO.run(user_id=user_id, next_hour=hour + 1)
        for letting_go, newer in ((_THIN, HOURS_KEPT), (_FORGET, HOURS_KEPT + DAYS_KEPT)):
            if (found := _AFTER.row(user_id=user_id, newer=newer)) is not None:
                letting_go.run(user_id=user_id, last=found[0])
    return True


def between(user_id: int, from_ms: int, to_ms: int) -> list[tuple[int, Worth]]:
    """Returns the samples of [from, to) with their times, oldest first."""
    rows = _BETWEEN.rows(user_id=user_id, first=from_ms // _HOUR_MS, from_ms=from_ms, to_ms=to_ms)
    return [(at_ms, Worth(*values)) for at_ms, *values in rows]
