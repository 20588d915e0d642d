"""The PSBTs of a listing: drafts for the seller, and their signed forms."""

from __future__ import annotations

from dataclasses import dataclass, replace

from embit.ec import PublicKey
from embit.psbt import PSBT
from embit.script import Witness
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from simulator.bitcoin.chain import Coin, spend
from simulator.bitcoin.psbt import FINAL_SCRIPTWITNESS, TAP_KEY_SIG, Map, Psbt, parse
from simulator.bitcoin.taproot import ALL_ANYONECANPAY, SINGLE_ANYONECANPAY, is_signed
from simulator.orders import Refusal


@dataclass(frozen=True, slots=True)
class Draft:
    """A PSBT to sign: the outputs it spends and pays, and the inputs to be signed, with their sighash.

    `internal_key` (x-only, hex, may be empty) is given for the inputs to be signed.
    """

    coins: tuple[Coin, ...]
    outputs: tuple[TransactionOutput, ...]
    sighash: int
    to_sign: tuple[int, ...] = (0,)
    internal_key: str = ""

    @property
    def transaction(self) -> Transaction:
        return Transaction(2, [spend(coin.outpoint) for coin in self.coins], list(self.outputs))

    def encode(self) -> str:
        """Returns the PSBT in base64."""
        psbt = PSBT(self.transaction)
        for at, coin in enumerate(self.coins):
            psbt.inputs[at].witness_utxo = coin.output
            if at in self.to_sign:
                psbt.inputs[at].sighash_type = self.sighash
                if self.internal_key:
                    psbt.inputs[at].taproot_internal_key = PublicKey.from_xonly(bytes.fromhex(self.internal_key))
        return str(psbt.to_base64())


@dataclass(frozen=True, slots=True)
class Drafts:
    """The two forms of one listing: the plain one can be filled by any buyer, the secure one covers all outputs."""

    plain: Draft
    secure: Draft


def drafts(coin: Coin, payout: TransactionOutput, internal_key: str) -> Drafts:
    """Drafts one input and one output each: `coin` goes, `payout` comes."""
    plain = Draft((coin,), (payout,), SINGLE_ANYONECANPAY, internal_key=internal_key)
    return Drafts(plain, replace(plain, sighash=ALL_ANYONECANPAY))


@dataclass(frozen=True, slots=True)
class SignedSale:
    """A seller's half of a sale: the signed input, and the output that it pays to."""

    version: int
    locktime: int
    source: TransactionInput
    payout: TransactionOutput
    signature: bytes

    def unsigned(self) -> bytes:
        """Returns the transaction without its signature."""
        raw: bytes = Transaction(self.version, [self.source], [self.payout], self.locktime).serialize()
        return raw


def read_signed(text: str, draft: Draft, name: str) -> SignedSale:
    """Reads the signed form of `draft` from base64. Raises Refusal, which calls it `name`, for anything else."""
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
    """Reads the seller's half from a PSBT that `read_signed` took, or that `encode_sale` wrote."""
    return signed_sales(text, "the listing")[0]


def signed_sales(text: str, name: str) -> list[SignedSale]:
    """Reads the halves of a PSBT, signed or finalized, in which each input pays the output with its number.

    Raises Refusal, which calls the PSBT `name`.
    """
    psbt = read(text, name)
    tx = psbt.tx
    if len(tx.vin) != len(tx.vout):
        raise Refusal(f"{name} must have as many outputs as inputs")
    signatures = [signature_of(fields) for fields in psbt.inputs]
    if not all(signatures):
        raise Refusal(f"{name} is not signed")
    return [SignedSale(tx.version, tx.locktime, *half) for half in zip(tx.vin, tx.vout, signatures, strict=True)]


def encode_sale(sale: SignedSale, coin: Coin) -> str:
    """Encodes this half alone, which sells `coin`, as a PSBT in base64."""
    psbt = PSBT(Transaction(sale.version, [sale.source], [sale.payout], sale.locktime))
    psbt.inputs[0].witness_utxo = coin.output
    psbt.inputs[0].final_scriptwitness = Witness([sale.signature])
    return str(psbt.to_base64())


def signature_of(fields: Map) -> bytes:
    """Returns the key path signature of a taproot input, finalized or not; empty when there is none."""
    witness = fields.get(FINAL_SCRIPTWITNESS, b"")
    # One item of 64 or 65 bytes: a count, a length, the item.
    if len(witness) in (66, 67) and witness[:2] == bytes([1, len(witness) - 2]):
        return witness[2:]
    return fields.get(TAP_KEY_SIG, b"")


def read(text: str, name: str) -> Psbt:
    """Reads any PSBT. Raises Refusal, which calls it `name`, if it is none."""
    try:
        return parse(text)
    except ValueError as error:
        raise Refusal(f"{name} is not a PSBT in base64: {error}") from None
