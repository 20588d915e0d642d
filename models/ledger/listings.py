"""The ledger of listings: every signed price, from its reservation to its end.

A row is on disk before the venue or the signer is called, and its state is `submitted` before it is sent to the venue.
A task has at most one open row. A signature can be used until its output is spent, whatever the venue shows, so closed
rows are kept: they show the lowest price at which the inscription can still be bought (`lowest_outstanding`).
"""

from __future__ import annotations

from msgspec import Struct
from peewee import IntegrityError

from models.database.base import Statement, columns, insertion, require_sound, transaction
from models.ledger.states import (
    CLOSED,
    LISTING_LIFE,
    LIVE,
    NEW,
    OUTLIVED,
    REPLACED,
    RESERVED,
    SIGNED,
    SOLD,
    UNKNOWN,
    IllegalMove,
    Listing,
    sold_at,
    tell_listing,
)
from models.tasks import tasks
from models.tasks.tasks import LISTING

_ROWS = f"SELECT {columns(Listing)} FROM listings WHERE task_id = :task_id"
_IS_OPEN = "state != 'closed'"  # literally as in the indexes, because SQLite chooses an index by it
_OF_OUTPUT = "outpoint = :outpoint AND signed_ms IS NOT NULL"

INSERT = Statement(f"{insertion(Listing)} $returning_id")
OPEN = Statement(f"{_ROWS} AND {_IS_OPEN}")
ENDED_LAST = Statement(f"{_ROWS} ORDER BY closed_ms DESC, id DESC LIMIT 1")
NEWEST_LISTED = Statement(f"{_ROWS} AND listed_ms IS NOT NULL ORDER BY id DESC LIMIT 1")
FIRST_LISTED = Statement(
    "SELECT listed_ms FROM listings WHERE task_id = :task_id AND listed_ms IS NOT NULL ORDER BY id LIMIT 1"
)
COUNT_OPEN = Statement(f"SELECT COUNT(1) FROM listings WHERE task_id = :task_id AND {_IS_OPEN}")
LOWEST = Statement(f"SELECT MIN(price_sats) FROM listings WHERE {_OF_OUTPUT}")
FIRST = Statement(f"SELECT MIN(created_ms) FROM listings WHERE {_OF_OUTPUT}")
# A price counts from its signature until the row's end, which is usually when the next price begins.
HIGHEST = Statement(
    """
    SELECT MAX(price_sats) FROM listings WHERE inscription_id = :inscription_id AND wallet = :wallet
    AND signed_ms IS NOT NULL AND (closed_ms IS NULL OR closed_ms > :since_ms)
    """
)
FORMER = Statement(
    """
    SELECT id FROM listings
    WHERE task_id = :task_id AND close_reason = 'replaced' AND closed_ms = :closed_ms AND id < :before
    """
)
DROPPED = Statement(
    """
    SELECT COUNT(1) FROM listings
    WHERE task_id = :task_id AND close_reason = 'lost' AND listed_ms IS NOT NULL AND closed_ms > :since_ms
    """
)
MOVE = Statement(
    """
    UPDATE listings SET state = :state, close_reason = :close_reason, venue_id = COALESCE(:venue_id, venue_id),
        misses = :misses, proceeds_sats = :proceeds_sats, sale_id = :sale_id, sold_ms = :sold_ms,
        venue_fee_sats = :venue_fee_sats, txid = :txid, updated_ms = :updated_ms,
        signed_ms = COALESCE(signed_ms, :signed_ms), listed_ms = COALESCE(listed_ms, :listed_ms),
        closed_ms = :closed_ms
    WHERE id = :id AND state = :former_state
    """
)
FORGET = Statement(
    """
    DELETE FROM listings WHERE task_id = :task_id AND state = 'closed' AND signed_ms IS NULL
    AND id <= (SELECT id FROM listings WHERE task_id = :task_id ORDER BY id DESC LIMIT 1 OFFSET :newer)
    """
)
TO_DELIST = Statement(
    f"""
    SELECT task_id FROM listings
    WHERE {_IS_OPEN} AND task_id IN (SELECT id FROM tasks WHERE deleted_ms IS NOT NULL)
    """
)

_UNWRITTEN = dict.fromkeys(name for name in Listing._meta.sorted_field_names if name != "id")
_KEPT = 200  # newest rows of each task; older rows are kept only if signed, because they can still be bought


class NotAllowedToList(Exception):
    """The task was stopped or deleted, or another worker has taken over."""


class OpenElsewhere(Exception):
    """Another task, perhaps a deleted one, still has an open listing of the same output."""


class NewListing(Struct, frozen=True):
    """A listing to be stored; see `Listing`."""

    intent: str
    task_id: int
    user_id: int
    venue: str
    wallet: str
    inscription_id: str
    slug: str | None
    outpoint: str
    price_sats: int
    token: int
    revision: int


