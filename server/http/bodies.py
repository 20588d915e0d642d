"""The common rules of all bodies: camelCase names, no unknown fields, and faults in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, PlainValidator, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from core import pasted
from core.errors import BidkeeperError
from core.strict_json import shown
from strategy.pricing import plain

MAX_SATS = 2_100_000_000_000_000
_MOST_DIGITS = 200


class Body(BaseModel):
    """A request body. A field that may be left out has a default; `model_fields_set` has the given ones."""

    # Built when one is read for the first time: a server starts sooner.
    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, validate_by_name=False, frozen=True, defer_build=True
    )


@dataclass(frozen=True, slots=True)
class Beyond:
    """A mark of a field that reaches beyond one task: an API token for one task may not change it.

    `why` follows the field's name. With `values` only these are refused.
    """

    why: str
    values: tuple[str, ...] = ()

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        may_not = f"set it to {' or '.join(self.values)}" if self.values else "change it"
        text = f"An API token for one task may not {may_not}."
        schema = handler(core)
        return schema | {"description": f"{schema['description']} {text}" if "description" in schema else text}


def beyond(shape: type[Body], changes: Mapping[str, Any]) -> list[str]:
    """Returns the reasons why these changes, by field, reach beyond one task, as details; none if they do not."""
    found = []
    for name, field in shape.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, Beyond) and name in changes and changes[name] in (mark.values or (changes[name],)):
                found.append(f"{to_camel(name)}: {mark.why}")
    return found


Shape = TypeVar("Shape", bound=Body)

_WORDS = {
    "missing": "is required",
    "extra_forbidden": "unknown field",
    "list_type": "must be a list",
    "model_type": "must be an object",
}


def details_of(faults: ValidationError) -> list[str]:
    """Returns every fault as `field: what is wrong`, fields in their order and unknown ones last."""
    return [f"{name}: {text}" for name, text in faults_of(faults)]


def faults_of(faults: ValidationError) -> list[tuple[str, str]]:
    """Returns every fault as (field by the caller's name, fault); inside a field it says where: `0.at is required`."""
    found = []
    for fault in faults.errors(include_url=False, include_input=False):
        field, *inside = [shown(str(part)) for part in fault["loc"]]
        text = _WORDS.get(fault["type"], fault["msg"])
        found.append((field, f"{'.'.join(inside)} {text}" if inside else text))
    return found


def read(shape: type[Shape], given: dict[str, Any]) -> tuple[Shape, list[tuple[str, str]]]:
    """Returns the right part of `given` as a `shape` whose fields are all optional, and the faults of the rest."""
    try:
        return shape.model_validate(given), []
    except ValidationError as error:
        wrong_keys = {str(fault["loc"][0]) for fault in error.errors(include_url=False, include_input=False)}
        rest = {key: value for key, value in given.items() if key not in wrong_keys}
        return shape.model_validate(rest), faults_of(error)


def wrong(text: str) -> PydanticCustomError:
    """Makes the fault that a field's validator raises."""
    return PydanticCustomError("wrong", "{text}", {"text": text})


def whole(value: Any) -> int:
    """Reads a whole number in any form (10000, 10000.0, 1e4). Raises PydanticCustomError."""
    if type(value) is int:
        return value
    # The size is checked first: int() of 1E+999999 would write out all its digits.
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MOST_DIGITS:
        if value == value.to_integral_value():
            return int(value)
    elif isinstance(value, Decimal):
        raise wrong("is out of range")
    raise wrong("must be a whole number")


def number(value: Any) -> Decimal:
    """Reads a number in its plain form. Raises PydanticCustomError."""
    if type(value) is int:
        return Decimal(value)
    if isinstance(value, Decimal):
        if (
            not value.is_finite()
            or abs(value.adjusted()) >= _MOST_DIGITS
            or len(value.as_tuple().digits) > _MOST_DIGITS
        ):
            raise wrong("is out of range")
        return Decimal(plain(value))
    raise wrong("must be a number")


def text(value: Any) -> str:
    """Reads text without control characters. Raises PydanticCustomError."""
    if not isinstance(value, str):
        raise wrong("must be text")
    if any(not letter.isprintable() and letter != " " for letter in value):
        raise wrong("must not have control characters")
    return value


def plain_text(value: Any) -> str:
    """Reads text without the blanks around it and without control characters. Raises PydanticCustomError."""
    return text(pasted.trimmed(value) if isinstance(value, str) else value)


def as_pasted(read: Callable[[str], str]) -> Callable[[Any], str]:
    """Makes a check that returns the plain form of a text by `read`, whose error says what is wrong with it."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong("must be text")
        try:
            return read(value)
        except BidkeeperError as error:
            raise wrong(str(error)) from None

    return check


def flag(value: Any) -> bool:
    """Reads true or false and nothing else. Raises PydanticCustomError."""
    if not isinstance(value, bool):
        raise wrong("must be true or false")
    return value


def sats(value: Any) -> int:
    """Reads a whole number of sats that can exist. Raises PydanticCustomError."""
    found = whole(value)
    if not 0 <= found <= MAX_SATS:
        raise wrong(f"must be a whole number from 0 to {MAX_SATS}")
    return found


def one_of(choices: Iterable[str]) -> PlainValidator:
    """Makes a validator of a text that is one of `choices`."""
    allowed = tuple(choices)

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise wrong(f"must be {', '.join(allowed[:-1])} or {allowed[-1]}")
        return value

    return PlainValidator(check, json_schema_input_type=Literal.__getitem__(allowed))


# The described interface's words about a value, beside the validators' work.
SATS = Annotated[int, Field(ge=0, le=MAX_SATS)]

Whole = Annotated[int, PlainValidator(whole, json_schema_input_type=int)]
Number = Annotated[Decimal, PlainValidator(number, json_schema_input_type=float)]
Sats = Annotated[int, PlainValidator(sats, json_schema_input_type=SATS)]
Text = Annotated[str, PlainValidator(text, json_schema_input_type=str)]
PlainText = Annotated[str, PlainValidator(plain_text, json_schema_input_type=str)]
Flag = Annotated[bool, PlainValidator(flag, json_schema_input_type=bool)]


def some_text(most: int) -> PlainValidator:
    """Makes a validator of a text of 1 to `most` characters, read without the blanks around it."""

    def check(value: Any) -> str:
        found = plain_text(value)
        if not 0 < len(found) <= most:
            raise wrong(f"must have 1 to {most} characters")
        return found

    return PlainValidator(check, json_schema_input_type=Annotated[str, Field(min_length=1, max_length=most)])


def whole_within(least: int, most: int) -> PlainValidator:
    """Makes a validator of a whole number from `least` to `most`."""

    def check(value: Any) -> int:
        found = whole(value)
        if not least <= found <= most:
            raise wrong(f"must be a whole number from {least} to {most}")
        return found

    return PlainValidator(check, json_schema_input_type=Annotated[int, Field(ge=least, le=most)])


def or_null(check: Any, described: Any) -> PlainValidator:
    """Makes a validator that lets null through and else asks `check`; `described` is the type for callers."""

    def nullable(value: Any) -> Any:
        return None if value is None else check(value)

    return PlainValidator(nullable, json_schema_input_type=described | None)
