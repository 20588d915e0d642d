"""The tables of orders and listings, the legal moves of their states and of withdrawals', and their events.

An event is written in the transaction that moves the order or the listing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from peewee import SQL, BigIntegerField, BooleanField, CharField, IntegerField, TextField

from models import outbox
from models.database.base import NO, YES, Row, Statement, add_indexes, primary_key

NEW = "new"  # not stored yet
RESERVED = "reserved"  # counts against the limits; the signer may have been called
SIGNED = "signed"  # a signature exists
SUBMITTED = "submitted"  # may have reached the venue or the network
LIVE = "live"  # the venue has it
CANCELLING = "cancelling"  # its cancel was sent
UNKNOWN = "unknown"  # sent, and it is not known whether the venue or network has it
CLOSED = "closed"  # ended, with a close reason
CONFIRMED = "confirmed"  # withdrawal in a block

CANCELLED = "cancelled"  # by a cancel at the venue
EXPIRED = "expired"
FILLED = "filled"
REPLACED = "replaced"  # by a new listing at the venue, now or soon (see listings.give_up)
SOLD = "sold"
GONE = "gone"  # its output was spent without a sale, so the signature is worthless
REFUSED = "refused"  # by signer, venue or network, or never sent
LOST = "lost"  # the venue does not show it, although its output is still ours
ORDER_ENDS = (CANCELLED, EXPIRED, FILLED, REFUSED, LOST)
LISTING_ENDS = (CANCELLED, REPLACED, SOLD, GONE, REFUSED, LOST)

# All legal moves; any other is a bug. `closed` needs one of the kind's reasons. A closed listing may still be sold,
# because its signature stays valid; a replaced one becomes live again if its successor never was.
_MOVES = """
from       | order                     | listing                   | withdrawal
new        | reserved closed           | reserved live unknown     | reserved
reserved   | signed unknown closed     | signed unknown closed     | signed refused
signed     | submitted unknown closed  | submitted unknown closed  | submitted unknown confirmed refused
submitted  | live unknown closed       | live unknown closed       | unknown confirmed refused
live       | cancelling unknown closed | cancelling closed         |
cancelling | live unknown closed       | live unknown closed       |
unknown    | live cancelling closed    | live cancelling closed    | submitted confirmed refused
cancelled  |                           | sold                      |
replaced   |                           | sold live                 |
lost       |                           | sold                      |
"""


class IllegalMove(ValueError):
    """The move is not in the table, or the row is in another state than the caller assumed."""


class Life(NamedTuple):
    """The legal moves of one kind of row; `states` are its possible states, from first to last."""

    kind: str
    moves: Mapping[str, frozenset[str]]
    states: tuple[str, ...]
    ends: tuple[str, ...] = ()  # close reasons

    def check(self, former: str, state: str, reason: str | None = None, row_id: int | None = None) -> None:
        """Raises IllegalMove unless the table has the move; for a closed row `former` is its close reason."""
        may = self.moves.get(former, frozenset())
        is_legal = state in may or reason in may
        if not is_legal or (state == CLOSED) != (reason in self.ends):
            raise IllegalMove(f"{self.kind} {row_id} cannot go from {former} to {state} ({reason})")


def _life(column: int, ends: tuple[str, ...], *last: str) -> Life:
    header, *lines = (line.split("|") for line in _MOVES.strip().splitlines())
    moves = {line[0].strip(): frozenset(line[column].split()) for line in lines if line[column].strip()}
    states = tuple(state for state in moves if state not in (NEW, *ends))
    return Life(header[column].strip(), moves, (*states, *last), ends)


ORDER_LIFE = _life(1, ORDER_ENDS, CLOSED)
LISTING_LIFE = _life(2, LISTING_ENDS, CLOSED)
WITHDRAWAL_LIFE = _life(3, (), CONFIRMED, REFUSED)
# Close reasons of listings that may still be sold.
OUTLIVED = tuple(end for end in LISTING_ENDS if SOLD in LISTING_LIFE.moves.get(end, ()))

# States of the auto-listing of a filled order.
TO_LIST = "waiting"
LISTED = "listed"
NOT_LISTED = "dropped"


class Order(Row):
    """One bid. `price_sats` is the whole order's; `wallet` and `expires_ms` together identify it.

    `venue_id` is the id that the venue gave when it accepted the bid, or that a later read showed. Until then the
    signed expiry, unique per wallet to the millisecond, identifies the order. `misses` counts the successful reads in a
    row that did not show it. `coins` (`txid:vout`, separated by blanks) pay for a bid that is a PSBT. `receive` is the
    address that receives the purchase, "" in rows of older versions.

    A filled order has the venue's id of the sale (`sale_id`) and its time (`filled_ms`). The bought inscription, the
    reference price at the fill (`floor_at_fill`, for one item or token, decimal text) and the network fee are None if
    unknown. `sold_sats` and `sold_quantity` are set if only a part was filled; the limits count the whole order.
    `budget_id` is the budget that it counts in (models/ledger/orders.py). If its task wanted the purchase listed,
    `autolist_state` is `waiting`, `listed` or `dropped`, with `autolist_reason` and the auto-list task `autolist_task`.
    """

    id = primary_key()
    intent = CharField(max_length=32, unique=True)
    task_id = BigIntegerField()
    user_id = BigIntegerField()
    venue = CharField(max_length=30)
    wallet = CharField(max_length=90)
    slug = CharField(max_length=200)
    price_sats = BigIntegerField()
    quantity = CharField(max_length=60)
    expires_ms = BigIntegerField()
    token = BigIntegerField()
    state = CharField(max_length=10)
    close_reason = CharField(max_length=10, null=True)
    venue_id = CharField(max_length=128, null=True)
    misses = IntegerField(default=0)
    created_ms = BigIntegerField()
    updated_ms = BigIntegerField()
    trait_type = CharField(max_length=200, default="")
    trait_value = CharField(max_length=200, default="")
    dry_run = BooleanField(default=False)
    closed_ms = BigIntegerField(null=True)
    sale_id = CharField(max_length=100, null=True)
    coins = TextField(default="")
    filled_ms = BigIntegerField(null=True)
    inscription_id = CharField(max_length=80, null=True)
    floor_at_fill = TextField(null=True)
    network_fee_sats = BigIntegerField(null=True)
    receive = CharField(max_length=90, default="")
    autolist_state = CharField(max_length=10, null=True)
    autolist_reason = TextField(null=True)
    autolist_task = BigIntegerField(null=True)
    sold_sats = BigIntegerField(null=True)
    sold_quantity = CharField(max_length=60, null=True)
    budget_id = BigIntegerField(null=True)

    class Meta:
        indexes = ((("wallet", "expires_ms"), True),)

    @property
    def trait(self) -> tuple[str, str] | None:
        """The bid's trait (type, value); None for a bid on the whole collection or rune."""
        return (self.trait_type, self.trait_value) if self.trait_type else None

    @property
    def spent_sats(self) -> int:
        """The sats that a filled order cost."""
        return int(self.price_sats if self.sold_sats is None else self.sold_sats)


