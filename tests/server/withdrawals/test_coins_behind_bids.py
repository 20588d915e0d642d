"""Coins that pay for open offers, which go only when it is meant."""

from __future__ import annotations

from typing import Any

import pytest

from markets.base import Utxo
from models.ledger.states import Order
from tests.server.conftest import Service
from tests.server.withdrawals.chain import INSCRIPTION, ITEM, KEYS, Chain, coin, in_vault, withdraw


def offer_on(service: Service, *coins: Utxo, **changes: Any) -> None:
    fields = {"task_id": 1, "user_id": service.user_id, "wallet": KEYS["payment"], "slug": "x"}
    fields |= {"quantity": "1", "token": 1, "created_ms": 1, "updated_ms": 1, "intent": "1" * 32, "expires_ms": 1}
    fields |= {"state": "live", "price_sats": 5_000, "coins": " ".join(each.outpoint for each in coins)}
    Order.create(**fields | {"venue": "simulator-ordnet"} | changes)


async def test_coins_that_pay_for_open_offers_go_only_when_it_is_meant(service: Service, chain: Chain) -> None:
    """A bid that is a transaction ends with the first of its coins that is spent."""
    chain.put(KEYS["payment"], coin(1), coin(2), coin(3, 20_000))
    offer_on(service, coin(1), coin(2))

    rest = await withdraw(service, from_="payment")
    refused = await withdraw(service, from_="payment")
    meant = await withdraw(service, from_="payment", force=True)

    assert (rest.status, rest.json["coins"]) == (201, [coin(3, 20_000).outpoint])
    assert {each["outpoint"] for each in rest.json["leftOut"]} == {coin(1).outpoint, coin(2).outpoint}
    assert (refused.status, "simulator-ordnet" in refused.json["message"]) == (409, True)
    assert (meant.status, set(meant.json["coins"])) == (201, {coin(1).outpoint, coin(2).outpoint})


@pytest.mark.parametrize("changes", [{"state": "closed"}, {"dry_run": True}, {"user_id": 9}, {"coins": ""}])
async def test_coins_behind_no_open_bid_of_the_caller_go(
    service: Service, chain: Chain, changes: dict[str, Any]
) -> None:
    chain.put(KEYS["payment"], coin(1))
    offer_on(service, coin(1), **changes)
    assert (await withdraw(service, from_="payment")).status == 201


async def test_an_inscriptions_fee_is_not_paid_with_coins_behind_bids(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["payment"], coin(1), coin(2, 20_000))
    offer_on(service, coin(1))
    answer = await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)
    assert (answer.status, answer.json["coins"]) == (201, [ITEM, coin(2).outpoint])
