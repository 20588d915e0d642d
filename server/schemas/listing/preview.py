"""A listing preview's request and answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from server.http.bodies import SATS
from server.schemas.answers import Answer, Price
from server.schemas.codes import ReasonCode
from server.schemas.control import EffectiveState
from server.schemas.listing.config import ListingFields
from server.schemas.preview import Count
from server.schemas.task_bodies import describe_listing_preview


class AutolistPreview(ListingFields):
    """The config of a new auto-list task; or, with `taskId`, changes to that task's config as PUT takes them.

    Without `taskId` the inscription is required, and a task of the caller's for it is used.
    """

    model_config = ConfigDict(json_schema_extra=describe_listing_preview)

    task_id: Annotated[int | None, Field(ge=1, description="The caller's task that is to be changed.")] = None


class Finding(Answer):
    """A rule of the signer, held against the draft."""

    rule: Annotated[str, Field(description="A tag of docs/custody.md.")]
    holds: Annotated[bool | None, Field(description="Null: it could not be judged.")]
    why: Annotated[str, Field(description="Empty where it holds.")]


class JudgedForm(Answer):
    """One PSBT of the draft."""

    form: Literal["plain", "secure"]
    is_signed: Annotated[bool, Field(description="The signer would sign it now.")]
    payout: Annotated[SATS | None, Field(description="Sats that come to the caller; null where that is not clear.")]
    least_payout: Annotated[SATS | None, Field(description="Sats that must.")]
    findings: list[Finding]
    words: Annotated[list[str], Field(description="Inputs, outputs and what a signature would cover, line by line.")]


class JudgedDraft(Answer):
    """The marketplace's draft as the signer judges it. Nothing was signed."""

    is_signed: Annotated[bool, Field(description="The listing would be signed now.")]
    verdict: Annotated[str, Field(description="The same in words, with the first rule that does not hold.")]
    forms: Annotated[list[JudgedForm], Field(description="The plain form first.")]


class ListingMarket(Answer):
    """The values that the price depends on; null is not needed, or not known."""

    asks: Count | None
    lowest_ask: Price | None
    last_sales: Annotated[list[int] | None, Field(description="Newest first, in sats.")]
    median: Annotated[Price | None, Field(description="Of the last hour's floors; null in a cold start.")]
    samples: Count


class ListingPreview(Answer):
    """The price that would be asked now. Nothing was signed or listed."""

    task_id: Annotated[int | None, Field(description="The task whose listing was counted in; null: a new one.")]
    action: Annotated[
        Literal["list", "reprice", "keep", "wait", "pause", "ended"], Field(description="What a cycle would do.")
    ]
    price: Annotated[SATS | None, Field(description="The price that would stand then; null: none.")]
    reason: ReasonCode
    note: Annotated[str, Field(description="The reason in words, with the price's basis.")]
    least_price: Annotated[SATS | None, Field(description="The price is never below it; null: the config sets none.")]
    holding: Annotated[
        Literal["held", "moved", "spent", "pending", "unknown"], Field(description="Where the inscription is.")
    ]
    outpoint: Annotated[str | None, Field(description="Its output, as txid:vout; null when it is not in the vault.")]
    market: ListingMarket
    draft: Annotated[
        JudgedDraft | None,
        Field(description="Null where nothing would be signed; else `errors` says why there is none."),
    ]
    control: Annotated[EffectiveState, Field(description="The plan does not heed it: it shows what `run` would do.")]
    refusal: Annotated[str | None, Field(description="Why the caller may not run tasks now.")]
    errors: Annotated[list[str], Field(description="What could not be read and was done without.")]
