"""The transactions that fill orders: a listing is bought, an offer is settled, an item is sent into its escrow.

A purchase is the seller's signed half plus a buyer's inputs and outputs. The buyer's two small inputs and their sum as
output 0 come first, so that the inscription's sat lands on output 1, and the seller's input and payout have the same
index, as SINGLE requires (magiceden-oss/msigner, README).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from embit import script
from embit.ec import PrivateKey
from embit.script import Script, Witness
from embit.transaction import SIGHASH, Transaction, TransactionOutput
from msgspec import Struct

from simulator import holdings, venue_scripts
from simulator.chain import Chain, Coin, address_of, parse, script_of, spend
from simulator.engine import Engine, Order, Refusal
from simulator.listing import SignedSale, read
from simulator.taproot import SINGLE_ANYONECANPAY, LeafOutput, is_signed
from simulator.wallets import Item

PADDING = 600
FEE = 2_000
SELLER_AT = 2
INSCRIPTION_AT = 1
_RECOVERY = 3  # its index in the papers of a listing at ord.net
# The venue's share of an offer's price, from the documents' example and settlements on the chain.
OFFER_FEE_BPS = 250
# A placeholder signature, because this chain does not have the seller's key.
_PLACEHOLDER = Witness([bytes(64)])

Opener = Callable[[Transaction, list[TransactionOutput]], Witness]


class Buyer(Struct, frozen=True):
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


def complete(chain: Chain, coin: Coin, sale: SignedSale, buyer: Buyer, opened: Opener | None = None) -> Transaction:
    """Completes the signed transaction with a buyer's coins, made on `chain`. Raises Refusal before it makes any.

    `opened` makes the witness of the seller's input; without it, the witness is the seller's signature.
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


# Sales from an escrow: the transfer that the seller signed is sent, then the sale, signed by seller and venue


def opener(ask: Order, sale: SignedSale) -> Opener:
    """Makes the witness of the seller's input by the sale's leaf: both signatures, the leaf, the control block."""
    seller = bytes.fromhex(ask.papers[1])
    if ask.venue == venue_scripts.ORDNET:
        output, key = LeafOutput(seller, bytes.fromhex(ask.papers[2])), venue_scripts.MARKET
    else:
        output, key = venue_scripts.sale_output(seller), venue_scripts.COSIGNER

    def opened(made: Transaction, spent: list[TransactionOutput]) -> Witness:
        if not venue_scripts.holds_for_leaf(made, SELLER_AT, output, spent[SELLER_AT].value, seller, sale.signature):
            raise Refusal("the seller's signature does not hold in the sale")
        scripts, values = [each.script_pubkey for each in spent], [each.value for each in spent]
        digest = made.sighash_taproot(
            SELLER_AT, scripts, values, venue_scripts.DEFAULT, ext_flag=1, script=output.leaf_script
        )
        venue = key.schnorr_sign(digest).serialize()
        return Witness([venue, sale.signature, output.leaf, output.control_block])

    return opened


def release(engine: Engine, ask: Order, *, confirmed: bool) -> tuple[Coin, SignedSale]:
    """Sends the transfer unless it was sent; returns its output, and the seller's half of the sale from there."""
    coin = engine.chain.coins[ask.outpoint]
    if coin.spent_by is not None:
        raise Refusal("the inscription's output is spent")
    passed = ask.outpoint
    if ask.papers[0]:
        passed = f"{engine.chain.add(parse(ask.papers[0]), {0: coin.inscriptions}, confirmed=confirmed)}:0"
    half = read(ask.psbt, "the listing").tx
    sale = SignedSale(half.version, half.locktime, half.vin[0], half.vout[0], bytes.fromhex(ask.signature))
    return engine.chain.coins[passed], sale


# Transfers without a sale: an item left in its escrow, as after a purchase that fell out of the mempools


def strand(engine: Engine, ask: Order, *, confirmed: bool, ends: bool) -> Coin:
    """Sends a listing's transfer, and ends the listing if `ends`; returns the escrow. Raises Refusal if it was sent."""
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


# Offers at ord.net: the buyer's signed transactions are completed and sent


def settle(engine: Engine, bid: Order, item: Item, seller: str) -> str:
    """Fills an offer with `item` of `seller`; returns the txid of the transaction that delivers it to the buyer."""
    coin = engine.chain.coin_of(item.id) or engine.chain.place(item.id, seller)
    if bid.inscription is not None:
        tx = parse(bid.papers[0])
    else:
        parent = parse(bid.papers[0])
        holdings.settle(engine, parent, {})
        tx = _child(bid, coin, parent, seller)
    tx.vin[0].witness = _PLACEHOLDER
    txid = holdings.settle(engine, tx, {0: coin.inscriptions})
    engine.wallets.move(item, bid.receive)
    return txid


def _child(bid: Order, coin: Coin, parent: Transaction, seller: str) -> Transaction:
    offer = LeafOutput(*map(bytes.fromhex, bid.papers[1:3]))
    paid = parent.vout[0]
    fee = bid.price * OFFER_FEE_BPS // 10_000
    outputs = [
        TransactionOutput(coin.value, script_of(bid.receive)),
        TransactionOutput(bid.price - fee, script_of(seller)),
        TransactionOutput(fee, venue_scripts.fee_script()),
    ]
    tx = Transaction(3, [spend(coin.outpoint), spend(f"{parent.txid().hex()}:0")], outputs)
    scripts, values = [coin.output.script_pubkey, paid.script_pubkey], [coin.value, paid.value]
    digest = tx.sighash_taproot(1, scripts, values, 0, ext_flag=1, script=offer.leaf_script)
    market, gate, enclave = (
        key.schnorr_sign(digest).serialize()
        for key in (venue_scripts.MARKET, venue_scripts.GATE, venue_scripts.ENCLAVE)
    )
    # The signature that is checked last comes first; the empty one is the buyer's.
    secret = bytes.fromhex(bid.papers[3])
    tx.vin[1].witness = Witness([enclave, gate, market, b"", secret, offer.leaf, offer.control_block])
    return tx
