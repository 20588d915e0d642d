"""Use of the signer's ceilings, so that nobody has to find out by a refusal."""

from __future__ import annotations

from collections.abc import Sequence

from strategy.plan_inputs import SignedRoom
from wallet import protocol
from wallet.address import sign_in_address
from wallet.signer.authority import Answer, Authority


class Rooms:
    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def rooms(self, request: Answer) -> Answer:
        """Answers for a grant, also while nothing may be placed under it."""
        task, token, secret = protocol.take(request, "task", "token", "secret")
        grant = self._authority.live(task, token, secret, "cancel").grant
        return _told(self._authority.rooms(grant.task, grant.user, grant.outstanding_task_sats, grant.outstanding_sats))

    def rooms_under(self, request: Answer) -> Answer:
        """Answers for a grant that need not exist: sums only, which need no key. `task` 0 has signed nothing."""
        task, user, task_sats, user_sats = protocol.take(
            request, "task", "user", "outstanding_task_sats", "outstanding_sats"
        )
        return _told(
            self._authority.rooms(
                protocol.whole("task", task, 0, protocol.MAX_ID),
                sign_in_address(protocol.text("user", user)),
                protocol.whole("outstanding_task_sats", task_sats, 0, protocol.MAX_SATS),
                protocol.whole("outstanding_sats", user_sats, 0, protocol.MAX_SATS),
            )
        )


def _told(rooms: Sequence[SignedRoom]) -> Answer:
    """Encodes the rooms. The signer knows signatures; it cannot tell which of the bids are still open."""
    return {
        "rooms": [
            {
                "whose": room.whose,
                "most_sats": room.most_sats,
                "signed_sats": room.signed_sats,
                "frees_ms": room.frees_ms,
            }
            for room in rooms
        ],
        "expiries": [{"ends_ms": room.ends_ms, "freed_sats": room.freed_sats} for room in rooms],
    }
