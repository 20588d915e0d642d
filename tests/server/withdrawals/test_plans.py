"""Withdrawals are planned: the payment address's coins, coins behind bids, and the vault's inscriptions."""

from __future__ import annotations

import hashlib
import re
from decimal import Decimal
from typing import Any

import pytest

from markets.base import Fees, NotFound, TooManyLookups, Unavailable, Utxo, Whereabouts
from models.ledger.states import Listing, Order
from models.ledger.withdrawals import Withdrawal
from models.tasks.tasks import LISTING, Task
from strategy.config.listing import ListingConfig, dump_listing_config
from tests.server.withdrawals.chain import INSCRIPTION, ITEM, KEYS, WITHDRAW, Chain, coin, in_vault, row, withdraw
from tests.worlds.service import OTHER, OWNER, START_MS, Service
from wallet.protocol import MAX_COINS

# tests/goldens/bodies has the other wrong values of each field.
BAD: list[tuple[Any, list[str]]] = [
    ({"from": "payment", "to": OTHER, "destination": OTHER}, ["to: unknown field", "destination: unknown field"]),
    (
        {"from": "vault", "inscriptionId": INSCRIPTION, "amountSats": 5},
        ["amountSats: is not for an inscription, which goes with all that its output holds"],
    ),
    ({"amountSats": -1, "force": 5, "x": 1}, ["amountSats", "force", "x", "from"]),
    *(({"from": "payment", "feeRate": rate}, ["feeRate"]) for rate in (0.9, 300.1, 1.0001)),
]


@pytest.mark.parametrize(("body", "details"), BAD, ids=lambda value: repr(value)[:60])
async def test_what_is_wrong_is_said_all_at_once(service: Service, body: Any, details: list[str]) -> None:
    answer = await service.ask("POST", WITHDRAW, body)
    assert answer.status == 400
    assert len(answer.details) == len(details)
    assert all(said.startswith(wanted) for said, wanted in zip(answer.details, details, strict=True)), answer.details
    assert not service.gateway.asked


async def test_all_of_the_payment_address(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1, 60_000), coin(2, 40_000))
    asked: list[dict[str, Any]] = []
    service.signer.before_signing = asked.append

    answer = await withdraw(service, from_="payment")

    assert answer.status == 201, answer.text
    (given,) = asked
    assert given | {"intent": ""} == {
        "intent": "",
        "user": OWNER,
        "source": "payment",
        "coins": [coin(1).outpoint, coin(2).outpoint],
        "fee_coins": [],
        "inscription_id": "",
        "amount_sats": None,
        "fee_per_kvb": 4_000,
        "venue": "",
        "psbt": "",
    }
    assert len(given["intent"]) == 40
    assert answer.json == {
        "id": row().id,
        "from": "payment",
        "venue": None,
        "inscriptionId": None,
        "destination": OWNER,
        "state": "submitted",
        "sentSats": 900,
        "feeSats": 100,
        "txid": hashlib.sha256(given["intent"].encode()).hexdigest(),
        "reason": None,
        "coins": given["coins"],
        "createdAt": answer.json["createdAt"],
        "updatedAt": answer.json["updatedAt"],
        "leftOut": [],
    }
    assert chain.sent == ["ab" * 100]


async def test_the_row_is_there_before_anything_is_signed_and_the_txid_before_anything_is_sent(
    service: Service, chain: Chain
) -> None:
    chain.put(KEYS["payment"], coin(1))
    seen: list[tuple[str, bool]] = []
    service.signer.before_signing = lambda asked: seen.append((row().state, row().txid is not None))

    def broadcast(transaction: str) -> Any:
        seen.append((row().state, row().txid is not None))
        return row().txid

    service.gateway.answers["broadcast"] = broadcast
    assert (await withdraw(service, from_="payment")).status == 201
    assert seen == [("reserved", False), ("signed", True)]


@pytest.mark.parametrize(
    ("fee_rate", "per_kvb"),
    [
        (None, 4_000),
        ("fastestFee", 5_000),
        ("economyFee", 2_000),
        ("minimumFee", 1_000),
        (1, 1_000),
        (12.5, 12_500),
        (1.001, 1_001),
        (300, 300_000),
    ],
)
async def test_fee_rates(service: Service, chain: Chain, fee_rate: Any, per_kvb: int) -> None:
    chain.put(KEYS["payment"], coin(1, 10_000_000))
    asked: list[dict[str, Any]] = []
    service.signer.before_signing = asked.append
    assert (
        await withdraw(service, from_="payment", **({} if fee_rate is None else {"feeRate": fee_rate}))
    ).status == 201
    assert asked[0]["fee_per_kvb"] == per_kvb


async def test_a_network_that_is_too_dear(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1, 10_000_000))
    service.gateway.answers["fees"] = Fees(Decimal(301), Decimal(4), Decimal(3), Decimal(2), Decimal("0.2"), START_MS)
    assert (await withdraw(service, from_="payment", feeRate="fastestFee", dryRun=True)).status == 409
    quoted = await withdraw(service, from_="payment", feeRate="minimumFee", dryRun=True)
    assert quoted.json["feeSats"] > 100, "less than nodes relay is rounded up to that"


