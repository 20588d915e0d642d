"""Facts about an auto-list task from outside its row: its collection, cost, place, and listings left over.

They are looked up before the task is created, previewed, started or deleted. A marketplace or an index that cannot be
asked does not object to a start: the worker finds out, and the signer looks for itself before it signs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Literal

from markets.base import NotFound, NotUnderstood, VenueError
from markets.orders import OwnListing
from models import market_memory
from models.ledger import listings, purchases
from models.ledger.listings import NewListing, OpenElsewhere
from models.ledger.states import GONE, SOLD, Listing
from models.tasks.tasks import Task
from server import task_venues
from server.config import listings as listing_config
from server.http.answers import ApiError, invalid
from server.http.base import SignedIn
from server.inscriptions import look_up
from strategy.config.bid import BidConfig
from strategy.config.listing import ListingConfig, load_listing_config, problems, unstartable
from strategy.purchases import ProvenPurchase
from wallet.signer_client import SignerError

PATIENCE_S = 5.0
UNPROVED = (
    "a marketplace says that your bid bought this, and the chain has not proved it:"
    " its cost stays unknown unless you give costSats"
)
_NOT_YET = "This cannot be started yet"
_UNKNOWN = "inscriptionId: there is no such inscription in any block yet"
_NO_COLLECTION = "collectionId: is required, as the marketplace does not tell of which collection the inscription is"
_UNREAD = "The marketplace could not be asked whether it still shows a listing of this inscription."
_UNTRACED = "The marketplace shows a listing of this inscription; cancel it there, as nobody here knows what it spends."

CostSource = Literal["fill", "claimed", "given"]
log = logging.getLogger(__name__)


# ---- checks before a start


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
    return market_memory.collection_of(inscription_id) if is_its_word else None


async def _told_collection(handler: SignedIn, inscription_id: str, venue: str) -> str | None:
    try:
        asked = look_up(handler, handler.act, inscription_id, 0.0, venue)
        found = (await asyncio.wait_for(asked, PATIENCE_S)).collection_id
    except NotFound:
        found = None
    except (VenueError, TimeoutError):
        return None  # the worker finds out
    if found is None:
        raise invalid([_NO_COLLECTION], _NOT_YET)
    return found


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


# ---- cost: by the purchase,: proved by the chain, or only claimed by a marketplace


def with_known_cost(
    user_id: int, given: Collection[str], inscription_id: str, config: ListingConfig
) -> tuple[ListingConfig, int | None]:
    """Returns the config, with the cost by the inscription's one proved purchase here if the body `given` names none.

    With it the order that bought it, or is said to have; None where the cost is not asked from there.
    """
    known = None if "costSats" in given else purchases.of_inscription(user_id, inscription_id)
    if not isinstance(known, ProvenPurchase):
        return config, None if known is None else known.order_id
    costly = replace(config, cost_sats=purchases.cost(known))
    return (config, None) if problems(costly) else (costly, known.order_id)


def cost_sources(tasks: Collection[Task]) -> Mapping[int, CostSource]:
    """Returns where each task's cost is from, by the task's id; without those that have none, nor a claim of one."""
    orders = [task.source_order for task in tasks if task.source_order is not None]
    proofs, claims = purchases.of_orders(orders), purchases.claimed_costs(orders)
    found: dict[int, CostSource] = {}
    for task in tasks:
        cost_sats, proof = load_listing_config(task.config).cost_sats, proofs.get(task.source_order)
        if proof is not None and cost_sats == purchases.cost(proof):
            found[task.id] = "fill"
        elif task.source_order in claims and cost_sats in (None, *claims[task.source_order]):
            found[task.id] = "claimed"
        elif cost_sats is not None:
            found[task.id] = "given"
    return found


# ---- leftovers at a marketplace of a task without an open listing, before the task is deleted
#
# The ledger may have closed the listing too early, or never had it: it was made before a backup was put back, or by
# another holder of the vault's key. It becomes an open row of the task, and so is cancelled like any other listing of a
# deleted task. If the marketplace cannot be read, the last known listing is doubted in the same way.


async def take_up(handler: SignedIn, task: Task) -> str | None:
    """Gives the task an open listing if the marketplace shows one, or may.

    Returns a message for the caller when nothing can be done about it here.
    """
    if listings.open_listing(task.id) is not None:
        return None
    last = listings.newest_listed(task.id)
    outpoint = last.outpoint if last is not None and last.close_reason not in (SOLD, GONE) else None
    try:
        wallet = last.wallet if last is not None else await _vault(handler)
        shown = await _shown(handler, task, wallet)
    except (SignerError, VenueError, TimeoutError) as error:
        log.warning("failed to read whether the marketplace shows a listing of %s: %s", task.inscription_id, error)
        if last is not None and outpoint is not None:
            _open(listings.suspect, _row(handler, task, wallet, outpoint, last.price_sats), handler.now_ms)
        return _UNREAD
    if shown is None:
        return None
    outpoint = await _outpoint(handler, task.inscription_id, wallet) or outpoint
    if outpoint is None:
        return _UNTRACED
    _open(listings.adopt, _row(handler, task, wallet, outpoint, shown.price), handler.now_ms)
    return None


async def _vault(handler: SignedIn) -> str:
    question = handler.services.signer(lambda signer: signer.addresses(handler.user.address))
    return (await asyncio.wait_for(question, PATIENCE_S)).vault


async def _shown(handler: SignedIn, task: Task, wallet: str) -> OwnListing | None:
    inscription_id, venue = task.inscription_id, task.venue
    question = handler.act(lambda market: market.at(venue).own_listings(wallet, 0.0))
    read = await asyncio.wait_for(question, PATIENCE_S)
    for found in read.listings:
        if found.inscription_id == inscription_id and found.owner == wallet:
            return found
    if read.may_hold(inscription_id):
        raise NotUnderstood("one of the vault's listings is not understood, and may be this inscription's")
    return None


async def _outpoint(handler: SignedIn, inscription_id: str, wallet: str) -> str | None:
    """Returns the inscription's output in this wallet, if a source knows it."""
    question = handler.act(lambda market: market.whereabouts(inscription_id, 0.0))
    try:
        found = await asyncio.wait_for(question, PATIENCE_S)
    except (VenueError, TimeoutError):
        return None
    return found.outpoint if found.address == wallet else None


def _row(handler: SignedIn, task: Task, wallet: str, outpoint: str, price_sats: int) -> NewListing:
    return NewListing(
        intent=secrets.token_hex(32),
        task_id=task.id,
        user_id=task.user_id,
        venue=task.venue,
        wallet=wallet,
        inscription_id=task.inscription_id,
        slug=task.collection_id,
        outpoint=outpoint,
        price_sats=price_sats,
        token=task.token,
        revision=task.revision,
    )


def _open(write: Callable[[NewListing, int], Listing], new: NewListing, now_ms: int) -> None:
    # An open listing of the same output belongs to a task that was deleted before: it is being cancelled.
    with contextlib.suppress(OpenElsewhere):
        write(new, now_ms)
