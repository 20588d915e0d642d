"""Reference prices of the last day, one a minute: they tell a sudden rise from a lasting price, and a sudden fall.

They are kept by slug and measure, so that all tasks on a slug share them and they survive restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal

from peewee import BigIntegerField, CharField, CompositeKey, IntegerField, TextField

from models.database.base import Row, Statement, transaction
from strategy import guards
from strategy.book import NO_HISTORY, History
from strategy.config.bid import BidConfig
from strategy.guards import WINDOW_MINUTES, MinuteSample, guarded, minutes_wanted

_MINUTE_MS = 60_000
_EXACT = Context(prec=1_000)  # more digits than any price has: sums and halves are not rounded


class FloorSample(Row):
    """The reference price of one minute since 1970, in sats a token (ordinals: of one item), as a decimal's text.

    `reference` is the minute's first, `low` its lowest, which was seen at `low_ms`, `high` the highest before it was
    clamped to the history.
    """

    kind = CharField(max_length=10)
    slug_key = CharField(max_length=200)
    measure = TextField()
    minute = IntegerField()
    reference = TextField()
    low = TextField()
    low_ms = BigIntegerField()
    high = TextField()

    class Meta:
        primary_key = CompositeKey("kind", "slug_key", "measure", "minute")
        without_rowid = True
        indexes = ((("minute",), False),)


_KEY = "kind = :kind AND slug_key = :slug_key AND measure = :measure"
_IN_MINUTE = Statement(f"SELECT low, high FROM floor_samples WHERE {_KEY} AND minute = :minute")
_BETWEEN = Statement(f"SELECT reference FROM floor_samples WHERE {_KEY} AND minute > :after AND minute <= :minute")
_ALL_BETWEEN = Statement(
    f"""
    SELECT minute, reference, low, low_ms, high FROM floor_samples
    WHERE {_KEY} AND minute > :after AND minute <= :minute ORDER BY minute
    """
)
_NEWEST = Statement(
    f"SELECT reference FROM floor_samples WHERE {_KEY} AND minute > :after ORDER BY minute DESC LIMIT 1"
)


def record(kind: str, slug_key: str, measure: str, reference: Decimal, now_ms: int, raw: Decimal | None = None) -> None:
    """Writes the minute's first sample of `measure` (see strategy/guards.py); of later ones only extremes.

    `raw` is the reference before it was clamped, if it was. All samples older than a day go. Raises ValueError for an
    impossible price.
    """
    if not reference.is_finite() or reference <= 0:
        raise ValueError(f"{reference} is no reference price")
    minute = now_ms // _MINUTE_MS
    # Most cycles find the minute's sample there, and need no write lock to see it.
    key = {"kind": kind, "slug_key": slug_key, "measure": measure, "minute": minute}
    high = reference if raw is None else raw
    known = _IN_MINUTE.row(**key)
    if known is not None and Decimal(known[0]) <= reference and high <= Decimal(known[1]):
        return
    with transaction():
        # Another process may have been quicker since.
        if (known := _IN_MINUTE.row(**key)) is None:
            extremes = {"low": str(reference), "low_ms": now_ms, "high": str(high)}
            FloorSample.insert(**key, reference=str(reference), **extremes).execute()
            FloorSample.delete().where(FloorSample.minute <= minute - guards.KEPT_MINUTES).execute()
            return
        beyond: dict[str, str | int] = {}
        if Decimal(known[0]) > reference:
            beyond |= {"low": str(reference), "low_ms": now_ms}
        if Decimal(known[1]) < high:
            beyond |= {"high": str(high)}
        if beyond:
            its = (getattr(FloorSample, name) == value for name, value in key.items())
            FloorSample.update(**beyond).where(*its).execute()


def samples(kind: str, slug_key: str, measure: str, minutes: int, now_ms: int) -> list[MinuteSample]:
    """Returns the samples of the last `minutes` minutes and the present one, oldest first."""
    minute = now_ms // _MINUTE_MS
    rows = _ALL_BETWEEN.rows(kind=kind, slug_key=slug_key, measure=measure, after=minute - minutes - 1, minute=minute)
    return [
        MinuteSample(at, Decimal(reference), Decimal(low), low_ms, Decimal(high))
        for at, reference, low, low_ms, high in rows
    ]


def history_for(config: BidConfig, key: tuple[str, str, str], now_ms: int) -> History:
    """Returns the history that a task of this config decides by; none if it makes no use of one."""
    if not config.wants_history:
        return NO_HISTORY
    found = history(*key, now_ms)
    return guarded(found, config, samples(*key, minutes_wanted(config), now_ms), now_ms) if config.is_guarded else found


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
    rest = measure.removeprefix("ask")
    of_bidders = f"trait{rest}" if rest.startswith(":") else f"floor{rest}"
    return history(kind, slug_key, of_bidders, now_ms)


def _median(ascending: list[Decimal]) -> Decimal:
    middle = len(ascending) // 2
    if len(ascending) % 2:
        return ascending[middle]
    return _EXACT.divide(_EXACT.add(ascending[middle - 1], ascending[middle]), Decimal(2))
