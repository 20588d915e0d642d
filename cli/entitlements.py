"""The manager's immediate check of the users' right to trade, after a change of plans or whitelist."""

from __future__ import annotations

from core.call import call
from core.errors import PeerError
from core.program_calls import Enforce
from core.settings import Settings
from models.leases.manager_places import address_at, places

_PATIENCE_S = 60.0


def enforce(settings: Settings) -> None:
    """Has the manager stop the tasks of users who may no longer trade; returns when it has, and prints the result.

    A manager that is down runs no workers, and checks when it starts.
    """
    try:
        answers = [
            call(address_at(settings, place), "manager", Enforce(), timeout=_PATIENCE_S) for place in places(settings)
        ]
    except PeerError as error:
        print(f"the manager was not notified ({error.message}); if it runs, it stops the affected tasks within 10 s")
    else:
        print(f"{sum(answer.stopped for answer in answers)} tasks were stopped")
