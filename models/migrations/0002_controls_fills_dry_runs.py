"""Traits, dry runs and fills of orders; control states; reference prices by the minute. Frozen.

Columns are added by ALTER TABLE, which rewrites no row. The index of all orders by task goes: open ones and filled
ones have indexes of their own, which do not grow with a task's age.
"""

from typing import Any

from peewee import SQL, BigIntegerField, BooleanField, CharField, CompositeKey, IntegerField, Model, TextField

_COLUMNS = (
    "trait_type VARCHAR(200) NOT NULL DEFAULT ''",
    "trait_value VARCHAR(200) NOT NULL DEFAULT ''",
    "dry_run INTEGER NOT NULL DEFAULT 0",
    "closed_ms INTEGER",
    "sale_id VARCHAR(100)",
)


def up(migrator: Any, db: Any) -> None:
    class Row(Model):
        class Meta:
            database = db
            legacy_table_names = False

    class Order(Row):
        task_id = IntegerField()
        user_id = IntegerField()
        venue = CharField(max_length=20)
        wallet = CharField(max_length=90)
        price_sats = BigIntegerField()
        state = CharField(max_length=10)
        close_reason = CharField(max_length=10, null=True)
        dry_run = BooleanField(default=False)
        closed_ms = BigIntegerField(null=True)
        sale_id = CharField(max_length=100, null=True)

        class Meta:
            table_name = "orders"

    class Control(Row):
        scope = CharField(max_length=6)
        subject_id = IntegerField()
        state = CharField(max_length=6)
        by_user = IntegerField(null=True)
        set_ms = BigIntegerField()

        class Meta:
            table_name = "controls"
            primary_key = CompositeKey("scope", "subject_id")
            without_rowid = True

    class FloorSample(Row):
        kind = CharField(max_length=10)
        slug_key = CharField(max_length=200)
        measure = TextField()
        minute = IntegerField()
        reference = TextField()

        class Meta:
            table_name = "floor_samples"
            primary_key = CompositeKey("kind", "slug_key", "measure", "minute")
            without_rowid = True
            indexes = ((("minute",), False),)

    for column in _COLUMNS:
        db.execute_sql(f"ALTER TABLE orders ADD COLUMN {column}")
    # Closed is an order's last state, so its last change was its closing.
    db.execute_sql("UPDATE orders SET closed_ms = updated_ms WHERE state = 'closed'")

    db.execute_sql("DROP INDEX orders_task_id")
    db.execute_sql("DROP INDEX orders_open")

    def index(name: str, *columns: Any, where: Any, unique: bool = False) -> None:
        db.execute(Order.index(*columns, name=name, where=where, unique=unique, safe=False))

    is_open = Order.state != SQL("'closed'")
    index("orders_open_task", Order.task_id, Order.dry_run, Order.price_sats, where=is_open)
    index("orders_open_user", Order.user_id, Order.dry_run, Order.price_sats, where=is_open)
    index("orders_open_wallet", Order.wallet, where=is_open)
    is_filled = Order.close_reason == SQL("'filled'")
    index("orders_filled", Order.task_id, Order.dry_run, Order.closed_ms, Order.price_sats, where=is_filled)
    has_sale = Order.sale_id.is_null(False)
    index("orders_sale", Order.venue, Order.sale_id, where=has_sale & (Order.dry_run == SQL("0")), unique=True)
    index("orders_dry_sale", Order.task_id, Order.sale_id, where=has_sale & (Order.dry_run == SQL("1")), unique=True)
    db.create_tables([Control, FloorSample])