# Literals, as in the indexes, because SQLite chooses an index by them.
IS_OPEN = Order.state != SQL(f"'{CLOSED}'")
IS_FILLED = Order.close_reason == SQL(f"'{FILLED}'")
IS_REAL = Order.dry_run == NO
HAS_SALE = Order.sale_id.is_null(False)
IS_TO_LIST = Order.autolist_state == SQL(f"'{TO_LIST}'")
HAS_BUDGET = Order.budget_id.is_null(False)
_HELD, _SPENT = IS_OPEN & HAS_BUDGET, IS_FILLED & HAS_BUDGET

add_indexes(
    ("orders_open_task", (Order.task_id, Order.dry_run, Order.price_sats), IS_OPEN, False),
    ("orders_open_user", (Order.user_id, Order.dry_run, Order.price_sats), IS_OPEN, False),
    ("orders_open_wallet", (Order.wallet,), IS_OPEN, False),
    (
        "orders_filled",
        (Order.task_id, Order.dry_run, Order.closed_ms, Order.price_sats, Order.filled_ms, Order.sold_sats),
        IS_FILLED,
        False,
    ),
    ("orders_open_budget", (Order.budget_id, Order.dry_run, Order.task_id, Order.price_sats), _HELD, False),
    ("orders_filled_budget", (Order.budget_id, Order.dry_run, Order.closed_ms, Order.price_sats), _SPENT, False),
    ("orders_fills", (Order.user_id, Order.filled_ms, Order.id), IS_FILLED, False),
    # These begin with the user, so that no query for a task's few open orders walks its closed ones.
    ("orders_user", (Order.user_id, Order.id), None, False),
    ("orders_user_task", (Order.user_id, Order.task_id, Order.id), None, False),
    ("orders_to_list", (Order.id,), IS_TO_LIST, False),
    ("orders_bought", (Order.inscription_id,), IS_FILLED & Order.inscription_id.is_null(False), False),
    ("orders_sale", (Order.venue, Order.sale_id), HAS_SALE & IS_REAL, True),
    ("orders_dry_sale", (Order.task_id, Order.sale_id), HAS_SALE & (Order.dry_run == YES), True),
)


