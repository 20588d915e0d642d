"""The caller's own addresses here, and the money behind their bids."""

from __future__ import annotations

import asyncio
import contextlib

from markets.base import NotFound, VenueError
from models.ledger import orders, withdrawals
from models.tasks.task_list import bidding_task_list
from server.bidding.signed_rooms import user_room
from server.funding import at_stake, backings
from server.http import json_out
from server.http.base import SignedIn
from server.withdrawals.as_json import withdrawal_as_json
from server.withdrawals.steps import look_after
from strategy.bid_config import load_bid_config
from wallet.protocol import UserKeys

_MAX_AGE_S = 10.0
_NEWEST_WITHDRAWALS = 10
_PATIENCE_S = 3.0


class WalletHandler(SignedIn):
    """GET /api/wallet. `biddingWallet` is null with `balanceError` when the venue has none or cannot be read."""

    async def get(self) -> None:
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        receive = self.user.ordinals_address
        # Together, so that a source that hangs hides nothing of the others.
        paying = asyncio.ensure_future(self._confirmed_sats(keys.payment))
        (wallet, trouble), payment_sats, behind, newest = await asyncio.gather(
            self._bidding_wallet(keys),
            paying,
            backings(self.services.settings, self.look, keys, receive, paying),
            self._withdrawals(),
        )
        open_sats = orders.exposure_by_venue(self.user.id)
        room = await user_room(self.services, self.user, self.services.entitlements.plan(self.user))
        stake = at_stake(behind, open_sats)
        answer = {
            "payment": keys.payment,
            "vault": keys.vault,
            "ordinalsAddress": receive,
            "receives": self._receives(keys),
            "biddingWallet": wallet,
            "exposure": sum(open_sats.values()),
            "worstLoss": stake and stake.worst_loss,
            "ifAllFillNow": stake and stake.if_all_fill_now,
            "signedSats": room and room.signed_sats,
            "signedLimitSats": room and room.most_sats,
            "signedFreeAt": None if room is None or room.frees_ms is None else json_out.iso(room.frees_ms),
            "paymentSats": payment_sats,
            "funding": [each.as_json() for each in behind],
            "withdrawals": newest,
        }
        self.answer(answer | ({"balanceError": trouble} if trouble else {}))

    async def _bidding_wallet(self, keys: UserKeys) -> tuple[dict[str, object] | None, str | None]:
        """Returns the wallet, or None and why it is not known."""
        receive = self.user.ordinals_address
        try:
            balance = await self.look(
                lambda market: market.balance(keys.payment, receive, keys.payment_pubkey, _MAX_AGE_S)
            )
        except NotFound:
            return None, "the marketplace has no bidding wallet for these addresses yet"
        except VenueError as error:
            return None, error.message
        return {"address": balance.address, "balanceSats": balance.sats}, None

    def _receives(self, keys: UserKeys) -> list[dict[str, object]]:
        """Returns the two addresses that may get what is bought, each with the bidding tasks that deliver there."""
        tasks_to: dict[str, list[int]] = {"ordinalsAddress": [], "vault": []}
        for task in bidding_task_list(self.user.id):
            tasks_to[load_bid_config(task.config).deliver_to].append(task.id)
        addresses = {"ordinalsAddress": self.user.ordinals_address, "vault": keys.vault}
        return [{"deliverTo": to, "address": addresses[to], "tasks": ids} for to, ids in tasks_to.items()]

    async def _confirmed_sats(self, payment: str) -> int | None:
        """Returns the confirmed sats at the payment address; None when they cannot be read."""
        try:
            coins = await self.look(lambda market: market.coins(payment, _MAX_AGE_S))
        except VenueError:
            return None
        return sum(coin.value for coin in coins if coin.is_confirmed)

    async def _withdrawals(self) -> list[dict[str, object]]:
        """Returns the latest withdrawals, newest first; open ones are looked up, briefly."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(look_after(self.services, withdrawals.open_of(self.user.id)), _PATIENCE_S)
        return [withdrawal_as_json(row) for row in withdrawals.newest(self.user.id, _NEWEST_WITHDRAWALS)]
