"""Readers of a request's arguments. A bad argument is Refused('bad_request') before any call is spent on it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, get_args

from gateway.limits.errand import Errand, Purpose
from gateway.writes import Fencing
from markets import codec
from markets.base import BidOrder, Kind, Refused
from markets.listings import LONGEST_PSBT
from markets.offers import LONGEST_REFERENCE, MOST_DRAFTED

MOST_SLUG = 200  # characters of one slug
MOST_SLUGS = 100
MOST_IDS = 100
LONGEST_TRAIT = 200  # characters of a trait's type, and of its value
LONGEST_HOLD_S = 60
_OLDEST_S = 86_400.0
_WORD = re.compile(r"[A-Za-z0-9]{1,128}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_\-:.]{1,128}", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{1,4096}={0,2}", re.ASCII)
_PSBT = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}", re.ASCII)
_REFERENCE = re.compile(rf"[!-~]{{0,{LONGEST_REFERENCE}}}", re.ASCII)
_FEE_RATE = re.compile(r"fastestFee|halfHourFee|hourFee|minimumFee|[0-9]{1,6}(\.[0-9]{1,8})?", re.ASCII)


def bad(text: str) -> Refused:
    """Makes the refusal for a bad request."""
    return Refused("bad_request", text)


def word(value: Any, name: str) -> str:
    """Reads an address or a key in hex."""
    return matching(_WORD, value, name)


def identifier(value: Any, name: str) -> str:
    """Reads an order's or inscription's id."""
    return matching(_ID, value, name)


def slug(value: Any, name: str = "slug") -> str:
    """Reads a collection's slug or a rune's ticker; no comma, since many are sent at once, joined by commas."""
    if not isinstance(value, str) or not 1 <= len(value) <= MOST_SLUG or "," in value or not value.isprintable():
        raise bad(f"{name} is not a slug")
    return value


def slugs(value: Any) -> list[str]:
    """Reads up to 100 slugs."""
    return [slug(each) for each in _some(value, "slugs", MOST_SLUGS)]


def identifiers(value: Any, name: str = "venue_ids") -> list[str]:
    """Reads up to 100 ids of orders."""
    return [identifier(each, name) for each in _some(value, name, MOST_IDS)]


def signature(value: Any) -> str:
    """Reads a signature in base64."""
    return matching(_BASE64, value, "signature")


def reference(value: Any) -> str:
    """Reads a reference that a venue gave and wants back unchanged."""
    return matching(_REFERENCE, value, "reference")


def psbt(value: Any) -> str:
    """Reads a PSBT in base64."""
    if len(matching(_PSBT, value, "PSBT")) > LONGEST_PSBT:
        raise bad(f"a PSBT is longer than {LONGEST_PSBT} characters")
    return str(value)


def optional_signature(value: Any) -> str:
    """Reads a signature in base64, or "" for a venue that wants none."""
    return "" if value == "" else signature(value)


def kind(value: Any) -> Kind:
    """Reads the kind of goods."""
    if value == "ordinals":
        return "ordinals"
    if value == "runes":
        return "runes"
    raise bad("kind is neither ordinals nor runes")


def trait(value: Any, kind: Kind) -> tuple[str, str] | None:
    """Reads a trait's type and value, or None; runes have no traits."""
    if value is None:
        return None
    if kind != "ordinals" or not isinstance(value, list) or len(value) != 2:
        raise bad("trait is not a type and a value, or runes have none")
    if not all(isinstance(each, str) and each.isprintable() and 0 < len(each) <= LONGEST_TRAIT for each in value):
        raise bad("trait is not as agreed")
    return value[0], value[1]


def max_age_s(request: Mapping[str, Any]) -> float:
    """Reads how old an answer may be, in seconds."""
    value = request.get("max_age_s", 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _OLDEST_S:
        raise bad("max_age_s is not a number of seconds up to a day")
    if not math.isfinite(value):
        raise bad("max_age_s is not finite")
    return float(value)


def patience_s(request: Mapping[str, Any]) -> float | None:
    """Reads how long the asker waits for the answer, in seconds; None = until it is there."""
    value = request.get("patience_s")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _OLDEST_S:
        raise bad("patience_s is not a number of seconds up to a day")
    return float(value)


def whole(request: Mapping[str, Any], name: str) -> int:
    """Reads a whole number from 0."""
    value = request.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise bad(f"{name} is not a whole number")
    return value


def tokens(value: Any) -> list[tuple[int, int]]:
    """Reads a list of pairs, of a task and its least token."""
    if not isinstance(value, list) or any(not isinstance(pair, list) or len(pair) != 2 for pair in value):
        raise bad("tokens is not a list of pairs")
    return [(whole({"task": task}, "task"), whole({"token": token}, "token")) for task, token in value]


def tasks(value: Any) -> list[int]:
    """Reads a list of tasks."""
    if not isinstance(value, list):
        raise bad("tasks is not a list")
    return [whole({"task": task}, "task") for task in value]


def hold_s(value: Any) -> int:
    """Reads for how many seconds a brake holds tasks."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LONGEST_HOLD_S:
        raise bad(f"hold_s is not a number of seconds from 0 to {LONGEST_HOLD_S}")
    return value


def fencing(request: Mapping[str, Any]) -> Fencing:
    """Reads task, token and deadline of a write, and the rung if it has one."""
    rung = whole(request, "rung") if "rung" in request else 0
    return Fencing(whole(request, "task"), whole(request, "token"), whole(request, "deadline_ms"), rung)


def errand(request: Mapping[str, Any]) -> Errand:
    """Reads whose request it is and what for: a task's work, unless it says otherwise."""
    purpose: Purpose = request.get("purpose", "task")
    if purpose not in get_args(Purpose):
        raise bad(f"purpose must be one of {', '.join(get_args(Purpose))}")
    return Errand(whole(request, "user") if "user" in request else None, purpose)


def order(value: Any) -> BidOrder:
    """Reads a signed bid and checks each of its fields."""
    try:
        given = codec.order(value)
    except codec.MALFORMED as error:
        raise bad("order is not a bid order") from error
    numbers = (given.price, given.expires_ms, given.timestamp_ms)
    if any(isinstance(number, bool) or not isinstance(number, int) or number <= 0 for number in numbers):
        raise bad("order: price and times must be whole numbers above 0")
    if not given.quantity.is_finite() or not 0 < given.quantity < Decimal(10) ** 39:
        raise bad("order: quantity must be above 0")
    if kind(given.kind) == "ordinals" and given.quantity != int(given.quantity):
        raise bad("order: quantity of ordinals must be whole")
    slug(given.slug)
    trait(None if given.trait is None else list(given.trait), kind(given.kind))
    for name in ("payment", "payment_pubkey", "receive"):
        word(getattr(given, name), name)
    matching(_FEE_RATE, given.fee_rate, "fee_rate")
    if bool(given.signed_psbts) == bool(given.signature):
        raise bad("order: it takes a signature or signed PSBTs")
    if given.signature:
        signature(given.signature)
    else:
        for signed in _some(list(given.signed_psbts), "signed_psbts", MOST_DRAFTED):
            psbt(signed)
    reference(given.reference)
    return given


def matching(pattern: re.Pattern[str], value: Any, name: str) -> str:
    """Reads text that matches `pattern` as a whole."""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise bad(f"{name} is not as agreed")
    return value


def _some(value: Any, name: str, most: int) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise bad(f"{name} must be a list of 1 to {most}")
    return value
