"""The common parts of ord.net's answers (developers.ord.net, OpenAPI 1.0.0): pages, ids, targets, steps to sign.

Every function raises Unreadable for anything it does not understand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markets.adapter import Cursor
from markets.base import LONGEST_PSBT, Refused, Trait
from markets.wire import Unreadable, address, flag, label, rows, table, text, whole

PAGE_SIZE = 100
_SLUG = re.compile(r"[a-z0-9_-]{1,80}", re.ASCII)
_UUID = re.compile(r"[0-9A-Za-z-]{8,40}", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}", re.ASCII)
_CURSOR = re.compile(r"[\x21-\x7e]{1,2000}", re.ASCII)
_MOST_INPUTS = 1000
_LAST_OUTPUT = 100_000  # a block has no room for more
_SIGHASHES = frozenset({0, 1, 2, 3, 129, 130, 131})


@dataclass(frozen=True, slots=True)
class SigningStep:
    """A PSBT to be signed at `indices` with `sighash`; `entry` is the whole step, sent back with the signed PSBT."""

    psbt: str
    indices: tuple[int, ...]
    sighash: int | None
    entry: Mapping[str, Any]

    def signed(self, psbt: str) -> dict[str, Any]:
        """Returns the step as it is submitted."""
        return {**self.entry, "psbtBase64": psbt}


def body(content: Mapping[str, Any]) -> bytes:
    """Encodes a write's body."""
    return json.dumps(content, ensure_ascii=False).encode()


def known_slug(slug: str) -> str | None:
    """Returns `slug` as ord.net writes it, or None for an impossible one, which would spoil the whole request."""
    lower = slug.lower()
    return lower if _SLUG.fullmatch(lower) else None


def needed_slug(slug: str | None) -> str:
    """Returns `slug` as ord.net writes it. Raises Refused if it can be none there."""
    found = None if slug is None else known_slug(slug)
    if found is None:
        raise Refused("bad_request", "which collection? ord.net's slugs have letters, digits, - and _ only")
    return found


def uuid(value: Any, what: str) -> str:
    """Reads an id of an offer, listing, binding or challenge."""
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise Unreadable(f"{what}: not an id")
    return value


def venue_id(slug: str, offer_id: str) -> str:
    """Returns our name of an offer: its collection and its id, since a cancel needs both."""
    return f"{slug}:{offer_id}"


def parts(name: str) -> tuple[str, str]:
    """Returns collection and id from a name of `venue_id`. Raises Refused for other names."""
    slug, _, offer_id = name.partition(":")
    if _SLUG.fullmatch(slug) and _UUID.fullmatch(offer_id):
        return slug, offer_id
    raise Refused("bad_request", "that is no offer of ord.net")


def paging(cursor: Cursor) -> dict[str, str]:
    """Returns the query that asks for the page at `cursor`."""
    if cursor is None:
        return {"limit": str(PAGE_SIZE)}
    if not isinstance(cursor, str):
        raise TypeError("ord.net's pages have cursors")
    return {"limit": str(PAGE_SIZE), "cursor": cursor}


def following(answer: Mapping[str, Any]) -> str | None:
    """Reads the next page's cursor, None at the end."""
    pagination = table(answer.get("pagination"), "pagination")
    if not flag(pagination.get("hasNext"), "hasNext"):
        return None
    cursor = pagination.get("nextCursor")
    if not isinstance(cursor, str) or not _CURSOR.fullmatch(cursor):
        raise Unreadable("there is another page, and its cursor is none")
    return cursor


def target(trait: Trait | None) -> dict[str, Any]:
    """Returns a bid's target as ord.net writes it."""
    if trait is None:
        return {"kind": "all"}
    return {"kind": "traits", "traits": [{"type": trait[0], "values": [trait[1]]}]}


def targeted(value: Any) -> tuple[frozenset[Trait], ...] | None:
    """Reads the traits that an offer asks for: groups of alternatives, one of each must be met; none = the collection.

    None for a target that is neither the collection nor traits of it.
    """
    found = table(value, "target")
    kind = text(found.get("kind"), "kind of a target")
    if kind == "all":
        return ()
    if kind != "traits":
        return None
    groups = tuple(_group(table(row, "trait of a target")) for row in rows(found.get("traits"), "traits", most=100))
    if not groups:
        raise Unreadable("a target on traits without a trait")
    return groups


def _group(entry: Mapping[str, Any]) -> frozenset[Trait]:
    name = label(entry.get("type"), "type of a trait")
    values = rows(entry.get("values"), "values of a trait", most=100)
    if not values:
        raise Unreadable("a trait without a value")
    return frozenset((name, label(value, "value of a trait")) for value in values)


def step(value: Any, signer: str, what: str) -> SigningStep:
    """Reads a step that `signer` alone must sign, all its inputs in one way."""
    entry = table(value, what)
    psbt = entry.get("psbtBase64")
    if not isinstance(psbt, str) or len(psbt) > LONGEST_PSBT or not _BASE64.fullmatch(psbt):
        raise Unreadable(f"{what}: a PSBT is not base64 of a fair length")
    if address(entry.get("signerAddress"), f"{what}: signer") != signer:
        raise Unreadable(f"{what}: somebody else is to sign")
    inputs = [table(row, f"{what}: input") for row in rows(entry.get("inputsToSign"), f"{what}: inputs")]
    if any(address(each.get("address"), f"{what}: input") != signer for each in inputs):
        raise Unreadable(f"{what}: an input of somebody else is to be signed")
    ways = {_sighash(each.get("sigHash")) for each in inputs}
    indices = [index for each in inputs for index in _indices(each.get("signingIndexes"), what)]
    if len(ways) != 1 or not indices or len(set(indices)) != len(indices):
        raise Unreadable(f"{what}: it is not clear which inputs are to be signed, and how")
    return SigningStep(psbt, tuple(sorted(indices)), ways.pop(), {**entry, "psbtBase64": ""})


def vout(value: Any, what: str) -> int:
    """Reads the number of an output, or of an input."""
    number = whole(value, what)
    if number > _LAST_OUTPUT:
        raise Unreadable(f"{what}: {number} is the number of no output")
    return number


def _indices(value: Any, what: str) -> Sequence[int]:
    return [vout(index, f"{what}: index") for index in rows(value, f"{what}: indexes", most=_MOST_INPUTS)]


def _sighash(value: Any) -> int | None:
    if value is None:
        return None
    found = whole(value, "sigHash")
    if found not in _SIGHASHES:
        raise Unreadable(f"sigHash: {found} is none")
    return found
