"""Use of the signer's ceilings, so that a worker need not meet a refusal."""

from __future__ import annotations

from wallet.address import sign_in_address
from wallet.protocol import AskRooms, AskRoomsUnder, Rooms
from wallet.signer.authority import Authority


class RoomKeeper:
    """Reads remaining allowances. The signer knows signatures, not which bids are still open."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def rooms(self, asked: AskRooms) -> Rooms:
        """Answers for a grant, also while nothing may be placed under it."""
        grant = self._authority.live(asked, "cancel").grant
        return Rooms(self._authority.rooms(grant.task, grant.user, grant.outstanding_task_sats, grant.outstanding_sats))

    def rooms_under(self, asked: AskRoomsUnder) -> Rooms:
        """Answers for a hypothetical grant: sums only, which need no key. `task` 0 has signed nothing."""
        user = sign_in_address(asked.user)
        return Rooms(self._authority.rooms(asked.task, user, asked.outstanding_task_sats, asked.outstanding_sats))
