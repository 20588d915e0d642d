"""Readers of the signer's input: requests, each fault of which names its field, and facts of outputs.

A doubtful fact is unknown.

Facts come from a process that neither marketplaces nor workers influence, over HTTP on a Unix socket: `{"verb":
"outpoint", "args": {"outpoint": "txid:vout", "with_transaction": true}, "max_age_s": n}` is answered with an object
whose null means not known.

The value and the script of an output are read from the transaction that made it, whose bytes hash to its id: a segwit
v0 signature covers the amount of its own input alone (BIP-143). Otherwise a source that gave a false amount of one coin
in one request and of another in the next would get two signatures that together burn coins as fees.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from msgspec import Struct, ValidationError, convert
from msgspec.structs import fields, replace

from core.call import OTHER_VERSION, Answering, Request, Verbs
from core.errors import BidkeeperError
from core.fields import BadJson, reader_of
from core.unix_http import NoAnswer, NotSent, UnixHttp
from wallet import protocol
from wallet.protocol import MAX_TEXT
from wallet.psbt.common import OutpointFacts
from wallet.psbt.transaction import Outpoint, TxOutput, WireError, decode_unsigned

PEER = "signer"
BAD_REQUEST, DEFAULT_DENY = "bad-request", "default-deny"
# The maximum number of values in a request; the tokens of all tasks are the longest request.
MOST_VALUES = 100_000
# Each request has its own tag; the tag of a base class is the class's name.
REQUESTS: tuple[type[Request[Any]], ...] = tuple(
    each
    for each in vars(protocol).values()
    if isinstance(each, type) and issubclass(each, Request) and each.__struct_config__.tag != each.__name__
)
_MARKS = ("description", "ge", "le", "min_length", "max_length")

A = TypeVar("A")


def verbs(answer: Answering) -> Verbs:
    """Makes the signer's socket verbs, which pass requests to `answer`."""
    return Verbs(
        PEER,
        dict.fromkeys(REQUESTS, answer),
        unknown=DEFAULT_DENY,
        misshapen=BAD_REQUEST,
        unreadable=BAD_REQUEST,
        most_values=MOST_VALUES,
        as_request=as_request,
    )


def as_request(given: dict[str, Any], kind: type[Request[A]]) -> Request[A]:
    """Reads a request of this kind. Raises BadJson, which names the faulty field."""
    for name, inner in _fields_of(kind).items():
        whole = _fields_of(inner) if isinstance(inner, type) and issubclass(inner, Struct) else {}
        if isinstance(given.get(name), dict) and (left_out := [each for each in whole if each not in given[name]]):
            raise BadJson(f"{left_out[0]} is missing: {OTHER_VERSION}")
    try:
        reader_of(kind)
        return convert(given, kind)
    except ValidationError as error:
        raise BadJson(_in_words(str(error), kind)) from None


@cache
def _fields_of(kind: type[Struct]) -> dict[str, Any]:
    """Returns the types of a struct's fields by name."""
    return {each.name: each.type for each in fields(kind)}


def _in_words(fault: str, kind: Any) -> str:
    """Rewords msgspec's error text about the faulty field."""
    if lacks := re.match(r"Object missing required field `(\w+)`", fault):
        return f"{lacks[1]} is missing: {OTHER_VERSION}"
    if unknown := re.match(r"Object contains unknown field `(.*)`", fault.partition(" - at `$")[0], re.DOTALL):
        return f"unknown field {unknown[1][:MAX_TEXT]!r}: {OTHER_VERSION}"
    name = text = ""
    for step in re.findall(r"\w+", fault.rpartition("`$")[2]):
        if step.isdigit():
            parts = get_args(kind)
            kind = parts[0] if parts[-1] is Ellipsis else parts[int(step)]
        else:
            name, kind = step, _fields_of(kind)[step]
        kind, marks = _bare(kind)
        text = _wanted(kind, marks) or text
    return text.format(name)


def _bare(kind: Any) -> tuple[Any, dict[str, Any]]:
    """Strips annotations and None from a type; returns the type and its annotations."""
    marks: dict[str, Any] = {}
    if get_origin(kind) is Annotated:
        kind, *metas = get_args(kind)
        for meta in metas:
            marks |= {name: value for name in _MARKS if (value := getattr(meta, name)) is not None}
    if get_origin(kind) in (Union, UnionType):
        kind, more = _bare(next(each for each in get_args(kind) if each is not NoneType))
        marks = more | marks
    return kind, marks


