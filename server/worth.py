"""The gain and the worth of a user's trades over time, and the sample of each hour for it."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from math import floor
from typing import Annotated, NamedTuple

from msgspec import Struct, field

from core.fields import Count, words
from models import worth
from models.accounts import READ
from models.ledger import fills, orders
from models.ledger.fills import BUY, Fill, Wanted
from models.tasks import cycles
from models.worth import Worth
from server.http.answers import INVALID, TOO_MANY_LONG_READS, ApiError, invalid
from server.http.base import PIECE, SignedIn, route
from server.http.services import Services
from server.http.shapes import AS_TIME, Answer, Asked, AskedTime
from strategy.config.bid import BidConfig, normal_slug
from strategy.guards import measure
from strategy.profit import HeldLot, Trade, match

log = logging.getLogger(__name__)

_FILLS_AT_ONCE = 200  # read while others wait: some milliseconds
_DAY_MS, _MINUTE_MS = 86_400_000, 60_000
_USUAL_DAYS, LONGEST_DAYS = 31, 731
_HOURS_SHOWN_DAYS = 62  # beyond it one sample a day is shown
_SALES_APART = 500  # moments in a span at which sales are shown


async def all_fills(services: Services, user_id: int, to_ms: int | None) -> list[Fill]:
    """Returns all real fills of the user before `to_ms`, oldest first, read in pages."""
    found = list[Fill]()

    def page() -> list[Fill]:
        return fills.newest(user_id, Wanted(to_ms=to_ms), _FILLS_AT_ONCE, found[-1].place if found else None)

    while more := await services.in_turn(user_id, page):
        found += more
    return [fill for fill in reversed(found) if not fill.dry_run]


def trades_of(found: Iterable[Fill]) -> list[Trade]:
    """Returns the fills as trades, in the same order and under the same ids."""
    return [_trade(fill) for fill in found]


def _trade(fill: Fill) -> Trade:
    is_buy = fill.place.side == BUY
    return Trade(
        id=fill.id,
        side=fill.place.side,
        at_ms=fill.place.filled_ms,
        venue=fill.venue,
        slug=fill.slug,
        task_id=fill.task_id,
        price_sats=fill.price_sats,
        quantity=fill.quantity,
        fee_sats=fill.network_fee_sats if is_buy else fill.venue_fee_sats,
        is_rune=fill.is_rune,
        inscription_id=fill.inscription_id,
    )


class Kind(NamedTuple):
    """Goods with one floor."""

    venue: str
    is_rune: bool
    slug: str


Floors = dict[Kind, Decimal | None]


async def floors_of(services: Services, user_id: int, kinds: Iterable[Kind], now_ms: int) -> Floors:
    """Returns the newest floor of each kind that a running task has looked at in the last hour; None without one."""
    known, wanted = Floors(), sorted(kinds)
    market = services.settings.market

    def read(some: list[Kind]) -> None:
        known.update((kind, _floor(kind, market, now_ms)) for kind in some)

    for begin in range(0, len(wanted), PIECE):
        await services.in_turn(user_id, lambda: read(wanted[begin : begin + PIECE]))  # noqa: B023
    return known


def _floor(kind: Kind, default_venue: str, now_ms: int) -> Decimal | None:
    type_, goods = ("rune", "runes") if kind.is_rune else ("ordinals", "ordinals")
    slug_key = normal_slug(type_, kind.slug)
    measured = measure(BidConfig(slug=slug_key, type=type_))
    if kind.venue != default_venue:
        measured = f"{measured} at {kind.venue}"
    return cycles.newest(goods, slug_key, measured, now_ms)


class _Stock(NamedTuple):
    quantity: Fraction = Fraction(0)
    cost: Fraction = Fraction(0)
    lots: int = 0


class Holdings(Struct, frozen=True):
    """The held goods by kind: how much of each, its cost, and from how many purchases."""

    _stocks: dict[Kind, _Stock]

    @classmethod
    def of(cls, lots: Iterable[HeldLot]) -> Holdings:
        """Sums the lots by their kind."""
        stocks = dict[Kind, _Stock]()
        for lot in lots:
            trade = lot.purchase
            kind = Kind(trade.venue, trade.is_rune, trade.slug or "")
            known = stocks.get(kind, _Stock())
            stocks[kind] = _Stock(known.quantity + lot.quantity, known.cost + lot.cost.sats, known.lots + 1)
        return cls(stocks)

    @property
    def kinds(self) -> Iterable[Kind]:
        return self._stocks.keys()

    def mark_sats(self, floors: Floors) -> int | None:
        """Returns what all would cost at the floor; None when it is not known of a part."""
        marks = [_mark(stock, floors[kind]) for kind, stock in self._stocks.items()]
        known = [mark for mark in marks if mark is not None]
        return floor(sum(known, Fraction(0))) if len(known) == len(marks) else None

    def worth(self, floors: Floors, exposure_sats: int) -> Worth:
        """Returns the worth of the part whose floor is known, and the number of items in the rest."""
        marks = [(stock, _mark(stock, floors[kind])) for kind, stock in self._stocks.items()]
        known = [(stock, mark) for stock, mark in marks if mark is not None]
        unknown_items = sum(stock.lots for stock, mark in marks if mark is None)
        if unknown_items and not known:
            return Worth(exposure_sats, None, None, unknown_items)
        cost, mark = sum((stock.cost for stock, _ in known), Fraction(0)), sum((m for _, m in known), Fraction(0))
        return Worth(exposure_sats, floor(cost), floor(mark), unknown_items)


def _mark(stock: _Stock, price: Decimal | None) -> Fraction | None:
    return None if price is None else stock.quantity * Fraction(price)


async def sample_worth(services: Services) -> None:
    """Writes the samples of this hour that are missing, one user after the other.

    Each server process tries; the first one writes. A user whose long read keeps all places waits for the next try.
    """
    for user_id in worth.due(services.clock_ms()):
        try:
            await _sample(services, user_id)
        except ApiError as refusal:
            log.info("no sample of the worth of user %d yet: %s", user_id, refusal)


async def _sample(services: Services, user_id: int) -> None:
    now_ms = services.clock_ms()
    if not worth.is_due(user_id, now_ms):
        return
    exposure_sats = orders.exposure(user_id)
    async with services.long_reads.turn(user_id):
        found = await all_fills(services, user_id, now_ms + 1)
        held = await services.long_reads(lambda: Holdings.of(match(trades_of(found)).held))
    floors = await floors_of(services, user_id, held.kinds, now_ms)
    worth.add(user_id, held.worth(floors, exposure_sats), now_ms)


class AskedGain(Asked, frozen=True, kw_only=True):
    """The time that is shown."""

    from_: Annotated[AskedTime, words(f"From then on; {_USUAL_DAYS} days before `to` when left out. {AS_TIME}")] = (
        field(name="from", default=None)
    )
    to: Annotated[AskedTime, words(f"Before then, at most {LONGEST_DAYS} days after `from`; now when left out.")] = None


class Gain(Answer, frozen=True, kw_only=True):
    """The gain and the worth in columns, one place in each for each time, oldest first."""

    time: Annotated[list[int], words("Unix seconds: of the samples, of sales, and of the last moment.")]
    realized_sats: Annotated[
        list[int], words("The gain of all sales until then, by fifo, as `realizedSats` of `GET /api/pnl`.")
    ]
    unrealized_sats: Annotated[
        list[int | None],
        words(
            "The worth at the floor of held items with a known floor, less their cost; null: no floor of what was held "
            "was known, or no sample was made."
        ),
    ]
    exposure_sats: Annotated[list[Count | None], words("Sats of all open orders; null without a sample.")]
    unknown_items: Annotated[
        list[Count | None], words("Held items without a known floor, in no sum; null without a sample.")
    ]
    unknown_fees: Annotated[Count, words("Trades until `to` whose fee is not known: it counts as zero.")]


class Gains(SignedIn):
    """The operation on gain and worth over time."""

    tag = "history"

    @route(
        "GET /api/pnl/series",
        READ,
        says="Columns of equal length; empty before the first task.",
        errors={400: INVALID, 429: TOO_MANY_LONG_READS},
        has_etag=True,
    )
    async def read_gain(self, asked: AskedGain) -> Gain:
        """Gain and worth over time

        The gain follows from the trades. A sample an hour has the worth of held items and the open orders: kept by the
        hour for two months, by the day for two years. Of a longer time than that one a day is shown.
        """
        now_ms = self.now_ms
        to_ms = now_ms + 1 if asked.to is None else asked.to
        from_ms = to_ms - _USUAL_DAYS * _DAY_MS if asked.from_ is None else asked.from_
        if from_ms >= to_ms:
            raise invalid(["from: must be before to"])
        if to_ms - from_ms > LONGEST_DAYS * _DAY_MS + _MINUTE_MS:
            raise invalid([f"from: must be at most {LONGEST_DAYS} days before to"])
        user_id, long_reads = self.user.id, self.services.long_reads
        async with self.long_answer(long_reads.answer(user_id)):
            samples = dict(await self.in_turn(lambda: worth.between(user_id, from_ms, to_ms)))
            exposure_sats = orders.exposure(user_id)
            async with long_reads.turn(user_id):
                trades = trades_of(await all_fills(self.services, user_id, to_ms))
                past = await long_reads(lambda: _Past.of(trades))
            end_ms = to_ms
            if to_ms > now_ms and (samples or trades):
                # By the minute, so that an answer without news stays the same.
                end_ms = max(now_ms - now_ms % _MINUTE_MS, past.last_ms, *samples)
                floors = await floors_of(self.services, user_id, past.held.kinds, now_ms)
                samples[end_ms] = past.held.worth(floors, exposure_sats)
            self.require_signed_in()
            return past.gain(samples, from_ms, end_ms)


class _Past(Struct, frozen=True):
    """Trades, matched: `gained` has the time of each sale and the gain of all until then, `began_ms` is the first."""

    began_ms: int | None
    last_ms: int
    gained: list[tuple[int, int]]
    held: Holdings
    unknown_fees: int

    @classmethod
    def of(cls, trades: list[Trade]) -> _Past:
        """Matches the trades, which are in the order of their time."""
        matching = match(trades)
        sums = accumulate((each.realized_sats for each in matching.sales), initial=Fraction(0))
        next(sums)
        return cls(
            began_ms=trades[0].at_ms if trades else None,
            last_ms=trades[-1].at_ms if trades else 0,
            gained=[(each.sale.at_ms, floor(total)) for each, total in zip(matching.sales, sums, strict=True)],
            held=Holdings.of(matching.held),
            unknown_fees=sum(trade.fee_sats is None for trade in trades),
        )

    def gain(self, samples: dict[int, Worth], from_ms: int, end_ms: int) -> Gain:
        """Returns the columns of [from_ms, end_ms]: at most 500 moments of sales, and each sample, or one a day."""
        moments = dict[int, Worth | None]()
        if self.began_ms is not None and self.began_ms <= end_ms:
            moments |= dict.fromkeys((max(from_ms, self.began_ms), end_ms))
        apart_ms = -(-(end_ms - from_ms) // (_SALES_APART * 1000)) * 1000
        moments |= dict.fromkeys(
            min(-(-at_ms // apart_ms) * apart_ms, end_ms) for at_ms, _ in self.gained if at_ms >= from_ms
        )
        moments |= samples if end_ms - from_ms <= _HOURS_SHOWN_DAYS * _DAY_MS else _by_days(samples)
        by_second = {at_ms // 1000: at_ms for at_ms in sorted(moments)}
        shown = [moments[at_ms] for at_ms in by_second.values()]
        return Gain(
            time=list(by_second),
            realized_sats=[self._gained_until(at_ms) for at_ms in by_second.values()],
            unrealized_sats=[each and each.unrealized_sats for each in shown],
            exposure_sats=[each and each.exposure_sats for each in shown],
            unknown_items=[each and each.unknown_items for each in shown],
            unknown_fees=self.unknown_fees,
        )

    def _gained_until(self, at_ms: int) -> int:
        place = bisect_right(self.gained, at_ms, key=lambda each: each[0])
        return self.gained[place - 1][1] if place else 0


def _by_days(samples: dict[int, Worth]) -> dict[int, Worth]:
    """Returns the first sample of each day, and the last of all."""
    first = {at_ms // _DAY_MS: at_ms for at_ms in sorted(samples, reverse=True)}
    return {at_ms: samples[at_ms] for at_ms in (*first.values(), *sorted(samples)[-1:])}