class SoldFor(Struct, frozen=True):
    """The sale that ended a listing, at `price_sats`, of which the venue keeps `venue_fee_sats`; None = unknown.

    Without `sold_ms` the time of the record counts.
    """

    price_sats: int
    sale_id: str | None = None
    sold_ms: int | None = None
    venue_fee_sats: int | None = None
    txid: str | None = None


_UNSOLD = dict.fromkeys(("proceeds_sats", "sale_id", "sold_ms", "venue_fee_sats", "txid"))


def reserve(new: NewListing, replacing: Listing | None, now_ms: int) -> Listing:
    """Stores the listing durably; the live listing `replacing` is closed in the same commit.

    Raises NotAllowedToList, OpenElsewhere, or IllegalMove if the task's open listing is not `replacing`, with nothing
    written.
    """
    if replacing is not None and replacing.state != LIVE:
        raise IllegalMove(f"listing {replacing.id} is {replacing.state}: nothing takes its place")
    with transaction(durable=True):
        require_sound()
        if not tasks.may_act(new.task_id, LISTING, new.token):
            raise NotAllowedToList(f"task {new.task_id} is not this worker's to act for")
        if replacing is not None:
            LISTING_LIFE.check(replacing.state, CLOSED, REPLACED, replacing.id)
            replaced = {"state": CLOSED, "close_reason": REPLACED, "misses": replacing.misses, "closed_ms": now_ms}
            untouched = _UNSOLD | dict.fromkeys(("venue_id", "signed_ms", "listed_ms"))
            moved = MOVE.run(id=replacing.id, former_state=LIVE, updated_ms=now_ms, **replaced, **untouched)
            if moved.rowcount != 1:
                raise IllegalMove(f"listing {replacing.id} is not live any more")
            tell_listing(replacing, now_ms, CLOSED, REPLACED, _UNSOLD)
        listing = _written(new, {"state": RESERVED}, now_ms)
        FORGET.run(task_id=new.task_id, newer=_KEPT + 1)
        return listing


def adopt(new: NewListing, now_ms: int) -> Listing:
    """Stores, as live, a listing that the venue shows and that has no open row.

    Raises OpenElsewhere, or IllegalMove if the task has an open listing, with nothing written.
    """
    return _stored(new, {"state": LIVE, "signed_ms": now_ms, "listed_ms": now_ms}, now_ms)


def suspect(new: NewListing, now_ms: int) -> Listing:
    """Stores, as unknown, a listing that may be at the venue; later reads decide."""
    return _stored(new, {"state": UNKNOWN, "signed_ms": now_ms}, now_ms)


def _stored(new: NewListing, state: dict[str, object], now_ms: int) -> Listing:
    with transaction(durable=True):
        found = _written(new, state, now_ms)
        # Called after `listed_ms` is set, so that it reports a change and not a new listing.
        tell_listing(found, now_ms, found.state, None, _UNSOLD)
        return found


def _written(new: NewListing, state: dict[str, object], now_ms: int) -> Listing:
    if count_open(new.task_id):
        raise IllegalMove(f"task {new.task_id} has another open listing")
    LISTING_LIFE.check(NEW, str(state["state"]))
    values = {name: getattr(new, name) for name in NewListing.__struct_fields__} | state
    values |= {"misses": 0, "created_ms": now_ms, "updated_ms": now_ms}
    try:
        listing_id = INSERT.insert(**_UNWRITTEN | values)
    except IntegrityError as error:
        raise OpenElsewhere(f"another task has an open listing of {new.outpoint}") from error
    return Listing(id=listing_id, **values)


def move(
    listing: Listing,
    state: str,
    now_ms: int,
    *,
    reason: str | None = None,
    venue_id: str | None = None,
    sale: SoldFor | None = None,
) -> None:
    """Moves the listing durably from the state in `listing` to `state`, and updates `listing`.

    `closed` needs a `reason` (one of LISTING_ENDS), the reason `sold` needs a `sale`. The times when it was first (or
    perhaps) signed and first live are kept; its misses are reset unless it is closed. Raises IllegalMove, with nothing
    written.
    """
    with transaction(durable=True):
        _move(listing, state, now_ms, reason, venue_id, sale)


def note_late_sale(listing: Listing, sale: SoldFor, now_ms: int) -> None:
    """Notes durably that an ended listing was sold after all, by its signature that is still valid.

    Writes nothing if the listing is open, or closed for a reason other than those in OUTLIVED.
    """
    outlived = Listing.close_reason.in_(OUTLIVED)
    sold = _sold(listing, sale, now_ms)
    changes = sold | {"close_reason": SOLD, "updated_ms": now_ms}
    with transaction(durable=True):
        if Listing.update(changes).where(Listing.id == listing.id, Listing.state == CLOSED, outlived).execute():
            tell_listing(listing, now_ms, CLOSED, SOLD, sold)


