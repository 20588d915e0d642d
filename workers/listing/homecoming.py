"""The way home of an item that lies in its escrow without a sale: a withdrawal, to the vault instead of out of it.

Its row is on disk with its coins before it is signed, and with its txid before anything is sent. The server's caretaker
of withdrawals sends it, and looks after it whatever dies meanwhile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from enum import StrEnum

from msgspec.structs import asdict

from markets.base import VenueError
from models.ledger import withdrawals
from models.ledger.states import REFUSED, RESERVED
from models.ledger.withdrawals import CoinsTaken, NewWithdrawal
from models.users import User
from strategy.fates import PlaceResult
from strategy.fault_codes import FaultCode, Step
from wallet.protocol import (
    LEAST_FEE_PER_KVB,
    MOST_FEE_PER_KVB,
    VIRTUAL_KB,
    UserKeys,
    WithdrawalToSign,
    per_kvb,
)
from wallet.signer_client import SignerError, SignerLocked, SignerRefused
from workers.bidding.coins import PaymentCoins
from workers.context import Context
from workers.faults import Faults

FEES_S = 60.0
# Virtual bytes of the transaction with a few coins that pay for it.
VSIZE = 500
WAY_HOME = (Step.BRING_HOME, "bring the inscription home from its escrow")
# Ways home of one item that may begin in a day, and how many of them for another price: the rest is for its end.
MOST_A_DAY, MOST_A_DAY_FOR_A_PRICE = 8, 4
DAY_MS = 86_400_000
# Another price is worth this part of it in fees.
FEE_SHARE = 10
# Refusals that pass: a fact is missing, a day's limit is used up, a person has stopped all signatures.
_PASSING = frozenset({"inputs-confirmed", "inputs-cardinal", "amount-proof", "velocity", "control-state"})


class Homecoming(StrEnum):
    """The state of an item's way home."""

    ON_ITS_WAY = "on its way home"
    LATER = "not on its way home yet"  # something did not answer, or must wait: to be tried again
    LOCKED = "not free yet to come home"  # its escrow keeps it for some more blocks: its owner is told how many
    IMPOSSIBLE = "not to be brought home"  # no coin pays the fee, or the signer refuses for good: its owner is told why


def bring_home(
    context: Context,
    user: User,
    keys: UserKeys,
    inscription_id: str,
    outpoint: str,
    faults: Faults,
    wanted_sats: int | None = None,
    new_intent: Callable[[], str] = lambda: os.urandom(20).hex(),
) -> Homecoming:
    """Signs the way home of the inscription at `outpoint`, once.

    `wanted_sats` is the price that it is to be listed for afterwards, if that is why it comes home.
    """
    if (why_not := _why_not_now(context, user.id, inscription_id, outpoint, faults, wanted_sats)) is not None:
        return why_not
    paying = _paying(context, user.id, keys, faults)
    if isinstance(paying, Homecoming):
        return paying
    fee_per_kvb, fee_coins = paying
    asked = WithdrawalToSign(
        intent=new_intent(),
        user=user.address,
        source="escrow",
        coins=(outpoint,),
        fee_coins=fee_coins,
        inscription_id=inscription_id,
        fee_per_kvb=fee_per_kvb,
    )
    if (refused := _judged(context, asked, wanted_sats, faults)) is not None:
        return refused
    return _reserved_and_signed(context, user.id, keys.vault, asked, faults)


def _why_not_now(
    context: Context, user_id: int, inscription_id: str, outpoint: str, faults: Faults, wanted_sats: int | None
) -> Homecoming | None:
    """Returns the state of a way home that is begun already, or LATER after too many in a day; None: it may begin."""
    for row in withdrawals.open_of(user_id):
        if outpoint in json.loads(row.coins):
            # A reserved one may never be signed: the caretaker finds that out, and frees its coins.
            return Homecoming.LATER if row.state == RESERVED else Homecoming.ON_ITS_WAY
    most = MOST_A_DAY if wanted_sats is None else MOST_A_DAY_FOR_A_PRICE
    if withdrawals.ways_home_since(user_id, inscription_id, context.clock_ms() - DAY_MS) >= most:
        faults.add(*WAY_HOME, f"it has begun {most} ways home in a day", backs_off=False)
        return Homecoming.LATER
    return None


