"""Other machines' managers' sightings of a lease: one that has just been started need not watch all of its time.

An answer says for how long a version has stood as far as its giver knows. Whoever reads that very version afterwards
knows that it has stood at least since then, whatever the two clocks say: a version never comes back, unless the
database goes back, and of that the same is true as of what programs of one machine tell each other (held_lease.py).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from core.call import call
from core.death_timer import now_s
from core.errors import PeerError
from core.program_calls import AskStanding
from core.settings import Settings
from models.leases.held_lease import Seen
from models.leases.manager_places import ME, address_at

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
