"""The doctor on leases: which machine keeps each slot, the gateway and the hooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cli.doctor.check import Check, fail, ok, warn
from models.leases import leases
from models.leases.leases import Held

_PAGE = "docs/several-machines.md"


def examine(run_dir: Path) -> Iterator[Check]:
    """Examines the leases on the open database; nothing where none was ever taken."""
    slots = leases.slots()
    for number in range(slots):
        name = leases.slot_name(number)
        held = leases.held(name)
        if held is not None and held.left_ms >= 0:
            yield _kept(name, held, run_dir)
        elif slots > 1:
            yield fail(name, _nobody(held), f"start bidkeeper manager --slot {number} on some machine ({_PAGE})")
    for name in (leases.GATEWAY, leases.HOOKS):
        held = leases.held(name)
        if held is None or (slots == 1 and held.left_ms < 0):
            continue  # where there is one machine, whether programs run is asked of them
        if held.left_ms >= 0:
            yield ok(name, f"held by {_where(held, run_dir)}")
        else:
            yield fail(name, _nobody(held), f"start bidkeeper {name} on some machine ({_PAGE})")


def _kept(name: str, held: Held, run_dir: Path) -> Check:
    where = _where(held, run_dir)
    if not held.address and where == held.machine:
        text = f"held by {where}, which servers on other machines cannot reach"
        return warn(name, text, f"set BIDKEEPER_MANAGER_LISTEN there ({_PAGE})")
    return ok(name, f"held by {where}")


def _where(held: Held, run_dir: Path) -> str:
    here = run_dir.is_dir() and held.home == leases.home_of(run_dir)
    return f"{held.machine}, in this data directory" if here else held.machine


def _nobody(held: Held | None) -> str:
    return (
        "no machine has ever held it"
        if held is None
        else f"no holder for {-held.left_ms // 1000} s; last: {held.machine}"
    )
