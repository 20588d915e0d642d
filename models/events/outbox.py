"""The writing side of the outbox. Call it within the transaction of the fact: both are on disk, or neither is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from models.database import base
from models.database.base import Statement, database, insertion
from models.events import keeping
from models.events.table import PASSING, Event

_INSERT = Statement(f"{insertion(Event)} $returning_id")
_INSERT_ONCE = Statement(f"{insertion(Event)} ON CONFLICT DO NOTHING $returning_id")


def tell(
    event: str, user_id: int, task_id: int | None, at_ms: int, data: Mapping[str, Any], *, fact: str | None = None
) -> None:
    """Writes one event, and lets go of the user's oldest ones now and then.

    Of several with the same `fact` the first is written. Raises RuntimeError outside of a transaction.
    """
    if not database.in_transaction():
        raise RuntimeError("an event belongs in the transaction of its fact")
    base.hold_back_events()
    new_id = (_INSERT if fact is None else _INSERT_ONCE).insert(
        user_id=user_id,
        task_id=task_id,
        event=event,
        at_ms=at_ms,
        is_passing=event in PASSING,
        fact=fact,
        data=json.dumps(data, separators=(",", ":")),
    )
    if new_id is not None:
        keeping.make_room(user_id, new_id)
