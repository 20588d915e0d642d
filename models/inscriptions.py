"""A cache of venues' answers about wallets and inscriptions. It holds JSON text as the server made it."""

from __future__ import annotations

from peewee import BigIntegerField, CharField, TextField

from models.base import Row, transaction


class WalletContents(Row):
    """The inscriptions at one address."""

    address = CharField(max_length=90, primary_key=True)
    items = TextField()
    fetched_ms = BigIntegerField()

    class Meta:
        table_name = "wallet_contents"


class Inscription(Row):
    """One inscription: its collection, if known, and its details, if they were read."""

    id = CharField(max_length=80, primary_key=True)
    collection_id = CharField(max_length=200, null=True)
    detail = TextField(null=True)
    fetched_ms = BigIntegerField()

    class Meta:
        table_name = "inscriptions"


def cached_wallet(address: str, newer_than_ms: int) -> str | None:
    """Returns the stored items at `address`, unless they are older than `newer_than_ms`."""
    return (
        WalletContents.select(WalletContents.items)
        .where(WalletContents.address == address, WalletContents.fetched_ms > newer_than_ms)
        .scalar()
    )


def store_wallet(address: str, items: str, collections: dict[str, str | None], now_ms: int) -> None:
    """Stores the items of `address`, and each inscription's collection."""
    with transaction():
        new = WalletContents.insert(address=address, items=items, fetched_ms=now_ms)
        new.on_conflict(
            conflict_target=[WalletContents.address], preserve=[WalletContents.items, WalletContents.fetched_ms]
        ).execute()
        for inscription_id, collection_id in collections.items():
            _store(inscription_id, now_ms, collection_id=collection_id)


def cached_inscription(inscription_id: str, newer_than_ms: int) -> str | None:
    """Returns the stored details, unless they are older than `newer_than_ms`."""
    return (
        Inscription.select(Inscription.detail)
        .where(Inscription.id == inscription_id, Inscription.fetched_ms > newer_than_ms)
        .scalar()
    )


def store_inscription(inscription_id: str, detail: str, collection_id: str | None, now_ms: int) -> None:
    """Stores the details of one inscription."""
    with transaction():
        _store(inscription_id, now_ms, collection_id=collection_id, detail=detail)


def _store(inscription_id: str, now_ms: int, *, collection_id: str | None, detail: str | None = None) -> None:
    known = Inscription.get_or_none(Inscription.id == inscription_id)
    if known is None:
        Inscription.create(id=inscription_id, collection_id=collection_id, detail=detail, fetched_ms=now_ms)
        return
    changes: dict[str, object] = {}
    if collection_id is not None:
        changes["collection_id"] = collection_id
    if detail is not None:
        changes |= {"detail": detail, "fetched_ms": now_ms}
    if changes:
        Inscription.update(**changes).where(Inscription.id == inscription_id).execute()


def collection_of(inscription_id: str) -> str | None:
    """Returns the inscription's collection, if it was fetched earlier."""
    return Inscription.select(Inscription.collection_id).where(Inscription.id == inscription_id).scalar()
