"""Own ceilings, and approvals by the sign-in address: requests and answers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from models.own_ceilings import OwnCeilings
from server.http.bodies import MAX_SATS, SATS, Body, or_null, whole, wrong
from server.schemas.answers import Answer
from server.schemas.auth import Consent, any_text

_AT_LEAST_1 = Annotated[int, Field(ge=1, le=MAX_SATS)]


def _ceiling(value: Any) -> int:
    found = whole(value)
    if not 1 <= found <= MAX_SATS:
        raise wrong(f"must be a whole number from 1 to {MAX_SATS}, or null")
    return found


class CeilingsFields(Body):
    """The user's own ceilings; one that is left out stays as it is, null takes it away."""

    max_exposure: Annotated[
        int | None,
        or_null(_ceiling, _AT_LEAST_1),
        Field(description="Sats of all open orders together; null: what the plan allows."),
    ] = None
    max_hardcap: Annotated[
        int | None,
        or_null(_ceiling, _AT_LEAST_1),
        Field(description="Sats of one order, whatever its task's `hardcapSats`; null: no such ceiling."),
    ] = None

    def changed(self, former: OwnCeilings) -> OwnCeilings | None:
        """Returns the ceilings after this change of `former`; None when none is given."""
        given = self.model_fields_set & {"max_exposure", "max_hardcap"}
        if not given:
            return None
        return OwnCeilings(
            self.max_exposure if "max_exposure" in given else former.max_exposure,
            self.max_hardcap if "max_hardcap" in given else former.max_hardcap,
        )


class ApprovalBody(CeilingsFields):
    """POST /api/auth/approval: the change that is to be approved, in the fields that make it."""

    ordinals_address: Annotated[str | None, or_null(any_text, str)] = None


class CeilingsBody(CeilingsFields, Consent):
    """PUT /api/ceilings: lower ones need no approval."""


class Ceilings(Answer):
    """The user's own ceilings. They hold in every decision, reservation and signature."""

    max_exposure: Annotated[int | None, Field(description="Sats of all open orders together; null: the plan's.")]
    max_hardcap: Annotated[int | None, Field(description="Sats of one order; null: none.")]
    plan_max_exposure: SATS
