"""The managers' addresses: a socket on this machine, otherwise the address in the lease."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core import tls
from core.call import Address
from core.errors import BidkeeperError, PeerUnavailable
from core.setting_values import host_port
from core.settings import Settings
from models.leases import leases
from models.leases.leases import slot_of

Place = Path | str  # a socket, or HOST:PORT

ME = "manager"


def place_for(settings: Settings, user_id: int) -> Place:
    """Returns the address of the user's manager. Raises PeerUnavailable if no manager has the user's slot now."""
    by_slot = leases.held_by_slots()
    return _place(settings, slot_of(user_id, len(by_slot)), by_slot)


def machine_elsewhere(settings: Settings, user_id: int) -> str | None:
    """Returns the name of the other machine that has the user's tasks and journals; None if this machine has them."""
    by_slot = leases.held_by_slots()
    held = by_slot[slot_of(user_id, len(by_slot))]
    return None if held is None or held.home == leases.home_of(settings.run_dir) else held.machine


def places(settings: Settings) -> list[Place | PeerUnavailable]:
    """Returns each manager's address, by slot; for a slot without a manager, the error to report."""
    by_slot = leases.held_by_slots()
    found: list[Place | PeerUnavailable] = []
    for number in range(len(by_slot)):
        try:
            found.append(_place(settings, number, by_slot))
        except PeerUnavailable as error:
            found.append(error)
    return found


def address_at(settings: Settings, place: Place | PeerUnavailable) -> Address:
    """Returns the address of a manager for a call. Raises PeerUnavailable without a manager or certificates.

    The certificates are read each time, so that renewed ones are used.
    """
    if isinstance(place, PeerUnavailable):
        raise place
    if isinstance(place, Path):
        return place
    try:
        return tls.FarAddress(host_port(place), tls.client_context(settings.tls_dir))
    except BidkeeperError as error:
        raise PeerUnavailable(ME, f"cannot be asked at {place}: {error}") from error


def _place(settings: Settings, number: int, by_slot: Sequence[leases.Held | None]) -> Place:
    here = settings.manager_file("sock", number if len(by_slot) > 1 else None)
    held = by_slot[number]
    if held is None or held.home == leases.home_of(settings.run_dir):
        return here
    if held.left_ms < 0:
        raise PeerUnavailable(ME, f"nobody keeps slot {number}; {held.machine} did until {-held.left_ms // 1000} s ago")
    if not held.address:
        raise PeerUnavailable(
            ME, f"slot {number} is kept on {held.machine}, which answers no other machine (BIDKEEPER_MANAGER_LISTEN)"
        )
    return held.address
