"""Listings of inscriptions that play wallets hold: drafted, signed by the seller, checked, put into the book."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from embit.ec import ECError, PublicKey
from embit.transaction import TransactionOutput

from simulator.bitcoin.chain import Coin, script_of
from simulator.engine import Engine
from simulator.listing.psbt import Drafts, drafts, read, read_signed
from simulator.orders import Market, Order, Refusal
from simulator.wallets import Item


@dataclass(frozen=True, slots=True)
class AskTerms:
    """The terms of a listing: `price` in sats, `receive` the address that is paid.

    `internal_key` is the seller's x-only key in hex, empty when not told. It is listed at `venue`.
    """

    inscription: str
    price: int
    seller: str
    receive: str
    internal_key: str = ""
    venue: str = "satflow"


Cause = Literal["unknown", "holder", "unconfirmed", "crowded", "script", "key"]


class Unlistable(Refusal):
    """An inscription that cannot be listed as asked; the error names the fault, for venues that have a code for it."""

    def __init__(self, cause: Cause, text: str) -> None:
        super().__init__(text)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Signed:
    """The signed PSBTs of a seller, in base64; `unsigned` and `secure` may be empty."""

    plain: str
    unsigned: str
    secure: tuple[str, ...]


def draft(engine: Engine, terms: AskTerms) -> Drafts:
    """Drafts the PSBTs that list an inscription. Raises Refusal when this seller cannot list it now."""
    coin, _ = holding(engine, terms)
    kept = terms.price * engine.seller_fee_ppm // 1_000_000
    payout = TransactionOutput(terms.price - kept + coin.value, script_of(terms.receive))
    return drafts(coin, payout, terms.internal_key)


def list_signed(engine: Engine, terms: AskTerms, signed: Signed, visible_ms: int = 0) -> Order:
    """Enters a signed listing, in place of the inscription's older one, or notes the reason and raises Refusal."""
    try:
        coin, item = holding(engine, terms)
        wanted = draft(engine, terms)
        sale = read_signed(signed.plain, wanted.plain, "signedListingPSBT")
        if signed.unsigned and read(signed.unsigned, "unsignedListingPSBT").tx.serialize() != sale.unsigned():
            raise Refusal("signedListingPSBT is not unsignedListingPSBT signed")
        if len(signed.secure) > 1:
            raise Refusal("signedSecureListingPSBTs must have one PSBT at most")
        for secure in signed.secure:
            read_signed(secure, wanted.secure, "signedSecureListingPSBTs[0]")
    except Refusal as refusal:
        refuse(engine, terms, str(refusal))
        raise
    former = engine.ask_of(item.id, terms.venue)
    if former is not None:
        engine.cancel(former, "listed again")
    market = engine.market("ordinals", item.collection) or engine.open_market("ordinals", item.collection)
    order = ask_order(engine, market, item, terms)
    order.outpoint, order.psbt, order.visible_ms = coin.outpoint, signed.plain, visible_ms
    order.signature = sale.signature.hex()
    engine.enter(market, order)
    return order


def refuse(engine: Engine, terms: AskTerms, reason: str) -> None:
    """Notes a refused listing."""
    holder = engine.wallets.holder_of(terms.inscription)
    item = holder[1] if holder else Item(terms.inscription, "", "")
    market = engine.market("ordinals", item.collection) or Market("ordinals", item.collection, item.collection)
    engine.record("refused", ask_order(engine, market, item, terms), reason)


def ask_order(engine: Engine, market: Market, item: Item, terms: AskTerms) -> Order:
    """Makes a listing that is in no book yet, without an id: the book gives one."""
    return Order(
        order_id="",
        sequence=0,
        kind="ordinals",
        side="ask",
        slug=market.slug,
        maker=terms.seller,
        receive=terms.receive,
        price=terms.price,
        quantity=Decimal(1),
        unit_price=Decimal(terms.price),
        placed_ms=engine.now_ms(),
        traits=item.traits,
        inscription=item.id,
        origin="dialect",
        venue=terms.venue,
    )


def holding(engine: Engine, terms: AskTerms) -> tuple[Coin, Item]:
    """Returns the seller's output with the inscription, and its item. Raises Unlistable."""
    holder, coin = engine.wallets.holder_of(terms.inscription), engine.chain.coin_of(terms.inscription)
    if holder is None or coin is None:
        raise Unlistable("unknown", "inscription not found")
    if holder[0] != terms.seller:
        raise Unlistable("holder", "sellerOrdAddress does not hold the inscription")
    if not engine.chain.confirmations(coin.txid):
        raise Unlistable("unconfirmed", "the inscription's output is not confirmed")
    if len(coin.inscriptions) > 1 or coin.runes:
        raise Unlistable("crowded", "the inscription's output holds something else too")
    script = coin.output.script_pubkey
    if script.script_type() != "p2tr":
        raise Unlistable("script", "only inscriptions at a taproot address can be listed here")
    if terms.internal_key and not _is_internal(terms.internal_key, script.data[2:]):
        raise Unlistable("key", "tapInternalKey is not the key of sellerOrdAddress")
    return coin, holder[1]


def _is_internal(key: str, program: bytes) -> bool:
    """Tells whether the x-only `key`, tweaked without any script, is the output key `program` (BIP-341)."""
    try:
        tweaked: bytes = PublicKey.from_xonly(bytes.fromhex(key)).taproot_tweak().xonly()
    except ECError:
        return False
    return tweaked == program
