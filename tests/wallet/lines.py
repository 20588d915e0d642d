"""Requests to a signer in this process, read and answered as those that come over its socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from core.call import Request
from wallet.psbt.listing import OutpointFacts
from wallet.signer import reading
from wallet.signer.signer import Signer

_VERBS = reading.verbs(lambda request: None)


def read(given: Mapping[str, Any]) -> Request[Any]:
    """Reads a request as the socket does. Raises PeerRefused."""
    return _VERBS.read(json.dumps(given).encode())


def handle(signer: Signer, given: Mapping[str, Any], facts: Mapping[str, OutpointFacts] | None = None) -> Any:
    """Returns the answer as it leaves the socket. Raises PeerRefused."""
    answer = signer.handle(read(given), facts)
    return {} if answer is None else json.loads(json.dumps(to_builtins(answer)))


def look_up(signer: Signer, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the outputs that the signer looks up for a request. Raises PeerRefused."""
    return signer.outpoints_to_look_up(read(given))
