"""Withdrawals out of the vault: an inscription with a coin for its fee, and plain sats."""

from __future__ import annotations

import re
from typing import Any

import pytest

from markets.base import NotFound, Unavailable, Utxo, Whereabouts
from models.ledger.states import Listing
from models.tasks.tasks import LISTING, Task
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.server.api import START_MS
from tests.server.conftest import Service
from tests.server.withdrawals.chain import INSCRIPTION, ITEM, KEYS, Chain, coin, in_vault, withdraw


def listed(service: Service, **fields: Any) -> Task:
    values = {"user": service.user_id, "kind": LISTING, "venue": "simulator", "inscription_id": INSCRIPTION}
    return Task.create(**values, config=dump_listing_config(ListingConfig()), created_ms=START_MS, **fields)


async def test_an_inscription_goes_with_a_coin_for_its_fee(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["payment"], coin(1), coin(2, 40_000))
    asked: list[dict[str, Any]] = []
    service.signer.before_signing = asked.append

    answer = await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)

    assert answer.status == 201, answer.text
    assert (asked[0]["coins"], asked[0]["fee_coins"]) == ([ITEM], [coin(1).outpoint])
    assert (answer.json["inscriptionId"], answer.json["coins"]) == (INSCRIPTION, [ITEM, coin(1).outpoint])


async def test_an_inscription_needs_a_coin_for_its_fee(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    refused = await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)
    fund = f"Send sats for the fee to {KEYS['payment']}."
    assert (refused.status, fund in refused.json["message"]) == (409, True)
    chain.put(KEYS["payment"], coin(1, 500))
    refused = await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)
    assert (refused.status, fund in refused.json["message"]) == (409, True)
    assert re.search(r"fee: at least [\d,]+ sats are missing\.", refused.json["message"])


@pytest.mark.parametrize(
    ("where", "status"),
    [
        (NotFound(), 400),
        (Unavailable("away"), 502),
        (Whereabouts(INSCRIPTION, ITEM, KEYS["payment"], 10_000, START_MS), 409),
        (Whereabouts(INSCRIPTION, None, None, None, START_MS), 409),
    ],
)
async def test_an_inscription_that_is_elsewhere(service: Service, chain: Chain, where: Any, status: int) -> None:
    service.gateway.answers["whereabouts"] = where
    assert (await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)).status == status


async def test_an_inscription_that_is_not_alone(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["vault"], Utxo(ITEM, 10_000, True), inscriptions=(INSCRIPTION, "8" * 64 + "i0"))
    refused = await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)
    assert (refused.status, "alone" in refused.json["message"]) == (409, True)


async def test_an_inscription_whose_task_runs_stays(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["payment"], coin(1))
    task = listed(service, desired="running", observed="running")
    for force in (False, True):
        refused = await withdraw(service, from_="vault", inscriptionId=INSCRIPTION, force=force)
        assert (refused.status, f"task {task.id}" in refused.json["message"]) == (409, True)
    Task.update(desired="stopped", observed="stopped").execute()
    assert (await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)).status == 201


async def test_an_inscription_that_is_listed_goes_only_when_it_is_meant(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["payment"], coin(1))
    fields = {"intent": "1" * 64, "task_id": 2**40 + 1, "user_id": service.user_id, "venue": "simulator"}
    fields |= {"wallet": KEYS["vault"], "inscription_id": INSCRIPTION, "outpoint": ITEM, "price_sats": 5, "token": 1}
    Listing.create(**fields, revision=1, state="live", created_ms=1, updated_ms=1, signed_ms=1)
    refused = await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)
    assert (refused.status, refused.json["error"]) == (409, "The inscription is listed")
    assert (await withdraw(service, from_="vault", inscriptionId=INSCRIPTION, force=True)).status == 201


async def test_plain_sats_of_the_vault(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["vault"], coin(5, 30_000))
    answer = await withdraw(service, from_="vault")
    assert (answer.status, answer.json["coins"]) == (201, [coin(5).outpoint])
    assert [left["outpoint"] for left in answer.json["leftOut"]] == [ITEM]
