"""The content of inscriptions under `/content`, as explorers serve it: what was inscribed, as its own type."""

from __future__ import annotations

from typing import Any

from simulator.calls import Operation
from simulator.handler import DialectHandler
from simulator.holdings import known_item
from simulator.pictures import Content, content_of
from simulator.wire import ApiError
from simulator.world import World


class ShowContent(DialectHandler):
    """`GET /content/<ID>`: of an inscription that is listed, or in a play wallet. It asks for no key."""

    operation: Operation = "content"

    def subject(self) -> str:
        return self.path_args[0][:200]

    async def get(self, *_: str) -> None:
        await self._serve("GET")

    def answer(self) -> Content:
        item = known_item(self.engine, self.path_args[0])
        if item is None:
            raise ApiError(404, "no such inscription", "NOT_FOUND")
        return content_of(item)

    def deliver(self, value: Any) -> None:
        content: Content = value
        self.set_header("Content-Type", content.media)
        self.set_header("Cache-Control", "public, max-age=31536000, immutable")
        # Whoever opens one from here must not run what somebody inscribed.
        self.set_header("Content-Security-Policy", "default-src 'none'; sandbox")
        self.finish(content.data)


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    return [("/content/([^/]+)", ShowContent, {"world": world})]
