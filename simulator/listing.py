"""Listings of inscriptions in play wallets: drafted, signed by the seller, checked, and put into the book."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Literal

from embit.script import Witness
from embit.transaction import Transaction, TransactionInput, TransactionOutput
from msgspec import Struct
from msgspec.structs import replace

from simulator.chain import Coin, outpoint_of, script_of, spend
from simulator.engine import Engine, Market, Order, Refusal, Side
from simulator.taproot import (
    ALL_ANYONECANPAY,
    FINAL_SCRIPTWITNESS,
    SINGLE_ANYONECANPAY,
    TAP_INTERNAL_KEY,
    TAP_KEY_SIG,
    Map,
    Psbt,
    Unsigned,
    is_signed,
    parse,
    spends,
)
from simulator.venue_scripts import is_internal
from simulator.wallets import Item

# PSBTs: drafts for the seller, and their signed forms


class Draft(Struct, frozen=True):
    """A PSBT to sign: the outputs that it spends and pays, and the inputs to sign, with sighash and x-only key."""

    coins: tuple[Coin, ...]
    outputs: tuple[TransactionOutput, ...]
    sighash: int
    to_sign: tuple[int, ...] = (0,)
    internal_key: str = ""

    @property
    def transaction(self) -> Transaction:
        return Transaction(2, [spend(coin.outpoint) for coin in self.coins], list(self.outputs))

    def encode(self) -> str:
        key = {TAP_INTERNAL_KEY: bytes.fromhex(self.internal_key)} if self.internal_key else {}
        inputs = [
            spends(coin.output, self.sighash) | key if at in self.to_sign else spends(coin.output)
            for at, coin in enumerate(self.coins)
        ]
        return Unsigned(self.transaction, inputs).encode()


class Drafts(Struct, frozen=True):
    """The two forms of one listing: any buyer can fill the plain one; the secure one covers all outputs."""

    plain: Draft
    secure: Draft


def drafts(coin: Coin, payout: TransactionOutput, internal_key: str) -> Drafts:
    """Drafts both forms with one input, `coin`, and one output, `payout`."""
    plain = Draft((coin,), (payout,), SINGLE_ANYONECANPAY, internal_key=internal_key)
    return Drafts(plain, replace(plain, sighash=ALL_ANYONECANPAY))


class SignedSale(Struct, frozen=True):
    """A seller's half of a sale: the signed input, and the output that it pays to."""

    version: int
    locktime: int
    source: TransactionInput
    payout: TransactionOutput
    signature: bytes

    @property
    def transaction(self) -> Transaction:
        return Transaction(self.version, [self.source], [self.payout], self.locktime)


def read_signed(text: str, draft: Draft, name: str) -> SignedSale:
    """Reads the signed form of `draft` from base64. Raises Refusal, calling it `name`, for any other PSBT."""
    psbt = read(text, name)
    tx, wanted = psbt.tx, draft.transaction
    if len(tx.vin) != 1 or len(tx.vout) != 1:
        raise Refusal(f"{name} must have one input and one output")
    source, payout = tx.vin[0], tx.vout[0]
    if source.txid != wanted.vin[0].txid or source.vout != wanted.vin[0].vout:
        raise Refusal(f"{name} does not spend the inscription's output {draft.coins[0].outpoint}")
    if payout.script_pubkey != wanted.vout[0].script_pubkey:
        raise Refusal(f"{name} does not pay sellerReceiveAddress")
    if payout.value != wanted.vout[0].value:
        raise Refusal(f"{name} pays {payout.value} sats instead of price and postage, {wanted.vout[0].value}")
    signature = psbt.inputs[0].get(TAP_KEY_SIG)
    if FINAL_SCRIPTWITNESS in psbt.inputs[0]:
        raise Refusal(f"{name} is finalized: it must be signed only")
    if signature is None:
        raise Refusal(f"{name} is not signed")
    if signature[64:] != bytes([draft.sighash]):
        raise Refusal(f"{name} is not signed with sighash 0x{draft.sighash:02x}")
    if not is_signed(tx, 0, draft.coins[0].output, signature, draft.sighash):
        raise Refusal(f"{name} has an invalid signature")
    return SignedSale(tx.version, tx.locktime, source, payout, signature)


