"""The target of a collection offer: the whole collection, or the inscriptions with certain traits."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from simulator.holdings import Member
from simulator.orders import Order, Trait
from simulator.wire import bad, items, only, text

MAX_VALUES = 100


@dataclass(frozen=True, slots=True)
class Target:
    """A target. `traits` are all accepted values; none is the whole collection."""

    traits: tuple[Trait, ...] = ()

    def as_json(self) -> dict[str, Any]:
        if not self.traits:
            return {"kind": "all"}
        kinds = sorted({kind for kind, _ in self.traits})
        rows = [{"type": kind, "values": [value for own, value in self.traits if own == kind]} for kind in kinds]
        return {"kind": "traits", "traits": rows}

    @property
    def label(self) -> str:
        rows = self.as_json().get("traits", [])
        return ", ".join(f"{row['type']}: {' / '.join(row['values'])}" for row in rows) or "Collection"

    def criteria(self, slug: str) -> str:
        """Returns the canonical JSON whose hash is in an offer's leaf."""
        return json.dumps({"v": 1, "collection": slug, "target": self.as_json()}, separators=(",", ":"), sort_keys=True)


def target_of(value: Any) -> Target:
    """Reads the target of a request. Raises ApiError(400)."""
    if not isinstance(value, dict) or value.get("kind") not in ("all", "traits"):
        raise bad("target.kind must be all or traits")
    if value["kind"] == "all":
        only(value, frozenset({"kind"}), "target")
        return Target()
    only(value, frozenset({"kind", "traits"}), "target")
    found: set[Trait] = set()
    for at, row in enumerate(items(value.get("traits"), "target.traits", MAX_VALUES)):
        values = row.get("values")
        if not isinstance(values, list) or not 1 <= len(values) <= MAX_VALUES:
            raise bad(f"target.traits[{at}].values must be a list of 1 to {MAX_VALUES} texts")
        kind = text(row.get("type"), f"target.traits[{at}].type")
        found |= {(kind, text(each, f"target.traits[{at}].values")) for each in values}
    if not found:
        raise bad("target.traits must not be empty")
    return Target(tuple(sorted(found)))


def of_order(bid: Order) -> Target:
    return Target(tuple(sorted(bid.traits)))


def eligible(found: list[Member], target: Target) -> list[Member]:
    """Returns the members that an offer for `target` takes."""
    kinds = {kind for kind, _ in target.traits}
    return [
        member
        for member in found
        if all(any(t in member.item.traits for t in target.traits if t[0] == kind) for kind in kinds)
    ]


def root(found: list[Member]) -> bytes:
    """Returns 32 bytes that commit to the eligible inscriptions."""
    return hashlib.sha256("\n".join(sorted(member.item.id for member in found)).encode()).digest()
