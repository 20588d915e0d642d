"""The manager's immediate check of the users' right to trade, after a change of plans or whitelist."""

from __future__ import annotations

from core import local
from core.errors import PeerError
from core.settings import Settings
from models.leases.manager_places import address_at, places

_PATIENCE_S = 60.0


def enforce(settings: Settings) -> None:
    """Has the manager stop the tasks of users who may no longer trade; returns when it has, and prints the result.

    A manager that is down runs no workers, and checks when it starts.
    """
    try:
        answers = [
            local.ask(address_at(settings, place), "manager", {"op": "entitlements"}, timeout=_PATIENCE_S)
            for place in places(settings)
        ]
    except PeerError as error:
        print(f"the manager was not notified ({error.message}); if it runs, it stops the affected tasks within 10 s")
    else:
        print(f"{sum(int(answer.get('stopped', 0)) for answer in answers)} tasks were stopped")
