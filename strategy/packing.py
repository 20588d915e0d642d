"""This package's values as JSON values and back: a Struct is an object of its fields, a Decimal its text.

Nothing here names a field, so that a value that gains one needs no change: a key that this version does not know is
ignored, a missing one has its default.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

Record = TypeVar("Record")

_AS_IT_IS = frozenset({int, str, bool, type(None)})
_HINTS: dict[type, dict[str, Any]] = {}


def pack(value: Any) -> Any:
    """Makes `value` ready for `json.dumps`."""
    if type(value) in _AS_IT_IS:
        return value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return tuple([pack(each) for each in value])
    if names := names_of(cast(Any, type(value))):
        return {name: pack(getattr(value, name)) for name in names}
    return value


def unpack(kind: Any, packed: Any, what: str) -> Any:
    """Returns the value of type `kind` that `pack` turned into `packed`, also after JSON; `what` names it in errors.

    A member of an enumeration that this version does not know stays text. Raises ValueError for anything that `pack`
    would not make.
    """
    arguments = get_args(kind)
    if get_origin(kind) is tuple:
        return _several(arguments, packed, what)
    if arguments:
        return _one_of(arguments, packed, what)
    if isinstance(kind, type) and names_of(kind):
        return unpack_record(kind, packed, what)
    if kind is Decimal and isinstance(packed, str):
        return _decimal(packed, what)
    if isinstance(kind, type) and issubclass(kind, Enum) and isinstance(packed, str):
        return next((member for member in kind if member.value == packed), packed)
    if type(packed) is kind:
        return packed
    raise ValueError(f"{what} cannot be {repr(packed)[:60]}")


def unpack_record(kind: type[Record], packed: Any, what: str) -> Record:
    """Returns the Struct of type `kind`. Raises ValueError."""
    if not isinstance(packed, dict):
        raise ValueError(f"{what} is no object")
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    hints, values = _HINTS[kind], {}
    for name, is_required in names_of(cast(Any, kind)).items():
        if name in packed:
            values[name] = unpack(hints[name], packed[name], f"{what}.{name}")
        elif is_required:
            raise ValueError(f"{what} has no {name}")
    return cast(Any, kind)(**values)


@cache
def names_of(kind: type) -> dict[str, bool]:
    """Returns the fields of a Struct, and whether each must be given; nothing for any other type."""
    return {each.name: each.required for each in fields(kind)} if issubclass(kind, Struct) else {}


def _several(kinds: tuple[Any, ...], packed: Any, what: str) -> tuple[Any, ...]:
    if not isinstance(packed, list):
        raise ValueError(f"{what} is no list")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(packed)
    if len(kinds) != len(packed):
        raise ValueError(f"{what} has not {len(kinds)} entries")
    return tuple([unpack(kind, each, what) for kind, each in zip(kinds, packed, strict=True)])


def _one_of(kinds: tuple[Any, ...], packed: Any, what: str) -> Any:
    if packed is None and type(None) in kinds:
        return None
    problem = None
    for kind in kinds:
        try:
            return unpack(kind, packed, what)
        except ValueError as error:
            problem = problem or error
    raise problem or ValueError(what)


def _decimal(text: str, what: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise ValueError(f"{what} is no number: {text[:60]!r}")
    return number
