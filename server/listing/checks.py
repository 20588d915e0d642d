"""Checks before the start of an auto-list task: faults that can be found before a worker tries.

A marketplace or an index that cannot be asked does not object to a start: the worker finds out, and the signer looks
for itself before it signs.
"""

from __future__ import annotations

import asyncio

from markets.base import NotFound, VenueError
from models import inscriptions
from models.tasks.table import Task
from server import listing_config, task_venues
from server.http.api_errors import ApiError, invalid
from server.http.base import SignedIn
from server.listing.inscriptions import look_up
from strategy.bid_config import BidConfig
from strategy.listing.listing_config import ListingConfig, problems, unstartable

PATIENCE_S = 5.0
_NOT_YET = "This cannot be started yet"
_UNKNOWN = "inscriptionId: there is no such inscription in any block yet"
_NO_COLLECTION = "collectionId: is required, as the marketplace does not tell of which collection the inscription is"


async def startable_collection(handler: SignedIn, task: Task, config: ListingConfig, named: str | None) -> str | None:
    """Returns the collection of the task with this config: `named`, else from any source; None if all are away.

    Raises ApiError (400) for a task that no worker could keep: a config with gaps, a price that depends on a collection
    that the marketplace does not tell, or on a trait that it does not have.
    """
    if found := listing_config.details_of([*problems(config), *unstartable(config)]):
        raise invalid(found, _NOT_YET)
    settings, venue = handler.services.settings, task.venue
    found = task_venues.not_there(venue, settings) or task_venues.unfit_for_listing(venue, config)
    if found := found or task_venues.not_signed_listings(venue, settings):
        raise invalid(found, _NOT_YET)
    collection_id = named or known_collection(handler, task.inscription_id, venue)
    if collection_id is None and config.wants_collection:
        collection_id = await _told_collection(handler, task.inscription_id, venue)
    if config.trait is not None and collection_id is not None:
        kind, value = config.trait
        asked = BidConfig(collection_id, bid_type="trait", trait_type=kind, trait_value=value)
        await task_venues.refuse_unknown_trait(handler.act, asked, venue)
    return collection_id


def known_collection(handler: SignedIn, inscription_id: str, venue: str) -> str | None:
    """Returns the collection found by an earlier look, in the words of the venue asked and of no other."""
    is_its_word = venue == task_venues.telling_wallets(handler.services.settings)
    return inscriptions.collection_of(inscription_id) if is_its_word else None


async def _told_collection(handler: SignedIn, inscription_id: str, venue: str) -> str | None:
    try:
        asked = look_up(handler, handler.act, inscription_id, 0.0, venue)
        found = (await asyncio.wait_for(asked, PATIENCE_S))["collectionId"]
    except NotFound:
        found = None
    except (VenueError, TimeoutError):
        return None  # the worker finds out
    if found is None:
        raise invalid([_NO_COLLECTION], _NOT_YET)
    return str(found)


async def refuse_outside_vault(handler: SignedIn, inscription_id: str) -> None:
    """Raises ApiError: 400 for an unknown inscription, 409 with the vault's address for one elsewhere, 503."""
    keys = await handler.ask_signer(lambda signer: signer.addresses(handler.user.address))
    question = handler.act(lambda market: market.whereabouts(inscription_id, 0.0))
    try:
        found = await asyncio.wait_for(question, PATIENCE_S)
    except NotFound:
        raise invalid([_UNKNOWN], _NOT_YET) from None
    except (VenueError, TimeoutError):
        return  # the signer looks for itself before it signs
    # One in an escrow of theirs is brought home by its worker.
    if found.address is not None and found.address not in (keys.vault, *keys.escrows):
        message = f"It is at {found.address}. Send it to {keys.vault}, and start when that is confirmed."
        raise ApiError(409, "The inscription is not in the vault", message=message)
