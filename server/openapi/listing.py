"""The operations on auto-list tasks and inscriptions."""

from __future__ import annotations

from server.http.answers import (
    INVALID,
    NOT_YOURS,
    SIGNER_AWAY,
    TOO_MANY_LOOKUPS,
    TOO_SLOW,
)
from server.openapi.operation import Operation, one
from server.schemas.listing import preview as preview
from server.schemas.listing.preview import AutolistPreview

_TAG = "auto-list tasks"


OPERATIONS = {
    "POST /api/autolist/preview": Operation(
        id="previewAutolistTask",
        tag=_TAG,
        summary="The price that would be asked now, and why",
        text="Decided as in a live cycle; then the marketplace drafts the listing and the signer judges the draft. "
        "Nothing is signed or listed.",
        body=AutolistPreview,
        success=one(preview.ListingPreview, "What a cycle would do now."),
        errors={400: INVALID, 404: NOT_YOURS, 429: TOO_MANY_LOOKUPS, 503: SIGNER_AWAY, 504: TOO_SLOW},
    ),
}
