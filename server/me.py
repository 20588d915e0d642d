"""The profile: the user, their plan and its use, and the fields they may change."""

from __future__ import annotations

from markets.base import NotFound, VenueError
from models import profile, users
from models.ledger import orders
from models.own_ceilings import own_ceilings
from models.tasks import tasks
from models.tasks.table import BIDDING
from models.users import User
from server.approvals import consent_to, ordinals_address, words_of_move
from server.auth import Unproven, proven
from server.http import blocking, json_out
from server.http.api_errors import ApiError, invalid
from server.http.base import SignedIn
from server.schemas.auth import ProfileBody
from server.task_venues import with_bidding_wallets
from wallet.protocol import UserKeys


class MeHandler(SignedIn):
    """GET and PATCH /api/auth/me"""

    def get(self) -> None:
        self.answer(self._profile(self.user))

    async def patch(self) -> None:
        body = self.body(ProfileBody)
        if body.ordinals_address is not None:
            await self._move_to(ordinals_address(body.ordinals_address), body)
        elif {body.challenge_id, body.signature, body.approval_id, body.approval_signature} != {None}:
            raise invalid(["ordinalsAddress: is required with a proof"])
        if "display_name" in body.model_fields_set:
            profile.set_display_name(self.user.id, body.display_name)
        self.answer(self._profile(User.get_by_id(self.user.id)))

    async def _move_to(self, address: str, body: ProfileBody) -> None:
        """Changes the ordinals address. Raises ApiError: 400, 409, or 502 when the balance cannot be read."""
        if address == self.user.ordinals_address:
            return
        # The sign-in address agrees to every change, and another one proves itself.
        proofs = [] if address == self.user.address else [self._proof(address, body.challenge_id, body.signature)]
        proofs.append(consent_to(self, words_of_move(address), body))
        try:
            profile.check_not_trading(self.user.id)
            await self._check_no_balance()
            profile.set_ordinals_address(self.user.id, address, proofs, self.now_ms)
        except profile.StillTrading as error:
            raise ApiError(409, "The ordinals address is in use", message=f"{error}; stop first") from None
        except profile.ProofUsed:
            raise invalid([_USED]) from None

    def _proof(self, address: str, challenge_id: str | None, signature: str | None) -> str:
        given = {"challengeId": challenge_id, "signature": signature}
        if missing := [f"{name}: is required to prove the address" for name, value in given.items() if value is None]:
            raise invalid(missing)
        try:
            challenge = proven(challenge_id or "", address, signature or "", self.now_ms)
        except Unproven as error:
            raise invalid([error.detail("signature")]) from None
        if challenge.user_id != self.user.id:
            raise invalid([_FOREIGN])
        return str(challenge.id)

    async def _check_no_balance(self) -> None:
        """Refuses while there is a balance: the bidding wallet is the pair of addresses', so it would be lost."""
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        receive = self.user.ordinals_address
        for venue in with_bidding_wallets(self.services.settings):
            await self._check_no_balance_at(venue, keys, receive)

    async def _check_no_balance_at(self, venue: str, keys: UserKeys, receive: str) -> None:
        try:
            balance = await self.act(
                lambda market: market.at(venue).balance(keys.payment, receive, keys.payment_pubkey, 0)
            )
        except NotFound:
            return
        except VenueError as error:
            raise blocking.answer_to(error) from error
        if balance.sats > 0:
            raise ApiError(
                409,
                "The bidding wallet is not empty",
                message=f"{balance.address} holds {balance.sats} sats and belongs to the old ordinals address.",
            )

    def _profile(self, user: User) -> dict[str, object]:
        subscription = users.subscription_of(user.id)
        key = subscription.plan if subscription else ""
        plan = self.services.plan(key)
        expires_ms = subscription.expires_ms if subscription else 0
        return {
            "id": user.id,
            "address": user.address,
            "ordinalsAddress": user.ordinals_address,
            "displayName": user.display_name,
            "plan": key,
            "planDetails": {
                "name": plan.name,
                "maxTasks": plan.max_tasks,
                "maxBidsPerTask": plan.max_bids_per_task,
                "priceSats": plan.price_sats,
                "durationDays": plan.duration_days,
            },
            "isAdmin": self.services.entitlements.is_admin(user.address),
            "subscription": {
                "plan": key,
                "expiresAt": json_out.iso(expires_ms),
                "status": "active" if expires_ms > self.now_ms else "expired",
            },
            "stats": {
                "taskCount": tasks.count(user.id, BIDDING),
                "maxTasks": plan.max_tasks,
                "exposure": orders.exposure(user.id),
                "openBids": orders.open_count(user.id),
                "maxExposure": own_ceilings(user).plan(plan).max_exposure,
            },
            "createdAt": json_out.iso(user.created_ms),
        }


_FOREIGN = "signature: its challenge was not asked for with your bearer token; ask for one of this address with it"
_USED = "signature: its challenge was used meanwhile; ask for a new one and sign its text"
