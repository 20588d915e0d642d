"""A task's venue: named when it is created and never after; orders that it cannot serve are refused with a reason.

Its capabilities are known. Only for a trait and for a rune's spelling is a marketplace asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from core.settings import Settings
from markets import venues
from markets.base import VenueError
from markets.capabilities import Capabilities
from markets.look import kind_of
from server.http.answers import invalid
from server.http.blocking import UserMarket
from strategy.config.bid import BidConfig, canonical_slug, normal_slug
from strategy.config.listing import ListingConfig, load_listing_config
from wallet.policy import SETTING, co_signers_of, escrow_terms_of

PATIENCE_S = 2.0  # for the two checks that ask a marketplace
_TRAITS_AGE_S = 3600.0  # a collection's traits hardly ever change
_SPELLING_AGE_S = 86_400.0  # a rune's name never changes
_MOST_NEAR = 3
_BULLET = "\u2022"

Catalogue = Mapping[str, Mapping[str, int]]


def named(given: Mapping[str, Any], settings: Settings) -> tuple[str, list[str]]:
    """Returns the venue that a body names, else the default, and the faults of the name."""
    name = given.get("venue", settings.market)
    if not isinstance(name, str):
        return settings.market, []  # its shape is a fault of the body, which is told with the others
    problem = settings.why_no_venue(name)
    return name, [] if problem is None else [f"venue: {problem}"]


def moved(given: Mapping[str, Any], venue: str) -> list[str]:
    """Returns the fault of a change that names another venue than the task's."""
    name = given.get("venue", venue)
    return ["venue: cannot be changed; create another task"] if isinstance(name, str) and name != venue else []


def delivering(given: Mapping[str, Any], venue: str, config: BidConfig) -> BidConfig:
    """Returns the config with the venue's only place of delivery, unless the body names one."""
    can = _capabilities(venue)
    is_bound = can is not None and can.bids_are_psbt and "deliverTo" not in given
    return replace(config, deliver_to="vault") if is_bound else config


def unfit_for_bids(venue: str, config: BidConfig) -> list[str]:
    """Returns the parts of the config that the venue cannot serve."""
    can = _capabilities(venue)
    if can is None:
        return []
    if not can.kinds:
        return [f"venue: {can.title} takes no bids"]
    details = []
    if kind_of(config) not in can.kinds:
        details.append(f"type: {can.title} takes no bids of type {config.type}")
    if config.bid_type not in can.bid_types:
        details.append(f"bidType: {can.title} takes no bids of type {config.bid_type}")
    if can.bids_are_psbt and not config.to_vault:
        details.append(f"deliverTo: {can.title} delivers to the vault only")
    if config.on_fill is not None:
        rule = load_listing_config(config.on_fill.autolist)
        details += [f"onFill: autolist.{fault}" for fault in unfit_for_listing(venue, rule)]
    return details


def unfit_for_listing(venue: str, config: ListingConfig) -> list[str]:
    """Returns why the venue cannot list inscriptions of ours at the price of this config."""
    can = _capabilities(venue)
    if can is None:
        return []
    if not can.listings:
        return [f"venue: {can.title} takes no listings"]
    if config.trait is not None and not can.tells_traits:
        return [f"reference: {can.title} does not tell which traits its listings have"]
    return []


def not_signed_bids(venue: str, settings: Settings) -> list[str]:
    """Returns why the signer does not sign bids there: it pays into no escrow of keys that nobody has named."""
    can = _capabilities(venue)
    if can is None or not can.bids_are_psbt or venue in co_signers_of(settings):
        return []
    unset = f"until {SETTING} names the keys that can together take a bid's price"
    return [f"venue: bids at {can.title} are not signed {unset} (docs/custody.md)"]


def not_signed_listings(venue: str, settings: Settings) -> list[str]:
    """Returns why the signer does not sign listings there: they move the item into an escrow that it does not know."""
    can = _capabilities(venue)
    if can is None or can.lists_plain or venue in escrow_terms_of(settings):
        return []
    return [f"venue: listings at {can.title} are not signed, since they move the item into an escrow that is not known"]


