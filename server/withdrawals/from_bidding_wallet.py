"""The plan of a withdrawal from a bidding wallet: the marketplace drafts it, and the signer judges the draft."""

from __future__ import annotations

from core.settings import Settings, dialect_of
from markets.base import AuthFailed, NotFound, NotSupported, Refused, Unavailable
from models.ledger import withdrawals
from models.users import User
from server.http.user_market import UserMarket
from server.schemas.withdrawals import WithdrawalBody
from server.withdrawals.plan import NOTHING, UNCOVERED, CannotWithdraw, InvalidWithdrawal, WithdrawalPlan, script_at
from wallet.protocol import WithdrawalToSign
from wallet.psbt.decode import decode_base64
from wallet.psbt.transaction import WireError


async def plan_from_bidding(
    settings: Settings, ask: UserMarket, user: User, body: WithdrawalBody, payment: str, pubkey: str
) -> WithdrawalPlan:
    """Plans the withdrawal in `body` from the bidding wallet to the user's `payment` address, whose key is `pubkey`.

    Raises CannotWithdraw, InvalidWithdrawal or VenueError.
    """
    venue, receive = bidding_venue(settings), user.ordinals_address
    try:
        wallet = await ask(lambda market: market.at(venue).balance(payment, receive, pubkey, 0.0))
        coins = await ask(lambda market: market.coins(wallet.address, 0.0))
        amount = body.amount_sats or sum(coin.value for coin in coins if coin.is_confirmed)
        if not amount:
            raise CannotWithdraw(NOTHING, "The bidding wallet holds no confirmed sats.")
        _refuse_uncovered(user.id, body, venue, wallet.sats - amount)
        psbt = await ask(lambda market: market.at(venue).draft_withdrawal(payment, amount))
        transaction = decode_base64(psbt).transaction
    except NotFound:
        raise CannotWithdraw(NOTHING, "The marketplace has no bidding wallet for you yet.") from None
    except NotSupported as error:
        raise InvalidWithdrawal(f"from: {error.message}", "This cannot be done yet") from None
    except AuthFailed:
        raise
    except Refused as error:
        raise CannotWithdraw("The marketplace refused the withdrawal", error.message) from None
    except WireError as error:
        raise Unavailable(f"its draft is no PSBT: {error}") from None
    values = {coin.outpoint: coin.value for coin in coins}
    spent = tuple(str(each.outpoint) for each in transaction.inputs)
    sent = sum(output.value for output in transaction.outputs if output.script == script_at(payment))
    fee = sum(values.get(each, 0) for each in spent) - sum(output.value for output in transaction.outputs)
    asked = WithdrawalToSign(
        intent="", user=user.address, source="bidding", coins=spent, amount_sats=amount, venue=venue, psbt=psbt
    )
    return WithdrawalPlan(asked, payment, sent, max(fee, 0))


def _refuse_uncovered(user_id: int, body: WithdrawalBody, venue: str, left: int) -> None:
    largest = withdrawals.largest_open_bid(user_id, venue)
    if largest and left < largest and not body.force:
        text = (
            f"{max(left, 0)} sats would be left, and a bid of {largest} is open: the marketplace cancels bids that "
            "are not covered. Stop the tasks first, withdraw less, or send force: true."
        )
        raise CannotWithdraw(UNCOVERED, text)


def bidding_venue(settings: Settings) -> str:
    """Returns the marketplace whose bids are paid from a bidding wallet: the first such one, else the default."""
    return next((venue for venue in settings.venues if dialect_of(venue) == "satflow"), settings.market)
