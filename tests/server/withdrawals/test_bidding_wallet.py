"""Withdrawals out of the bidding wallet, which the marketplace drafts and signs too."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from markets.base import Balance, NotFound, NotSupported, Refused, Unavailable, Unknown, Utxo
from models.ledger.states import Order
from models.ledger.withdrawals import Withdrawal
from tests.server.api import START_MS
from tests.server.conftest import Service
from tests.server.withdrawals.chain import KEYS, Chain, coin, row, withdraw
from tests.wallet.withdrawal_cases import honest as honest_draft


def bidding(service: Service, chain: Chain, sats: int = 120_000) -> None:
    case = honest_draft()
    coins = [Utxo(each, 60_000, True) for each in case.facts]
    chain.coins["bc1qbidding"] = coins
    service.gateway.answers["balance"] = Balance("bc1qbidding", sats, START_MS)
    service.gateway.answers["draft_withdrawal"] = lambda payment, amount: b64encode(case.draft.encode()).decode()
    service.gateway.answers["submit_withdrawal"] = lambda payment, psbt: row().txid


async def test_sats_out_of_the_bidding_wallet(service: Service, chain: Chain) -> None:
    bidding(service, chain)
    asked: list[dict[str, Any]] = []
    service.signer.before_signing = asked.append

    answer = await withdraw(service, from_="bidding", amountSats=100_000)

    assert answer.status == 201, answer.text
    assert (asked[0]["source"], asked[0]["amount_sats"], asked[0]["venue"]) == ("bidding", 100_000, "simulator")
    assert asked[0]["coins"] == list(honest_draft().facts)
    assert (answer.json["destination"], answer.json["venue"]) == (KEYS["payment"], "simulator")
    (draft,) = [each for each in service.gateway.asked if each["verb"] == "draft_withdrawal"]
    assert draft["args"] == {"payment": KEYS["payment"], "amount": 100_000}


async def test_all_of_the_bidding_wallet_is_what_is_confirmed(service: Service, chain: Chain) -> None:
    bidding(service, chain)
    chain.coins["bc1qbidding"].append(coin(9, 5_000, confirmed=False))
    assert (await withdraw(service, from_="bidding", dryRun=True)).status == 200
    (draft,) = [each for each in service.gateway.asked if each["verb"] == "draft_withdrawal"]
    assert draft["args"]["amount"] == 120_000


@pytest.mark.parametrize(
    ("verb", "error", "status", "says"),
    [
        ("balance", NotFound(), 409, "no bidding wallet"),
        ("balance", Unavailable("away"), 502, "away"),
        ("draft_withdrawal", NotSupported("it has no bidding wallet"), 400, ""),
        ("draft_withdrawal", Refused("refused", "no"), 409, "no"),
        ("draft_withdrawal", Unavailable("away"), 502, "away"),
        ("draft_withdrawal", "AAAA", 502, "no PSBT"),
    ],
)
async def test_a_bidding_wallet_that_cannot_be_emptied(
    service: Service, chain: Chain, verb: str, error: Any, status: int, says: str
) -> None:
    bidding(service, chain)
    service.gateway.answers[verb] = error
    answer = await withdraw(service, from_="bidding", amountSats=5_000)
    assert (answer.status, says in answer.json.get("message", "")) == (status, True)
    if status == 400:
        assert answer.details == ["from: it has no bidding wallet"]
    assert Withdrawal.select().count() == 0


@pytest.mark.parametrize(
    ("amount", "force", "status"), [(70_000, False, 201), (70_001, False, 409), (70_001, True, 201)]
)
async def test_open_bids_keep_their_cover(
    service: Service, chain: Chain, amount: int, force: bool, status: int
) -> None:
    bidding(service, chain)
    fields = {"task_id": 1, "user_id": service.user_id, "wallet": KEYS["payment"], "slug": "x"}
    fields |= {"quantity": "1", "token": 1, "created_ms": 1, "updated_ms": 1}
    for number, (price, state, venue) in enumerate(
        ((50_000, "live", "simulator"), (99_000, "closed", "simulator"), (99_000, "live", "ordnet"))
    ):
        Order.create(intent=f"{number:032x}", price_sats=price, expires_ms=number, state=state, venue=venue, **fields)
    answer = await withdraw(service, from_="bidding", amountSats=amount, force=force)
    assert answer.status == status, answer.text
    if status == 409:
        assert "50000" in answer.json["message"]


async def test_a_submit_that_is_unknown_is_looked_up_and_handed_in_again(service: Service, chain: Chain) -> None:
    bidding(service, chain)
    service.gateway.answers["submit_withdrawal"] = Unknown("cut")
    assert (await withdraw(service, from_="bidding", amountSats=5_000)).json["state"] == "unknown"
    service.gateway.answers["submit_withdrawal"] = lambda payment, psbt: row().txid
    assert (await service.ask("GET", "/api/wallet")).json["withdrawals"][0]["state"] == "submitted"
