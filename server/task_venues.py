"""A task's venue: named when it is created and never after; orders that it cannot serve are refused with a reason.

No venue is asked: its capabilities are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.settings import Settings
from markets import venues
from markets.capabilities import Capabilities
from markets.look import kind_of
from strategy.bid_config import BidConfig
from strategy.listing.listing_config import ListingConfig, load_listing_config
from wallet.co_signers import SETTING, co_signers_of
from wallet.escrow_terms import escrow_terms_of


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