def _wanted(kind: Any, marks: dict[str, Any]) -> str:
    if "description" in marks:
        return str(marks["description"])
    if kind is int:
        return f"{{}} must be a whole number from {marks['ge']} to {marks['le']}"
    if kind is str:
        return f"{{}} must be text of {marks['min_length']} to {marks['max_length']} characters"
    if kind is bool:
        return "{} must be true or false"
    return "{} must be an object" if isinstance(kind, type) and issubclass(kind, Struct) else ""


log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
MAX_AGE_S = 10

AskFacts = Callable[[str], OutpointFacts]


class FactsError(BidkeeperError):
    """The facts of an output could not be read; the message says why."""


def ask_facts(socket_path: Path, outpoint: str, timeout_s: float = TIMEOUT_S) -> OutpointFacts:
    """Returns the facts of `outpoint` (txid:vout), after at most `timeout_s` seconds. Raises FactsError.

    Opens its own connection, so any thread may call it.
    """
    http = UnixHttp(socket_path, timeout_s)
    asked = {"verb": "outpoint", "args": {"outpoint": outpoint, "with_transaction": True}, "max_age_s": MAX_AGE_S}
    try:
        answer = json.loads(http.post(json.dumps(asked).encode(), repeatable=False))
    except (NotSent, NoAnswer) as error:
        raise FactsError(f"failed to ask for facts: {error}") from error
    except (ValueError, RecursionError) as error:
        raise FactsError("failed to read the facts: not JSON") from error
    finally:
        http.close()
    found = answer.get("ok") if isinstance(answer, dict) else None
    if not isinstance(found, dict):
        raise FactsError(f"there are no facts of {outpoint}: {_reason(answer)}")
    return _proven(read_facts(outpoint, found), _bytes(found.get("transaction")))


def _proven(told: OutpointFacts, transaction: bytes | None) -> OutpointFacts:
    """Returns the facts, without value and script if the transaction that made the output does not prove them."""
    if (made := _made(told.outpoint, transaction)) is not None and made == (told.value_sats, told.script):
        return told
    if told.value_sats is not None and transaction is not None:
        log.warning("the facts of %s contradict the transaction that made it", told.outpoint)
    return replace(told, value_sats=None, script=None)


def _made(outpoint: Outpoint, raw: bytes | None) -> TxOutput | None:
    """Returns the output by the bytes of its transaction; None if they do not hash to its txid."""
    try:
        transaction = decode_unsigned(raw or b"")
    except WireError:
        return None
    if transaction.txid() != outpoint.txid or outpoint.vout >= len(transaction.outputs):
        return None
    return transaction.outputs[outpoint.vout]


def read_facts(outpoint: str, found: dict[str, Any]) -> OutpointFacts:
    """Reads facts from the socket's answer; a malformed one is unknown. Raises FactsError for another output's
    facts.
    """
    if found.get("outpoint") != outpoint:
        raise FactsError(f"asked for facts of {outpoint}, told those of another output")
    return OutpointFacts(
        outpoint=Outpoint.parse(outpoint),
        value_sats=_whole(found.get("value")),
        script=_bytes(found.get("script")),
        is_unspent=_flag(found.get("is_unspent")),
        is_confirmed=_flag(found.get("is_confirmed")),
        inscriptions=_texts(found.get("inscriptions")),
        runes=_texts(found.get("runes")),
        tip_height=_whole(found.get("tip_height")),
        index_height=_whole(found.get("index_height")),
        is_spent_in_block=found.get("is_spent_in_block") is True,
        item_offset=_whole(found.get("item_offset")),
        height=_whole(found.get("height")),
    )


def _reason(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return message[:200] if isinstance(message, str) else "the answer is not as agreed"


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 63 else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _bytes(value: Any) -> bytes | None:
    if not isinstance(value, str) or len(value) % 2 or not set(value) <= set("0123456789abcdef"):
        return None
    return bytes.fromhex(value)


def _texts(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        return None
    return tuple(value)
