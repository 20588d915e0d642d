"""mempool.space's `POST /api/tx` under `/mempool` (backend/src/api/bitcoin/bitcoin.routes.ts): hex in, txid out."""

from __future__ import annotations

import json
from typing import Any

from simulator.calls import Operation
from simulator.dialects.mempool.chain import TextHandler
from simulator.network import Rejected, send
from simulator.wire import ApiError
from simulator.world import World


class PostTransaction(TextHandler):
    """Sends a transaction into the mempool, where it waits for its block."""

    operation: Operation = "broadcast"
    method = "POST"

    def subject(self) -> str:
        return self.request.body[:200].decode("utf-8", "replace")

    def answer(self) -> Any:
        try:
            raw = bytes.fromhex(self.request.body.decode("ascii").strip())
        except ValueError:
            raise ApiError(400, "Invalid hex string") from None
        try:
            return send(self.world.engine, raw)
        except Rejected as rejected:
            said = json.dumps({"code": rejected.code, "message": str(rejected)}, separators=(",", ":"))
            raise ApiError(400, f"sendrawtransaction RPC error: {said}") from None

    def refuse(self, error: ApiError) -> None:
        self.set_status(error.status)
        self.deliver(error.text)


def routes(world: World) -> list[tuple[Any, ...]]:
    """Returns path, handler and arguments of each route."""
    return [("/mempool/api/tx", PostTransaction, {"world": world})]
