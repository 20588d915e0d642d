"""Leftovers at a marketplace of an auto-list task without an open listing, before the task is deleted.

The ledger may have closed it too early, or never had it: it was made before a backup was put back, or by another holder
of the vault's key. It becomes an open row of the task, and so is cancelled like any other listing of a deleted task. If
the marketplace cannot be read, the last known listing is doubted in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable

from markets.base import NotUnderstood, VenueError
from markets.listings import OwnListing
from models.ledger import listings
from models.ledger.listing_table import GONE, SOLD, Listing
from models.ledger.listings import NewListing, OpenElsewhere
from models.tasks.table import Task
from server.http.base import SignedIn
from wallet.signer_client import SignerError

PATIENCE_S = 5.0
_UNREAD = "The marketplace could not be asked whether it still shows a listing of this inscription."
_UNTRACED = "The marketplace shows a listing of this inscription; cancel it there, as nobody here knows what it spends."

log = logging.getLogger(__name__)


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
