"""UniSat's envelope: every answer is `{"code", "msg", "data"}`, and a code other than 0 says no."""

from __future__ import annotations

from typing import Any

from markets.base import AuthFailed, NotFound, Refused, Unavailable
from markets.replies import error_text
from markets.wire import Unreadable, table


def content(answer: Any) -> Any:
    """`data` of an answer that says yes. Raises Unreadable, Unavailable and Refused leaves."""
    envelope = table(answer, "answer")
    code = envelope.get("code")
    if isinstance(code, bool) or not isinstance(code, int):
        raise Unreadable("the answer has no code")
    if code == 0:
        return envelope.get("data")
    said = error_text({"error": envelope.get("msg")}) or f"code {code}"
    # -106 maintenance, -116 read-only, -153 busy, -154 indexer time-out: theirs to mend, not ours.
    if code in (-106, -116, -153, -154) or code > 0:
        raise Unavailable(f"UniSat: {said}")
    if code in (-100, -109):
        raise NotFound(said)
    if "api key" in said.lower() or "unauthorized" in said.lower():
        raise AuthFailed(said)
    raise Refused("refused", f"UniSat: {said}")