class Listing(Row):
    """One signed price (`price_sats`) for one output, and its state.

    A change of price is a new row, because the venue replaces the old listing by the new one. `revision` is the
    config's, `wallet` the vault that holds the inscription at `outpoint` (txid:vout). `signed_ms` is set once a
    signature may exist, `listed_ms` once the venue has confirmed or shown the listing. `misses` counts the successful
    reads in a row that did not show it. A sold listing has the venue's id of the sale (`sale_id`), its price
    (`proceeds_sats`) and time (`sold_ms`), and the venue's fee and the txid, which are None if unknown.
    """

    id = primary_key()
    intent = CharField(max_length=64, unique=True)
    task_id = BigIntegerField()
    user_id = BigIntegerField()
    venue = CharField(max_length=30)
    wallet = CharField(max_length=90)
    inscription_id = CharField(max_length=80)
    slug = CharField(max_length=200, null=True)
    outpoint = CharField(max_length=75)
    price_sats = BigIntegerField()
    token = BigIntegerField()
    revision = IntegerField()
    state = CharField(max_length=10)
    close_reason = CharField(max_length=10, null=True)
    venue_id = CharField(max_length=128, null=True)
    misses = IntegerField(default=0)
    proceeds_sats = BigIntegerField(null=True)
    created_ms = BigIntegerField()
    updated_ms = BigIntegerField()
    signed_ms = BigIntegerField(null=True)
    listed_ms = BigIntegerField(null=True)
    closed_ms = BigIntegerField(null=True)
    sale_id = CharField(max_length=100, null=True)
    sold_ms = BigIntegerField(null=True)
    venue_fee_sats = BigIntegerField(null=True)
    txid = CharField(max_length=64, null=True)

    @property
    def is_open(self) -> bool:
        """Whether it is at the venue, or may still be sent there."""
        return bool(self.state != CLOSED)


_OPEN_PRICES = Statement(f"SELECT price_sats FROM listings WHERE user_id = :user_id AND state != '{CLOSED}'")


def open_prices(user_id: int) -> frozenset[int]:
    """Returns the prices (sats) of the user's open listings at all venues."""
    return frozenset(int(price) for (price,) in _OPEN_PRICES.rows(user_id=user_id))


# Literals, as in the indexes, because SQLite chooses an index by them.
LISTING_IS_OPEN = Listing.state != SQL(f"'{CLOSED}'")
IS_SIGNED = Listing.signed_ms.is_null(False)
IS_SOLD = Listing.close_reason == SQL(f"'{SOLD}'")

add_indexes(
    ("listings_open_task", (Listing.task_id,), LISTING_IS_OPEN, True),
    ("listings_open_outpoint", (Listing.outpoint,), LISTING_IS_OPEN, True),
    ("listings_signed", (Listing.outpoint, Listing.price_sats), IS_SIGNED, False),
    ("listings_item", (Listing.inscription_id, Listing.wallet), IS_SIGNED, False),
    ("listings_task", (Listing.task_id, Listing.id), None, False),
    ("listings_sold", (Listing.user_id, Listing.sold_ms, Listing.id), IS_SOLD, False),
)


