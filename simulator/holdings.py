"""The holders of inscriptions, in the wallets and on the chain alike; a listing ends with its output."""

from __future__ import annotations

from simulator.bitcoin.chain import script_of
from simulator.engine import Engine
from simulator.wallets import Item


def hold(engine: Engine, address: str, items: list[Item]) -> None:
    """Makes `items` all that the wallet of `address` holds; any other item vanishes from the chain too."""
    kept = {item.id for item in items}
    for inscription in engine.wallets.inscriptions.pop(address, {}):
        if inscription not in kept:
            engine.chain.forget(inscription)
            end_listing(engine, inscription, "the inscription is gone")
    for item in items:
        give(engine, item, address)


def give(engine: Engine, item: Item, to: str) -> None:
    """Puts `item` into the wallet of `to`, on an output of its own; if it is there already, it stays."""
    coin = engine.chain.coin_of(item.id)
    if coin is None or coin.output.script_pubkey != script_of(to):
        send(engine, item, to)
        return
    engine.wallets.move(item, to)
    engine.changes += 1


def send(engine: Engine, item: Item, to: str, *, confirmed: bool = True) -> None:
    """Puts `item` on a new output of `to`, even the holder's own."""
    engine.wallets.move(item, to)
    engine.chain.place(item.id, to, confirmed=confirmed)
    end_listing(engine, item.id, "the inscription was moved")
    engine.changes += 1


def end_listing(engine: Engine, inscription: str, reason: str) -> None:
    """Cancels every signed listing of an inscription whose output is spent."""
    for ask in engine.asks_of(inscription):
        if ask.outpoint:
            engine.cancel(ask, reason)
