"""Satflow's address and ids as its tests use them, and an answer of it to a read."""

from __future__ import annotations

import json
from typing import Any

import responses

BASE = "https://api.satflow.com/v1"
ID, OTHER_ID = "65f0c0ffee65f0c0ffee65f0", "65f0c0ffee65f0c0ffee65f1"
PSBT = "cHNidP8BAAoCAAAAAAAAAAAAAA=="


def answers(path: str, answer: Any, status: int = 200) -> None:
    """Has the next reads of `path` answered by a text, or by a value as JSON."""
    body = answer if isinstance(answer, str) else json.dumps(answer)
    responses.add(responses.GET, BASE + path, body=body, status=status)
