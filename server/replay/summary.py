"""The sums of a simulation: fills, prices, and their part of the floor."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any, NamedTuple

from server.http.json_out import iso
from server.replay.paper_market import Fill
from server.replay.simulation import Simulation


class FillPrices(NamedTuple):
    """The fills in averages: sats of an item or token, and their part of the floor then and 24 hours later.

    `with_floor` and `with_later` are the fills whose floor is recorded; an average over none is None.
    """

    spent_sats: int
    average: Decimal | None
    to_floor: Decimal | None
    to_later: Decimal | None
    with_floor: int
    with_later: int


def fill_prices(outcome: Simulation) -> FillPrices:
    """Returns the averages of all fills."""
    fills = outcome.fills
    units = [share(Decimal(fill.order.price_sats), fill.order.quantity) for fill in fills]
    floors = [outcome.floor_at(fill.sale.sold_ms) for fill in fills]
    later = [outcome.floor_later(fill.sale.sold_ms) for fill in fills]
    return FillPrices(
        spent_sats=sum(fill.order.price_sats for fill in fills),
        average=_average(units),
        to_floor=_average(_ratios(units, floors)),
        to_later=_average(_ratios(units, later)),
        with_floor=sum(floor is not None for floor in floors),
        with_later=sum(floor is not None for floor in later),
    )


def fill_as_json(fill: Fill, outcome: Simulation) -> dict[str, Any]:
    """Returns one fill with the floor as last recorded before it, and 24 hours later; None where that is not known."""
    return {
        "time": iso(fill.sale.sold_ms),
        "price": fill.order.price_sats,
        "quantity": fill.order.quantity,
        "soldAt": fill.sale.price,
        "floor": outcome.floor_at(fill.sale.sold_ms),
        "floor24hLater": outcome.floor_later(fill.sale.sold_ms),
    }


def share(number: Decimal, of: Decimal) -> Decimal:
    """Divides exactly enough for prices of tokens."""
    with localcontext() as context:
        context.prec = 50
        return number / of


def _ratios(units: list[Decimal], floors: list[Decimal | None]) -> list[Decimal]:
    return [share(unit, floor) for unit, floor in zip(units, floors, strict=True) if floor is not None]


def _average(numbers: list[Decimal]) -> Decimal | None:
    """Returns the average to six decimals."""
    if not numbers:
        return None
    with localcontext() as context:
        context.prec = 60
        return (sum(numbers, Decimal(0)) / len(numbers)).quantize(Decimal("0.000001"), ROUND_HALF_EVEN)
