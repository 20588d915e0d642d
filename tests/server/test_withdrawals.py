"""POST /api/wallet/withdraw: what is asked of signer and gateway, what is written down, and what is answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest

from core.errors import PeerRefused
from markets.base import (
    AuthFailed,
    Balance,
    Fees,
    NotFound,
    NotSupported,
    RateLimited,
    Refused,
    Unavailable,
    Unknown,
    VenueError,
)
from markets.outpoint_facts import OutpointFacts, Whereabouts
from markets.utxos import Utxo
from models.ledger import withdrawals
from models.ledger.listing_table import Listing
from models.ledger.order_table import Order
from models.ledger.withdrawals import Withdrawal
from models.tasks.table import LISTING, Task
from server.withdrawals.steps import ABANDONED_MS, NEVER_SIGNED, RESUME_S, look_after_all
from strategy.listing.listing_config import ListingConfig, dump_listing_config
from tests.server.api import START_MS
from tests.server.conftest import OTHER, OWNER, Service, with_settings
from tests.server.peers import keys_of
from tests.wallet.listings import VAULT
from tests.wallet.withdrawal_cases import honest as honest_draft
from wallet.address import p2tr, parse
from wallet.escrow_terms import ESCROW_TERMS
from wallet.protocol import MAX_COINS
from wallet.psbt.escrow import escrow_of
from wallet.psbt.script import script_of

pytestmark = pytest.mark.gen_test

KEYS = keys_of(OWNER)
INSCRIPTION = "7" * 64 + "i0"
ITEM = "aa" * 32 + ":0"
WITHDRAW = "/api/wallet/withdraw"


def script(address: str) -> str:
    found = script_of(parse(address))
    assert found is not None
    return found.hex()


def coin(number: int, value: int = 50_000, *, confirmed: bool = True) -> Utxo:
    return Utxo(f"{number:064x}:0", value, confirmed)


class Chain:
    """Coins by address, and what lies on each; what is broadcast is kept."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.coins: dict[str, list[Utxo]] = {}
        self.facts: dict[str, OutpointFacts] = {}
        self.sent: list[str] = []
        self.seen: dict[str, bool] = {}
        answers = service.gateway.answers
        answers["coins"] = lambda address: tuple(self.coins.get(address, ()))
        answers["outpoint"] = lambda outpoint: self.facts.get(outpoint, Unavailable("no source answers"))
        answers["is_confirmed"] = lambda txid: self.seen.get(txid, NotFound("Transaction not found"))
        answers["broadcast"] = self.broadcast

    def put(self, address: str, *coins: Utxo, **facts: Any) -> None:
        self.coins.setdefault(address, []).extend(coins)
        for each in coins:
            known = {"inscriptions": (), "runes": (), "tip_height": 900_000, "index_height": 900_000} | facts
            self.facts[each.outpoint] = OutpointFacts(
                outpoint=each.outpoint,
                value=each.value,
                script=script(address),
                is_unspent=True,
                is_confirmed=each.is_confirmed,
                spent_by=None,
                **known,
            )

    def broadcast(self, transaction: str) -> Any:
        self.sent.append(transaction)
        row = withdrawals.newest(self.service.user_id, 1)[0]
        self.seen[row.txid or ""] = False
        return row.txid


@pytest.fixture
def chain(service: Service) -> Chain:
    return Chain(service)


async def withdraw(service: Service, **body: Any) -> Any:
    return await service.ask(
        "POST", WITHDRAW, {"from" if name == "from_" else name: each for name, each in body.items()}
    )


def row() -> Withdrawal:
    (found,) = Withdrawal.select()
    return found


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
    ({"from": "vault", "inscriptionId": "x"}, ["inscriptionId: is not an inscription's id"]),
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


# Sending


