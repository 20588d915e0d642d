"""Protected listings"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from dataclasses import dataclass, replace

from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.leaf_output import LEAF_VERSION, LeafOutput
from simulator.bitcoin.psbt_write import SIGHASH_TYPE, TAP_INTERNAL_KEY, TAP_LEAF_SCRIPT, Unsigned, spends
from simulator.bitcoin.taproot import SINGLE_ANYONECANPAY
from simulator.bitcoin.transactions import script_of, spend
from simulator.engine import Engine
from simulator.orders import Order
from simulator.rules import Refusal
from simulator.venues.listing import AskTerms, ask_order, base64_of, holding, read, refuse
from simulator.venues.poison import THIEFS_KEY, Poison, another
from simulator.venues.poison import spoiled as spoiled_half
from simulator.venues.scripts import key_path_witness, leaf_signature, recovery_leaf, sale_output
from simulator.wallets.wallets import Item

LEAST_POSTAGE = 330
TRANSFER_FEE = 12
_WHOLE = (0x00, 0x01)  # sighashes that cover all


@dataclass(frozen=True, slots=True)
class Draft:
    """The listing of one inscription, to be signed."""

    terms: AskTerms
    coin: Coin
    item: Item

    @property
    def seller(self) -> bytes:
        """The x-only key of the seller."""
        return bytes.fromhex(self.terms.internal_key)

    @property
    def escrow(self) -> LeafOutput:
        return sale_output(self.seller)

    @property
    def held(self) -> TransactionOutput:
        """The escrow's output."""
        short = self.coin.value - TRANSFER_FEE
        return TransactionOutput(short if short >= LEAST_POSTAGE else self.coin.value, self.escrow.script)

    @property
    def transfer(self) -> Transaction:
        """The first transaction."""
        return Transaction(2, [spend(self.coin.outpoint)], [self.held])

    @property
    def sale(self) -> Transaction:
        """The seller's half of the second one."""
        payout = TransactionOutput(self.terms.price, script_of(self.terms.receive))
        return Transaction(2, [spend(f"{self.transfer.txid().hex()}:0")], [payout])

    @property
    def digest(self) -> str:
        """The name of this draft, which its signed form must repeat."""
        return hashlib.sha256(self.transfer.serialize() + self.sale.serialize()).hexdigest()

    def to_sign(self) -> tuple[Unsigned, Unsigned]:
        """Returns the PSBTs of transfer and sale."""
        transfer = Unsigned(self.transfer, [spends(self.coin.output) | {TAP_INTERNAL_KEY: self.seller}])
        leaf = {TAP_LEAF_SCRIPT + self.escrow.control_block: self.escrow.leaf + bytes([LEAF_VERSION])}
        about = spends(self.held, SINGLE_ANYONECANPAY) | leaf | {TAP_INTERNAL_KEY: self.escrow.internal}
        return transfer, Unsigned(self.sale, [about])


def draft(engine: Engine, terms: AskTerms) -> Draft:
    """Drafts a listing. Raises Unlistable when it cannot be listed now."""
    coin, item = holding(engine, terms)
    return Draft(terms, coin, item)


def list_protected(engine: Engine, made: Draft, transfer: str, sale: str, *, visible_ms: int = 0) -> Order:
    """Enters a listing of two signed PSBTs (hex), in place of the inscription's former one there, or notes the reason
    and raises Refusal.
    """
    try:
        witness = _transferred(made, transfer)
        encoded, signature = _sold(made, sale)
    except Refusal as refusal:
        refuse(engine, made.terms, str(refusal))
        raise
    for former in engine.asks_of(made.item.id):
        if former.at(made.terms.venue):
            engine.cancel(former, "listed again")
    market = engine.market("ordinals", made.item.collection) or engine.open_market("ordinals", made.item.collection)
    order = ask_order(engine, market, made.item, made.terms)
    order.outpoint, order.psbt, order.visible_ms = made.coin.outpoint, encoded, visible_ms
    order.signature, order.papers = signature.hex(), (witness, made.seller.hex())
    engine.enter(market, order)
    return order


def _transferred(made: Draft, text: str) -> str:
    """Returns the whole transfer in hex."""
    psbt = read(base64_of(text, "psbt"), "psbt")
    if psbt.tx.serialize() != made.transfer.serialize():
        raise Refusal("psbt is not the one of the draft")
    whole = made.transfer
    whole.vin[0].witness = key_path_witness(psbt, 0, [made.coin.output], _WHOLE)
    return str(whole.serialize().hex())


def _sold(made: Draft, text: str) -> tuple[str, bytes]:
    """Returns the seller's half in base64, and its signature."""
    encoded = base64_of(text, "sale_psbt")
    psbt = read(encoded, "sale_psbt")
    if psbt.tx.serialize() != made.sale.serialize():
        raise Refusal("sale_psbt is not the one of the draft")
    return encoded, leaf_signature(psbt, 0, made.escrow, made.held.value, made.seller)


def as_hex(psbt: Unsigned) -> str:
    """Returns a PSBT in hex."""
    return b64decode(psbt.encode()).hex()


# The evils of the step that moves the inscription; the others are of the one that sells it.
_OF_THE_TRANSFER = frozenset({"other_outpoint", "two_inputs", "extra_output", "extra_input"})


def spoiled(made: Draft, poison: Poison | None, engine: Engine) -> tuple[Unsigned, Unsigned]:
    """Returns the PSBTs of transfer and sale with `poison` applied."""
    transfer, sale = made.to_sign()
    match poison:
        case "escrow_theirs":
            held = TransactionOutput(made.held.value, sale_output(THIEFS_KEY).script)
            return _paying(transfer, held), sale
        case "escrow_short":
            return _paying(transfer, TransactionOutput(made.held.value - 1, made.held.script_pubkey)), sale
        case "sale_by_key" | "recovery_theirs":
            return transfer, _by_another_leaf(sale, made, poison)
        case None:
            return transfer, sale
    other = another(engine, made.terms.seller, {made.coin.outpoint})
    if poison in _OF_THE_TRANSFER:
        transfer = spoiled_half(transfer, poison, 0, other)
    else:
        sale = spoiled_half(sale, poison, 0, other)
    return transfer, sale


def _paying(shown: Unsigned, output: TransactionOutput) -> Unsigned:
    tx = shown.tx
    return replace(shown, tx=Transaction(tx.version, tx.vin, [output, *tx.vout[1:]], tx.locktime))


def _by_another_leaf(sale: Unsigned, made: Draft, poison: Poison) -> Unsigned:
    """Asks for a signature by the recovery leaf under `recovery_theirs`, or without any leaf."""
    fields = {name: value for name, value in sale.inputs[0].items() if not name.startswith(TAP_LEAF_SCRIPT)}
    if poison == "recovery_theirs":
        leaf = recovery_leaf(made.seller)
        back = LeafOutput(made.escrow.internal, leaf, made.escrow.leaf_hash)
        fields[TAP_LEAF_SCRIPT + back.control_block] = leaf + bytes([LEAF_VERSION])
        assert SIGHASH_TYPE in fields
    return replace(sale, inputs=[fields])
