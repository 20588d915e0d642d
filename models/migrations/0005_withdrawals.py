"""Withdrawals: a user's money on its way out, from coins set aside to the block that moves them. Frozen."""

from typing import Any

from peewee import SQL, BigIntegerField, CharField, IntegerField, Model, TextField

from models.base import primary_key


def up(migrator: Any, db: Any) -> None:
    class Row(Model):
        class Meta:
            database = db
            legacy_table_names = False

    class Withdrawal(Row):
        id = primary_key()
        intent = CharField(max_length=40, unique=True)
        user_id = IntegerField()
        source = CharField(max_length=10)
        venue = CharField(max_length=30, null=True)
        inscription_id = CharField(max_length=80, null=True)
        destination = CharField(max_length=90)
        request = TextField()
        coins = TextField()
        sent_sats = BigIntegerField(null=True)
        fee_sats = BigIntegerField(null=True)
        txid = CharField(max_length=64, null=True)
        state = CharField(max_length=10)
        reason = CharField(max_length=400, null=True)
        created_ms = BigIntegerField()
        updated_ms = BigIntegerField()

        class Meta:
            table_name = "withdrawals"

    is_open = Withdrawal.state.not_in([SQL("'confirmed'"), SQL("'refused'")])
    Withdrawal.add_index(Withdrawal.index(Withdrawal.user_id, Withdrawal.id, name="withdrawals_user"))
    Withdrawal.add_index(Withdrawal.index(Withdrawal.user_id, name="withdrawals_open", where=is_open))
    db.create_tables([Withdrawal])
