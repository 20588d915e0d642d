"""The funding parent of an offer: the buyer's coins go to the offer's output and back to the buyer, without a fee.

From ord.net's documents: a transaction of version 3 that is not broadcast before the offer is filled, with the offer's
output first and an OP_RETURN that helps to find it again. The change as the last output is a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

from embit.script import Script, Witness
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.leaf_output import LeafOutput
from simulator.bitcoin.psbt import Map, Psbt
from simulator.bitcoin.psbt_write import Unsigned, spends
from simulator.bitcoin.transactions import script_of, spend
from simulator.engine import Engine
from simulator.money import coins
from simulator.rules import Refusal
from simulator.venues.scripts import announcement, payment_witness, redeem
from simulator.wire import ApiError, bad

MAX_COINS = 50
# Less would be dust that no node relays.
LEAST_CHANGE = 330

Spendable = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Parent:
    """The unsigned funding parent of one offer."""

    offer: LeafOutput
    price: int
    coins: tuple[Coin, ...]
    payment: str

    @property
    def transaction(self) -> Transaction:
        outputs = [TransactionOutput(self.price, self.offer.script), TransactionOutput(0, announcement(self.offer))]
        change = sum(coin.value for coin in self.coins) - self.price
        if change:
            outputs.append(TransactionOutput(change, script_of(self.payment)))
        return Transaction(3, [spend(coin.outpoint) for coin in self.coins], outputs)

    @property
    def comes_back(self) -> int:
        """The number of the buyer's output: the change, or the offer's own if there is none."""
        return 2 if len(self.transaction.vout) > 2 else 0

    @property
    def txid(self) -> str:
        return str(self.transaction.txid().hex())

    def to_sign(self, public_key: bytes) -> Unsigned:
        """Returns the PSBT that the payment key must sign at every input."""
        return Unsigned(self.transaction, [self._fields(coin, public_key) for coin in self.coins])

    def _fields(self, coin: Coin, public_key: bytes) -> Map:
        script_sig = redeem(coin.output, public_key).data
        return spends(coin.output) | ({b"\x04": script_sig[1:]} if script_sig else {})

    def signed(self, psbt: Psbt, public_key: bytes) -> Transaction:
        """Returns the whole transaction from the signed PSBT. Raises Refusal for another one or an unsigned one."""
        if psbt.tx.serialize() != self.transaction.serialize():
            raise Refusal("the signed funding parent is not the one of the preflight")
        spent = [coin.output for coin in self.coins]
        witnesses = [payment_witness(psbt, at, spent, public_key) for at in range(len(spent))]
        return with_witnesses(psbt.tx, witnesses, [redeem(own, public_key) for own in spent])


def with_witnesses(tx: Transaction, witnesses: list[Witness], script_sigs: list[Script]) -> Transaction:
    """Returns `tx` with its witnesses and script sigs in place."""
    inputs = [
        TransactionInput(source.txid, source.vout, script_sig, source.sequence, witness)
        for source, witness, script_sig in zip(tx.vin, witnesses, script_sigs, strict=True)
    ]
    return Transaction(tx.version, inputs, tx.vout, tx.locktime)


def spendable(engine: Engine, payment: str, named: list[Spendable]) -> list[Coin]:
    """Returns the coins that a request names by outpoint and sats. Raises ApiError.

    400 for one that is not a coin of `payment` with that value, or is not confirmed; 409 when it is spent.
    """
    coins(engine, payment)
    found = []
    for outpoint, sats in named:
        coin = engine.chain.coins.get(outpoint)
        if coin is None or coin.output.script_pubkey != script_of(payment) or coin.value != sats:
            raise bad(f"spendableUtxos: {outpoint} is not an output of the payment address with {sats} sats")
        if coin.inscriptions or coin.runes:
            raise bad(f"spendableUtxos: {outpoint} holds an inscription or runes")
        if coin.spent_by is not None:
            raise ApiError(409, f"{outpoint} is spent")
        if not engine.chain.confirmations(coin.txid):
            raise bad(f"spendableUtxos: {outpoint} is not confirmed")
        found.append(coin)
    return found


def select(found: list[Coin], sats: int) -> tuple[Coin, ...]:
    """Selects the fewest coins that pay `sats`, without change that would be dust. Raises ApiError(400)."""
    chosen: list[Coin] = []
    for coin in sorted(found, key=lambda coin: -coin.value):
        chosen.append(coin)
        left = sum(each.value for each in chosen) - sats
        if left == 0 or left >= LEAST_CHANGE:
            if len(chosen) > MAX_COINS:
                break
            return tuple(chosen)
    raise bad(f"spendableUtxos do not cover {sats} sats, or not with {MAX_COINS} of them")