def signed_sale(text: str) -> SignedSale:
    """Reads the seller's half from a PSBT that `read_signed` accepted or `encode_sale` wrote."""
    return signed_sales(text, "the listing")[0]


def signed_sales(text: str, name: str) -> list[SignedSale]:
    """Reads the halves in a PSBT, signed or finalized: input N pays output N. Raises Refusal."""
    psbt = read(text, name)
    tx = psbt.tx
    if len(tx.vin) != len(tx.vout):
        raise Refusal(f"{name} must have as many outputs as inputs")
    signatures = [signature_of(fields) for fields in psbt.inputs]
    if not all(signatures):
        raise Refusal(f"{name} is not signed")
    return [SignedSale(tx.version, tx.locktime, *half) for half in zip(tx.vin, tx.vout, signatures, strict=True)]


def encode_sale(sale: SignedSale, coin: Coin) -> str:
    """Encodes only this half, which sells `coin`, as a PSBT in base64."""
    signed = spends(coin.output) | {FINAL_SCRIPTWITNESS: Witness([sale.signature]).serialize()}
    return Unsigned(sale.transaction, [signed]).encode()


def signature_of(fields: Map) -> bytes:
    """Returns a taproot input's key path signature, finalized or not; empty without one."""
    witness = fields.get(FINAL_SCRIPTWITNESS, b"")
    # One item of 64 or 65 bytes: a count, a length, the item.
    if len(witness) in (66, 67) and witness[:2] == bytes([1, len(witness) - 2]):
        return witness[2:]
    return fields.get(TAP_KEY_SIG, b"")


def read(text: str, name: str) -> Psbt:
    """Reads any PSBT. Raises Refusal, calling it `name`, if it is invalid."""
    try:
        return parse(text)
    except ValueError as error:
        raise Refusal(f"{name} is not a PSBT in base64: {error}") from None


def read_drafted(text: str, name: str, tx: Transaction, step: str) -> Psbt:
    """Reads the signed PSBT of `tx`, which an earlier `step` drafted. Raises Refusal for another PSBT."""
    psbt = read(text, name)
    if psbt.tx.serialize() != tx.serialize():
        raise Refusal(f"{name} is not the one of the {step}")
    return psbt


class AskTerms(Struct, frozen=True):
    """The terms of a listing: `receive` is paid; `internal_key` is the seller's, x-only in hex, or empty."""

    inscription: str
    price: int
    seller: str
    receive: str
    internal_key: str = ""
    venue: str = "satflow"


Cause = Literal["unknown", "holder", "unconfirmed", "crowded", "script", "key"]


class Unlistable(Refusal):
    """An inscription cannot be listed as requested; `cause` is for venues that have a code for it."""

    def __init__(self, cause: Cause, text: str) -> None:
        super().__init__(text)
        self.cause = cause


class Signed(Struct, frozen=True):
    plain: str
    unsigned: str
    secure: tuple[str, ...]


def draft(engine: Engine, terms: AskTerms) -> Drafts:
    coin, _ = holding(engine, terms)
    kept = terms.price * engine.seller_fee_ppm // 1_000_000
    payout = TransactionOutput(terms.price - kept + coin.value, script_of(terms.receive))
    return drafts(coin, payout, terms.internal_key)


def list_signed(engine: Engine, terms: AskTerms, signed: Signed, visible_ms: int = 0) -> Order:
    """Enters a signed listing in place of the inscription's older one, or records the reason and raises Refusal."""
    try:
        coin, item = holding(engine, terms)
        wanted = draft(engine, terms)
        sale = read_signed(signed.plain, wanted.plain, "signedListingPSBT")
        if (
            signed.unsigned
            and read(signed.unsigned, "unsignedListingPSBT").tx.serialize() != sale.transaction.serialize()
        ):
            raise Refusal("signedListingPSBT is not unsignedListingPSBT signed")
        if len(signed.secure) > 1:
            raise Refusal("signedSecureListingPSBTs must have one PSBT at most")
        for secure in signed.secure:
            read_signed(secure, wanted.secure, "signedSecureListingPSBTs[0]")
    except Refusal as refusal:
        refuse(engine, terms, str(refusal))
        raise
    formers = former_asks(engine, terms)[:1]
    kept = {"outpoint": coin.outpoint, "psbt": signed.plain, "signature": sale.signature.hex()}
    return enter_ask(engine, terms, item, formers, visible_ms=visible_ms, **kept)


