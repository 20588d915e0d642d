"""The types of fields: what a value is, its bounds, how it is described, and an example. Each fact is declared here.

Each is a type for `msgspec`, so it reads, checks, writes and describes alike at the API, on the sockets and in files.
msgspec has no bounds for Decimal: its description has those of a price or a fraction, and its reader checks them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

MAX_SATS = 2_100_000_000_000_000
MAX_ID = 2**63 - 1
A_TIME = "2026-09-21T14:13:20.000Z"
_TXID = "6fb976ab49dcec017f1e201e84395983204ae1a7c2abf7ced0a85d692e442799"

Sats = Annotated[int, Meta(ge=0, le=MAX_SATS)]
Count = Annotated[int, Meta(ge=0)]
Ms = Annotated[int, Meta(ge=0, le=MAX_ID)]  # milliseconds since 1970
Id = Annotated[int, Meta(ge=1, le=MAX_ID)]
Time = Annotated[str, Meta(examples=[A_TIME], extra_json_schema={"format": "date-time"})]  # ISO 8601 in UTC
Price = Annotated[
    Decimal, Meta(description="Sats per token; exact, with as many digits as it has.", extra_json_schema={"minimum": 0})
]
Quantity = Annotated[Decimal, Meta(extra_json_schema={"exclusiveMinimum": 0})]  # of items or tokens
Address = Annotated[str, Meta(examples=["bc1qlzrwcf49yrltr5graye452qeypxcrwk7l0wg75"])]
Slug = Annotated[str, Meta(examples=["bitcoin-puppets"])]


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=4096)
def iso(ms: int) -> str:
    """Writes milliseconds since 1970 as ISO 8601 in UTC: 2026-11-20T12:00:00.000Z."""
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def words(text: str, **more: Any) -> Meta:
    """Makes the mark of a field that describes it, with `more` of msgspec's own marks."""
    return Meta(description=text, **more)


def text_of(least: int, most: int) -> Meta:
    """Makes the mark of a text that has from `least` to `most` characters."""
    return Meta(min_length=least, max_length=most)


def matching(pattern: str, **more: Any) -> Meta:
    """Makes the mark of a text that `pattern` matches as a whole, with `more` of msgspec's own marks.

    `$` alone would match before a line's end, too; an end in `\\Z` says nothing to readers of a JSON schema.
    """
    return Meta(pattern=rf"^(?:{pattern})(?!\n)$", **more)


def within(least: int, most: int) -> Meta:
    """Makes the mark of a whole number from `least` to `most`."""
    return Meta(ge=least, le=most)


Txid = Annotated[str, matching("[0-9a-f]{64}", examples=[_TXID])]
Outpoint = Annotated[str, matching("[0-9a-f]{64}:(0|[1-9][0-9]{0,9})", examples=[f"{_TXID}:1"])]


class WithSecrets(Struct, frozen=True):
    """A struct whose repr leaves out the fields that `hidden` names, so no log line or traceback shows them."""

    hidden: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name not in self.hidden]
        return f"{type(self).__name__}({', '.join(shown)})"
