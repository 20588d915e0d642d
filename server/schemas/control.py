"""A seam: the answers of previews are pydantic models still, and have this inside (server/control.py fills its own)."""

from __future__ import annotations

from server.schemas.answers import Answer
from wallet.protocol import Scope, State


class EffectiveState(Answer):
    """The strictest state that applies, and the widest scope that sets it; `task` is the task itself."""

    state: State
    scope: Scope
