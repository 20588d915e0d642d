"""Withdrawals are signed and sent: refused, lost, looked up, shown, and out of the bidding wallet."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64encode
from typing import Any

import pytest

from core.errors import PeerRefused
from markets.base import (
    AuthFailed,
    Balance,
    NotFound,
    NotSupported,
    RateLimited,
    Refused,
    SignInNeeded,
    Unavailable,
    Unknown,
    Utxo,
    VenueError,
)
from models.ledger import withdrawals
from models.ledger.states import Order
from models.ledger.withdrawals import Withdrawal
from server.withdraw import ABANDONED_MS, NEVER_SIGNED, RESUME_S, look_after_all
from tests.server.withdrawals.chain import KEYS, WITHDRAW, Chain, coin, row, withdraw
from tests.wallet.withdrawal_cases import honest as honest_draft
from tests.worlds.service import OWNER, START_MS, Service, with_settings


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
