"""A manager in a process of its own, with stub workers."""

from __future__ import annotations

import sys

from core import logs
from core.settings import load
from tests.workers.installation import QUICK, stub_spawner
from workers.manager.manager import run

if __name__ == "__main__":
    logs.set_up("manager")
    settings = load()
    try:
        run(settings, spawner=stub_spawner(settings), timing=QUICK)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
