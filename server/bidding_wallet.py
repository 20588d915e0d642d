"""The caller's own addresses here, and the money behind their bids."""

from __future__ import annotations

from markets.base import NotFound, VenueError
from models import orders
from server.base import SignedIn
from server.errors import invalid

_MAX_AGE_S = 10.0
_NO_WITHDRAWAL = "withdraw: sats cannot be sent from here yet"


class WalletHandler(SignedIn):
    """GET /api/wallet. `biddingWallet` is null with `balanceError` when the venue has none or cannot be read."""

    async def get(self) -> None:
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        receive = self.user.ordinals_address
        wallet, worst_loss, trouble = None, None, None
        try:
            balance = await self.services.market(
                lambda market: market.balance(keys.payment, receive, keys.payment_pubkey, _MAX_AGE_S)
            )
            wallet, worst_loss = {"address": balance.address, "balanceSats": balance.sats}, balance.sats
        except NotFound:
            trouble = "the marketplace has no bidding wallet for these addresses yet"
            worst_loss = 0
        except VenueError as error:
            trouble = error.message
        answer = {
            "payment": keys.payment,
            "vault": keys.vault,
            "ordinalsAddress": receive,
            "biddingWallet": wallet,
            "exposure": orders.exposure(self.user.id),
            "worstLoss": worst_loss,
        }
        self.answer(answer | ({"balanceError": trouble} if trouble else {}))


class WithdrawHandler(SignedIn):
    """POST /api/wallet/withdraw"""

    def post(self) -> None:
        raise invalid([_NO_WITHDRAWAL], "This cannot be done yet")
