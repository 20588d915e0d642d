"""The caller's own ceilings: anybody with a session may lower them, only the sign-in address may raise them."""

from __future__ import annotations

from models import profile
from models.own_ceilings import own_ceilings
from models.users import User, subscription_of
from server.approvals import consent_to, words_of_ceilings
from server.control import heed_limits
from server.http.api_errors import invalid
from server.http.base import SignedIn
from server.schemas.approvals import CeilingsBody


class OwnCeilingsHandler(SignedIn):
    """GET and PUT /api/ceilings"""

    def get(self) -> None:
        self._answer(self.user)

    async def put(self) -> None:
        body, former = self.body(CeilingsBody), own_ceilings(self.user)
        wanted = body.changed(former)
        if wanted is None:
            raise invalid(["body: must have maxExposure or maxHardcap"])
        consents = []
        if wanted.allows_more_than(former):
            consents.append(consent_to(self, words_of_ceilings(wanted), body))
        try:
            profile.set_own_ceilings(self.user.id, wanted, consents, self.now_ms)
        except (profile.ConsentMissing, profile.ProofUsed):  # by another request at this moment
            raise invalid(["approvalId: is used, or the ceilings were changed at the same time"]) from None
        await heed_limits(self.services, self.user.id, self.now_ms)
        self._answer(User.get_by_id(self.user.id))

    def _answer(self, user: User) -> None:
        subscription = subscription_of(user.id)
        plan = self.services.plan(subscription.plan if subscription else "")
        self.answer(
            {
                "maxExposure": user.max_exposure,
                "maxHardcap": user.max_hardcap,
                "planMaxExposure": plan.max_exposure,
            }
        )