def not_there(venue: str, settings: Settings) -> list[str]:
    """Returns why a task cannot be started at its venue, which may have been set up when it was created."""
    problem = settings.why_no_venue(venue)
    return [] if problem is None else [f"venue: {problem}"]


def telling_wallets(settings: Settings) -> str:
    """Returns the venue that tells an address's contents: the default one if it can, else the first that can.

    Its names of collections may differ from others'.
    """
    found = ((name, _capabilities(name)) for name in settings.venues)
    return next((name for name, can in found if can is not None and can.wallets), settings.market)


def with_bidding_wallets(settings: Settings) -> list[str]:
    """Returns the venues where money of our users lies in a bidding wallet."""
    found = ((name, _capabilities(name)) for name in settings.venues)
    return [name for name, can in found if can is not None and can.kinds and not can.bids_are_psbt]


def _capabilities(venue: str) -> Capabilities | None:
    """Returns the venue's capabilities; None for an unknown name, which is a fault of its own."""
    return venues.capabilities(venue) if venues.is_known(venue) else None


# ---- what the marketplace itself knows


async def refuse_unknown_trait(
    market: UserMarket, config: BidConfig, venue: str, former: BidConfig | None = None
) -> None:
    """Raises ApiError (400) when the marketplace `venue` says that the collection has no such trait.

    A marketplace that cannot be asked, takes long, or tells no traits of this collection does not object: a bid for a
    trait that no item has is never filled, and the marketplace judges it again when it is placed. A trait that `former`
    had, too, is not looked up again.
    """
    if config.trait is None or (former and (former.slug, former.trait) == (config.slug, config.trait)):
        return
    question = market(lambda client: client.at(venue).traits(config.slug, _TRAITS_AGE_S))
    try:
        catalogue = await asyncio.wait_for(question, PATIENCE_S)
    except (VenueError, TimeoutError):
        return
    if catalogue and (detail := missing(config.trait, catalogue)):
        raise invalid([detail])


def missing(trait: tuple[str, str], catalogue: Catalogue) -> str | None:
    """Returns the fault of the trait (type, value) as a detail with similar names; None without a fault."""
    kind, value = trait
    if kind not in catalogue:
        return f"traitType: the collection has no trait {kind}{_near(kind, catalogue)}"
    if value not in catalogue[kind]:
        return f"traitValue: the collection has no {kind} {value}{_near(value, catalogue[kind])}"
    return None


def _near(text: str, names: Iterable[str]) -> str:
    """Returns names that differ only in capitals and spaces, which venues tell apart: all of them."""
    by_folded: dict[str, list[str]] = {}
    for name in names:
        by_folded.setdefault(" ".join(name.casefold().split()), []).append(name)
    folded = get_close_matches(" ".join(text.casefold().split()), by_folded, _MOST_NEAR)
    near = [name for each in folded for name in by_folded[each]][:_MOST_NEAR]
    return f"; it has {', '.join(near)}" if near else ""


def is_unspelled(config: BidConfig) -> bool:
    """Tells whether the ticker may lack its bullets. Some names have none."""
    return config.is_rune and _BULLET not in config.slug


async def spelled(market: UserMarket, config: BidConfig) -> BidConfig:
    """Returns the config with the ticker in the marketplace's spelling; unchanged where that is unknown."""
    if not is_unspelled(config):
        return config
    question = market(lambda client: client.rune(config.slug, _SPELLING_AGE_S))
    try:
        slug = canonical_slug("rune", (await asyncio.wait_for(question, PATIENCE_S)).ticker)
    except (VenueError, TimeoutError):
        return config  # the next start asks again
    is_same = normal_slug("rune", slug) == normal_slug("rune", config.slug)
    return replace(config, slug=slug) if is_same else config
