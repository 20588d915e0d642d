"""Listings in one PSBT of the plain form: every input, an inscription's output, pays the output with its number.

The payout is the price alone; the sats of the inscription's output go with it to the buyer.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from embit.transaction import Transaction, TransactionOutput

from simulator.bitcoin.chain import Coin, outpoint_of, script_of
from simulator.bitcoin.taproot import SINGLE_ANYONECANPAY, is_signed
from simulator.engine import Engine
from simulator.listing.listings import AskTerms, ask_order, holding, refuse
from simulator.listing.psbt import Draft, SignedSale, encode_sale
from simulator.orders import Order, Refusal
from simulator.wallets import Item


def draft_plain(engine: Engine, wanted: Sequence[AskTerms]) -> Draft:
    """Drafts the PSBT that lists all of `wanted`, one seller's. Raises Unlistable when one cannot be listed now."""
    coins = tuple(holding(engine, terms)[0] for terms in wanted)
    payouts = tuple(_payout(terms) for terms in wanted)
    return Draft(coins, payouts, SINGLE_ANYONECANPAY, tuple(range(len(coins))), wanted[0].internal_key)


def check_plain(engine: Engine, terms: AskTerms, sale: SignedSale) -> tuple[Coin, Item]:
    """Returns the coin and item that a signed half sells, if it agrees with `terms`. Else notes why and raises
    Refusal.
    """
    try:
        coin, item = holding(engine, terms)
        _check(sale, coin, terms)
    except Refusal as refusal:
        refuse(engine, terms, str(refusal))
        raise
    return coin, item


def list_plain(
    engine: Engine,
    terms: AskTerms,
    sale: SignedSale,
    *,
    order_id: str = "",
    visible_ms: int = 0,
    note: str = "listed again",
) -> Order:
    """Enters one signed half, in place of the inscription's older listing at that venue, whose end is noted so.

    Raises Refusal as `check_plain` does.
    """
    coin, item = check_plain(engine, terms, sale)
    for former in engine.asks_of(item.id):
        if former.at(terms.venue):
            engine.cancel(former, note)
    market = engine.market("ordinals", item.collection) or engine.open_market("ordinals", item.collection)
    order = ask_order(engine, market, item, terms)
    order.order_id, order.outpoint, order.visible_ms = order_id, coin.outpoint, visible_ms
    order.psbt, order.signature = encode_sale(sale, coin), sale.signature.hex()
    engine.enter(market, order)
    return order


def base64_of(digits: str, name: str) -> str:
    """Converts a PSBT from hex to base64. Raises Refusal, which calls it `name`, if it is not hex."""
    try:
        return b64encode(bytes.fromhex(digits)).decode()
    except ValueError:
        raise Refusal(f"{name} is not hex") from None


def _payout(terms: AskTerms) -> TransactionOutput:
    return TransactionOutput(terms.price, script_of(terms.receive))


def _check(sale: SignedSale, coin: Coin, terms: AskTerms) -> None:
    payout = _payout(terms)
    if outpoint_of(sale.source) != coin.outpoint:
        raise Refusal(f"the PSBT does not spend the inscription's output {coin.outpoint}")
    if sale.payout.script_pubkey != payout.script_pubkey:
        raise Refusal("the PSBT does not pay the address that was asked for")
    if sale.payout.value != payout.value:
        raise Refusal(f"the PSBT pays {sale.payout.value} sats instead of the price, {payout.value}")
    if sale.signature[64:] != bytes([SINGLE_ANYONECANPAY]):
        raise Refusal("the PSBT is not signed with sighash 0x83")
    half = Transaction(sale.version, [sale.source], [sale.payout], sale.locktime)
    if not is_signed(half, 0, coin.output, sale.signature, SINGLE_ANYONECANPAY):
        raise Refusal("the PSBT has an invalid signature")
