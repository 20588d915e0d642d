"""A manager in a process of its own, with stub workers."""

from __future__ import annotations

import sys

from core import logs
from core.settings import load
from tests.worlds.manager import QUICK, ZYGOTE_S, stub_spawner
from workers.manager import rights
from workers.manager.manager import run
from workers.spawning import spawner

if __name__ == "__main__":
    logs.set_up("manager")
    settings = load()
    # As conftest.py does for a manager in the tests' own process; and another machine's answer takes its time, too.
    spawner._READY_S = spawner._ANSWER_S = spawner._STATUS_S = ZYGOTE_S
    spawner._WARM_UP_S = 2 * ZYGOTE_S
    rights._PATIENCE_S = 10.0
    try:
        run(settings, spawner=stub_spawner(settings), timing=QUICK)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
