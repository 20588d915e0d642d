"""Listings at ord.net: a seller signs three transactions for one inscription; none is sent before a sale.

From "Sale PSBT Construction": TX1 moves the inscription to an output that seller and venue share, TX2 sells it from
there, TX3 brings it back. Two guesses: the payout goes to the payment address, a hundredth less than the price, and the
recovery pays no fee.
"""

from __future__ import annotations

from dataclasses import dataclass

from embit import script
from embit.transaction import SIGHASH, Transaction, TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.leaf_output import LEAF_VERSION, LeafOutput
from simulator.bitcoin.psbt import Map
from simulator.bitcoin.psbt_write import TAP_INTERNAL_KEY, TAP_LEAF_SCRIPT, TAP_MERKLE_ROOT, Unsigned, spends
from simulator.bitcoin.taproot import SINGLE_ANYONECANPAY
from simulator.bitcoin.transactions import script_of, spend
from simulator.engine import Engine
from simulator.orders import Market, Order
from simulator.rules import Refusal
from simulator.venues.listing import AskTerms, ask_order, holding, read
from simulator.venues.ordnet.offers import new_id
from simulator.venues.scripts import DEFAULT, ORDNET, key_path_witness, leaf_signature, passthrough_output, practice_key
from simulator.venues.sessions import Session
from simulator.wallets.wallets import Item

SELLER_FEE_BPS = 100
LEAST_PRICE = 1_000
ANCHOR = practice_key("practice market ord.net anchors")
# Sats of an anchor, and its part that pays for TX1 at a tenth of a sat per vbyte.
ANCHOR_SATS, ANCHOR_FEE = 1_000, 25


@dataclass(frozen=True, slots=True)
class Draft:
    """The listing of one inscription, to be signed; `anchor` is the venue's coin that pays for TX1."""

    terms: AskTerms
    coin: Coin
    item: Item
    anchor: Coin
    passthrough: LeafOutput
    payout: TransactionOutput

    @property
    def transfer(self) -> Transaction:
        """The first transaction, TX1."""
        outputs = [
            TransactionOutput(self.coin.value, self.passthrough.script),
            TransactionOutput(self.anchor.value - ANCHOR_FEE, self.anchor.output.script_pubkey),
        ]
        return Transaction(2, [spend(self.coin.outpoint), spend(self.anchor.outpoint)], outputs)

    @property
    def passed(self) -> str:
        """The outpoint of TX1 that holds the inscription."""
        return f"{self.transfer.txid().hex()}:0"

    @property
    def settlement(self) -> Transaction:
        """The seller's half of TX2."""
        return Transaction(2, [spend(self.passed)], [self.payout])

    def transfer_to_sign(self) -> Unsigned:
        own = spends(self.coin.output, DEFAULT) | {TAP_INTERNAL_KEY: self.passthrough.internal}
        return Unsigned(self.transfer, [own, spends(self.anchor.output)])

    def settlement_to_sign(self) -> Unsigned:
        leaf = {TAP_LEAF_SCRIPT + self.passthrough.control_block: self.passthrough.leaf + bytes([LEAF_VERSION])}
        return Unsigned(self.settlement, [self.passing(SINGLE_ANYONECANPAY) | leaf])

    def passing(self, sighash: int) -> Map:
        """Returns the fields of an input that spends the output of TX1."""
        told = {TAP_INTERNAL_KEY: self.passthrough.internal, TAP_MERKLE_ROOT: self.passthrough.leaf_hash}
        return spends(TransactionOutput(self.coin.value, self.passthrough.script), sighash) | told


