"""The way home of an item that lies in its escrow without a sale: a withdrawal, to the vault instead of out of it.

Its row is on disk with its coins before it is signed, and with its txid before anything is sent. The server's caretaker
of withdrawals sends it, and looks after it whatever dies meanwhile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from decimal import ROUND_CEILING
from enum import StrEnum

from markets.base import VenueError
from models.ledger import withdrawals
from models.ledger.withdrawals import REFUSED, RESERVED, CoinsTaken, NewWithdrawal
from models.users import User
from strategy.fates import PlaceResult
from strategy.fault_codes import FaultCode
from wallet.protocol import UserKeys
from wallet.signer_client import SignerError, SignerLocked, SignerRefused
from wallet.withdrawal.request import VIRTUAL_KB, WithdrawalToSign, as_request
from workers.bidding.coins import PaymentCoins
from workers.context import Context
from workers.faults import Faults

FEES_S = 60.0
# Virtual bytes of the transaction with a few coins that pay for it.
VSIZE = 500
WAY_HOME = "bring the inscription home from its escrow"


class Homecoming(StrEnum):
    """The state of an item's way home."""

    ON_ITS_WAY = "on its way home"
    LATER = "not on its way home yet"  # something did not answer: to be tried again
    IMPOSSIBLE = "not to be brought home"  # no coin pays the fee, or the signer refuses: its owner is told why


def bring_home(
    context: Context,
    user: User,
    keys: UserKeys,
    inscription_id: str,
    outpoint: str,
    faults: Faults,
    new_intent: Callable[[], str] = lambda: os.urandom(20).hex(),
) -> Homecoming:
    """Signs the way home of the inscription at `outpoint`, once."""
    for row in withdrawals.open_of(user.id):
        if outpoint in json.loads(row.coins):
            # A reserved one may never be signed: the caretaker finds that out, and frees its coins.
            return Homecoming.LATER if row.state == RESERVED else Homecoming.ON_ITS_WAY
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
    new = NewWithdrawal(
        intent=asked.intent,
        user_id=user.id,
        source=asked.source,
        destination=keys.vault,
        request=json.dumps(as_request(asked)),
        coins=(*asked.coins, *asked.fee_coins),
        inscription_id=inscription_id,
    )
    try:
        row = withdrawals.reserve(new, context.clock_ms())
    except CoinsTaken:
        text = "another withdrawal spends a coin that would pay for it"
        faults.add(WAY_HOME, text, backs_off=False, code=FaultCode.NO_COINS)
        return Homecoming.LATER
    context.crash("homecoming-reserved")
    try:
        signed = context.signer.sign_withdrawal(asked)
    except (SignerRefused, SignerLocked) as error:
        faults.add_unsigned(WAY_HOME, error)
        withdrawals.move(row, REFUSED, context.clock_ms(), str(error))
        return Homecoming.IMPOSSIBLE
    except SignerError as error:
        faults.add(WAY_HOME, error)
        return Homecoming.LATER
    context.crash("homecoming-signed")
    withdrawals.signed(row, signed.txid, signed.sent_sats, signed.fee_sats, context.clock_ms())
    context.crash("homecoming-stored")
    return Homecoming.ON_ITS_WAY


def _paying(context: Context, user_id: int, keys: UserKeys, faults: Faults) -> tuple[int, tuple[str, ...]] | Homecoming:
    """Returns sats for 1000 vB and the coins that pay them."""
    try:
        rate = context.market.fees(FEES_S).hour
    except VenueError as error:
        faults.add(WAY_HOME, error)
        return Homecoming.LATER
    per_kvb = max(VIRTUAL_KB, int((rate * VIRTUAL_KB).to_integral_value(ROUND_CEILING)))
    most_fee = -(-per_kvb * VSIZE // VIRTUAL_KB)
    in_use = withdrawals.taken_coins(user_id) | set(withdrawals.coins_behind_bids(user_id))
    found = PaymentCoins(context, keys.payment, faults).pay(most_fee, in_use, "the way home from an escrow, a fee")
    if isinstance(found, PlaceResult):
        return Homecoming.IMPOSSIBLE if found is PlaceResult.NO_COINS else Homecoming.LATER
    return per_kvb, tuple(coin.outpoint for coin in found)
