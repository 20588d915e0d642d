"""A withdrawal's states from the written row to a confirmed block. The process may die between any two.

reserved → signed → submitted → confirmed, and `unknown` after an answer that never came. A signed one is sent until
network or venue has it: the transaction is the same each time, so it moves nothing twice. Several server processes may
look after one row at a time; one that finds it in another state than expected leaves it alone.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Iterable

from msgspec.json import decode
from msgspec.structs import asdict, replace

from markets.base import AuthFailed, NotFound, NotSupported, Refused, SignInNeeded, Unavailable, Unknown, VenueError
from models.ledger import withdrawals
from models.ledger.states import CONFIRMED, REFUSED, RESERVED, SUBMITTED, UNKNOWN
from models.ledger.withdrawals import NewWithdrawal, Withdrawal
from server.http.services import Services
from server.withdrawal_plan import WithdrawalPlan
from wallet.protocol import WITHDRAWAL_INTENT_DIGITS, SignedWithdrawal, WithdrawalToSign
from wallet.signer_client import SignerError, SignerLocked, SignerRefused

log = logging.getLogger(__name__)

RESUME_S = 30.0
# Longer than any request for a signature lives: a row that is still reserved then is abandoned.
ABANDONED_MS = 180_000
_SEND_MS = 10_000
_SEEN_AGE_S = 5.0
NEVER_SIGNED = "it was never signed"


def write_down(user_id: int, plan: WithdrawalPlan, now_ms: int) -> Withdrawal:
    """Writes the row of a planned withdrawal, under an intent of its own. Raises CoinsTaken."""
    asked = replace(plan.asked, intent=secrets.token_hex(WITHDRAWAL_INTENT_DIGITS // 2))
    new = NewWithdrawal(
        intent=asked.intent,
        user_id=user_id,
        source=asked.source,
        destination=plan.destination,
        request=json.dumps(asdict(asked)),
        coins=plan.coins,
        venue=asked.venue or None,
        inscription_id=asked.inscription_id or None,
    )
    return withdrawals.reserve(new, now_ms)


async def carry_out(services: Services, row: Withdrawal) -> None:
    """Signs and sends a written withdrawal. Raises SignerError when it is not signed, or that is not known."""
    try:
        signed = await _signature(services, row)
    except (SignerRefused, SignerLocked) as error:
        withdrawals.move(row, REFUSED, services.clock_ms(), str(error))
        raise
    await _send_signed(services, row, signed)


async def look_after(services: Services, rows: Iterable[Withdrawal]) -> None:
    """Continues each of these where it was left. A failure is tried again later, and holds up no other."""
    for row in rows:
        try:
            await _take_up(services, row)
        except (SignerError, VenueError) as error:
            log.warning("withdrawal %s stays %s: %s", row.id, row.state, error)
        except Exception:
            log.exception("failed at withdrawal %s, which stays %s", row.id, row.state)


async def look_after_all(services: Services) -> None:
    """Continues all users' withdrawals that no request is busy with."""
    await look_after(services, withdrawals.all_open(services.clock_ms(), round(RESUME_S * 1000)))


async def _take_up(services: Services, row: Withdrawal) -> None:
    if row.state == RESERVED:
        if 0 <= services.clock_ms() - row.updated_ms < ABANDONED_MS:
            return
        if not await services.signer(lambda signer: signer.was_signed(row.intent)):
            withdrawals.move(row, REFUSED, services.clock_ms(), NEVER_SIGNED)
            return
        await _send_signed(services, row, await _signature(services, row))
        return
    if not await _is_found(services, row):
        await _send(services, row, await _signature(services, row))


async def _send_signed(services: Services, row: Withdrawal, signed: SignedWithdrawal) -> None:
    """Writes the txid down before anything is sent; leaves a row alone that has moved meanwhile."""
    if withdrawals.signed(row, signed.txid, signed.sent_sats, signed.fee_sats, services.clock_ms()):
        log.info("withdrawal %s of user %s from %s is signed: %s", row.id, row.user_id, row.source, signed.txid)
        await _send(services, row, signed)


async def _signature(services: Services, row: Withdrawal) -> SignedWithdrawal:
    """Asks for the signature, which is the same each time for one row."""
    asked = decode(row.request, type=WithdrawalToSign)
    return await services.signer(lambda signer: signer.sign_withdrawal(asked))


async def _send(services: Services, row: Withdrawal, signed: SignedWithdrawal) -> None:
    payment = row.destination
    try:
        if signed.psbt:
            txid = await services.market(
                lambda market: market.at(row.venue).submit_withdrawal(payment, signed.psbt, deadline_ms=_deadline_ms())
            )
        else:
            txid = await services.market(
                lambda market: market.broadcast(signed.transaction, deadline_ms=_deadline_ms())
            )
    except (Unavailable, AuthFailed, SignInNeeded, NotSupported) as error:
        # Not sent, this time: the cause is ours, not the transaction's.
        log.warning("withdrawal %s was not sent: %s", row.id, error)
    except Refused as refused:
        await _after_refusal(services, row, refused)
    except Unknown as error:
        _note(services, row, UNKNOWN, str(error))
    else:
        if txid != row.txid:
            _note(services, row, UNKNOWN, "the answer named another transaction")
        else:
            _note(services, row, SUBMITTED)


def _deadline_ms() -> int:
    """Returns the deadline of a request that is made now: time spent waiting for a thread does not shorten it.

    The gateway compares it with the real time, whatever clock the service is tested with.
    """
    return time.time_ns() // 1_000_000 + _SEND_MS


async def _after_refusal(services: Services, row: Withdrawal, refused: Refused) -> None:
    """Looks a refused transaction up: a node also refuses one that is in a block already."""
    try:
        if not await _is_found(services, row):
            _note(services, row, REFUSED, refused.message)
    except VenueError as error:
        _note(services, row, UNKNOWN, f"{refused.message}; and it could not be looked up: {error}")


async def _is_found(services: Services, row: Withdrawal) -> bool:
    """Tells whether a block or the mempool has it, and notes that. Raises VenueError when it cannot be found out."""
    txid = row.txid
    assert txid is not None
    try:
        is_confirmed = await services.market(lambda market: market.is_confirmed(txid, _SEEN_AGE_S))
    except NotFound:
        return False
    _note(services, row, CONFIRMED if is_confirmed else SUBMITTED)
    return True


def _note(services: Services, row: Withdrawal, state: str, reason: str | None = None) -> None:
    if state != row.state and withdrawals.move(row, state, services.clock_ms(), reason):
        log.info("withdrawal %s is %s: %s", row.id, state, reason or row.txid)
