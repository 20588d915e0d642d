"""Changed copies of values, be they dataclasses or shapes, as `copy.replace` of Python 3.13 makes them."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from msgspec import Struct, structs

T = TypeVar("T")


def replace(value: T, /, **changes: Any) -> T:
    """Returns `value` with other fields."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def asdict(value: Any) -> dict[str, Any]:
    """Returns the fields of a shape or of a dataclass by name."""
    return structs.asdict(value) if isinstance(value, Struct) else dataclasses.asdict(value)
