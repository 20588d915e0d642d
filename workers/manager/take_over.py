"""A manager's way to its slot: it waits for the lease, then it ends the rights that the former manager's workers have.

That manager is gone by its lease, but a worker of its may stand still somewhere, with a bid in its hand. Ledger, signer
and gateway refuse it once they know of a higher token, and not before that anything is started here.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from core.errors import BidkeeperError, PeerRefused
from core.settings import Settings
from models import summaries
from models.leases import leases
from models.leases.held_lease import HeldLease, claim
from models.leases.leases import Slot
from models.ledger import closing
from models.tasks import tasks
from workers.manager.hearsay import heard
from workers.manager.rights import Rights

log = logging.getLogger(__name__)

_AGAIN_S = 1.0


def slot_wanted(settings: Settings) -> Slot:
    """Returns the slot that this manager is to keep, by the open connection. Raises BidkeeperError."""
    of = leases.slots()
    if settings.slot is None and of > 1:
        raise BidkeeperError(f"the users are divided into {of} slots: give --slot, from 0 to {of - 1}")
    if settings.slot is not None and settings.slot >= of:
        raise BidkeeperError(f"there is no slot {settings.slot}, but {of}: bidkeeper migrate --slots sets their number")
    return Slot(settings.slot or 0, of)


def hold(settings: Settings, slot: Slot) -> HeldLease:
    """Takes the slot's lease. Where there are several slots it stands by until it gets it.

    Raises NotTheOne where another one has the only slot, and DatabaseAway.
    """
    holder = leases.holder_in(settings.run_dir, str(settings.manager_at(slot.number) or ""))
    name = leases.slot_name(slot.number)
    waits = settings.slot is not None
    hear = partial(heard, settings, name)
    return claim(settings.database_url, name, holder, settings.lease_seconds, waits=waits, kind="manager", hear=hear)


async def end_former_rights(lease: HeldLease, slot: Slot, rights: Rights, asked_to_stop: asyncio.Event) -> None:
    """Returns once no worker of another machine's manager may place, sign or send; or when this one is to stop."""
    if not lease.is_anothers:
        return
    task_ids = [glance.id for glance in summaries.glances(closing.tasks_to_end(), slot)]
    tokens = tasks.raise_tokens(task_ids)
    while tokens:
        if asked_to_stop.is_set():
            return
        lease.alive()
        try:
            higher = await rights.end_all(tokens)
        except PeerRefused as refusal:
            log.error("%s: nothing is started before its former workers' rights are ended: %s", slot, refusal.message)
            await asyncio.sleep(_AGAIN_S)
        else:
            # Seen of tasks whose database has gone back: their former workers' tokens are above the new ones.
            raised = {task_id: tasks.overtake(task_id, tokens[task_id], seen) for task_id, seen in higher.items()}
            tokens = {task_id: token for task_id, token in raised.items() if token is not None}
    lease.forget_former()  # not before: whoever is started here in its place has to do this, too
    log.info("%s: taken over, with %d tasks to look after", slot, len(task_ids))
