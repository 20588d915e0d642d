"""An auto-list task and its listing as callers see them."""

from __future__ import annotations

from models import listings
from models.listings import GONE, SOLD
from models.tasks import AutolistTask
from server import json_out
from server.json_out import Raw
from server.schemas import listing_config


def as_json(task: AutolistTask, **more: object) -> Raw:
    """The task, with `more` fields of an operation's answer after its own."""
    cycle = None
    if task.last_cycle_ms is not None:
        cycle = {"time": json_out.seconds(task.last_cycle_ms), "action": task.last_cycle_action or ""}
    shown = {
        "id": task.id,
        "inscriptionId": task.inscription_id,
        "collectionId": task.collection_id,
        "isRunning": task.is_running,
        "config": listing_config.rendered(task.config),
        "listing": _listing(task),
        "lastCycle": cycle,
        "lastError": task.last_error,
        "createdAt": json_out.iso(task.created_ms),
    }
    return Raw(json_out.dumps(shown | more))


def _listing(task: AutolistTask) -> dict[str, object] | None:
    """The newest listing, also when it is closed: what was signed can be used until its output is spent."""
    newest = listings.newest(task.number)
    if newest is None:
        return None
    is_spent = newest.close_reason in (SOLD, GONE)
    return {
        "price": newest.price_sats,
        "state": newest.state,
        "closeReason": newest.close_reason,
        "outpoint": newest.outpoint,
        "listedAt": None if newest.listed_ms is None else json_out.iso(newest.listed_ms),
        "lowestOutstanding": None if is_spent else listings.lowest_outstanding(newest.outpoint),
        "proceeds": newest.proceeds_sats,
    }
