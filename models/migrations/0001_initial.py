"""The first tables. Frozen: later changes to the models come as later migrations."""

from typing import Any

from peewee import (
    BigIntegerField,
    BooleanField,
    CharField,
    ForeignKeyField,
    IntegerField,
    Model,
    TextField,
)

from models.base import primary_key


def up(migrator: Any, db: Any) -> None:
    class Row(Model):
        class Meta:
            database = db
            legacy_table_names = False

    class User(Row):
        id = primary_key()
        address = CharField(max_length=90, unique=True)
        ordinals_address = CharField(max_length=90)
        display_name = CharField(max_length=100, null=True)
        created_ms = BigIntegerField()

        class Meta:
            table_name = "users"

    class Whitelist(Row):
        address = CharField(max_length=90, primary_key=True)
        is_admin = BooleanField(default=False)
        added_ms = BigIntegerField()

        class Meta:
            table_name = "whitelist"

    class Subscription(Row):
        user = ForeignKeyField(User, primary_key=True, on_delete="CASCADE")
        plan = CharField(max_length=50)
        started_ms = BigIntegerField()
        expires_ms = BigIntegerField()

        class Meta:
            table_name = "subscriptions"

    class Challenge(Row):
        id = CharField(max_length=36, primary_key=True)
        address = CharField(max_length=90, index=True)
        message = TextField()
        user = ForeignKeyField(User, null=True, on_delete="CASCADE")
        client_ip = CharField(max_length=45)
        tries = IntegerField(default=0)
        expires_ms = BigIntegerField(index=True)
        used_ms = BigIntegerField(null=True)

        class Meta:
            table_name = "challenges"

    class Session(Row):
        token_hash = CharField(max_length=64, primary_key=True)
        user = ForeignKeyField(User, on_delete="CASCADE")
        created_ms = BigIntegerField()
        used_ms = BigIntegerField()

        class Meta:
            table_name = "sessions"

    class Task(Row):
        id = primary_key()
        user = ForeignKeyField(User, on_delete="CASCADE")
        config = TextField()
        revision = IntegerField(default=1)
        desired = CharField(max_length=10, default="stopped")
        observed = CharField(max_length=10, default="stopped")
        token = BigIntegerField(default=0)
        pid = IntegerField(null=True)
        started_ms = BigIntegerField(null=True)
        exit_status = CharField(max_length=100, null=True)
        restarts = IntegerField(default=0)
        cycles = BigIntegerField(default=0)
        memory = TextField(default="{}")
        last_cycle_ms = BigIntegerField(null=True)
        last_cycle_action = TextField(null=True)
        last_error = TextField(null=True)
        created_ms = BigIntegerField()
        deleted_ms = BigIntegerField(null=True)

    class BiddingTask(Task):
        type = CharField(max_length=10)
        slug = CharField(max_length=200)
        slug_key = CharField(max_length=200)

        class Meta:
            table_name = "bidding_tasks"

    class AutolistTask(Task):
        inscription_id = CharField(max_length=80)
        collection_id = CharField(max_length=200, null=True)

        class Meta:
            table_name = "autolist_tasks"

    class Order(Row):
        id = primary_key()
        intent = CharField(max_length=32, unique=True)
        kind = CharField(max_length=3)
        task_id = IntegerField(index=True)
        user_id = IntegerField()
        venue = CharField(max_length=20)
        wallet = CharField(max_length=90)
        slug = CharField(max_length=200)
        price_sats = BigIntegerField()
        quantity = CharField(max_length=60)
        expires_ms = BigIntegerField()
        token = BigIntegerField()
        state = CharField(max_length=10)
        close_reason = CharField(max_length=10, null=True)
        venue_id = CharField(max_length=64, null=True)
        misses = IntegerField(default=0)
        created_ms = BigIntegerField()
        updated_ms = BigIntegerField()

        class Meta:
            table_name = "orders"
            indexes = ((("wallet", "expires_ms"), True),)

    class Cycle(Row):
        id = primary_key()
        task_id = IntegerField(index=True)
        time_ms = BigIntegerField()
        action = TextField()
        error = TextField(null=True)
        detail = TextField()

        class Meta:
            table_name = "cycles"

    class WalletContents(Row):
        address = CharField(max_length=90, primary_key=True)
        items = TextField()
        fetched_ms = BigIntegerField()

        class Meta:
            table_name = "wallet_contents"

    class Inscription(Row):
        id = CharField(max_length=80, primary_key=True)
        collection_id = CharField(max_length=200, null=True)
        detail = TextField(null=True)
        fetched_ms = BigIntegerField()

        class Meta:
            table_name = "inscriptions"

    def partial_index(model: Any, name: str, *fields: Any, where: Any, unique: bool = False) -> None:
        model.add_index(model.index(*fields, unique=unique, where=where, name=name))

    alive = BiddingTask.deleted_ms.is_null()
    partial_index(
        BiddingTask, "bidding_tasks_user_slug", BiddingTask.user, BiddingTask.slug_key, where=alive, unique=True
    )
    alive = AutolistTask.deleted_ms.is_null()
    partial_index(
        AutolistTask,
        "autolist_tasks_user_inscription",
        AutolistTask.user,
        AutolistTask.inscription_id,
        where=alive,
        unique=True,
    )
    partial_index(Order, "orders_open", Order.user_id, Order.task_id, where=Order.state != "closed")
    db.create_tables(
        [
            User,
            Whitelist,
            Subscription,
            Challenge,
            Session,
            BiddingTask,
            AutolistTask,
            Order,
            Cycle,
            WalletContents,
            Inscription,
        ]
    )