def draft(engine: Engine, session: Session, key: bytes, wanted: list[tuple[str, int]]) -> list[Draft]:
    """Drafts the listings of inscriptions at their prices, by the x-only key. Raises Unlistable when one cannot be
    listed.
    """
    found = []
    for inscription, price in wanted:
        terms = AskTerms(inscription, price, session.ordinals, session.payment, key.hex(), ORDNET)
        coin, item = holding(engine, terms)
        payout = TransactionOutput(price - price * SELLER_FEE_BPS // 10_000, script_of(session.payment))
        found.append((terms, coin, item, payout))
    anchors = _anchors(engine, len(found))
    output = passthrough_output(key)
    return [
        Draft(terms, coin, item, anchor, output, payout)
        for (terms, coin, item, payout), anchor in zip(found, anchors, strict=True)
    ]


def recovery(drafts: list[Draft]) -> Transaction:
    """Makes TX3, one for all drafts: every inscription goes back to its place."""
    outputs = [TransactionOutput(each.coin.value, each.coin.output.script_pubkey) for each in drafts]
    return Transaction(3, [spend(each.passed) for each in drafts], outputs)


def recovery_to_sign(drafts: list[Draft]) -> Unsigned:
    return Unsigned(recovery(drafts), [each.passing(SIGHASH.ALL) for each in drafts])


def signed_recovery(drafts: list[Draft], text: str) -> str:
    """Returns the whole recovery in hex. Raises Refusal when `text` is not it, signed at every input."""
    psbt = read(text, "signedRecoveryPsbt")
    if psbt.tx.serialize() != recovery(drafts).serialize():
        raise Refusal("signedRecoveryPsbt is not the one of the preflight")
    spent = [TransactionOutput(each.coin.value, each.passthrough.script) for each in drafts]
    made = recovery(drafts)
    for at in range(len(drafts)):
        made.vin[at].witness = key_path_witness(psbt, at, spent, (SIGHASH.ALL,))
    return str(made.serialize().hex())


def signed_order(engine: Engine, made: Draft, transfer: str, settlement: str, back: str) -> Order:
    """Makes the listing of two signed PSBTs, not in the book yet; `back` is the recovery in hex. Raises Refusal."""
    first, second = read(transfer, "step 0"), read(settlement, "step 1")
    if first.tx.serialize() != made.transfer.serialize() or second.tx.serialize() != made.settlement.serialize():
        raise Refusal("a signed step is not the one of the preflight")
    witness = key_path_witness(first, 0, [made.coin.output, made.anchor.output])
    signature = leaf_signature(second, 0, made.passthrough, made.coin.value, made.passthrough.internal)
    market = engine.market("ordinals", made.item.collection)
    market = market or engine.open_market("ordinals", made.item.collection)
    order = unsigned_order(engine, market, made)
    order.order_id, order.outpoint, order.psbt = new_id(engine), made.coin.outpoint, settlement
    order.signature = signature.hex()
    whole = made.transfer
    whole.vin[0].witness, whole.vin[1].witness = witness, _anchor_witness(made)
    # The needs of a sale: the whole TX1, and the parts of its output. And TX3, which brings it back.
    order.papers = (whole.serialize().hex(), made.passthrough.internal.hex(), made.passthrough.leaf.hex(), back)
    return order


def unsigned_order(engine: Engine, market: Market, made: Draft) -> Order:
    """Makes the order without id and signature, as a refused one is noted."""
    return ask_order(engine, market, made.item, made.terms)


def stale(engine: Engine, made: Draft) -> bool:
    """Tells whether the inscription has moved since the preflight."""
    coin = engine.chain.coin_of(made.item.id)
    return coin is None or coin.outpoint != made.coin.outpoint or coin.spent_by is not None


def _anchors(engine: Engine, count: int) -> list[Coin]:
    owner = str(script.p2tr(ANCHOR.get_public_key()).address())
    txid = engine.chain.mint("ord.net anchors", [(ANCHOR_SATS, owner)] * count, {})
    return [engine.chain.coins[f"{txid}:{at}"] for at in range(count)]


def _anchor_witness(made: Draft) -> script.Witness:
    spent = [made.coin.output, made.anchor.output]
    digest = made.transfer.sighash_taproot(1, [o.script_pubkey for o in spent], [o.value for o in spent], DEFAULT)
    return script.Witness([ANCHOR.taproot_tweak(b"").schnorr_sign(digest).serialize()])