async def test_a_dry_run_signs_and_writes_nothing(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1, 60_000), coin(2, 40_000))

    answer = await withdraw(service, from_="payment", amountSats=30_000, dryRun=True)

    assert (answer.status, answer.json) == (
        200,
        {
            "dryRun": True,
            "from": "payment",
            "destination": OWNER,
            "sentSats": 30_000,
            "feeSats": answer.json["feeSats"],
            "coins": [coin(1).outpoint],
            "leftOut": [],
        },
    )
    assert 500 < answer.json["feeSats"] < 700
    assert not service.signer.signed
    assert Withdrawal.select().count() == 0


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"inscriptions": (INSCRIPTION,)}, "holds an inscription"),
        ({"inscriptions": None}, "not known what lies"),
        ({"runes": ("DOG•GO",)}, "holds runes"),
        ({"index_height": 899_998}, "behind the chain"),
        ({"index_height": None}, "how far the index is behind"),
    ],
)
async def test_a_coin_in_doubt_is_left_out_and_said_so(
    service: Service, chain: Chain, facts: dict[str, Any], reason: str
) -> None:
    chain.put(KEYS["payment"], coin(1))
    chain.put(KEYS["payment"], coin(2, 90_000), **facts)

    answer = await withdraw(service, from_="payment")

    assert (answer.status, answer.json["coins"]) == (201, [coin(1).outpoint])
    ((left),) = answer.json["leftOut"]
    assert (left["outpoint"], left["valueSats"], reason in left["reason"]) == (coin(2).outpoint, 90_000, True)


async def test_waiting_coins_small_ones_and_those_nobody_tells_of_are_left_out(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1), coin(2, confirmed=False), coin(3, 200), coin(4))
    del chain.facts[coin(4).outpoint]

    answer = await withdraw(service, from_="payment")

    reasons = {left["outpoint"]: left["reason"] for left in answer.json["leftOut"]}
    assert answer.json["coins"] == [coin(1).outpoint]
    assert "in a block" in reasons[coin(2).outpoint]
    assert "costs" in reasons[coin(3).outpoint]
    assert "nothing could be learned" in reasons[coin(4).outpoint]


async def test_no_coin_at_all(service: Service, chain: Chain) -> None:
    assert (await withdraw(service, from_="payment")).status == 409
    chain.put(KEYS["payment"], coin(1), inscriptions=(INSCRIPTION,))
    refused = await withdraw(service, from_="payment")
    assert (refused.status, "inscription" in refused.json["message"]) == (409, True)
    assert Withdrawal.select().count() == 0


async def test_more_coins_than_are_spent_at_once(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], *(coin(number, 50_000 + number) for number in range(1, MAX_COINS + 4)))

    answer = await withdraw(service, from_="payment")

    assert len(answer.json["coins"]) == MAX_COINS
    assert [left["valueSats"] for left in answer.json["leftOut"]] == [50_003, 50_002, 50_001]
    assert (await withdraw(service, from_="payment", amountSats=10_000_000)).status == 409


async def test_a_part_takes_no_more_coins_than_it_needs(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1, 10_000), coin(2, 20_000), coin(3, 30_000))
    answer = await withdraw(service, from_="payment", amountSats=45_000)
    assert answer.json["coins"] == [coin(3).outpoint, coin(2).outpoint]
    looked_at = {each["args"]["outpoint"] for each in service.gateway.asked if each["verb"] == "outpoint"}
    assert looked_at <= {coin(number).outpoint for number in (1, 2, 3)}


@pytest.mark.parametrize(
    ("broken", "status"),
    [("coins", 502), ("fees", 502)],
)
async def test_without_the_gateways_word_nothing_is_done(
    service: Service, chain: Chain, broken: str, status: int
) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers[broken] = Unavailable("away")
    assert (await withdraw(service, from_="payment")).status == status
    assert Withdrawal.select().count() == 0


async def test_who_signs_in_with_the_payment_address_has_the_coins_already(service: Service) -> None:
    mine = {**KEYS, "payment": OWNER}
    service.signer._handle = lambda request: mine  # type: ignore[method-assign]
    await service.signer.stop()
    await service.signer.start()
    assert (await withdraw(service, from_="payment")).status == 409


async def test_coins_that_may_not_be_asked_about_now_stay_and_the_rest_goes(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], *(coin(number, 100_000 - number) for number in range(1, 7)))
    known, asked = chain.facts, []

    def outpoint(outpoint: str) -> Any:
        asked.append(outpoint)
        return known[outpoint] if outpoint == coin(2).outpoint else TooManyLookups(30.0, "ask again in 30 s")

    service.gateway.answers["outpoint"] = outpoint
    answer = await withdraw(service, from_="payment")

    assert answer.status == 201 and answer.json["coins"] == [coin(2).outpoint]
    assert {each["reason"] for each in answer.json["leftOut"]} == {"ask again in 30 s"}
    assert len(answer.json["leftOut"]) == 5 and len(asked) == 4

    service.gateway.answers["outpoint"] = TooManyLookups(30.0, "ask again in 30 s")
    refused = await withdraw(service, from_="payment")
    assert (refused.status, refused.headers["Retry-After"]) == (429, "30")


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
