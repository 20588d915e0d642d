"""The places where the managers answer: a socket on this machine, elsewhere the address in their lease."""

from __future__ import annotations

from pathlib import Path

from core.errors import PeerUnavailable
from core.settings import Settings
from models import leases
from models.slot import slot_of

Place = Path | str  # a socket, or HOST:PORT

ME = "manager"


def place_for(settings: Settings, user_id: int) -> Place:
    """Returns where the manager of the user's tasks answers. Raises PeerUnavailable when nobody keeps them just now."""
    of = leases.slots()
    return _place(settings, slot_of(user_id, of), of)


def places(settings: Settings) -> list[Place | PeerUnavailable]:
    """Returns where each manager answers, by slot; for a slot without one, what is to be said of it."""
    of = leases.slots()
    found: list[Place | PeerUnavailable] = []
    for number in range(of):
        try:
            found.append(_place(settings, number, of))
        except PeerUnavailable as error:
            found.append(error)
    return found


def socket_at(place: Place | PeerUnavailable) -> Path:
    """Returns the socket of this place. Raises PeerUnavailable for one on another machine, and for none."""
    if isinstance(place, PeerUnavailable):
        raise place
    if not isinstance(place, Path):
        raise PeerUnavailable(ME, f"cannot be asked at {place}: there is no way to other machines yet")
    return place


def _place(settings: Settings, number: int, of: int) -> Place:
    here = settings.manager_file("sock", number if of > 1 else None)
    held = leases.held(leases.slot_name(number)) if leases.are_used() else None
    if held is None or held.home == leases.home_of(settings.run_dir):
        return here
    if held.left_ms < 0:
        raise PeerUnavailable(ME, f"nobody keeps slot {number}; {held.machine} did until {-held.left_ms // 1000} s ago")
    if not held.address:
        raise PeerUnavailable(
            ME, f"slot {number} is kept on {held.machine}, which answers no other machine (BIDKEEPER_MANAGER_LISTEN)"
        )
    return held.address
