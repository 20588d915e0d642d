"""Transfers without a sale: an item in its escrow, as after a purchase that fell out of the mempools."""

from __future__ import annotations

from simulator.bitcoin.chain import Coin, address_of, parse
from simulator.engine import Engine
from simulator.orders import Order, Refusal

_RECOVERY = 3  # its place in the papers of a listing at ord.net


def strand(engine: Engine, ask: Order, *, confirmed: bool, ends: bool) -> Coin:
    """Sends the transfer of a listing; returns the escrow. Raises Refusal when it was sent.

    The item stays for sale there unless the listing `ends`.
    """
    coin = engine.chain.coins[ask.outpoint]
    if coin.spent_by is not None or not ask.papers[0]:
        raise Refusal("the inscription's output is spent, or it is in the escrow already")
    txid = engine.chain.add(parse(ask.papers[0]), {0: coin.inscriptions}, confirmed=confirmed)
    if ends:
        engine.cancel(ask, "stranded")
    ask.outpoint, ask.papers = f"{txid}:0", ("", *ask.papers[1:])
    return _moved(engine, ask)


def give_back(engine: Engine, ask: Order, *, confirmed: bool) -> Coin:
    """Sends the recovery of a listing whose item is in its escrow, and ends the listing. Raises Refusal."""
    coin = engine.chain.coins[ask.outpoint]
    if len(ask.papers) <= _RECOVERY:
        raise Refusal("the venue has no recovery: it is the seller's own")
    if coin.spent_by is not None or ask.papers[0]:
        raise Refusal("the inscription is not in the escrow")
    txid = engine.chain.add(parse(ask.papers[_RECOVERY]), {0: coin.inscriptions}, confirmed=confirmed)
    engine.cancel(ask, "given back")
    ask.outpoint = f"{txid}:0"
    return _moved(engine, ask)


def _moved(engine: Engine, ask: Order) -> Coin:
    found = engine.chain.coins[ask.outpoint]
    held, to = engine.wallets.holder_of(ask.inscription or ""), address_of(found.output.script_pubkey)
    if held is not None and to is not None:
        engine.wallets.move(held[1], to)
    engine.changes += 1
    return found
