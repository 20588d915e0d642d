"""The caller's own addresses here, and the money behind their bids."""

from __future__ import annotations

from markets.base import NotFound, VenueError
from models import orders
from server.base import SignedIn

_MAX_AGE_S = 10.0


class WalletHandler(SignedIn):
    """GET /api/wallet. `biddingWallet` is null with `balanceError` when the venue has none or cannot be read."""

    async def get(self) -> None:
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        receive = self.user.ordinals_address
        wallet, trouble = None, None
        try:
            balance = await self.services.market(
                lambda market: market.balance(keys.payment, receive, keys.payment_pubkey, _MAX_AGE_S)
            )
            wallet = {"address": balance.address, "balanceSats": balance.sats}
        except NotFound:
            trouble = "the marketplace has no bidding wallet for these addresses yet"
        except VenueError as error:
            trouble = error.message
        answer = {
            "payment": keys.payment,
            "vault": keys.vault,
            "ordinalsAddress": receive,
            "biddingWallet": wallet,
            "exposure": orders.exposure(self.user.id),
        }
        self.answer(answer | ({"balanceError": trouble} if trouble else {}))
