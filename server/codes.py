"""The closed lists of codes in answers: docs/reasons.md says what each means, and there is no other.

The values are texts: a StrEnum of the core is written as its text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from models.ledger import listing_table, order_table
from strategy.fates import LedgerLimit, ListingResult, PlaceResult, WorkerReason
from strategy.fault_codes import FaultCode, Step
from strategy.reasons import Reason


def one_of(codes: Iterable[str], text: str) -> Meta:
    """Makes the mark of a text that is one of `codes`."""
    return Meta(description=text, extra_json_schema={"enum": sorted({str(code) for code in codes})})


ReasonCode = Annotated[str, one_of(Reason, "A reason of docs/reasons.md.")]
CancelReason = Annotated[
    str, one_of([*Reason, *WorkerReason], "A reason of docs/reasons.md, or the worker's own for a bid without a plan.")
]
PlaceFate = Annotated[
    str, one_of([*PlaceResult, *LedgerLimit], "What became of the bid that was to be placed: docs/reasons.md.")
]
ListingFate = Annotated[str, one_of(ListingResult, "What became of the listing that was to be put up.")]
ErrorCode = Annotated[str, one_of(FaultCode, "The kind of `lastError`: docs/reasons.md.")]
FailedStep = Annotated[str, one_of(Step, "What was tried: docs/reasons.md.")]
_STATES = "From `reserved` over `live` to `closed`; `unknown` where nobody said."
OrderState = Annotated[str, one_of(order_table.MOVES, _STATES)]
OrderEnd = Annotated[str, one_of(order_table.CLOSE_REASONS, "Why it is closed.")]
ListingState = Annotated[str, one_of(listing_table.MOVES, _STATES)]
ListingEnd = Annotated[str, one_of(listing_table.CLOSE_REASONS, "Why it is closed.")]
