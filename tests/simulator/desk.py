"""A trader on the practice market over HTTP: a clock to turn, keys to sign with, requests to send."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from embit import ec, script
from tornado.httpclient import HTTPRequest, HTTPResponse

from simulator.world import World
from tests.clock import Clock
from tests.kept_open import KeptOpen
from wallet.keystore.keys import sign_message

SATFLOW = "/satflow/v1"
HEADERS = {"x-api-key": "practice"}
MINUTE_MS = 60_000
PUPPETS = "puppets"
RUNE = "AAA•BBB"
# For tests of a market of an even seed, which answers as clients have seen the venues.
AS_SEEN = pytest.mark.parametrize("world", [2], indirect=True, ids=[""])


@dataclass(frozen=True)
class Trader:
    """A key with its P2WPKH payment address and a P2TR address to receive at."""

    secret: int

    @cached_property
    def key(self) -> ec.PrivateKey:
        return ec.PrivateKey(self.secret.to_bytes(32))

    @cached_property
    def pubkey(self) -> str:
        return self.key.get_public_key().sec().hex()

    @cached_property
    def payment(self) -> str:
        return script.p2wpkh(self.key.get_public_key()).address()

    @cached_property
    def ordinals(self) -> str:
        return script.p2tr(self.key.get_public_key()).address()

    def sign(self, message: str) -> str:
        return sign_message(self.key, "p2wpkh", message)

    def bid(self, now_ms: int, **changes: Any) -> dict[str, Any]:
        """Returns a well signed bid on PUPPETS; `changes` are part of what is signed."""
        body: dict[str, Any] = {
            "price": 50_000,
            "quantity": 1,
            "metaType": "ordinals",
            "collectionSlug": PUPPETS,
            "bidderAddress": self.payment,
            "bidderAddressPublicKey": self.pubkey,
            "bidderTokenReceiveAddress": self.ordinals,
            "bidExpiry": now_ms + 16 * MINUTE_MS,
            "timestamp": now_ms,
            "feeRate": "halfHourFee",
        }
        body |= changes
        body.setdefault("signedBiddingMessage", self.sign(message_of(body)))
        return body


def message_of(body: dict[str, Any]) -> str:
    """Returns the text that a bid signs, from its documentation."""
    names = (
        "bidderAddress",
        "bidderAddressPublicKey",
        "bidderTokenReceiveAddress",
        "price",
        "quantity",
        "bidExpiry",
        "collectionSlug",
        "timestamp",
    )
    return ":".join(str(body[name]) for name in names)


ANN = Trader(11)
BOB = Trader(22)


class Desk:
    """Requests to the market at `port`; answers are (status, JSON)."""

    def __init__(self, port: int, world: World, clock: Clock) -> None:
        self.kept_open = KeptOpen(port)
        self.port = port
        self.world = world
        self.clock = clock

    async def fetch(self, method: str, path: str, body: Any = None, **options: Any) -> HTTPResponse:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        request = HTTPRequest(
            f"http://127.0.0.1:{self.port}{path}",
            method,
            body=body,
            allow_nonstandard_methods=True,
            **({"headers": HEADERS, "request_timeout": 60.0} | options),
        )
        return await self.kept_open.fetch(request)

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        answer = await self.fetch(method, path, body, **options)
        if answer.code == 599:
            raise answer.error or ConnectionError("no answer")
        assert answer.headers["Content-Type"].startswith("application/json"), answer.body
        return answer.code, json.loads(answer.body)

    async def sim(self, method: str, path: str, body: Any = None) -> Any:
        """Makes a control call that must succeed."""
        status, answer = await self.ask(method, f"/sim/{path}", body, headers={})
        assert status == 200, answer
        return answer

    async def read(self, path: str, **query: Any) -> tuple[int, Any]:
        return await self.ask("GET", f"{SATFLOW}/{path}?{urlencode(query)}")

    async def data(self, path: str, **query: Any) -> Any:
        """`data` of a Satflow read that must succeed."""
        status, answer = await self.read(path, **query)
        assert status == 200, answer
        assert answer["success"] is True
        return answer["data"]

    async def place(self, trader: Trader = ANN, **changes: Any) -> tuple[int, Any]:
        return await self.send_bid(trader.bid(self.clock.now_ms, **changes))

    async def send_bid(self, body: dict[str, Any]) -> tuple[int, Any]:
        return await self.ask("POST", f"{SATFLOW}/bid/place", body)

    async def placed(self, trader: Trader = ANN, **changes: Any) -> None:
        status, answer = await self.place(trader, **changes)
        assert status == 200, answer

    async def own_bids(self, trader: Trader = ANN) -> list[dict[str, Any]]:
        status, answer = await self.read("address/bids", address=trader.payment)
        assert status in (200, 404), answer
        return answer["data"]["results"] if status == 200 else []

    async def cancel(self, trader: Trader, ids: list[str], **changes: Any) -> tuple[int, Any]:
        if "signature" not in changes:
            challenge = (await self.data("challenge", address=trader.payment))["challenge"]
            changes["signature"] = trader.sign(challenge)
        body = {"makerAddress": trader.payment, "orderType": "bid", "_ids": ids, "multiple": True} | changes
        return await self.ask("POST", f"{SATFLOW}/cancel", body)

    async def list_puppets(self, *prices: int, **more: Any) -> Any:
        return await self.sim("PUT", f"collections/{PUPPETS}", {"asks": [{"price": p} for p in prices]} | more)

    async def list_rune(self, **more: Any) -> Any:
        body = {"divisibility": 2, "asks": [{"tokens": 1000, "unitPrice": 2.5}]} | more
        return await self.sim("PUT", f"runes/{quote(RUNE)}", body)

    async def events(self, *names: str) -> list[dict[str, Any]]:
        """Returns the history, or its events of these names."""
        return [event for event in await self.sim("GET", "history") if not names or event["event"] in names]

    async def fault(self, operation: str, mode: str, **more: Any) -> None:
        await self.sim("PUT", "faults", [{"operation": operation, "mode": mode} | more])
