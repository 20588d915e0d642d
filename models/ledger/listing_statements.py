"""The statements of a listing's life in the ledger, compiled once."""

from __future__ import annotations

from peewee import SQL, fn

from models.ledger.listing_table import IS_OPEN, IS_SIGNED, LOST, REPLACED, Listing
from models.prepared import Prepared, given
from models.tasks.table import Task

WRITTEN = tuple(name for name in Listing._meta.sorted_field_names if name != "id")
_IS_THIS = Listing.id == given("id")
_OF_OUTPUT = Listing.outpoint == given("outpoint")
_OF_TASK = Listing.task_id == given("task_id")
INSERT = Prepared(lambda: Listing.insert({getattr(Listing, name): given(name) for name in WRITTEN}))
OPEN = Prepared(lambda: Listing.select().where(_OF_TASK, IS_OPEN))
ENDED_LAST = Prepared(
    lambda: Listing.select().where(_OF_TASK).order_by(Listing.closed_ms.desc(), Listing.id.desc()).limit(SQL("1"))
)
NEWEST_LISTED = Prepared(
    lambda: (
        Listing.select().where(_OF_TASK, Listing.listed_ms.is_null(False)).order_by(Listing.id.desc()).limit(SQL("1"))
    )
)
FIRST_LISTED = Prepared(
    lambda: (
        Listing.select(Listing.listed_ms)
        .where(_OF_TASK, Listing.listed_ms.is_null(False))
        .order_by(Listing.id)
        .limit(SQL("1"))
    )
)
OPEN_PRICES = Prepared(lambda: Listing.select(Listing.price_sats).where(Listing.user_id == given("user_id"), IS_OPEN))
COUNT_OPEN = Prepared(lambda: Listing.select(fn.COUNT(SQL("1"))).where(_OF_TASK, IS_OPEN))
LOWEST = Prepared(lambda: Listing.select(fn.MIN(Listing.price_sats)).where(_OF_OUTPUT, IS_SIGNED))
FIRST = Prepared(lambda: Listing.select(fn.MIN(Listing.created_ms)).where(_OF_OUTPUT, IS_SIGNED))
# A price counts from its signature until the row's end, which is mostly the next price's beginning.
HIGHEST = Prepared(
    lambda: Listing.select(fn.MAX(Listing.price_sats)).where(
        Listing.inscription_id == given("inscription_id"),
        Listing.wallet == given("wallet"),
        IS_SIGNED,
        Listing.closed_ms.is_null() | (Listing.closed_ms > given("since_ms")),
    )
)
FORMER = Prepared(
    lambda: Listing.select(Listing.id).where(
        _OF_TASK,
        Listing.close_reason == SQL(f"'{REPLACED}'"),
        Listing.closed_ms == given("closed_ms"),
        Listing.id < given("before"),
    )
)
DROPPED = Prepared(
    lambda: Listing.select(fn.COUNT(SQL("1"))).where(
        _OF_TASK,
        Listing.close_reason == SQL(f"'{LOST}'"),
        Listing.listed_ms.is_null(False),
        Listing.closed_ms > given("since_ms"),
    )
)
MOVE = Prepared(
    lambda: Listing.update(
        {
            Listing.state: given("state"),
            Listing.close_reason: given("close_reason"),
            Listing.venue_id: fn.COALESCE(given("venue_id"), Listing.venue_id),
            Listing.misses: given("misses"),
            Listing.proceeds_sats: given("proceeds_sats"),
            Listing.sale_id: given("sale_id"),
            Listing.sold_ms: given("sold_ms"),
            Listing.venue_fee_sats: given("venue_fee_sats"),
            Listing.txid: given("txid"),
            Listing.updated_ms: given("updated_ms"),
            Listing.signed_ms: fn.COALESCE(Listing.signed_ms, given("signed_ms")),
            Listing.listed_ms: fn.COALESCE(Listing.listed_ms, given("listed_ms")),
            Listing.closed_ms: given("closed_ms"),
        }
    ).where(_IS_THIS, Listing.state == given("former_state"))
)
OLDEST_KEPT = Prepared(
    lambda: (
        Listing.select(Listing.id).where(_OF_TASK).order_by(Listing.id.desc()).limit(SQL("1")).offset(given("newer"))
    )
)
FORGET = Prepared(
    lambda: Listing.delete().where(_OF_TASK, Listing.id < given("oldest_kept"), ~IS_OPEN, Listing.signed_ms.is_null())
)
TO_DELIST = Prepared(
    lambda: Listing.select(Listing.task_id).where(
        IS_OPEN,
        Listing.task_id.in_(Task.select(Task.id).where(Task.deleted_ms.is_null(False))),
    )
)