async def test_an_answer_that_never_came_is_unknown_until_it_is_looked_up(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = Unknown("cut")

    answer = await withdraw(service, from_="payment")

    assert (answer.status, answer.json["state"]) == (202, "unknown")
    chain.seen[answer.json["txid"]] = False
    shown = (await service.ask("GET", "/api/wallet")).json["withdrawals"]
    assert [each["state"] for each in shown] == ["submitted"]
    chain.seen[answer.json["txid"]] = True
    assert (await service.ask("GET", "/api/wallet")).json["withdrawals"][0]["state"] == "confirmed"


async def test_what_nobody_has_is_sent_again_the_same(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = Unknown("cut")
    first = await withdraw(service, from_="payment")
    service.gateway.answers["broadcast"] = chain.broadcast

    shown = (await service.ask("GET", "/api/wallet")).json["withdrawals"][0]

    assert (shown["state"], shown["txid"]) == ("submitted", first.json["txid"])
    assert chain.sent == ["ab" * 100]
    assert len(service.signer.signed) == 1


@pytest.mark.parametrize("error", [Unavailable("down"), RateLimited(1.0)])
async def test_what_was_not_sent_stays_signed_and_is_sent_later(service: Service, chain: Chain, error: Any) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = error
    answer = await withdraw(service, from_="payment")
    assert (answer.status, answer.json["state"]) == (202, "signed")
    service.gateway.answers["broadcast"] = chain.broadcast
    service.clock.now_ms += round(1000 * RESUME_S) + 1
    await look_after_all(service.app.settings["services"])
    assert row().state == "submitted"


async def test_a_refusal_of_the_network_is_the_end(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = Refused("refused", "min relay fee not met")
    answer = await withdraw(service, from_="payment")
    assert (answer.status, answer.json["message"]) == (409, "min relay fee not met")
    assert (row().state, withdrawals.taken_coins(service.user_id)) == ("refused", set())


async def test_a_refusal_of_what_is_in_a_block_is_none(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = Refused("refused", "Transaction already in block chain")
    service.gateway.answers["is_confirmed"] = True
    answer = await withdraw(service, from_="payment")
    assert (answer.status, answer.json["state"]) == (201, "confirmed")


async def test_a_refusal_that_cannot_be_looked_up_is_unknown(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = Refused("refused", "no")
    service.gateway.answers["is_confirmed"] = Unavailable("away")
    assert (await withdraw(service, from_="payment")).json["state"] == "unknown"


@pytest.mark.parametrize("error", [AuthFailed("who are you"), NotSupported("not set"), RateLimited(5), Unavailable()])
async def test_what_is_not_sent_is_sent_later(service: Service, chain: Chain, error: VenueError) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = error
    answer = await withdraw(service, from_="payment")
    assert (answer.status, answer.json["state"]) == (202, "signed")
    service.gateway.answers["broadcast"] = chain.broadcast
    assert (await service.ask("GET", "/api/wallet")).json["withdrawals"][0]["state"] == "submitted"


async def test_another_txid_than_ours_is_unknown(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = "cd" * 32
    assert (await withdraw(service, from_="payment")).json["state"] == "unknown"


async def test_coins_on_their_way_are_not_spent_twice(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = Unknown("cut")
    assert (await withdraw(service, from_="payment")).status == 202
    again = await withdraw(service, from_="payment")
    assert (again.status, "another withdrawal" in again.json["message"]) == (409, True)
    assert len(service.signer.signed) == 1


async def test_of_two_at_once_one_gets_the_coins(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    answers = await asyncio.gather(*(withdraw(service, from_="payment") for _ in range(4)))
    assert sorted(each.status for each in answers) == [201, 409, 409, 409]
    assert len(service.signer.signed) == len(chain.sent) == 1


# The signer


async def test_what_is_signed_after_it_was_given_up_is_not_sent(service: Service, chain: Chain) -> None:
    """Its coins may be spent by another one already."""
    chain.put(KEYS["payment"], coin(1))

    def give_up(asked: dict[str, Any]) -> None:
        withdrawals.move(row(), "refused", START_MS, NEVER_SIGNED)

    service.signer.before_signing = give_up
    answer = await withdraw(service, from_="payment")
    assert (answer.status, answer.json["message"], chain.sent) == (409, NEVER_SIGNED, [])
    assert service.signer.signed


async def test_what_the_signer_refuses_is_refused(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))

    def refuse(asked: dict[str, Any]) -> None:
        raise PeerRefused("signer", "velocity", "too much today")

    service.signer.before_signing = refuse
    answer = await withdraw(service, from_="payment")
    assert (answer.status, answer.json["message"]) == (409, "velocity: too much today")
    assert row().state == "refused"
    assert not chain.sent


async def test_a_locked_signer_signs_nothing(service: Service, chain: Chain) -> None:
    service.signer.state = "locked"
    assert (await withdraw(service, from_="payment")).status == 503
    assert Withdrawal.select().count() == 0


async def test_a_signer_whose_answer_is_lost_may_have_signed(service: Service, chain: Chain) -> None:
    """Asked again later it gives the same signature, and that is sent."""
    chain.put(KEYS["payment"], coin(1))

    def die(asked: dict[str, Any]) -> None:
        service.signer.signed[asked["intent"]] = {
            "txid": "ee" * 32,
            "transaction": "cd" * 100,
            "psbt": "",
            "sent_sats": 1,
            "fee_sats": 2,
        }
        raise RuntimeError("it dies")

    service.signer.before_signing = die
    answer = await withdraw(service, from_="payment")
    assert (answer.status, row().state) == (503, "reserved")
    service.signer.before_signing = lambda asked: None

    service.clock.now_ms += ABANDONED_MS - 1
    await look_after_all(service.app.settings["services"])
    assert row().state == "reserved", "somebody may still be at it"
    service.clock.now_ms += 2
    await look_after_all(service.app.settings["services"])
    assert (row().state, row().txid, chain.sent) == ("submitted", "ee" * 32, ["cd" * 100])


async def test_what_was_never_signed_gives_its_coins_back(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))

    def die(asked: dict[str, Any]) -> None:
        raise RuntimeError("it dies")

    service.signer.before_signing = die
    assert (await withdraw(service, from_="payment")).status == 503
    service.clock.now_ms += ABANDONED_MS + 1
    await look_after_all(service.app.settings["services"])
    assert (row().state, row().reason) == ("refused", NEVER_SIGNED)
    service.signer.before_signing = lambda asked: None
    assert (await withdraw(service, from_="payment")).status == 201


async def test_a_clock_that_is_set_back_strands_nothing(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1), coin(2, 40_000))

    def die(asked: dict[str, Any]) -> None:
        raise RuntimeError("it dies")

    service.signer.before_signing = die
    assert (await withdraw(service, from_="payment", amountSats=5_000)).status == 503
    service.signer.before_signing = lambda asked: None
    service.gateway.answers["broadcast"] = Unavailable("away")
    assert (await withdraw(service, from_="payment", amountSats=5_000)).json["state"] == "signed"
    service.gateway.answers["broadcast"] = chain.broadcast
    service.clock.now_ms -= 86_400_000

    await look_after_all(service.app.settings["services"])

    assert [each.state for each in Withdrawal.select().order_by(Withdrawal.id)] == ["refused", "submitted"]


async def test_one_that_cannot_be_read_holds_up_no_other(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    service.gateway.answers["broadcast"] = Unavailable("away")
    odd = withdrawals.NewWithdrawal("1" * 40, service.user_id, "payment", OWNER, "no request", ("c",))
    withdrawals.signed(withdrawals.reserve(odd, START_MS), "ab" * 32, 1, 1, START_MS)
    assert (await withdraw(service, from_="payment")).json["state"] == "signed"
    service.gateway.answers["broadcast"] = chain.broadcast
    shown = (await service.ask("GET", "/api/wallet")).json["withdrawals"]
    assert [each["state"] for each in shown] == ["submitted", "signed"]


# Inscriptions


def listed(service: Service, **fields: Any) -> Task:
    values = {"user": service.user_id, "kind": LISTING, "venue": "simulator", "inscription_id": INSCRIPTION}
    return Task.create(**values, config=dump_listing_config(ListingConfig()), created_ms=START_MS, **fields)


def in_vault(service: Service, chain: Chain) -> None:
    chain.put(KEYS["vault"], Utxo(ITEM, 10_000, True), inscriptions=(INSCRIPTION,))
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, ITEM, KEYS["vault"], 10_000, START_MS)


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
    assert (refused.status, KEYS["payment"] in refused.json["message"]) == (409, True)
    chain.put(KEYS["payment"], coin(1, 500))
    refused = await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)
    assert (refused.status, KEYS["payment"] in refused.json["message"]) == (409, True)


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


VAULT_KEY = VAULT.get_public_key().sec()
ESCROW = p2tr(escrow_of(VAULT_KEY, ESCROW_TERMS["simulator-ordnet"]).script[2:])
ESCROWS = {"vault_pubkey": VAULT_KEY[1:].hex(), "escrows": {"simulator-ordnet": ESCROW}}


def in_escrow(service: Service, chain: Chain) -> None:
    service.signer.more_keys = ESCROWS
    chain.put(ESCROW, Utxo(ITEM, 10_000, True), inscriptions=(INSCRIPTION,))
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, ITEM, ESCROW, 10_000, START_MS)
    chain.put(KEYS["payment"], coin(1))


@pytest.mark.parametrize(("source", "home"), [("vault", OWNER), ("escrow", KEYS["vault"])])
async def test_an_inscription_in_its_escrow_goes_out_or_back(
    service: Service, chain: Chain, source: str, home: str
) -> None:
    in_escrow(service, chain)
    asked: list[dict[str, Any]] = []
    service.signer.before_signing = asked.append

    quote = await withdraw(service, from_=source, inscriptionId=INSCRIPTION, dryRun=True)
    answer = await withdraw(service, from_=source, inscriptionId=INSCRIPTION)

    assert (quote.json["from"], quote.json["destination"], asked[0]["source"]) == (source, home, source)
    assert (answer.status, answer.json["destination"], answer.json["coins"]) == (201, home, [ITEM, coin(1).outpoint])


async def test_back_to_the_vault_goes_what_is_in_an_escrow_alone(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["payment"], coin(1))
    refused = await withdraw(service, from_="escrow", inscriptionId=INSCRIPTION)
    assert (refused.status, refused.json["error"]) == (409, "The inscription is not in an escrow of yours")
    assert (await withdraw(service, from_="escrow")).details == ["inscriptionId: is required from an escrow"]


async def test_whoever_signs_in_with_the_vault_gets_it_back_too(service: Service, chain: Chain) -> None:
    """Their own wallet has the key, and knows nothing of the escrow."""
    in_escrow(service, chain)
    service.signer.more_keys = {**ESCROWS, "vault": OWNER}
    assert (await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)).status == 409
    answer = await withdraw(service, from_="escrow", inscriptionId=INSCRIPTION)
    assert (answer.status, answer.json["destination"]) == (201, OWNER)


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


# The bidding wallet


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


async def test_a_submit_that_is_unknown_is_looked_up_and_handed_in_again(service: Service, chain: Chain) -> None:
    bidding(service, chain)
    service.gateway.answers["submit_withdrawal"] = Unknown("cut")
    assert (await withdraw(service, from_="bidding", amountSats=5_000)).json["state"] == "unknown"
    service.gateway.answers["submit_withdrawal"] = lambda payment, psbt: row().txid
    assert (await service.ask("GET", "/api/wallet")).json["withdrawals"][0]["state"] == "submitted"


# Who sees what


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
