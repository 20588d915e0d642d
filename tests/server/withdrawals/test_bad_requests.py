"""Requests for a withdrawal that are refused, with all that is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import OTHER, Service
from tests.server.withdrawals.chain import INSCRIPTION, WITHDRAW

BAD: list[tuple[Any, list[str]]] = [
    ({}, ["from: is required"]),
    ({"from": "ordinals"}, ["from: must be bidding, payment, vault or escrow"]),
    ({"from": 5}, ["from: must be bidding, payment, vault or escrow"]),
    ({"from": "payment", "amountSats": 0}, ["amountSats: must be a whole number from 1 to 2100000000000000"]),
    ({"from": "payment", "amountSats": "5"}, ["amountSats: must be a whole number"]),
    ({"from": "payment", "amountSats": None}, ["amountSats: must be a whole number"]),
    ({"from": "payment", "amountSats": True}, ["amountSats: must be a whole number"]),
    ({"from": "payment", "address": OTHER}, ["address: unknown field"]),
    ({"from": "payment", "to": OTHER, "destination": OTHER}, ["to: unknown field", "destination: unknown field"]),
    ({"from": "payment", "inscriptionId": INSCRIPTION}, ["inscriptionId: is for the vault and an escrow only"]),
    ({"from": "vault", "inscriptionId": "x"}, ["inscriptionId: is no inscription's id"]),
    (
        {"from": "vault", "inscriptionId": INSCRIPTION, "amountSats": 5},
        ["amountSats: is not for an inscription, which goes with all that its output holds"],
    ),
    ({"from": "bidding", "feeRate": 5}, ["feeRate: is the marketplace's from a bidding wallet"]),
    ({"from": "payment", "dryRun": 1}, ["dryRun: must be true or false"]),
    ({"from": "payment", "force": "yes"}, ["force: must be true or false"]),
    ({"amountSats": -1, "force": 5, "x": 1}, ["amountSats", "force", "x", "from"]),
    *(
        ({"from": "payment", "feeRate": rate}, ["feeRate"])
        for rate in (0, 0.9, 300.1, 1.0001, "slow", "5", True, None, [])
    ),
]


@pytest.mark.parametrize(("body", "details"), BAD, ids=lambda value: repr(value)[:60])
async def test_what_is_wrong_is_said_all_at_once(service: Service, body: Any, details: list[str]) -> None:
    answer = await service.ask("POST", WITHDRAW, body)
    assert answer.status == 400
    assert len(answer.details) == len(details)
    assert all(said.startswith(wanted) for said, wanted in zip(answer.details, details, strict=True)), answer.details
    assert not service.gateway.asked
