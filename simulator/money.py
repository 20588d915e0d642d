"""The money of an address as outputs of the play chain, for its owner's transactions.

Balances are numbers in `wallets` and stay the master: the coins of an address are made at the first request for them,
and follow the number from then on.
"""

from __future__ import annotations

from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.chain import Chain, Coin, address_of, outpoint_of, script_of, spent_together
from simulator.engine import Engine


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
    """Makes the coins of `owner` follow a changed balance, if there are any."""
    if _held(engine.chain, owner):
        coins(engine, owner)


def set_coins(engine: Engine, owner: str, values: list[int]) -> list[Coin]:
    """Makes coins of these sats all the money of `owner`, and returns them."""
    engine.wallets.set_balance(owner, 0)
    coins(engine, owner)
    engine.wallets.set_balance(owner, sum(values))
    if values:
        engine.chain.mint(f"play money {owner}", [(value, owner) for value in values], {})
    engine.changes += 1
    return _held(engine.chain, owner)


def settle(engine: Engine, tx: Transaction, held: dict[int, tuple[str, ...]], *, confirmed: bool = True) -> str:
    """Puts a signed transaction on the chain; balances follow. `held`: its outputs' inscriptions. Returns the txid."""
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
    """Takes `sats` away by spending as few coins as possible; the rest comes back as change."""
    chosen: list[Coin] = []
    for coin in sorted(found, key=lambda coin: -coin.value):
        if sum(each.value for each in chosen) >= sats:
            break
        chosen.append(coin)
    change = sum(coin.value for coin in chosen) - sats
    outputs = [TransactionOutput(sats, script_of("whoever took it"))]
    if change:
        outputs.append(TransactionOutput(change, script_of(owner)))
    chain.add(spent_together([coin.outpoint for coin in chosen], outputs), {})
