"""Withdrawals of a user's money and inscriptions: the operation, and each withdrawal's steps to a confirmed block.

The states are reserved → signed → submitted → confirmed, and `unknown` after a lost answer. A signed withdrawal is sent
again until the network or the venue has it. The transaction is the same each time, so nothing is moved twice. Several
server processes may process a row concurrently; a process that finds an unexpected state leaves the row alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import time
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, cast

from msgspec import UNSET, UnsetType, field, structs
from msgspec.json import decode
from msgspec.structs import asdict, replace

from core import fields
from core.fields import MAX_SATS, Address, Sats, Time, within, words
from markets.base import AuthFailed, NotFound, NotSupported, Refused, SignInNeeded, Unavailable, Unknown, VenueError
from models.ledger import withdrawals
from models.ledger.states import CONFIRMED, REFUSED, RESERVED, SUBMITTED, UNKNOWN, WITHDRAWAL_LIFE
from models.ledger.withdrawals import CoinsTaken
from server import withdrawal_plan
from server.http import blocking, shapes
from server.http.answers import INVALID, SIGNER_AWAY, TOO_MANY_LOOKUPS, UNREADABLE, ApiError, invalid
from server.http.base import SignedIn, route
from server.http.services import Services
from server.http.shapes import Answer, Body, Wrong, as_pasted, code_of, number, one_of, read_by, shown_as, text
from server.withdrawal_plan import CannotWithdraw, InvalidWithdrawal, Wanted, WithdrawalPlan, WithdrawalPlanner
from wallet.protocol import (
    LEAST_FEE_PER_KVB,
    MOST_FEE_PER_KVB,
    SOURCES,
    VIRTUAL_KB,
    WITHDRAWAL_INTENT_DIGITS,
    SignedWithdrawal,
    Source,
    WithdrawalToSign,
)
from wallet.signer_client import SignerError, SignerLocked, SignerRefused

# More than a signature takes, so that a row is usually signed or refused before the answer.
_SENDS_S = 7.0
_LOOKS_S = 2.0
_COMES_OUT = "Nothing is lost: GET /api/wallet shows what becomes of it."
TIERS = ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
_LEAST, _MOST = LEAST_FEE_PER_KVB // VIRTUAL_KB, MOST_FEE_PER_KVB // VIRTUAL_KB
_RATE = f"must be {', '.join(TIERS)}, or {_LEAST} to {_MOST} sat/vB with at most 3 decimals"


def _fee_rate(value: Any) -> str | Decimal:
    """Reads a tier or sat/vB. Raises Wrong."""
    if isinstance(value, str):
        if text(value) not in TIERS:
            raise Wrong(_RATE)
        return value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise Wrong("must be text or a number")
    rate = number(value)
    exponent = rate.as_tuple().exponent
    if not _LEAST <= rate <= _MOST or not isinstance(exponent, int) or exponent < -3:
        raise Wrong(_RATE)
    return rate


class WithdrawalBody(Body, frozen=True, kw_only=True):
    """The coins to be sent.

    There is no field for the destination: it is the address that the caller signs in with; from the marketplace's
    bidding wallet the caller's own payment address, and from an escrow the caller's vault.
    """

    from_: Annotated[
        str,
        one_of(SOURCES),
        words(
            "`payment` and `vault` are addresses of the caller's here; `bidding` is the marketplace's; `escrow` is "
            "what a listed inscription passes through, and back to the vault is where it goes."
        ),
    ] = field(name="from")
    amount_sats: (
        Annotated[int, within(1, MAX_SATS), words("Sats that arrive; left out: all, less the network's fee.")]
        | UnsetType
    ) = UNSET
    inscription_id: (
        Annotated[
            str,
            read_by(as_pasted(fields.inscription)),
            words("From the vault, or an escrow: this inscription, its fee paid by the payment address."),
        ]
        | UnsetType
    ) = UNSET
    fee_rate: Annotated[
        Any,
        read_by(_fee_rate),
        words(
            "A tier (halfHourFee when left out) or sat/vB. A bidding wallet's fee is the marketplace's.",
            extra_json_schema={"anyOf": [{"type": "string"}, {"type": "number"}]},
        ),
    ] = UNSET
    dry_run: Annotated[bool, words("Only says what would be sent; nothing is signed.")] = False
    force: Annotated[bool, words("Also where open bids lose their cover, or a listing its inscription.")] = False


class LeftOut(Answer, frozen=True, kw_only=True):
    """A coin that is not spent, and why."""

    outpoint: str
    value_sats: Sats
    reason: str


class Withdrawal(Answer, frozen=True, kw_only=True):
    """Money on its way out. Without a signature (yet) the amounts and the txid are null."""

    id: int
    from_: Source = field(name="from")
    venue: Annotated[str | None, words("Whose bidding wallet it leaves.")]
    inscription_id: str | None
    destination: Annotated[str, words("The caller's own address that it goes to.")]
    state: Annotated[
        str,
        code_of(
            WITHDRAWAL_LIFE.states,
            "`submitted`: the network has it, no block yet. `unknown`: it was sent, and nobody can say at the moment "
            "whether it arrived; it is looked up and sent again until that is clear. `refused`: it was not taken, and "
            "its coins are free again.",
        ),
    ]
    sent_sats: Sats | None
    fee_sats: Sats | None
    txid: str | None
    reason: str | None
    coins: Annotated[list[str], words("The outputs that it spends.")]
    created_at: Time
    updated_at: Time


class NewWithdrawal(Withdrawal, frozen=True, kw_only=True):
    """A withdrawal that was just asked for."""

    left_out: list[LeftOut]


class Quote(Answer, frozen=True, kw_only=True):
    """The amounts of a possible withdrawal."""

    dry_run: Literal[True] = True
    from_: Source = field(name="from")
    destination: Address
    sent_sats: Sats
    fee_sats: Sats
    coins: list[str]
    left_out: list[LeftOut]


class Withdrawals(SignedIn):
    """The operation that withdraws the caller's money and inscriptions."""

    tag = "wallet"

    @route(
        "POST /api/wallet/withdraw",
        says="It is on its way.",
        status=201,
        body=WithdrawalBody,
        answer=NewWithdrawal,
        also={
            200: ("With `dryRun`: what would be sent.", Quote),
            202: ("It is signed, and it is not known yet whether it has left.", NewWithdrawal),
        },
        errors={
            400: INVALID,
            409: "Nothing can be withdrawn like this; `message` says why and what to do.",
            429: TOO_MANY_LOOKUPS,
            502: UNREADABLE,
            503: SIGNER_AWAY,
        },
        answers_s=8.0,  # because a withdrawal of twenty coins makes a call for each coin
    )
    async def withdraw(self) -> None:
        """Get my money and inscriptions out

        From `payment` and `vault` everything goes to the address that the caller signs in with; the signer knows it by
        itself and sends nowhere else. From `bidding` sats come to the caller's payment address. Asking twice withdraws
        twice.
        """
        wanted = self._wanted()
        # An earlier withdrawal may have been confirmed, which changes the coins.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(look_after(self.services, withdrawals.open_of(self.user.id)), _LOOKS_S)
        plan = await self._planned(wanted)
        if wanted.dry_run:
            await self._judged(plan)
            self.answer(_quote(plan))
            return
        self.require_signed_in()
        try:
            row = write_down(self.user.id, plan, self.now_ms)
        except CoinsTaken:
            raise ApiError(409, "Another withdrawal spends these coins", message=_COMES_OUT) from None
        try:
            with contextlib.suppress(TimeoutError):  # it continues in the background
                await asyncio.wait_for(asyncio.shield(self._begun(row)), _SENDS_S)
        except SignerRefused as refused:
            raise _refused(refused) from None
        except SignerError as error:
            answer = blocking.answer_to(error)
            raise ApiError(answer.status_code, answer.error, message=f"{answer.message}. {_COMES_OUT}") from error
        row = withdrawals.again(row)
        if row.state == REFUSED:
            raise ApiError(409, "The withdrawal was refused", message=row.reason)
        is_sent = row.state in (SUBMITTED, CONFIRMED)
        shown = NewWithdrawal(**structs.asdict(withdrawal_shown(row)), left_out=_left_out(plan.left_out))
        self.answer(shown, 201 if is_sent else 202)

    def _wanted(self) -> Wanted:
        """Reads the body. Raises ApiError (400)."""
        values, faults = shapes.read_fields(WithdrawalBody, self.json_object())
        faults.sort(key=shapes.is_missing)
        source, amount_sats = values.get("from_"), values.get("amount_sats")
        inscription_id = values.get("inscription_id", "")
        if inscription_id and source in ("payment", "bidding"):
            faults.append(("inscriptionId", "is for the vault and an escrow only"))
        if source == "escrow" and not inscription_id:
            faults.append(("inscriptionId", "is required from an escrow"))
        if inscription_id and amount_sats is not None:
            faults.append(("amountSats", "is not for an inscription, which goes with all that its output holds"))
        if source == "bidding" and "fee_rate" in values:
            faults.append(("feeRate", "is the marketplace's from a bidding wallet"))
        if faults:
            raise invalid([f"{name}: {fault}" for name, fault in faults])
        return Wanted(
            source=cast(Source, source),
            amount_sats=amount_sats,
            inscription_id=inscription_id,
            fee_rate=values.get("fee_rate", ""),
            dry_run=values.get("dry_run", False),
            force=values.get("force", False),
        )

    def _begun(self, row: withdrawals.Withdrawal) -> asyncio.Future[None]:
        sending = asyncio.ensure_future(carry_out(self.services, row))
        sending.add_done_callback(lambda done: done.cancelled() or done.exception())  # retrieves the error
        return sending

    async def _judged(self, plan: WithdrawalPlan) -> None:
        """Has the signer check the plan as it would before a signature. Raises ApiError: 409, 503."""
        try:
            await self.services.signer(lambda signer: signer.judge_withdrawal(plan.asked))
        except SignerRefused as refused:
            raise _refused(refused) from None
        except SignerError as error:
            raise blocking.answer_to(error) from error

    async def _planned(self, wanted: Wanted) -> WithdrawalPlan:
        try:
            return await WithdrawalPlanner(self.services, self.user, wanted, self.until).plan()
        except CannotWithdraw as refused:
            raise ApiError(409, refused.reason, message=refused.what_to_do) from None
        except InvalidWithdrawal as wrong:
            raise invalid([wrong.fault], wrong.reason) from None
        except (VenueError, SignerError) as error:
            raise blocking.answer_to(error) from error


