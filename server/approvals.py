"""Consent of the sign-in address to one change: what a bearer token alone must not do.

The text that is signed says the change in full, so that the signature is good for nothing else.
"""

from __future__ import annotations

from models.own_ceilings import OwnCeilings, own_ceilings
from server.auth import SignInCall, Unproven, proven
from server.http.api_errors import invalid
from server.http.base import SignedIn
from server.schemas.approvals import ApprovalBody
from server.schemas.auth import Consent
from wallet.address import AddressError, pasted_sign_in_address

_UNPROVEN = "approvalSignature: its challenge does not approve this change; ask for one that does and sign its text"


class ApprovalHandler(SignedIn, SignInCall):
    """POST /api/auth/approval"""

    def post(self) -> None:
        body = self.body(ApprovalBody)
        ceilings = body.changed(own_ceilings(self.user))
        if (body.ordinals_address is None) == (ceilings is None):
            raise invalid(["body: must have either ordinalsAddress, or maxExposure or maxHardcap"])
        if body.ordinals_address is not None:
            words = words_of_move(ordinals_address(body.ordinals_address))
        elif ceilings is not None:
            words = words_of_ceilings(ceilings)
        name = f"{self.services.settings.sign_in_name} (only to approve that {words})"
        self.offer(self.user.address, self.user.id, name, words)


def ordinals_address(text: str) -> str:
    """Reads an address into its stored form. Raises ApiError (400)."""
    try:
        return pasted_sign_in_address(text)
    except AddressError as error:
        raise invalid([f"ordinalsAddress: {error}"]) from None


def words_of_move(address: str) -> str:
    """Says that bought items go to `address`."""
    return f"bought items go to {address}"


def words_of_ceilings(wanted: OwnCeilings) -> str:
    """Says both ceilings as they are to be."""
    total = "what the plan allows" if wanted.max_exposure is None else f"{wanted.max_exposure} sats"
    each = "any sum" if wanted.max_hardcap is None else f"{wanted.max_hardcap} sats"
    return f"bids may be up to {total} in all and {each} each"


def consent_to(handler: SignedIn, words: str, given: Consent) -> str:
    """Returns the id of the approval in which the sign-in address agrees to `words`. Raises ApiError (400)."""
    proof = {"approvalId": given.approval_id, "approvalSignature": given.approval_signature}
    if missing := [f"{name}: is required for this change" for name, value in proof.items() if value is None]:
        raise invalid(missing)
    user = handler.user
    try:
        challenge = proven(given.approval_id or "", user.address, given.approval_signature or "", handler.now_ms)
    except Unproven as error:
        raise invalid([error.detail("approvalSignature")]) from None
    if challenge.user_id != user.id or challenge.approves != words:
        raise invalid([_UNPROVEN])
    return str(challenge.id)
