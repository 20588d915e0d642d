"""The fills of a user, of both kinds of tasks, deleted ones too."""

from __future__ import annotations

from core import pasted
from models.ledger import fills
from models.ledger.fills import BUY, SIDES, Autolist, Fill, Wanted
from server.http import json_out
from server.http.api_errors import invalid
from server.http.base import SignedIn
from server.http.query import Query
from strategy.bid_config import MAX_TEXT, is_ticker

DEFAULT_FILLS, MOST_FILLS = 100, 500


class FillsHandler(SignedIn):
    """GET /api/fills"""

    takes_query = True

    async def get(self) -> None:
        query = Query(self, "taskId", "slug", "side", "from", "to", "limit", "before")
        wanted = Wanted(
            task_id=query.whole("taskId"),
            slugs=query.pasted("slug", _slugs) or (),
            side=query.choice("side", SIDES),
            from_ms=query.time_ms("from"),
            to_ms=query.time_ms("to"),
        )
        most = query.whole("limit", MOST_FILLS) or DEFAULT_FILLS
        before = query.text("before")
        query.refuse_faults()
        place = None if before is None else fills.place_of(self.user.id, before)
        if before is not None and place is None:
            raise invalid(["before: is no fill of yours"])
        async with self.long_answer():
            found = await self.in_turn(lambda: fills.newest(self.user.id, wanted, most + 1, place))
            shown = found[:most]
            rows = await self.in_turns(shown, _as_json)
            self.require_signed_in()
            self.answer({"fills": rows, "next": shown[-1].id if len(found) > most else None})


def _slugs(text: str) -> tuple[str, str]:
    """Reads a slug: as it is written, which a listing's may be, and in the plain form of a bid's. Raises PasteError."""
    found = pasted.bare(text)
    if not 1 <= len(found) <= MAX_TEXT:
        raise pasted.PasteError(f"must have 1 to {MAX_TEXT} letters")
    return found, pasted.slug("rune" if is_ticker(found) or not found.isascii() else "ordinals", found)


def _as_json(fill: Fill) -> dict[str, object]:
    return {
        "id": fill.id,
        "side": fill.place.side,
        "taskId": fill.task_id,
        "taskKind": "bidding" if fill.place.side == BUY else "autolist",
        "venue": fill.venue,
        "slug": fill.slug,
        "type": "rune" if fill.is_rune else "ordinals",
        "trait": None if fill.trait is None else {"type": fill.trait[0], "value": fill.trait[1]},
        "price": fill.price_sats,
        "quantity": fill.quantity,
        "unitPrice": fill.price_sats / fill.quantity,
        "inscriptionId": fill.inscription_id,
        "saleId": fill.sale_id,
        "txid": fill.txid,
        "networkFee": fill.network_fee_sats,
        "venueFee": fill.venue_fee_sats,
        "floorAtFill": fill.floor_at_fill,
        "bidPlacedAt": json_out.iso(fill.placed_ms),
        "filledAt": json_out.iso(fill.place.filled_ms),
        "dryRun": fill.dry_run,
        "autolist": None if (found := fill.autolist) is None else _autolist_as_json(found),
    }


def _autolist_as_json(found: Autolist) -> dict[str, object]:
    return {"state": found.state, "reason": found.reason, "taskId": found.task_id}
