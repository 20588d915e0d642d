"""The answers about auto-list tasks and inscriptions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from server.schemas.answers import Answer, Success, Tags, Venue
from server.schemas.bidding_answers import LastCycle
from server.schemas.codes import ErrorCode, ErrorParams, ListingEnd, ListingState
from server.schemas.task_bodies import AutolistConfig


class Listing(Answer):
    """The newest listing of a task, even if it has ended."""

    price: Annotated[int, Field(gt=0, description="Sats.")]
    state: ListingState
    close_reason: Annotated[ListingEnd | None, Field(description="Why it is closed; null while it is not.")]
    outpoint: Annotated[str, Field(description="The output with the inscription that was signed for, as txid:vout.")]
    listed_at: Annotated[datetime | None, Field(description="Since when the marketplace shows it at this price.")]
    lowest_outstanding: Annotated[
        int | None,
        Field(description="The lowest price ever signed for the output: it can be bought at that until it is spent."),
    ]
    lowest_note: Annotated[str | None, Field(description="What keeps that from being sure, as a signer that is away.")]
    proceeds: Annotated[int | None, Field(description="Sats that the sale brought; null without one.")]
    proceeds_note: Annotated[
        str | None, Field(description="After a sale: where its proceeds are, and how they come to back bids again.")
    ]


class AutolistTask(Answer):
    """A listing of one inscription."""

    id: int
    inscription_id: str
    collection_id: str | None
    is_running: bool
    config: AutolistConfig
    listing: Annotated[Listing | None, Field(description="Null before the first one.")]
    last_cycle: LastCycle | None
    last_error: Annotated[str | None, Field(description="What keeps the last cycle from doing its job.")]
    last_error_code: Annotated[ErrorCode | None, Field(description="The same as a code; null without it.")]
    last_error_params: Annotated[ErrorParams | None, Field(description="The values in it; null without it.")]
    created_at: datetime
    venue: Venue
    source_fill_id: Annotated[
        str | None, Field(description="The fill that it was made of, or has its cost from; null: none.")
    ]
    cost_source: Annotated[
        Literal["fill", "claimed", "given"] | None,
        Field(
            description="Where costSats is from. fill: what left our addresses for it, proved by the chain. claimed: a"
            " marketplace says that a bid bought it, and the chain does not prove it, so no cost is taken from that."
            " given: the caller. Null without any."
        ),
    ]
    tags: Tags


class WrittenAutolistTask(AutolistTask):
    """An auto-list task after it was created or changed."""

    warnings: Annotated[
        list[str], Field(description="What is allowed and probably not meant; missing if nothing.")
    ] = []


class StoppedAutolistTask(AutolistTask):
    """An auto-list task after its stop."""

    listing_cancelled: Annotated[Literal[False], Field(description="A stop leaves the listing where it is.")]
    message: Annotated[str, Field(description="Says so, where there is a listing.")] = ""


class DeletedAutolistTask(Success):
    """The task is gone."""

    listing_cancelled: Annotated[
        bool, Field(description="Its listing was cancelled; false without one, too, or with one that was sold.")
    ]
    message: Annotated[str, Field(description="Says that the listing is still there and being cancelled.")] = ""