def _refused(refused: SignerRefused) -> ApiError:
    return ApiError(409, "The signer refused the withdrawal", message=f"{refused.tag}: {refused.message}")


def withdrawal_shown(row: withdrawals.Withdrawal) -> Withdrawal:
    """Returns the withdrawal as callers see it."""
    return shown_as(Withdrawal, row, from_=row.source, coins=json.loads(row.coins))


def _quote(plan: WithdrawalPlan) -> Quote:
    return Quote(
        from_=plan.asked.source,
        destination=plan.destination,
        sent_sats=plan.sent_sats,
        fee_sats=plan.fee_sats,
        coins=list(plan.coins),
        left_out=_left_out(plan.left_out),
    )


def _left_out(found: Sequence[withdrawal_plan.LeftOut]) -> list[LeftOut]:
    return [LeftOut(outpoint=each.coin.outpoint, value_sats=each.coin.value, reason=each.reason) for each in found]


log = logging.getLogger(__name__)

RESUME_S = 30.0
# Longer than the lifetime of a request for a signature; a row that is still reserved after this is abandoned.
ABANDONED_MS = 180_000
_SEND_MS = 10_000
_SEEN_AGE_S = 5.0
NEVER_SIGNED = "it was never signed"


def write_down(user_id: int, plan: WithdrawalPlan, now_ms: int) -> withdrawals.Withdrawal:
    """Stores a planned withdrawal, with a new intent. Raises CoinsTaken."""
    asked = replace(plan.asked, intent=secrets.token_hex(WITHDRAWAL_INTENT_DIGITS // 2))
    new = withdrawals.NewWithdrawal(
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


async def carry_out(services: Services, row: withdrawals.Withdrawal) -> None:
    """Signs and sends a stored withdrawal. Raises SignerError if it is not, or may not be, signed."""
    try:
        signed = await _signature(services, row)
    except (SignerRefused, SignerLocked) as error:
        withdrawals.move(row, REFUSED, services.clock_ms(), str(error))
        raise
    await _send_signed(services, row, signed)


async def look_after(services: Services, rows: Iterable[withdrawals.Withdrawal]) -> None:
    """Continues each of these withdrawals. A failure does not stop the others and is retried later."""
    for row in rows:
        try:
            await _take_up(services, row)
        except (SignerError, VenueError) as error:
            log.warning("withdrawal %s stays %s: %s", row.id, row.state, error)
        except Exception:
            log.exception("failed at withdrawal %s, which stays %s", row.id, row.state)


async def look_after_all(services: Services) -> None:
    """Continues all users' withdrawals that no request is processing."""
    await look_after(services, withdrawals.all_open(services.clock_ms(), round(RESUME_S * 1000)))


async def _take_up(services: Services, row: withdrawals.Withdrawal) -> None:
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


async def _send_signed(services: Services, row: withdrawals.Withdrawal, signed: SignedWithdrawal) -> None:
    """Stores the txid, then sends the transaction; leaves the row alone if its state has changed meanwhile."""
    if withdrawals.signed(row, signed.txid, signed.sent_sats, signed.fee_sats, services.clock_ms()):
        log.info("withdrawal %s of user %s from %s is signed: %s", row.id, row.user_id, row.source, signed.txid)
        await _send(services, row, signed)


async def _signature(services: Services, row: withdrawals.Withdrawal) -> SignedWithdrawal:
    """Requests the signature, which is the same each time for a row."""
    asked = decode(row.request, type=WithdrawalToSign)
    return await services.signer(lambda signer: signer.sign_withdrawal(asked))


async def _send(services: Services, row: withdrawals.Withdrawal, signed: SignedWithdrawal) -> None:
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
        # Not sent this time; the cause is on our side, not in the transaction.
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
    """Returns the deadline of a request that is made now. Call it in the thread, so that waiting for it does not count.

    The deadline is in real time, which the gateway uses, even if a test gives the service another clock.
    """
    return time.time_ns() // 1_000_000 + _SEND_MS


async def _after_refusal(services: Services, row: withdrawals.Withdrawal, refused: Refused) -> None:
    """Looks up a refused transaction, because a node also refuses one that is already in a block."""
    try:
        if not await _is_found(services, row):
            _note(services, row, REFUSED, refused.message)
    except VenueError as error:
        _note(services, row, UNKNOWN, f"{refused.message}; and it could not be looked up: {error}")


async def _is_found(services: Services, row: withdrawals.Withdrawal) -> bool:
    """Tells whether a block or the mempool has the transaction, and stores that. Raises VenueError if unknown."""
    txid = row.txid
    assert txid is not None
    try:
        is_confirmed = await services.market(lambda market: market.is_confirmed(txid, _SEEN_AGE_S))
    except NotFound:
        return False
    _note(services, row, CONFIRMED if is_confirmed else SUBMITTED)
    return True


def _note(services: Services, row: withdrawals.Withdrawal, state: str, reason: str | None = None) -> None:
    if state != row.state and withdrawals.move(row, state, services.clock_ms(), reason):
        log.info("withdrawal %s is %s: %s", row.id, state, reason or row.txid)
