"""One line of JSON for each call of a venue: what it was, how long it took, what it cost and how it ended.

Names and numbers of ours only: no address, query, body or key of anybody's.
"""

from __future__ import annotations

import json
import logging

log = logging.getLogger("gateway.calls")


def write(venue: str, verb: str, operation: str, seconds: float, outcome: str, cost: int = 1) -> None:
    """`verb` is what was asked of the gateway, `operation` the call of the venue, `cost` what it takes of a quota."""
    line = {"venue": venue, "verb": verb, "operation": operation, "ms": round(seconds * 1000)}
    log.info("%s", json.dumps(line | {"outcome": outcome, "cost": cost}))
