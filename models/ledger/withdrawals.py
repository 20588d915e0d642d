"""The ledger of withdrawals.

A row is on disk, with its coins and the signer's whole request, before anything is signed; its state is `signed`, with
the txid, before anything is sent. So after any crash the withdrawal can be resumed from its row: the signer repeats the
same signature, and sending the same transaction twice is harmless.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict
from peewee import SQL, BigIntegerField, CharField, TextField, fn

from models import outbox
from models.database.base import Row, add_indexes, primary_key, require_sound, transaction
from models.ledger.states import IS_OPEN as ORDER_IS_OPEN
from models.ledger.states import IS_REAL, LISTING_IS_OPEN, NEW, RESERVED, SIGNED, WITHDRAWAL_LIFE, Listing, Order
from models.outbox import WALLET
from models.tasks import tasks
from models.tasks.tasks import LISTING

_LONGEST_REASON = 400


class CoinsTaken(Exception):
    """A refusal: another open withdrawal spends one of these coins."""


class Withdrawal(Row):
    """One withdrawal. `request` is the request to the signer, `coins` are the outputs that it spends (both JSON).

    `sent_sats` arrive at `destination`. `venue` and `inscription_id` are null if they do not apply.
    """

    id = primary_key()
    intent = CharField(max_length=40, unique=True)
    user_id = BigIntegerField()
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

    @property
    def is_open(self) -> bool:
        """Whether it may still change, so that its coins are reserved."""
        return self.state in WITHDRAWAL_LIFE.moves


# Literals, as in the index, because SQLite chooses an index by them.
IS_OPEN = Withdrawal.state.not_in([SQL("'confirmed'"), SQL("'refused'")])
add_indexes(
    ("withdrawals_user", (Withdrawal.user_id, Withdrawal.id), None, False),
    ("withdrawals_open", (Withdrawal.user_id,), IS_OPEN, False),
)


class NewWithdrawal(Struct, frozen=True):
    """A withdrawal to be reserved; see `Withdrawal`."""

    intent: str
    user_id: int
    source: str
    destination: str
    request: str
    coins: tuple[str, ...]
    venue: str | None = None
    inscription_id: str | None = None


def reserve(new: NewWithdrawal, now_ms: int) -> Withdrawal:
    """Stores a withdrawal durably, which reserves its coins. Raises CoinsTaken."""
    values = asdict(new) | {"coins": json.dumps(new.coins), "created_ms": now_ms, "updated_ms": now_ms}
    with transaction(durable=True):
        require_sound()
        if taken_coins(new.user_id) & set(new.coins):
            raise CoinsTaken
        WITHDRAWAL_LIFE.check(NEW, RESERVED)
        row: Withdrawal = Withdrawal.create(**values, state=RESERVED)
        _tell(row, now_ms)
    return row


def taken_coins(user_id: int) -> set[str]:
    """Returns the outputs that the user's open withdrawals spend."""
    rows = Withdrawal.select(Withdrawal.coins).where(Withdrawal.user_id == user_id, IS_OPEN)
    return {coin for row in rows for coin in json.loads(row.coins)}


def coins_behind_bids(user_id: int) -> dict[str, str]:
    """Returns the outputs that pay for the user's open bids at venues whose bids are PSBTs, with the bid's venue."""
    is_its = (Order.user_id == user_id) & (Order.coins != "")
    rows = Order.select(Order.coins, Order.venue).where(is_its, ORDER_IS_OPEN, IS_REAL)
    return {coin: row.venue for row in rows for coin in row.coins.split()}


def signed(row: Withdrawal, txid: str, sent_sats: int, fee_sats: int, now_ms: int) -> bool:
    """Notes the signature durably; returns False if the row has moved meanwhile."""
    return _move(row, SIGNED, now_ms, txid=txid, sent_sats=sent_sats, fee_sats=fee_sats)


def move(row: Withdrawal, state: str, now_ms: int, reason: str | None = None) -> bool:
    """Moves the row from the state in `row`; returns False if it has moved meanwhile. Raises IllegalMove."""
    return _move(row, state, now_ms, reason=None if reason is None else reason[:_LONGEST_REASON])


