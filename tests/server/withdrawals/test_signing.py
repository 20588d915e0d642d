"""Withdrawals at the signer: refused, given up, and signed by one whose answer was lost."""

from __future__ import annotations

from typing import Any

from core.errors import PeerRefused
from markets.base import Unavailable
from models.ledger import withdrawals
from models.ledger.withdrawals import Withdrawal
from server.withdraw import ABANDONED_MS, NEVER_SIGNED, look_after_all
from tests.server.api import START_MS
from tests.server.conftest import OWNER, Service
from tests.server.withdrawals.chain import KEYS, Chain, coin, row, withdraw


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
