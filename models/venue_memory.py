"""Stored answers of venues about inscriptions and wallets, and the counts of keys' calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from peewee import BigIntegerField, CharField, TextField

from models.database.base import Row, opened, transaction, unless_full


class Told(NamedTuple):
    """A venue's facts about an inscription; None = not given."""

    collection_id: str | None
    image_url: str | None


class WalletContents(Row):
    """The inscriptions at one address."""

    address = CharField(max_length=90, primary_key=True)
    items = TextField()
    fetched_ms = BigIntegerField()

    class Meta:
        table_name = "wallet_contents"


class Inscription(Row):
    """One inscription: its collection and its picture's address, if known, and its details, if they were read."""

    id = CharField(max_length=80, primary_key=True)
    collection_id = CharField(max_length=200, null=True)
    image_url = CharField(max_length=500, null=True)
    detail = TextField(null=True)
    fetched_ms = BigIntegerField()


_HAS_DETAIL = Inscription.detail.is_null(False)
Inscription.add_index(Inscription.index(Inscription.fetched_ms, name="inscriptions_detailed", where=_HAS_DETAIL))


def cached_wallet(address: str, newer_than_ms: int, now_ms: int = 1 << 62) -> str | None:
    """Returns the stored items at `address`; None if missing, too old, or stored by a clock that was ahead."""
    return (
        WalletContents.select(WalletContents.items)
        .where(WalletContents.address == address, WalletContents.fetched_ms > newer_than_ms)
        .where(WalletContents.fetched_ms <= now_ms)
        .scalar()
    )


def store_wallet(address: str, items: str, told: Mapping[str, Told], now_ms: int) -> None:
    """Stores the items of `address`, and the facts about each inscription."""
    with unless_full("an inscription"), transaction():
        new = WalletContents.insert(address=address, items=items, fetched_ms=now_ms)
        new.on_conflict(
            conflict_target=[WalletContents.address], preserve=[WalletContents.items, WalletContents.fetched_ms]
        ).execute()
        for inscription_id, each in told.items():
            _store(inscription_id, now_ms, each)


def cached_inscription(inscription_id: str, newer_than_ms: int, now_ms: int) -> str | None:
    """Returns the stored details; None if missing, too old, or stored by a clock that was ahead."""
    return (
        Inscription.select(Inscription.detail)
        .where(Inscription.id == inscription_id, Inscription.fetched_ms > newer_than_ms)
        .where(Inscription.fetched_ms <= now_ms)
        .scalar()
    )


def store_inscription(inscription_id: str, detail: str, told: Told, now_ms: int) -> None:
    """Stores the details of one inscription."""
    with unless_full("an inscription"), transaction():
        _store(inscription_id, now_ms, told, detail)


def forget_details(until_ms: int) -> None:
    """Deletes the details that were fetched up to `until_ms`; the inscriptions' collections stay stored."""
    Inscription.update(detail=None).where(_HAS_DETAIL, Inscription.fetched_ms <= until_ms).execute()


def _store(inscription_id: str, now_ms: int, told: Told, detail: str | None = None) -> None:
    its = Inscription.id == inscription_id
    changes: dict[str, object] = {name: value for name, value in told._asdict().items() if value is not None}
    if detail is not None or not Inscription.select().where(its).exists():
        changes |= {"detail": detail, "fetched_ms": now_ms}
    if changes and not Inscription.update(**changes).where(its).execute():
        Inscription.create(id=inscription_id, **changes)


def collection_of(inscription_id: str) -> str | None:
    """Returns the inscription's collection, if it was fetched earlier."""
    return Inscription.select(Inscription.collection_id).where(Inscription.id == inscription_id).scalar()


def told_of(inscription_id: str) -> Told | None:
    """Returns the stored facts about the inscription, of any age; None if it was never fetched."""
    found = Inscription.get_or_none(Inscription.id == inscription_id)
    return None if found is None else Told(found.collection_id, found.image_url)


class MonthCount(Row):
    """A venue's count of calls, in the same JSON as in the gateway's file."""

    venue = CharField(max_length=30, primary_key=True)
    kept = TextField()


def kept_of(url: str, venue: str) -> str | None:
    """Returns the venue's stored count, with a new connection. Raises peewee.OperationalError."""
    database = opened(url)
    with database.connection_context():
        row = database.execute_sql("SELECT kept FROM month_counts WHERE venue = %s", [venue]).fetchone()
        return None if row is None else str(row[0])


def keep(url: str, venue: str, text: str) -> None:
    """Stores the venue's count, with a new connection. Raises peewee.OperationalError."""
    database = opened(url)
    with database.connection_context():
        database.execute_sql(
            "INSERT INTO month_counts (venue, kept) VALUES (%s, %s)"
            " ON CONFLICT (venue) DO UPDATE SET kept = excluded.kept",
            [venue, text],
        )
