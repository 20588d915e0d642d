"""The closed lists of codes in answers: docs/reasons.md says what each means, and there is no other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from models.ledger import listing_table, order_table
from server.schemas.answers import Answer
from strategy.fates import LedgerLimit, ListingResult, PlaceResult, WorkerReason
from strategy.fault_codes import FaultCode, Step
from strategy.reasons import Reason


def _one_of(codes: Iterable[str], text: str) -> Any:
    listed: list[Any] = sorted(set(codes))
    return Field(description=text, json_schema_extra={"enum": listed})


ReasonCode = Annotated[Reason, Field(description="A reason of docs/reasons.md.")]
CancelReason = Annotated[
    str, _one_of([*Reason, *WorkerReason], "A reason of docs/reasons.md, or the worker's own for a bid without a plan.")
]
PlaceFate = Annotated[
    str, _one_of([*PlaceResult, *LedgerLimit], "What became of the bid that was to be placed: docs/reasons.md.")
]
ListingFate = Annotated[ListingResult, Field(description="What became of the listing that was to be put up.")]
ErrorCode = Annotated[FaultCode, Field(description="The kind of `lastError`: docs/reasons.md.")]
FailedStep = Annotated[str, _one_of(Step, "What was tried: docs/reasons.md.")]
OrderState = Annotated[
    str, _one_of(order_table.MOVES, "From `reserved` over `live` to `closed`; `unknown` where nobody said.")
]
OrderEnd = Annotated[str, _one_of(order_table.CLOSE_REASONS, "Why it is closed.")]
ListingState = Annotated[
    str, _one_of(listing_table.MOVES, "From `reserved` over `live` to `closed`; `unknown` where nobody said.")
]
ListingEnd = Annotated[str, _one_of(listing_table.CLOSE_REASONS, "Why it is closed.")]


class ErrorParams(Answer):
    """The values in the words of `lastError`, where there are any; each code has its own (docs/reasons.md)."""

    model_config = ConfigDict(extra="allow")

    step: FailedStep | None = None
    price_sats: Annotated[int | None, Field(ge=0, description="Of the bid or listing that this is about.")] = None
    more: Annotated[int | None, Field(ge=1, description="So many other things failed, too.")] = None
