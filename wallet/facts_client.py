"""Facts of an output, from a process that neither marketplaces nor workers influence. A doubt is not a fact.

HTTP on a Unix socket, as the gateway's: `{"verb": "outpoint", "args": {"outpoint": "txid:vout", "with_transaction":
true}, "max_age_s": n}` is answered with an object whose null means not known.

The value and the script of an output are read from the transaction that made it, whose bytes hash to its id: a segwit
v0 signature covers the amount of its own input alone (BIP-143), so a liar about one coin in
one request and about another in the next would hold two signatures that together burn coins as fees.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from core.errors import BidkeeperError
from core.unix_http import NoAnswer, NotSent, UnixHttp
from wallet.psbt.common import OutpointFacts
from wallet.psbt.transaction import Outpoint, TxOutput, WireError, decode_unsigned

log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
MAX_AGE_S = 10

AskFacts = Callable[[str], OutpointFacts]


class FactsError(BidkeeperError):
    """No facts of an output could be had; the message says why."""


def ask_facts(socket_path: Path, outpoint: str, timeout_s: float = TIMEOUT_S) -> OutpointFacts:
    """Returns the facts of `outpoint` (txid:vout), after at most `timeout_s` seconds. Raises FactsError.

    Opens a connection of its own, so any thread may call it.
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
    """Returns the facts without value and script unless the transaction that made the output says the same."""
    if (made := _made(told.outpoint, transaction)) is not None and made == (told.value_sats, told.script):
        return told
    if told.value_sats is not None and transaction is not None:
        log.warning("what is told of %s is not what the transaction says that is said to have made it", told.outpoint)
    return replace(told, value_sats=None, script=None)


def _made(outpoint: Outpoint, raw: bytes | None) -> TxOutput | None:
    """Returns the output as the bytes of its transaction say; None if they are not that transaction's."""
    try:
        transaction = decode_unsigned(raw or b"")
    except WireError:
        return None
    if transaction.txid() != outpoint.txid or outpoint.vout >= len(transaction.outputs):
        return None
    return transaction.outputs[outpoint.vout]


def read_facts(outpoint: str, found: dict[str, Any]) -> OutpointFacts:
    """Reads facts as they came over the socket; a misshapen one is unknown. Raises FactsError for another output's
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
