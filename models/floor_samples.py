"""Reference prices of the last hour, one a minute, which tell a sudden rise from a lasting price.

Kept by slug and measure, so that all tasks on a slug share them and they survive restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal

from peewee import SQL, CharField, CompositeKey, IntegerField, TextField

from models.base import Row, transaction
from models.prepared import Prepared, given
from strategy.book import History

WINDOW_MINUTES = 60
_MINUTE_MS = 60_000
_EXACT = Context(prec=1_000)  # more digits than any price has: sums and halves are not rounded


class FloorSample(Row):
    """The reference price of one minute since 1970, in sats a token (ordinals: of one item), as a decimal's text."""

    kind = CharField(max_length=10)
    slug_key = CharField(max_length=200)
    measure = TextField()
    minute = IntegerField()
    reference = TextField()

    class Meta:
        table_name = "floor_samples"
        primary_key = CompositeKey("kind", "slug_key", "measure", "minute")
        without_rowid = True
        indexes = ((("minute",), False),)


_KEY = (
    FloorSample.kind == given("kind"),
    FloorSample.slug_key == given("slug_key"),
    FloorSample.measure == given("measure"),
)
_IN_MINUTE = Prepared(
    lambda: FloorSample.select(FloorSample.minute).where(*_KEY, FloorSample.minute == given("minute"))
)
_BETWEEN = Prepared(
    lambda: FloorSample.select(FloorSample.reference).where(
        *_KEY, FloorSample.minute > given("after"), FloorSample.minute <= given("minute")
    )
)


_NEWEST = Prepared(
    lambda: (
        FloorSample.select(FloorSample.reference)
        .where(*_KEY, FloorSample.minute > given("after"))
        .order_by(FloorSample.minute.desc())
        .limit(SQL("1"))
    )
)


def record(kind: str, slug_key: str, measure: str, reference: Decimal, now_ms: int) -> None:
    """Writes the minute's first sample of `measure` (see strategy.bidding.measure); later ones change nothing.

    All samples older than the window go. Raises ValueError for an impossible price.
    """
    if not reference.is_finite() or reference <= 0:
        raise ValueError(f"{reference} is no reference price")
    minute = now_ms // _MINUTE_MS
    # Most cycles find the minute's sample there, and need no write lock to see it.
    if _IN_MINUTE.rows(kind=kind, slug_key=slug_key, measure=measure, minute=minute):
        return
    with transaction():
        FloorSample.insert(
            kind=kind, slug_key=slug_key, measure=measure, minute=minute, reference=str(reference)
        ).on_conflict_ignore().execute()
        FloorSample.delete().where(FloorSample.minute <= minute - WINDOW_MINUTES).execute()


def history(kind: str, slug_key: str, measure: str, now_ms: int) -> History:
    """Returns the median and number of the samples of the last 60 minutes, the present one included."""
    minute = now_ms // _MINUTE_MS
    rows = _BETWEEN.rows(kind=kind, slug_key=slug_key, measure=measure, after=minute - WINDOW_MINUTES, minute=minute)
    found = sorted(Decimal(text) for (text,) in rows)
    return History(_median(found) if found else None, len(found))


def newest(kind: str, slug_key: str, measure: str, now_ms: int) -> Decimal | None:
    """Returns the newest sample of the last 60 minutes; None when there is none."""
    after = now_ms // _MINUTE_MS - WINDOW_MINUTES
    found = _NEWEST.row(kind=kind, slug_key=slug_key, measure=measure, after=after)
    return None if found is None else Decimal(found[0])


def history_of_asks(elsewhere: str | None) -> Callable[[str, str, str, int], History]:
    """Returns `history` for a venue that is not the default one, else `_history_of_sellers`."""
    return _history_of_sellers if elsewhere is None else history


def _history_of_sellers(kind: str, slug_key: str, measure: str, now_ms: int) -> History:
    """Returns the sellers' history at the default venue; without one, that of bidders on the same."""
    found = history(kind, slug_key, measure, now_ms)
    if found.samples:
        return found
    of_bidders = "floor" if measure == "ask" else f"trait:{measure.partition(':')[2]}"
    return history(kind, slug_key, of_bidders, now_ms)


def _median(ascending: list[Decimal]) -> Decimal:
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return _EXACT.divide(_EXACT.add(ascending[middle - 1], ascending[middle]), Decimal(2))
