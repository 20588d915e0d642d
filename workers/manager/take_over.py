"""A manager's way to its slot: it waits for the lease, then it ends the rights that the former manager's workers have.

That manager is gone by its lease, but a worker of its may stand still somewhere, with a bid in its hand. Ledger, signer
and gateway refuse it once they know of a higher token, and not before that anything is started here.

Other machines' managers tell their sightings of the lease, so that a manager that has just been started need not watch
all of its time. An answer says for how long a version has stood as far as its giver knows. Whoever reads that very
version afterwards knows that it has stood at least since then, whatever the two clocks say: a version never comes back,
unless the database goes back, and of that the same is true as of what programs of one machine tell each other
(models/leases/held_lease.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

from core.call import call
from core.errors import BidkeeperError, PeerError, PeerRefused
from core.process import now_s
from core.program_calls import AskStanding
from core.settings import Settings
from models import summaries
from models.leases import leases
from models.leases.held_lease import HeldLease, Seen, claim
from models.leases.leases import Slot
from models.leases.manager_places import address_at
from models.ledger import closing
from models.tasks import tasks
from workers.manager.rights import ME, Rights

log = logging.getLogger(__name__)

_PATIENCE_S = 1.0
_AT_ONCE = 8


def heard(settings: Settings, name: str, addresses: Sequence[str]) -> list[Seen]:
    """Asks the managers at these addresses, up to eight at once and for a second, what they have seen of the lease."""
    if not addresses:
        return []
    pool = ThreadPoolExecutor(min(len(addresses), _AT_ONCE), "hearsay")
    asked = [pool.submit(_ask, settings, name, each) for each in addresses[:_AT_ONCE]]
    done, _ = wait(asked, _PATIENCE_S)
    pool.shutdown(wait=False, cancel_futures=True)
    return [seen for each in done if (seen := each.result()) is not None]


def _ask(settings: Settings, name: str, address: str) -> Seen | None:
    try:
        at = address_at(settings, address)
        standing = call(at, ME, AskStanding(name), timeout=_PATIENCE_S)
    except (PeerError, ValueError, RuntimeError) as error:  # an address that is none, too
        log.info("%s: the manager at %s is not asked what it has seen: %s", name, address, error)
        return None
    at_s = now_s()  # after the answer, so that nobody is thought to have stood for longer than it has
    return None if standing is None else Seen(standing.version, at_s - standing.stood_s)


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
