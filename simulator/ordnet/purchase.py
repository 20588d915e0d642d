"""The purchase of a listing at ord.net: TX1 goes out, and the venue signs the sale together with the seller."""

from __future__ import annotations

from collections.abc import Callable

from embit.script import Witness
from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.transactions import parse
from simulator.engine import Engine
from simulator.listing.psbt import SignedSale, read
from simulator.listing.sale_transaction import SELLER_AT
from simulator.orders import Order
from simulator.ordnet.scripts import MARKET, Output
from simulator.ordnet.signed import DEFAULT, holds_for_leaf
from simulator.rules import Refusal


def release(engine: Engine, ask: Order, *, confirmed: bool) -> tuple[Coin, SignedSale]:
    """Sends TX1, unless that is done; returns the output that it puts the inscription on, and the seller's half of the
    sale from there.
    """
    coin = engine.chain.coins[ask.outpoint]
    if coin.spent_by is not None:
        raise Refusal("the inscription's output is spent")
    passed = ask.outpoint
    if ask.papers[0]:
        passed = f"{engine.chain.add(parse(ask.papers[0]), {0: coin.inscriptions}, confirmed=confirmed)}:0"
    half = read(ask.psbt, "the listing").tx
    sale = SignedSale(half.version, half.locktime, half.vin[0], half.vout[0], bytes.fromhex(ask.signature))
    return engine.chain.coins[passed], sale


def opener(ask: Order, sale: SignedSale) -> Callable[[Transaction, list[TransactionOutput]], Witness]:
    """Makes the witness of the seller's input, by script path: both signatures, the leaf, the control block."""
    output = Output(*map(bytes.fromhex, ask.papers[1:3]))

    def opened(made: Transaction, spent: list[TransactionOutput]) -> Witness:
        value = spent[SELLER_AT].value
        if not holds_for_leaf(made, SELLER_AT, output, value, output.internal, sale.signature):
            raise Refusal("the seller's signature does not hold in the sale")
        scripts, values = [each.script_pubkey for each in spent], [each.value for each in spent]
        digest = made.sighash_taproot(SELLER_AT, scripts, values, DEFAULT, ext_flag=1, script=output.leaf_script)
        market = MARKET.schnorr_sign(digest).serialize()
        return Witness([market, sale.signature, output.leaf, output.control_block])

    return opened
