"""An auto-list task and its listing as callers see them.

The lowest price at which an output can be bought has two sources, which remember signatures on their own: our ledger,
and the signer. The lower one counts. A signer that is away is left out, and the answer says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from markets.venues import capabilities
from models.ledger import listings
from models.ledger.listing_table import GONE, SOLD, Listing
from models.tasks.silence import shown_error, shown_running
from models.tasks.table import Task
from server import listing_config
from server.http import json_out
from server.http.json_out import Raw
from server.http.services import Services
from server.listing.cost import cost_sources, source_fill_id
from strategy.listing.listing_config import load_listing_config
from wallet.signer_client import SignerClient, SignerError

PATIENCE_S = 2.0
_NOT_ASKED = "The signer cannot be asked, so this is by our own records alone."

Lowest = dict[str, int | None]


async def autolist_task_as_json(services: Services, task: Task, **more: object) -> Raw:
    """Returns the task, with `more` fields of an operation's answer after its own."""
    newest = listings.newest(task.id)
    source = cost_sources([task]).get(task.id)
    return _as_json(services, task, newest, await _signed(services, [newest]), {"costSource": source} | more)


async def autolist_tasks_as_json(services: Services, tasks: Iterable[Task]) -> list[Raw]:
    """Returns many tasks at once, as `autolist_task_as_json`."""
    found = [(task, listings.newest(task.id)) for task in tasks]
    signed = await _signed(services, [newest for _, newest in found])
    sources = cost_sources([task for task, _ in found])
    return [_as_json(services, task, newest, signed, {"costSource": sources.get(task.id)}) for task, newest in found]


async def _signed(services: Services, found: Sequence[Listing | None]) -> Lowest | None:
    """Returns the signer's lowest price for each unspent output; None when it does not answer."""
    outpoints = {listing.outpoint for listing in found if listing is not None and not _is_spent(listing)}
    if not outpoints:
        return {}

    def ask(signer: SignerClient) -> Lowest:
        return {outpoint: signer.lowest_listing(outpoint) for outpoint in outpoints}

    try:
        return await asyncio.wait_for(services.signer(ask), PATIENCE_S)
    except (SignerError, TimeoutError):
        return None


def _as_json(
    services: Services, task: Task, newest: Listing | None, signed: Lowest | None, more: dict[str, object]
) -> Raw:
    cycle = None
    if task.last_cycle_ms is not None:
        cycle = {"time": json_out.seconds(task.last_cycle_ms), "action": task.last_cycle_action or ""}
    now_ms = services.clock_ms()
    error = shown_error(task, task.user_id, lambda: load_listing_config(task.config).loop_s, now_ms)
    shown = {
        "id": task.id,
        "inscriptionId": task.inscription_id,
        "collectionId": task.collection_id,
        "isRunning": shown_running(task),
        "config": listing_config.rendered(task.config),
        "listing": None if newest is None else _listing(newest, signed) | {"proceedsNote": proceeds_note(newest)},
        "lastCycle": cycle,
        "lastError": error.text,
        "createdAt": json_out.iso(task.created_ms),
        "venue": task.venue,
        "sourceFillId": source_fill_id(task),
        "lastErrorCode": error.code,
        "lastErrorParams": Raw(error.params or "null"),
        "tags": Raw(task.tags),
    }
    return Raw(json_out.dumps(shown | more))


def _listing(newest: Listing, signed: Lowest | None) -> dict[str, object]:
    """Returns the newest listing, also when it is closed: its signature can be used until its output is spent."""
    lowest, is_spent = None, _is_spent(newest)
    if not is_spent:
        told = listings.lowest_outstanding(newest.outpoint), (signed or {}).get(newest.outpoint)
        lowest = min((price for price in told if price is not None), default=None)
    return {
        "price": newest.price_sats,
        "state": newest.state,
        "closeReason": newest.close_reason,
        "outpoint": newest.outpoint,
        "listedAt": None if newest.listed_ms is None else json_out.iso(newest.listed_ms),
        "lowestOutstanding": lowest,
        "lowestNote": _NOT_ASKED if signed is None and not is_spent else None,
        "proceeds": newest.proceeds_sats,
    }


def proceeds_note(listing: Listing) -> str | None:
    """Says where the proceeds of a sale are, and how they come to back bids again; None without a sale."""
    if listing.close_reason != SOLD:
        return None
    can = capabilities(listing.venue)
    if can.bids_are_psbt:
        return "The proceeds are at your payment address, whose coins back your bids here: nothing is to be done."
    return (
        "The proceeds are at your payment address, which backs no bids here, and nothing moves them by itself. To bid "
        'with them again, POST /api/wallet/withdraw {"from": "payment"} sends them to the address that you sign in '
        "with; from there send them to the address that `funding` in GET /api/wallet names."
    )


def _is_spent(listing: Listing) -> bool:
    return listing.close_reason in (SOLD, GONE)
