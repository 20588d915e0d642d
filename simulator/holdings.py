"""The holdings of addresses: coins, inscriptions with their outputs, and the known items of a collection.

A balance in `wallets` decides: an address gets coins of that sum at the first request for them, and the coins follow
the balance from then on.
"""

from __future__ import annotations

from embit.transaction import Transaction, TransactionOutput
from msgspec import Struct

from simulator.chain import Chain, Coin, address_of, outpoint_of, script_of, spent_together
from simulator.engine import Engine, Market, Order
from simulator.wallets import Item, name_of, number_of


def coins(engine: Engine, owner: str) -> list[Coin]:
    """Returns the unspent outputs of `owner` without assets, oldest first; they sum to the balance."""
    found = _held(engine.chain, owner)
    missing = engine.wallets.balance(owner) - sum(coin.value for coin in found)
    if missing > 0:
        engine.chain.mint(f"play money {owner}", [(missing, owner)], {})
    elif missing < 0:
        _spend(engine.chain, owner, found, -missing)
    else:
        return found
    engine.changes += 1
    return _held(engine.chain, owner)


def follow(engine: Engine, owner: str) -> None:
    """Adjusts the coins of `owner` to a changed balance, if there are any."""
    if _held(engine.chain, owner):
        coins(engine, owner)


def set_coins(engine: Engine, owner: str, values: list[int]) -> list[Coin]:
    engine.wallets.set_balance(owner, 0)
    coins(engine, owner)
    engine.wallets.set_balance(owner, sum(values))
    if values:
        engine.chain.mint(f"play money {owner}", [(value, owner) for value in values], {})
    engine.changes += 1
    return _held(engine.chain, owner)


def settle(engine: Engine, tx: Transaction, held: dict[int, tuple[str, ...]], *, confirmed: bool = True) -> str:
    """Adds a signed transaction to the chain and updates balances; `held`: inscriptions by output. Returns the txid."""
    for source in tx.vin:
        coin = engine.chain.coins.get(outpoint_of(source))
        if coin is not None and coin.spent_by is None and coin.address and _is_money(coin):
            engine.wallets.debit(coin.address, coin.value)
    txid = engine.chain.add(tx, held, confirmed=confirmed)
    for at, output in enumerate(tx.vout):
        to = address_of(output.script_pubkey)
        if to is not None and not held.get(at):
            engine.wallets.credit(to, output.value)
    engine.changes += 1
    return txid


def _held(chain: Chain, owner: str) -> list[Coin]:
    return [coin for coin in chain.unspent(owner) if _is_money(coin)]


def _is_money(coin: Coin) -> bool:
    return not coin.inscriptions and not coin.runes


def _spend(chain: Chain, owner: str, found: list[Coin], sats: int) -> None:
    """Spends as few coins as possible to pay `sats`; the rest returns as change."""
    chosen: list[Coin] = []
    for coin in sorted(found, key=lambda coin: -coin.value):
        if sum(each.value for each in chosen) >= sats:
            break
        chosen.append(coin)
    change = sum(coin.value for coin in chosen) - sats
    outputs = [TransactionOutput(sats, script_of("the recipient of the sats"))]
    if change:
        outputs.append(TransactionOutput(change, script_of(owner)))
    chain.add(spent_together([coin.outpoint for coin in chosen], outputs), {})


def hold(engine: Engine, address: str, items: list[Item]) -> None:
    """Sets the inscriptions of `address` to `items`; its other items vanish from the chain too."""
    kept = {item.id for item in items}
    for inscription in engine.wallets.inscriptions.pop(address, {}):
        if inscription not in kept:
            engine.chain.forget(inscription)
            end_listing(engine, inscription, "the inscription is gone")
    for item in items:
        give(engine, item, address)


def give(engine: Engine, item: Item, to: str) -> None:
    """Puts `item` into the wallet of `to`, on its own output; keeps the output if `to` already holds it."""
    coin = engine.chain.coin_of(item.id)
    if coin is None or coin.output.script_pubkey != script_of(to):
        send(engine, item, to)
        return
    engine.wallets.move(item, to)
    engine.changes += 1


def send(engine: Engine, item: Item, to: str, *, confirmed: bool = True) -> None:
    """Moves `item` to a new output of `to`, even if `to` holds it already."""
    engine.wallets.move(item, to)
    engine.chain.place(item.id, to, confirmed=confirmed)
    end_listing(engine, item.id, "the inscription was moved")
    engine.changes += 1


def end_listing(engine: Engine, inscription: str, reason: str) -> None:
    """Cancels every signed listing of an inscription whose output is spent."""
    for ask in engine.asks_of(inscription):
        if ask.outpoint:
            engine.cancel(ask, reason)


class Member(Struct, frozen=True):
    """An inscription of a collection with its holder, and its open listing if there is one."""

    item: Item
    owner: str
    ask: Order | None


def members(engine: Engine, market: Market, venue: str) -> list[Member]:
    """Returns all known inscriptions of a collection, listed or in a play wallet, lowest number first."""
    found: dict[str, Member] = {}
    for owner, held in engine.wallets.inscriptions.items():
        for item in held.values():
            if item.collection == market.slug:
                found[item.id] = Member(item, owner, None)
    for ask in market.best("ask", engine.now_ms(), venue):
        if ask.inscription is None:
            continue
        known = found.get(ask.inscription)
        if known is None or known.ask is None:
            found[ask.inscription] = Member(known.item if known else item_of(ask), ask.maker, ask)
    return sorted(found.values(), key=lambda member: (member.item.number, member.item.id))


def known_item(engine: Engine, inscription: str) -> Item | None:
    """Returns an inscription that is in a play wallet or listed at any venue; None for others."""
    held = engine.wallets.holder_of(inscription)
    if held is not None:
        return held[1]
    ask = engine.ask_of(inscription)
    return None if ask is None else item_of(ask)


def item_of(ask: Order) -> Item:
    """Returns a listing's inscription with made-up details, because no play wallet holds it."""
    assert ask.inscription is not None
    return Item(ask.inscription, ask.slug, name_of(ask.slug, ask.inscription), ask.traits, number_of(ask.inscription))
