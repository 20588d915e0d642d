"""The table of listings, its states and its indexes. The operations on it are in models/ledger/listings.py."""

from __future__ import annotations

from peewee import SQL, BigIntegerField, CharField, IntegerField

from models.base import Row, primary_key

RESERVED = "reserved"
SIGNED = "signed"
SUBMITTED = "submitted"
LIVE = "live"
CANCELLING = "cancelling"
UNKNOWN = "unknown"
CLOSED = "closed"

CANCELLED = "cancelled"  # the venue was told to forget it
REPLACED = "replaced"  # another took its place at the venue, or is about to (see listings.give_up)
SOLD = "sold"
GONE = "gone"  # its output was spent, and not by a sale: the signature is worthless
REFUSED = "refused"  # by signer or venue, or never sent
LOST = "lost"  # the venue does not show it, though its output is still ours
CLOSE_REASONS = (CANCELLED, REPLACED, SOLD, GONE, REFUSED, LOST)

# Every legal move of a listing; a move that is not here is an error of ours.
MOVES = {
    RESERVED: {SIGNED, UNKNOWN, CLOSED},
    SIGNED: {SUBMITTED, UNKNOWN, CLOSED},
    SUBMITTED: {LIVE, UNKNOWN, CLOSED},
    LIVE: {CANCELLING, CLOSED},
    CANCELLING: {LIVE, UNKNOWN, CLOSED},
    UNKNOWN: {LIVE, CANCELLING, CLOSED},
    CLOSED: set(),
}


class Listing(Row):
    """One signature of one price (`price_sats`) for one output, and its fate.

    A change of price is a new row: the venue lets the new listing take the old one's place. `revision` is its config's,
    `wallet` the vault that holds the inscription at `outpoint` (txid:vout). `signed_ms` is set once a signature exists,
    `listed_ms` once the venue showed it or said so. `misses` counts the good reads in a row that did not show it.
    A sold one has its sale's name at the venue (`sale_id`), price (`proceeds_sats`) and time (`sold_ms`), the venue's
    fee out of that price and the transaction's id, both None where they are not known.
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

    class Meta:
        table_name = "listings"

    @property
    def is_open(self) -> bool:
        """Whether the venue may have it, or may still get it."""
        return bool(self.state != CLOSED)


# Literals, as in the indexes: SQLite sees at once which index to use.
IS_OPEN = Listing.state != SQL(f"'{CLOSED}'")
IS_SIGNED = Listing.signed_ms.is_null(False)
IS_SOLD = Listing.close_reason == SQL(f"'{SOLD}'")

for _name, _columns, _where, _unique in (
    ("listings_open_task", (Listing.task_id,), IS_OPEN, True),
    ("listings_open_outpoint", (Listing.outpoint,), IS_OPEN, True),
    ("listings_signed", (Listing.outpoint, Listing.price_sats), IS_SIGNED, False),
    ("listings_item", (Listing.inscription_id, Listing.wallet), IS_SIGNED, False),
    ("listings_task", (Listing.task_id, Listing.id), None, False),
    ("listings_sold", (Listing.user_id, Listing.sold_ms, Listing.id), IS_SOLD, False),
):
    Listing.add_index(Listing.index(*_columns, name=_name, where=_where, unique=_unique))