def tell_order(order: Order, now_ms: int, state: str, reason: str | None, bought: Mapping[str, Any]) -> None:
    """Writes the event of an order that becomes live or is closed; none for other states.

    `bought` are the columns of the sale that fills it.
    """
    found: dict[str, Any] = {
        "order": order.id,
        "venue": order.venue,
        "slug": order.slug,
        "trait": None if order.trait is None else {"type": order.trait[0], "value": order.trait[1]},
        "price": order.price_sats,
        "quantity": order.quantity,
        "dry_run": bool(order.dry_run),
    }
    if reason == FILLED:
        sold = {name: bought[name] for name in ("sale_id", "filled_ms", "inscription_id")}
        if bought["sold_sats"] is not None:  # filled in part
            sold |= {"price": bought["sold_sats"], "quantity": bought["sold_quantity"]}
        outbox.tell(outbox.FILL, order.user_id, order.task_id, now_ms, {"fill": f"buy-{order.id}"} | found | sold)
    elif state in (LIVE, CLOSED):
        fate = {"state": state, "close_reason": reason}
        outbox.tell(outbox.ORDER, order.user_id, order.task_id, now_ms, found | fate)


def tell_listing(listing: Listing, now_ms: int, state: str, reason: str | None, sold: Mapping[str, Any]) -> None:
    """Writes the event of a listing that becomes live (again) or is closed; none for other states.

    `sold` are the columns of its sale. Call it before `listing` is updated.
    """
    found: dict[str, Any] = {
        "listing": listing.id,
        "venue": listing.venue,
        "slug": listing.slug,
        "inscription_id": listing.inscription_id,
        "price": listing.price_sats,
    }
    if reason == SOLD:
        sale = {name: sold[name] for name in ("sale_id", "sold_ms", "txid")}
        sale |= {"fill": f"sell-{listing.id}", "price": sold["proceeds_sats"], "venue_fee": sold["venue_fee_sats"]}
        outbox.tell(outbox.SOLD, listing.user_id, listing.task_id, now_ms, found | sale)
    elif state == LIVE and listing.listed_ms is None:
        outbox.tell(outbox.LISTED, listing.user_id, listing.task_id, now_ms, found)
    elif state in (LIVE, CLOSED):
        fate = {"state": state, "close_reason": reason}
        outbox.tell(outbox.LISTING, listing.user_id, listing.task_id, now_ms, found | fate)


def sold_at(row: Order | Listing, told_ms: int | None, now_ms: int) -> int:
    """Returns the venue's time of a sale, limited to the span from the row's creation to now."""
    return min(max(now_ms if told_ms is None else told_ms, int(row.created_ms)), now_ms)


LATE_MS = 30_000  # grace after a bid's expiry or a listing's deadline


def _changes(what: str) -> dict[type[Order | Listing], Statement]:
    return {
        table: Statement(f"UPDATE {table._meta.table_name} SET {what} WHERE id = :id") for table in (Order, Listing)
    }


_SAW = _changes("venue_id = :venue_id, misses = 0, updated_ms = :updated_ms")
_DATED = _changes("updated_ms = :updated_ms")
_MISSED = _changes("misses = misses + 1, updated_ms = :updated_ms")


def saw(row: Order | Listing, venue_id: str, now_ms: int) -> None:
    """Notes that the venue shows the row under this id, and resets its misses."""
    if row.venue_id == venue_id and row.misses == 0:
        return
    _SAW[type(row)].run(id=row.id, venue_id=venue_id, updated_ms=now_ms)
    row.venue_id, row.misses = venue_id, 0


def date_back(row: Order | Listing, now_ms: int) -> None:
    """Sets a row's time back to now if the clock was ahead when it was written, so that new reads count."""
    if row.updated_ms > now_ms:
        _DATED[type(row)].run(id=row.id, updated_ms=now_ms)
        row.updated_ms = now_ms


def count_miss(row: Order | Listing, read_ms: int) -> int:
    """Counts a successful read, begun at `read_ms`, that does not show the row; returns the misses in a row.

    `updated_ms` becomes `read_ms`, so that no read is counted twice.
    """
    _MISSED[type(row)].run(id=row.id, updated_ms=read_ms)
    row.misses, row.updated_ms = row.misses + 1, read_ms
    return int(row.misses)
