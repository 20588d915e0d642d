"""The operation on the marketplaces."""

from __future__ import annotations

from server.openapi.operation import Operation, many
from server.schemas.service_answers import VenueInfo

OPERATIONS = {
    "GET /api/venues": Operation(
        id="listVenues",
        tag="market",
        summary="Marketplaces that tasks can name",
        text="With what each can do here, its limits and what is left of its quota.",
        success=many(VenueInfo, "The default one first."),
    ),
}
