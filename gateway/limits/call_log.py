"""A log line in JSON for each call to a venue: operation, duration, cost and outcome.

Names and numbers of ours only: no address, query, body or key.
"""

from __future__ import annotations

import json
import logging

log = logging.getLogger("gateway.calls")


def write(venue: str, verb: str, operation: str, seconds: float, outcome: str, cost: int = 1) -> None:
    """Logs a call. `verb` is the request to the gateway, `operation` the venue's call, `cost` its share of a quota."""
    line = {"venue": venue, "verb": verb, "operation": operation, "ms": round(seconds * 1000)}
    log.info("%s", json.dumps(line | {"outcome": outcome, "cost": cost}))
