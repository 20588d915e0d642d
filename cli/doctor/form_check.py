"""The doctor on drafts that marketplaces write: for each kind, by what it is signed, or why it is not."""

from __future__ import annotations

from collections.abc import Iterator

from cli.doctor.check import Check, ok, warn
from core.settings import Settings
from markets.capabilities import Capabilities, funding_of
from markets.venues import capabilities
from server.task_venues import not_signed_bids, not_signed_listings
from wallet.policy import ceilings_of, escrow_terms_of

_PAGE = "docs/custody.md"
_IN_ESCROW = "meaning: transfer, sale and recovery, by an escrow that your own key opens"
_LOCKED = "meaning: transfer and sale, by an escrow that your own key opens {} blocks after an item came there"


def examine(settings: Settings) -> Iterator[Check]:
    """Yields a line for each venue and kind of draft: `meaning`, or `not signed` and why."""
    secure = ceilings_of(settings).secure_listings
    for venue in settings.venues:
        can = capabilities(venue)
        if funding_of(can) is not None and not can.bids_are_psbt:
            yield ok(_name(can, "withdrawals"), "meaning")
        if can.bids_are_psbt:
            why = not_signed_bids(venue, settings)
            yield _not_signed(can, "bids", why) if why else ok(_name(can, "bids"), "meaning")
        if not can.listings:
            continue
        if why := not_signed_listings(venue, settings):
            yield _not_signed(can, "listings", why)
            continue
        if (terms := escrow_terms_of(settings).get(venue)) is not None:
            yield ok(_name(can, "listings"), _IN_ESCROW if not terms.lock_blocks else _LOCKED.format(terms.lock_blocks))
            continue
        yield ok(_name(can, "plain listings"), "meaning")
        if venue in secure:
            yield ok(_name(can, "secure listings"), "meaning")
        elif can.delist_proof == "challenge":  # where secure forms are drafted
            yield ok(_name(can, "secure listings"), "not signed: the setting is off, so only plain ones are")


def _name(can: Capabilities, kind: str) -> str:
    return f"live {can.name} {kind}"


def _not_signed(can: Capabilities, kind: str, why: list[str]) -> Check:
    told = "; ".join(each.removeprefix("venue: ") for each in why)
    return warn(_name(can, kind), f"not signed: {told}", f"see {_PAGE}")
