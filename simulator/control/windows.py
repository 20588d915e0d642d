"""The control route for rate limits that count in windows."""

from __future__ import annotations

from simulator.handler import JsonHandler
from simulator.wire import whole


class PutWindows(JsonHandler):
    """`PUT /sim/windows {seconds}`: sets the length of ord.net's windows, for tests; a reset ends it."""

    def put(self) -> None:
        body = self.fields("seconds")
        self.world.ordnet.windows.seconds = whole(body.get("seconds"), "seconds", 1, 3600)
        self.get()

    def get(self) -> None:
        self.send({"seconds": self.world.ordnet.windows.seconds})
