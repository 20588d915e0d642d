"""The transaction that buys a listing: the seller's signed half with a buyer's inputs and outputs.

The buyer's two small inputs and their sum as output 0 come first, so that the inscription's sat lands on output 1 and
the seller's input and payout stand at the same index, as SINGLE needs it (magiceden-oss/msigner, README).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from embit import script
from embit.ec import PrivateKey
from embit.script import Script, Witness
from embit.transaction import SIGHASH, Transaction, TransactionOutput

from simulator.bitcoin.chain import Chain, Coin
from simulator.bitcoin.taproot import SINGLE_ANYONECANPAY, is_signed
from simulator.bitcoin.transactions import spend
from simulator.rules import Refusal
from simulator.venues.listing import SignedSale

PADDING = 600
FEE = 2_000
SELLER_AT = 2
INSCRIPTION_AT = 1


@dataclass(frozen=True, slots=True)
class Buyer:
    """A buyer with a key and enough money; equal names are the same buyer."""

    name: str

    @property
    def key(self) -> PrivateKey:
        return PrivateKey(hashlib.sha256(f"practice buyer {self.name}".encode()).digest())

    @property
    def payment(self) -> str:
        return str(script.p2wpkh(self.key.get_public_key()).address())

    @property
    def ordinals(self) -> str:
        return str(script.p2tr(self.key.get_public_key()).address())


Opener = Callable[[Transaction, list[TransactionOutput]], Witness]


def complete(chain: Chain, coin: Coin, sale: SignedSale, buyer: Buyer, opened: Opener | None = None) -> Transaction:
    """Completes the signed transaction; the buyer's coins are made on `chain`.

    `opened` makes the witness of the seller's input out of the transaction and the outputs it spends, and raises
    Refusal if it cannot; without it, the witness is the seller's signature. Raises Refusal, and makes nothing, when the
    seller's output is spent or their signature does not hold in it.
    """
    if coin.spent_by is not None:
        raise Refusal("the inscription's output is spent")
    cost = sale.payout.value + 2 * PADDING + FEE
    made = _unsigned(coin, sale, buyer, "0" * 64)
    money = script.p2wpkh(buyer.key.get_public_key())
    spent = [TransactionOutput(value, money) for value in (PADDING, PADDING, cost)]
    spent.insert(SELLER_AT, coin.output)
    if opened is not None:
        opened(made, spent)
    elif not is_signed(made, SELLER_AT, coin.output, sale.signature, SINGLE_ANYONECANPAY):
        raise Refusal("the seller's signature does not hold in the sale")
    values = [PADDING, PADDING, cost]
    funding = chain.mint(f"money of {buyer.name}", [(value, buyer.payment) for value in values], {})
    made = _unsigned(coin, sale, buyer, funding)
    made.vin[SELLER_AT].witness = opened(made, spent) if opened else Witness([sale.signature])
    spends = script.p2pkh_from_p2wpkh(money)
    for at, value in zip((0, 1, 3), values, strict=True):
        made.vin[at].witness = _witness(made, at, spends, value, buyer.key)
    return made


def _unsigned(coin: Coin, sale: SignedSale, buyer: Buyer, funding: str) -> Transaction:
    money, collection = (script.address_to_scriptpubkey(each) for each in (buyer.payment, buyer.ordinals))
    inputs = [spend(f"{funding}:{at}") for at in range(3)]
    inputs.insert(SELLER_AT, sale.source)
    outputs = [
        TransactionOutput(2 * PADDING, money),
        TransactionOutput(coin.value, collection),
        sale.payout,
        TransactionOutput(PADDING, money),
        TransactionOutput(PADDING, money),
    ]
    return Transaction(sale.version, inputs, outputs, sale.locktime)


def _witness(made: Transaction, at: int, spends: Script, value: int, key: PrivateKey) -> Witness:
    digest = made.sighash_segwit(at, spends, value, SIGHASH.ALL)
    return Witness([key.sign(digest).serialize() + bytes([SIGHASH.ALL]), key.get_public_key().sec()])
