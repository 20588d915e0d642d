"""A task's last error for programs, beside its words: every writer of the words writes these, too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from strategy.reasons import FaultCode

Coded = tuple[str, Mapping[str, Any]]  # a code of FaultCode, and the values in its words
START_REFUSED: Coded = (FaultCode.START_REFUSED, {})
START_FAILED: Coded = (FaultCode.START_FAILED, {})
NOT_ENTITLED: Coded = (FaultCode.NOT_ENTITLED, {})
DATABASE_DAMAGED: Coded = (FaultCode.DATABASE_DAMAGED, {})
CANNOT_CANCEL: Coded = (FaultCode.CANNOT_CANCEL, {})
WORKER_ENDED: Coded = (FaultCode.WORKER_ENDED, {})
GIVEN_UP: Coded = (FaultCode.GIVEN_UP, {})


def stored_fault(text: str | None, fault: Coded | None) -> tuple[str | None, str | None]:
    """Returns the columns of an error: `other` for words without a code, nothing without words.

    Raises ValueError for a code that is not in the list.
    """
    if text is None:
        return None, None
    code, params = fault or (FaultCode.OTHER, {})
    return FaultCode(code).value, json.dumps(params, separators=(",", ":"))


def error_columns(text: str | None, fault: Coded | None = None) -> dict[str, str | None]:
    """Returns all columns of an error by their names."""
    code, params = stored_fault(text, fault)
    return {"last_error": text, "last_error_code": code, "last_error_params": params}
