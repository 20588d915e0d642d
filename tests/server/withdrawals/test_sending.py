"""Withdrawals on their way to the network: refused, not sent, unknown, and looked up."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from markets.base import AuthFailed, NotSupported, RateLimited, Refused, SignInNeeded, Unavailable, Unknown, VenueError
from models.ledger import withdrawals
from server.withdraw import RESUME_S, look_after_all
from tests.server.conftest import Service
from tests.server.withdrawals.chain import KEYS, Chain, coin, row, withdraw


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


@pytest.mark.parametrize(
    "error",
    [AuthFailed("who are you"), SignInNeeded("sign in"), NotSupported("not set"), RateLimited(5), Unavailable()],
)
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


async def test_the_wait_for_a_thread_leaves_the_whole_time_to_send(service: Service, chain: Chain) -> None:
    chain.put(KEYS["payment"], coin(1))
    market = service.app.settings["services"].market
    ask, began_ms = market._ask, [0]

    def late(question: object) -> object:
        time.sleep(0.05)
        began_ms[0] = time.time_ns() // 1_000_000
        return ask(question)

    market._ask = late
    await withdraw(service, from_="payment")
    sent = next(each for each in service.gateway.asked if each["verb"] == "broadcast")
    assert sent["deadline_ms"] >= began_ms[0] + 10_000