def _reserved_and_signed(
    context: Context, user_id: int, vault: str, asked: WithdrawalToSign, faults: Faults
) -> Homecoming:
    """Writes the row of the way home down, and has it signed then."""
    new = NewWithdrawal(
        intent=asked.intent,
        user_id=user_id,
        source=asked.source,
        destination=vault,
        request=json.dumps(asdict(asked)),
        coins=(*asked.coins, *asked.fee_coins),
        inscription_id=asked.inscription_id,
    )
    try:
        row = withdrawals.reserve(new, context.clock_ms())
    except CoinsTaken:
        text = "another withdrawal spends a coin that would pay for it"
        faults.add(*WAY_HOME, text, backs_off=False, code=FaultCode.NO_COINS)
        return Homecoming.LATER
    context.crash("homecoming-reserved")
    try:
        signed = context.signer.sign_withdrawal(asked)
    except (SignerRefused, SignerLocked) as error:
        withdrawals.move(row, REFUSED, context.clock_ms(), str(error))
        return _unsigned(error, faults)
    except SignerError as error:
        return _unsigned(error, faults)
    context.crash("homecoming-signed")
    withdrawals.signed(row, signed.txid, signed.sent_sats, signed.fee_sats, context.clock_ms())
    context.crash("homecoming-stored")
    return Homecoming.ON_ITS_WAY


def _judged(context: Context, asked: WithdrawalToSign, wanted_sats: int | None, faults: Faults) -> Homecoming | None:
    """Has the way home judged before its row is written, so that no rows of refused ones pile up; None: it may go."""
    try:
        _, fee_sats = context.signer.judge_withdrawal(asked)
    except SignerError as error:
        return _unsigned(error, faults)
    if wanted_sats is not None and fee_sats * FEE_SHARE > wanted_sats:
        text = f"its fee of {fee_sats} sats is more than a tenth of the {wanted_sats} that it would be listed for"
        faults.add(*WAY_HOME, text, backs_off=False)
        return Homecoming.IMPOSSIBLE
    return None


def _unsigned(error: SignerError, faults: Faults) -> Homecoming:
    if isinstance(error, SignerRefused) and error.tag == "timelock":
        faults.add(*WAY_HOME, error, backs_off=False)
        return Homecoming.LOCKED
    faults.add_unsigned(*WAY_HOME, error)
    is_final = isinstance(error, SignerRefused) and error.tag not in _PASSING
    return Homecoming.IMPOSSIBLE if is_final else Homecoming.LATER


def _paying(context: Context, user_id: int, keys: UserKeys, faults: Faults) -> tuple[int, tuple[str, ...]] | Homecoming:
    """Returns sats for 1000 vB and the coins that pay them."""
    try:
        rate = max(LEAST_FEE_PER_KVB, per_kvb(context.market.fees(FEES_S).hour))
    except VenueError as error:
        faults.add(*WAY_HOME, error)
        return Homecoming.LATER
    if rate > MOST_FEE_PER_KVB:
        faults.add(*WAY_HOME, f"{rate} sats for 1000 vB are more than {MOST_FEE_PER_KVB}", backs_off=False)
        return Homecoming.LATER
    most_fee = -(-rate * VSIZE // VIRTUAL_KB)
    taken = withdrawals.taken_coins(user_id)
    coins = PaymentCoins(context, keys.payment, faults)
    found = coins.pay(
        most_fee, taken | set(withdrawals.coins_behind_bids(user_id)), "the way home from an escrow, a fee"
    )
    if isinstance(found, PlaceResult):
        # An open withdrawal gives its coins back, or their change.
        is_final = found is PlaceResult.NO_COINS and not (taken or coins.is_in_doubt)
        return Homecoming.IMPOSSIBLE if is_final else Homecoming.LATER
    return rate, tuple(coin.outpoint for coin in found)
