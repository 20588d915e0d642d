"""The actor of one slot: it runs the slot's manager as its child, which ends with it.

A manager that fails after a while, as all do when the database is lost, is started again here: Ray would need seconds
more for an actor. If that one does not act in time, perhaps since this machine alone has lost the database, the actor
ends, and so it does with one that fails at once or ends in order. Ray starts the actor again, wherever there is room,
when it or its machine is gone. Two of one slot may be there for a while, as Ray cannot know what a machine does that it
does not reach: the lease in the database lets one of them work.
"""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from core.call import call
from core.errors import PeerError
from core.process import PARENT, PYTHON
from core.program_calls import Ping
from core.settings import load

_STOP_S = 13.0  # as long as supervisord gives a manager
# Between the end of a young manager and ours: or one that fails at once would be started again and again without a
# pause. After an end in order it is the time in which whoever wanted it can end or move us.
_REST_S = 2.0
_YOUNG_S = 10.0
_ANSWER_S = 5.0
_LOOK_S = 1.0


def manager_acts(slot: int | None) -> bool:
    """Tells whether this machine's manager of the slot (None: of everybody) answers, as one does that has its lease."""
    try:
        call(load().manager_file("sock", slot), "manager", Ping(), timeout=_ANSWER_S)
    except PeerError:
        return False
    return True


class SlotActor:
    """The keeper of one manager process, of which Ray makes an actor."""

    def __init__(self, program: Sequence[str], acts: Callable[[], bool], acts_within_s: float) -> None:
        """Starts `python -m PROGRAM`, a module and its arguments, with the environment of this machine's raylet.

        `acts` tells whether it does its work, as one that takes a former one's place has to after so many seconds.
        """
        self._program = program
        self._acts, self._acts_within_s = acts, acts_within_s
        self._is_stopped = False
        self._is_successor = False
        self._turn = threading.Lock()  # to stop a manager, or to start the next
        self._start()
        threading.Thread(target=self._keep_running, daemon=True).start()

    def state(self) -> dict[str, Any]:
        """Returns Ray's id of the machine, its name, the manager's pid, and since when it runs (seconds since 1970)."""
        import ray

        node = ray.get_runtime_context().get_node_id()
        return {"node": node, "machine": platform.node(), "pid": self._manager.pid, "since": self._since}

    def stop(self) -> None:
        """Ends the manager in order, so that it gives its lease back. The caller then ends or moves this actor."""
        with self._turn:
            self._is_stopped = True
            self._manager.terminate()
        self._manager.wait(_STOP_S)

    def _start(self) -> None:
        self._since = time.time()
        self._began = time.monotonic()
        self._manager = subprocess.Popen(
            [*PYTHON, "-m", *self._program],
            env=os.environ | {PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
        )

    def _keep_running(self) -> None:
        try:
            while True:
                code = self._end_of_manager()
                what = "does not act in time" if code is None else f"has ended ({code})"
                print(f"the manager {what}", file=sys.stderr, flush=True)
                with self._turn:
                    if self._is_stopped or not code or time.monotonic() < self._began + _YOUNG_S:
                        break
                    self._start()
                    self._is_successor = True
            time.sleep(_REST_S)
        finally:
            os._exit(1)  # for Ray an actor that ends by itself has failed, and is started again

    def _end_of_manager(self) -> int | None:
        """Waits for the manager's end, and returns its exit code; None when it followed another and does not act."""
        deadline = self._began + self._acts_within_s
        while self._is_successor and not self._acts():
            if time.monotonic() > deadline:
                return None
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._manager.wait(_LOOK_S)
        return self._manager.wait()
