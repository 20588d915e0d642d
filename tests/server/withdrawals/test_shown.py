"""Withdrawals as they are shown and kept: whose they are, the latest ten, and what was asked."""

from __future__ import annotations

import json
from typing import Any

from markets.base import Unavailable
from models.ledger import withdrawals
from tests.server.api import START_MS
from tests.server.conftest import OWNER, Service, with_settings
from tests.server.withdrawals.chain import KEYS, WITHDRAW, Chain, coin, row, withdraw


async def test_nobody_sees_another_users_withdrawals_or_sends_their_coins(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    assert (await withdraw(service, from_="payment")).status == 201
    other = await service.api("GET", "/api/wallet", token=service.other_token)
    assert (other.json["withdrawals"], other.json["paymentSats"]) == ([], 0)
    assert (await service.api("POST", WITHDRAW, {"from": "payment"}, token=service.other_token)).status == 409


async def test_the_wallet_shows_the_latest_ten(service: Service, chain: Chain) -> None:
    for number in range(12):
        withdrawals.reserve(
            withdrawals.NewWithdrawal(f"{number:040x}", service.user_id, "payment", OWNER, "{}", (f"c{number}",)),
            START_MS,
        )
    shown = (await service.ask("GET", "/api/wallet")).json["withdrawals"]
    assert [each["coins"] for each in shown] == [[f"c{number}"] for number in range(11, 1, -1)]


async def test_payment_sats_are_confirmed_ones_or_null(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1, 5), coin(2, 7, confirmed=False))
    assert (await service.ask("GET", "/api/wallet")).json["paymentSats"] == 5
    service.gateway.answers["coins"] = Unavailable("away")
    assert (await service.ask("GET", "/api/wallet")).json["paymentSats"] is None


@with_settings(market="simulator")
async def test_the_request_is_kept_as_it_was_asked(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    asked: list[dict[str, Any]] = []
    service.signer.before_signing = asked.append
    await withdraw(service, from_="payment")
    assert json.loads(row().request) == asked[0]
