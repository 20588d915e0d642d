"""Plans what leaves a marketplace's bidding wallet: the marketplace drafts it, and the signer judges the draft."""

from __future__ import annotations

from core.settings import dialect_of
from markets.base import AuthFailed, NotFound, NotSupported, Refused, VenueError
from models import withdrawals
from server import blocking
from server.base import SignedIn
from server.errors import ApiError, invalid
from server.schemas.withdrawals import WithdrawalBody
from server.withdrawal_plan import NOTHING, UNCOVERED, Plan, script_at
from wallet.psbt import decode_base64
from wallet.transaction import WireError
from wallet.withdrawal import WithdrawalToSign


async def plan_from_bidding(handler: SignedIn, body: WithdrawalBody, payment: str, pubkey: str) -> Plan:
    """What `body` asks to take out of the bidding wallet to the caller's `payment` address, whose key is `pubkey`.

    Raises ApiError: 400, 409 with what to do, or 502.
    """
    venue, receive = _venue(handler), handler.user.ordinals_address
    try:
        wallet = await handler.services.market(lambda market: market.at(venue).balance(payment, receive, pubkey, 0.0))
        coins = await handler.services.market(lambda market: market.coins(wallet.address, 0.0))
        amount = body.amount_sats or sum(coin.value for coin in coins if coin.is_confirmed)
        if not amount:
            raise ApiError(409, NOTHING, message="The bidding wallet holds no confirmed sats.")
        _refuse_uncovered(handler, body, venue, wallet.sats - amount)
        psbt = await handler.services.market(lambda market: market.at(venue).draft_withdrawal(payment, amount))
        transaction = decode_base64(psbt).transaction
    except NotFound:
        raise ApiError(409, NOTHING, message="The marketplace has no bidding wallet for you yet.") from None
    except NotSupported as error:
        raise invalid([f"from: {error.message}"], "This cannot be done yet") from None
    except AuthFailed as error:
        raise blocking.answer_to(error) from error
    except Refused as error:
        raise ApiError(409, "The marketplace refused the withdrawal", message=error.message) from None
    except WireError as error:
        raise ApiError(502, "The marketplace cannot be read", message=f"its draft is no PSBT: {error}") from None
    except VenueError as error:
        raise blocking.answer_to(error) from error
    values = {coin.outpoint: coin.value for coin in coins}
    spent = tuple(str(each.outpoint) for each in transaction.inputs)
    sent = sum(output.value for output in transaction.outputs if output.script == script_at(payment))
    fee = sum(values.get(each, 0) for each in spent) - sum(output.value for output in transaction.outputs)
    asked = WithdrawalToSign(
        intent="", user=handler.user.address, source="bidding", coins=spent, amount_sats=amount, venue=venue, psbt=psbt
    )
    return Plan(asked, payment, sent, max(fee, 0))


def _refuse_uncovered(handler: SignedIn, body: WithdrawalBody, venue: str, left: int) -> None:
    largest = withdrawals.largest_open_bid(handler.user.id, venue)
    if largest and left < largest and not body.force:
        text = (
            f"{max(left, 0)} sats would be left, and a bid of {largest} is open: the marketplace cancels bids that "
            "are not covered. Stop the tasks first, withdraw less, or send force: true."
        )
        raise ApiError(409, UNCOVERED, message=text)


def _venue(handler: SignedIn) -> str:
    """The marketplace whose bids are paid from a bidding wallet: the first that is, else the default one."""
    settings = handler.services.settings
    return next((venue for venue in settings.venues if dialect_of(venue) == "satflow"), settings.market)