def give_up(listing: Listing, reason: str, now_ms: int) -> None:
    """Closes durably a listing that the venue never accepted (`refused`, `lost`).

    The listing that it should have replaced becomes live again in the same commit, so that a listing that may be at the
    venue always has an open row. Raises IllegalMove, with nothing written.
    """
    with transaction(durable=True):
        _move(listing, CLOSED, now_ms, reason, None, None)
        # The replaced listing was closed in the same commit, so at the same time.
        former = FORMER.row(task_id=listing.task_id, closed_ms=listing.created_ms, before=listing.id)
        if former is not None:
            LISTING_LIFE.check(REPLACED, LIVE)
            again = {"state": LIVE, "close_reason": None, "closed_ms": None, "misses": 0, "updated_ms": now_ms}
            Listing.update(again).where(Listing.id == former[0]).execute()
            tell_listing(Listing.get_by_id(former[0]), now_ms, LIVE, None, _UNSOLD)


def _move(
    listing: Listing, state: str, now_ms: int, reason: str | None, venue_id: str | None, sale: SoldFor | None
) -> None:
    LISTING_LIFE.check(listing.state, state, reason, listing.id)
    if (sale is None) != (reason != SOLD):
        raise IllegalMove(f"listing {listing.id}: a sale and the reason `sold` go together")
    misses = listing.misses if state == CLOSED else 0
    signed_ms = now_ms if state in (SIGNED, UNKNOWN, LIVE) else None
    listed_ms = now_ms if state == LIVE else None
    closed_ms = now_ms if state == CLOSED else None
    sold = _UNSOLD if sale is None else _sold(listing, sale, now_ms)
    moved = MOVE.run(
        id=listing.id,
        former_state=listing.state,
        state=state,
        close_reason=reason,
        venue_id=venue_id,
        misses=misses,
        updated_ms=now_ms,
        signed_ms=signed_ms,
        listed_ms=listed_ms,
        closed_ms=closed_ms,
        **sold,
    )
    if moved.rowcount != 1:
        raise IllegalMove(f"listing {listing.id} is not {listing.state} any more")
    tell_listing(listing, now_ms, state, reason, sold)
    listing.state, listing.close_reason, listing.misses = state, reason, misses
    listing.updated_ms, listing.closed_ms = now_ms, closed_ms
    for name, value in sold.items():
        setattr(listing, name, value)
    listing.signed_ms = listing.signed_ms or signed_ms
    listing.listed_ms = listing.listed_ms or listed_ms
    listing.venue_id = venue_id or listing.venue_id


def _sold(listing: Listing, sale: SoldFor, now_ms: int) -> dict[str, object]:
    return {
        "proceeds_sats": sale.price_sats,
        "sale_id": sale.sale_id,
        "sold_ms": sold_at(listing, sale.sold_ms, now_ms),
        "venue_fee_sats": sale.venue_fee_sats,
        "txid": sale.txid,
    }


def open_listing(task_id: int) -> Listing | None:
    """Returns the task's open listing, or None."""
    return OPEN.instance(Listing, task_id=task_id)


def newest(task_id: int) -> Listing | None:
    """Returns the task's open listing, else the last one to end (not the newest row, which may have been refused)."""
    return open_listing(task_id) or ENDED_LAST.instance(Listing, task_id=task_id)


def newest_listed(task_id: int) -> Listing | None:
    """Returns the newest listing of the task that the venue had, open or closed."""
    return NEWEST_LISTED.instance(Listing, task_id=task_id)


def first_listed_ms(task_id: int) -> int | None:
    """Returns when a listing of the task was first live, or None. Rows that were live are never deleted."""
    found = FIRST_LISTED.row(task_id=task_id)
    return None if found is None else int(found[0])


def count_open(task_id: int) -> int:
    """Counts the task's open listings: 0 or 1."""
    return int(COUNT_OPEN.value(task_id=task_id))


def lowest_outstanding(outpoint: str) -> int | None:
    """Returns the lowest signed price of this output, at which it can be bought until it is spent, or None."""
    return LOWEST.value(outpoint=outpoint)


def highest_since(inscription_id: str, wallet: str, since_ms: int) -> int | None:
    """Returns the highest price at which this wallet's inscription was listed since `since_ms`, or None."""
    return HIGHEST.value(inscription_id=inscription_id, wallet=wallet, since_ms=since_ms)


def first_ms(outpoint: str) -> int:
    """Returns when the first signed listing of this output was reserved; 0 if none was signed."""
    return int(FIRST.value(outpoint=outpoint) or 0)


def delistings(task_id: int, since_ms: int) -> int:
    """Counts how often the venue dropped the task's listing by itself since `since_ms`."""
    return int(DROPPED.value(task_id=task_id, since_ms=since_ms))


def tasks_to_delist() -> list[int]:
    """Returns the ids of the deleted tasks whose listing is still open."""
    return [task_id for (task_id,) in TO_DELIST.rows()]
