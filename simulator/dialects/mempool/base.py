"""The base of all mempool.space routes."""

from __future__ import annotations

from simulator.handler import DialectHandler
from simulator.wire import ApiError
from wallet import address as addresses


class MempoolHandler(DialectHandler):
    """The base handler. It asks for no key and sets no limit: the documentation publishes no numbers."""

    def subject(self) -> str:
        return self.path_args[0][:200] if self.path_args else ""

    def address(self) -> str:
        try:
            found = addresses.parse(self.path_args[0])
        except addresses.AddressError as error:
            raise ApiError(400, f"invalid Bitcoin address: {error}") from None
        if found.network != "mainnet":
            raise ApiError(400, "invalid Bitcoin address: not of mainnet")
        return found.text

    async def get(self, *_: str) -> None:
        await self._serve("GET")

    async def post(self, *_: str) -> None:
        await self._serve("POST")
