"""A replay's result, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from strategy.pricing import plain


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of the values that `report.values` returned."""
    yield f"{found['recording']}: {found['slug']} ({found['type']}), {found['cycles']} cycles"
    yield f"from {found['from']} to {found['to']}"
    yield from (f"note: {note}" for note in found["notes"])
    if (verified := found["verified"]) is not None:
        same = verified["decisions"] - verified["different"]
        yield f"verified: {same} of {verified['decisions']} recorded decisions come out the same"
        for each in verified["differences"]:
            if not each["fields"]:
                yield f"  {each['time']} cannot be decided: {each['error']}"
                continue
            yield f"  {each['time']} differs in {', '.join(each['fields'])}"
            yield f"    recorded: {each['recorded']}"
            yield f"    now:      {each['now']}"
    if "summary" in found:
        yield from _simulated(found)


def _simulated(found: dict[str, Any]) -> Iterator[str]:
    yield f"fill rule: {found['fillRule']}."
    for name, (old, new) in found["changes"].items():
        yield f"changed: {name} from {_shown(old)} to {_shown(new)}"
    yield "simulated cycles that did something:"
    for each in found["decisions"]:
        yield f"  {each['time']} {each['action']}{_prices(each)}"
    yield "fills:" if found["fills"] else "fills: none"
    for fill in found["fills"]:
        yield (
            f"  {fill['time']} {_shown(fill['price'])} for {_shown(fill['quantity'])}, "
            f"sold at {_shown(fill['soldAt'])}; "
            f"floor {_shown(fill['floor'])}, 24 h later {_shown(fill['floor24hLater'])}"
        )
    total = found["summary"]
    yield f"simulated: {total['cycles']} cycles, {total['fills']} fills, {_shown(total['spentSats'])} sats spent"
    yield (
        f"average fill price {_shown(total['averagePrice'])}; of the floor {_shown(total['averagePriceToFloor'])}, "
        f"of the floor 24 h later {_shown(total['averagePriceToFloor24hLater'])} "
        f"({total['fillsWithFloor24hLater']} of {total['fills']} known)"
    )
    yield f"top bidder for {total['topBidderSeconds']} s of {total['rankKnownSeconds']} s in which the others are known"
    skipped = ", ".join(f"{count} {reason}" for reason, count in total["skipped"].items())
    yield f"skipped rungs: {skipped or 'none'}"
    yield "calls of the venue, nothing shared: " + ", ".join(f"{n} {name}" for name, n in total["calls"].items())


def _prices(decision: dict[str, Any]) -> str:
    parts = {
        "filled": decision["filled"],
        "expired": decision["expired"],
        "cancelled": [each["price"] for each in decision["cancelled"]],
        "placed": [each["price"] for each in decision["placed"]],
    }
    return "".join(f"; {word} {' '.join(map(_shown, prices))}" for word, prices in parts.items() if prices)


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, Decimal):
        return plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)