def former_asks(engine: Engine, terms: AskTerms) -> list[Order]:
    """Returns the open listings at the venue that a new one replaces, oldest first."""
    return [ask for ask in engine.asks_of(terms.inscription) if ask.at(terms.venue)]


def enter_ask(
    engine: Engine, terms: AskTerms, item: Item, formers: list[Order], *, note: str = "listed again", **kept: Any
) -> Order:
    """Enters a checked listing in place of `formers`, and records their end; `kept` are further fields of the order."""
    for former in formers:
        engine.cancel(former, note)
    market = market_of(engine, item)
    order = replace(ask_order(engine, market, item, terms), **kept)
    engine.enter(market, order)
    return order


def market_of(engine: Engine, item: Item) -> Market:
    return engine.market("ordinals", item.collection) or engine.open_market("ordinals", item.collection)


def refuse(engine: Engine, terms: AskTerms, reason: str) -> None:
    holder = engine.wallets.holder_of(terms.inscription)
    item = holder[1] if holder else Item(terms.inscription, "", "")
    market = engine.market("ordinals", item.collection) or Market("ordinals", item.collection, item.collection)
    engine.record("refused", ask_order(engine, market, item, terms), reason)


def ask_order(engine: Engine, market: Market, item: Item, terms: AskTerms) -> Order:
    about = {"maker": terms.seller, "receive": terms.receive, "traits": item.traits, "inscription": item.id}
    return client_order(engine, terms.venue, market, "ask", terms.price, **about)


def client_order(engine: Engine, venue: str, market: Market, side: Side, price: int, **more: Any) -> Order:
    """Makes a client's order for one item without an id; the book gives it one when it is entered."""
    numbers: dict[str, Any] = {
        "price": price,
        "quantity": Decimal(1),
        "unit_price": Decimal(price),
        "placed_ms": engine.now_ms(),
    }
    return Order("", 0, "ordinals", side, market.slug, venue=venue, origin="dialect", **numbers, **more)


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
    if terms.internal_key and not is_internal(bytes.fromhex(terms.internal_key), script.data[2:]):
        raise Unlistable("key", "tapInternalKey is not the key of sellerOrdAddress")
    return coin, holder[1]


# The plain form: input N, an inscription's output, pays output N. The payout is only the price, because the buyer gets
# the sats of the inscription's output with it.


def draft_plain(engine: Engine, wanted: Sequence[AskTerms]) -> Draft:
    """Drafts the PSBT that lists all of `wanted`, from one seller. Raises Unlistable if any cannot be listed now."""
    coins = tuple(holding(engine, terms)[0] for terms in wanted)
    payouts = tuple(_payout(terms) for terms in wanted)
    return Draft(coins, payouts, SINGLE_ANYONECANPAY, tuple(range(len(coins))), wanted[0].internal_key)


def check_plain(engine: Engine, terms: AskTerms, sale: SignedSale) -> tuple[Coin, Item]:
    """Returns the coin and item that a signed half sells by `terms`, or records the reason and raises Refusal."""
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
    """Enters one signed half in place of the inscription's older listing at that venue. Raises Refusal."""
    coin, item = check_plain(engine, terms, sale)
    kept = {"outpoint": coin.outpoint, "psbt": encode_sale(sale, coin), "signature": sale.signature.hex()}
    kept |= {"order_id": order_id}
    return enter_ask(engine, terms, item, former_asks(engine, terms), note=note, visible_ms=visible_ms, **kept)


def base64_of(digits: str, name: str) -> str:
    """Converts a PSBT from hex to base64. Raises Refusal, calling it `name`, if it is not hex."""
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
    if not is_signed(sale.transaction, 0, coin.output, sale.signature, SINGLE_ANYONECANPAY):
        raise Refusal("the PSBT has an invalid signature")
