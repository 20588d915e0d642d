"""A check that a marketplace's floor is the price of its cheapest listing, since reads of asks depend on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cli.doctor.check import Check, ok, warn
from markets import venues

_REMEDY = "run it again in a minute; if this repeats, bidkeeper venue probe {venue} --save FILE, and report it"


def examine(answers: Mapping[tuple[str, str], Any], slug: str) -> Iterator[Check]:
    """Checks the answers about one collection, by (venue, question), of each venue whose floors are relied on."""
    for venue in sorted({venue for venue, question in answers if question == "listings"}):
        floor = (answers.get((venue, "floors")) or {}).get(slug)
        listings = answers[venue, "listings"]
        if not venues.is_known(venue) or not venues.capabilities(venue).floors_tell_asks:
            continue
        if floor is None or floor.floor is None or not listings:
            continue
        name, lowest = f"{venue} floor", min(listing.ask.price for listing in listings)
        if floor.floor == lowest:
            yield ok(name, f"{slug}: the floor and the cheapest listing are both {lowest:,} sats")
            continue
        text = (
            f"{slug}: the floor is {floor.floor:,} sats, the cheapest listing {lowest:,}: while they differ, "
            "each cycle reads all asks as well as the floor"
        )
        yield warn(name, text, _REMEDY.format(venue=venue))
