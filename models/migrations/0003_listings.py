"""Listings: one row for each signature of a price, of which at most one a task and an output is open. Frozen."""

from typing import Any

from peewee import SQL, BigIntegerField, CharField, IntegerField, Model

from models.base import primary_key


def up(migrator: Any, db: Any) -> None:
    class Row(Model):
        class Meta:
            database = db
            legacy_table_names = False

    class Listing(Row):
        id = primary_key()
        intent = CharField(max_length=64, unique=True)
        task_id = BigIntegerField()
        user_id = IntegerField()
        venue = CharField(max_length=20)
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

        class Meta:
            table_name = "listings"

    def index(name: str, *columns: Any, where: Any = None, unique: bool = False) -> None:
        Listing.add_index(Listing.index(*columns, name=name, where=where, unique=unique))

    is_open = Listing.state != SQL("'closed'")
    index("listings_open_task", Listing.task_id, where=is_open, unique=True)
    index("listings_open_outpoint", Listing.outpoint, where=is_open, unique=True)
    index("listings_signed", Listing.outpoint, Listing.price_sats, where=Listing.signed_ms.is_null(False))
    index("listings_item", Listing.inscription_id, Listing.wallet, where=Listing.signed_ms.is_null(False))
    index("listings_task", Listing.task_id, Listing.id)
    db.create_tables([Listing])
