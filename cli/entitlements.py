"""Has the manager look at once at who may trade, after a plan or the whitelist was changed."""

from __future__ import annotations

from core import local
from core.errors import PeerError
from core.settings import Settings

_PATIENCE_S = 60.0


def enforce(settings: Settings) -> None:
    """Returns when the tasks of whoever may not trade any more are stopped, and says what came of it.

    A manager that is away runs no workers, and looks when it starts.
    """
    try:
        answer = local.ask(settings.manager_socket, "manager", {"op": "entitlements"}, timeout=_PATIENCE_S)
    except PeerError as error:
        print(f"the manager was not told ({error.message}); if it runs, it stops what is not allowed within 10 s")
    else:
        print(f"{answer.get('stopped')} tasks were stopped")