def _move(row: Withdrawal, state: str, now_ms: int, **values: object) -> bool:
    WITHDRAWAL_LIFE.check(row.state, state, row_id=row.id)
    changed = values | {"state": state, "updated_ms": now_ms}
    with transaction(durable=True):
        moved = bool(Withdrawal.update(changed).where(Withdrawal.id == row.id, Withdrawal.state == row.state).execute())
        if moved:
            for name, value in changed.items():
                setattr(row, name, value)
            _tell(row, now_ms)
    return moved


def _tell(row: Withdrawal, now_ms: int) -> None:
    sent = {"sent": row.sent_sats, "fee": row.fee_sats, "txid": row.txid, "reason": row.reason}
    what = {"withdrawal": row.id, "source": row.source, "inscription_id": row.inscription_id, "state": row.state}
    outbox.tell(WALLET, row.user_id, None, now_ms, what | sent)


def again(row: Withdrawal) -> Withdrawal:
    """Reads the row as it is now."""
    found: Withdrawal = Withdrawal.get_by_id(row.id)
    return found


class Kept(NamedTuple):
    """Obstacles to withdrawing an inscription: a running task that lists it, an open listing."""

    running_task: int | None
    is_listed: bool


def what_keeps(user_id: int, inscription_id: str) -> Kept:
    """Returns the obstacles to withdrawing an inscription of the user, listings of deleted tasks included."""
    mine = (task for task in tasks.of_user(user_id, LISTING) if task.inscription_id == inscription_id)
    running = next((int(task.id) for task in mine if task.is_running), None)
    is_its = (Listing.user_id == user_id) & (Listing.inscription_id == inscription_id)
    return Kept(running, Listing.select(SQL("1")).where(is_its, LISTING_IS_OPEN).exists())


def largest_open_bid(user_id: int, venue: str) -> int:
    """Returns the sats of the user's largest open order at a venue; 0 without one."""
    is_its = (Order.user_id == user_id) & (Order.venue == venue)
    return int(Order.select(fn.MAX(Order.price_sats)).where(is_its, ORDER_IS_OPEN, IS_REAL).scalar() or 0)


def newest(user_id: int, most: int) -> list[Withdrawal]:
    """Returns the user's latest withdrawals, newest first."""
    mine = Withdrawal.select().where(Withdrawal.user_id == user_id)
    return list(mine.order_by(Withdrawal.id.desc()).limit(most))


def open_of(user_id: int) -> list[Withdrawal]:
    """Returns the user's open withdrawals, oldest first."""
    return list(Withdrawal.select().where(IS_OPEN, Withdrawal.user_id == user_id).order_by(Withdrawal.id))


def any_since(user_id: int, since_ms: int) -> bool:
    """Returns whether a withdrawal of the user is open, or has changed since `since_ms`."""
    has_moved = IS_OPEN | (Withdrawal.updated_ms >= since_ms)
    return Withdrawal.select(SQL("1")).where(Withdrawal.user_id == user_id, has_moved).exists()


def ways_home_since(user_id: int, inscription_id: str, since_ms: int) -> int:
    """Counts the inscription's withdrawals from an escrow since `since_ms`, refused ones included."""
    is_its = (Withdrawal.inscription_id == inscription_id) & (Withdrawal.source == "escrow")
    since = (Withdrawal.user_id == user_id) & (Withdrawal.created_ms >= since_ms)
    return int(Withdrawal.select().where(since, is_its).count())


def all_open(now_ms: int, idle_ms: int) -> list[Withdrawal]:
    """Returns all users' open withdrawals that have not changed for `idle_ms`, oldest first.

    A change in the future counts as idle, because the clock was set back since.
    """
    is_idle = (Withdrawal.updated_ms < now_ms - idle_ms) | (Withdrawal.updated_ms > now_ms)
    return list(Withdrawal.select().where(IS_OPEN, is_idle).order_by(Withdrawal.id))
