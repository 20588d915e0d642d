"""The time of a venue's answer, by the venue's own clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime


def made_s(headers: Mapping[str, str]) -> int | None:
    """Returns the epoch seconds of `Date`: the answer was made in the second that begins then. None without it.

    None as well for an answer out of a cache: its date is an older answer's.
    """
    if headers.get("Age", "0").strip() != "0":
        return None
    try:
        made = parsedate_to_datetime(headers.get("Date", ""))
        return int((made if made.tzinfo else made.replace(tzinfo=UTC)).timestamp())
    except (ValueError, TypeError, OverflowError):
        return None
