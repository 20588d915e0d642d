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
FailedStep = Annotated[Step, Field(description="What was tried: docs/reasons.md.")]
OrderState = Annotated[
    str, _one_of(order_table.MOVES, "From `reserved` over `live` to `closed`; `unknown` where nobody said.")
]
OrderEnd = Annotated[str, _one_of(order_table.CLOSE_REASONS, "Why it is closed.")]
ListingState = Annotated[
    str, _one_of(listing_table.MOVES, "From `reserved` over `live` to `closed`; `unknown` where nobody said.")
]
ListingEnd = Annotated[str, _one_of(listing_table.CLOSE_REASONS, "Why it is closed.")]


class Fault(Answer):
    """One thing that failed, for programs; the values in its words stand beside the code."""

    model_config = ConfigDict(extra="allow")

    code: ErrorCode
    step: FailedStep | None = None
    price_sats: Annotated[int | None, Field(ge=0, description="Of the bid or listing that this is about.")] = None
    retry_after_seconds: Annotated[int | None, Field(ge=0, description="The marketplace's own wish.")] = None
    rule: Annotated[str | None, Field(description="The signer's rule that refused.")] = None


class ErrorParams(Answer):
    """The values in the words of `lastError`, where there are any; each code has its own (docs/reasons.md)."""

    model_config = ConfigDict(extra="allow")

    step: FailedStep | None = None
    price_sats: Annotated[int | None, Field(ge=0, description="Of the bid or listing that this is about.")] = None
    more: Annotated[int | None, Field(ge=1, description="So many other things failed, too.")] = None


class CycleRung(Answer):
    """The fate of one rung in a cycle; 0 is the top."""

    model_config = ConfigDict(extra="allow")

    rung: Annotated[int, Field(ge=0)]
    price_sats: Annotated[int | None, Field(ge=0, description="Null when none could be computed.")]
    quantity: Annotated[
        str | None, Field(description="Items or tokens of that price, a number as text; null when not computed.")
    ] = None
    reason: ReasonCode
    fate: PlaceFate | None = None
    order: Annotated[int | None, Field(description="The order that holds the rung, or is renewed.")] = None
    placed_order: Annotated[int | None, Field(description="The order made for the bid that was to be placed.")] = None
    rank: Annotated[
        int | None,
        Field(
            ge=1,
            description="Place of its bid after the cycle, among the bids of others that were read in it and the "
            "task's own; null without a bid, and when those of others were not read.",
        ),
    ] = None


class CycleBid(Answer):
    """One open order of the task, as a cycle found it."""

    model_config = ConfigDict(extra="allow")

    order: int
    price_sats: Annotated[int, Field(ge=0)]
    state: OrderState
    reason: CancelReason | None
