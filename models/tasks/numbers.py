"""The one number by which a task of either table is known to tokens, locks, grants, fences, orders, cycles and logs.

A bidding task's is its id. An auto-list task's is its id plus AUTOLIST_BASE, so the two never meet.
"""

from __future__ import annotations

AUTOLIST_BASE = 1 << 40


def is_autolist(number: int) -> bool:
    """Whether the number is an auto-list task's."""
    return number > AUTOLIST_BASE


def row_id(number: int) -> int:
    """The task's id in its table."""
    return number - AUTOLIST_BASE if is_autolist(number) else number


def label(number: int) -> str:
    """The task as logs and process titles name it: "task 17", "listing 17"."""
    return f"{_word(number)} {row_id(number)}"


def file_stem(number: int) -> str:
    """The name of the task's files without what they end in: "task-17", "listing-17"."""
    return f"{_word(number)}-{row_id(number)}"


def _word(number: int) -> str:
    return "listing" if is_autolist(number) else "task"
