"""Checks of an offer's funding PSBT in their order; each refusal has its rule's tag.

The PSBT is only compared with the intent, with facts from sources independent of the venue, and with our own keys. A
missing fact (None) is a refusal. Nothing here reads a clock, a file or a private key.

Every input is ours, and every signature covers all inputs and outputs: all sats but the escrow's come back or go to the
network, and nobody can add to it, take from it or redirect it. The venue decides how the escrow may be spent: only a
hash of its leaves is seen here, so the price bounds the loss through them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embit.ec import PublicKey

from wallet.policy import PolicyRefused
from wallet.protocol import MAX_SATS
from wallet.psbt.common import (
    MOST_BLOCKS_BEHIND,
    claimed,
    input_unsigned,
    key_path,
    named_sighash,
    psbt_strict,
    tx_form,
)
from wallet.psbt.decode import Map, Psbt
from wallet.psbt.listing import PPM, OutpointFacts, Owner
from wallet.psbt.offer import ApprovedOffer, OfferIntent
from wallet.psbt.offer_template import EscrowKind, OfferTemplate
from wallet.psbt.rules import x_only
from wallet.psbt.script import own_script
from wallet.psbt.sighash import ALL
from wallet.psbt.transaction import Outpoint, Transaction, TxOutput, WireError

_PROGRAMS: dict[bytes, EscrowKind] = {b"\x51\x20": "p2tr", b"\x00\x20": "p2wsh"}
_PROGRAM_BYTES = 34
# OP_RETURN and a push of 64 bytes: an x-only internal key and a merkle root.
_ANNOUNCES = b"\x6a\x40"
_ANNOUNCEMENT_BYTES = 66
# The usual witness of a P2WPKH input: two lengths and a count, a signature of 71 bytes, a key of 33.
_WITNESS_BYTES = 107

Facts = Mapping[Outpoint, OutpointFacts]


def check_offer(
    raw: bytes, intent: OfferIntent, facts: Facts, template: OfferTemplate | None, owner: Owner
) -> ApprovedOffer:
    """Approves the funding PSBT `raw`, or raises Refused; the tag is of the first rule that it breaks.

    `facts` describe the coins that it may spend; `owner` holds them with a P2WPKH key.
    """
    template = op_allowed(template, intent.venue)
    psbt = psbt_strict(raw)
    price = _price(intent)
    outpoints = _inputs_reserved(psbt, intent, template)
    known = _inputs_confirmed(outpoints, facts)
    spent = tuple(_amount_proof(item, each, owner) for item, each in zip(psbt.inputs, known, strict=True))
    tip = _inputs_cardinal(known)
    escrow, change = _outputs(psbt.transaction.outputs, template, owner, price)
    if template.is_announced:
        _announced(psbt.transaction.outputs, intent.vault_key)
    for item in psbt.inputs:
        _sighash_allowed(item)
    fee = _fee(psbt.transaction, spent, template, price)
    tx_form(psbt.transaction, tip, versions=template.versions, sequences=template.sequences)
    for item in psbt.inputs:
        input_unsigned(item)
        key_path(item, owner)
    return ApprovedOffer(psbt, spent, owner, escrow, change, fee)


def op_allowed(template: OfferTemplate | None, venue: str) -> OfferTemplate:
    """Returns the template, which must be this venue's."""
    if template is None or template.venue != venue:
        raise PolicyRefused("op-allowed", "no template captured: it is not known what this venue's offers look like")
    return template


def _price(intent: OfferIntent) -> int:
    if intent.price_sats is None or not 0 < intent.price_sats <= MAX_SATS:
        raise PolicyRefused("max-bid", "the price is not known, or no price")
    return intent.price_sats


def _inputs_reserved(psbt: Psbt, intent: OfferIntent, template: OfferTemplate) -> list[Outpoint]:
    """Returns the coins spent: some of those reserved for this offer, each once."""
    outpoints = [item.outpoint for item in psbt.transaction.inputs]
    if not 0 < len(outpoints) <= template.max_inputs:
        raise PolicyRefused("inputs-reserved", f"{len(outpoints)} inputs instead of 1 to {template.max_inputs}")
    if len(set(outpoints)) != len(outpoints):
        raise PolicyRefused("inputs-reserved", "one output is spent twice")
    if not intent.coins.issuperset(outpoints):
        raise PolicyRefused("inputs-reserved", "an input is none of the coins that were chosen to pay")
    return outpoints


def _inputs_confirmed(outpoints: Sequence[Outpoint], facts: Facts) -> list[OutpointFacts]:
    known = []
    for outpoint in outpoints:
        each = facts.get(outpoint)
        if each is None or each.outpoint != outpoint:
            raise PolicyRefused("inputs-confirmed", "nothing is known of a coin that is to be spent")
        if each.is_unspent is not True or each.is_confirmed is not True:
            raise PolicyRefused("inputs-confirmed", "a coin is spent, not confirmed, or not known to be neither")
        known.append(each)
    return known


def _amount_proof(item: Map, facts: OutpointFacts, owner: Owner) -> TxOutput:
    """Returns the output an input spends; facts, our own key and the PSBT must agree on it.

    A segwit v0 signature covers the amount it was made for, here the facts' amount: a venue that lies gets a refusal,
    and if the facts are wrong as well, an invalid signature.
    """
    if facts.value_sats is None or facts.script is None:
        raise PolicyRefused("amount-proof", "the value or the script of a coin is not known")
    spent = TxOutput(facts.value_sats, facts.script)
    if owner.kind != "p2wpkh" or spent.script != own_script(owner.kind, owner.public_key):
        raise PolicyRefused("amount-proof", "a coin is not held by our key")
    said = claimed(item, facts.outpoint)
    if not said or any(output != spent for output in said):
        raise PolicyRefused("amount-proof", "the PSBT does not say what an input spends, or says it wrong")
    return spent


def _inputs_cardinal(known: Sequence[OutpointFacts]) -> int:
    """Returns the chain's tip. No coin may hold an inscription or a rune, by an index that is not behind."""
    tips = []
    for facts in known:
        if facts.tip_height is None or facts.index_height is None:
            raise PolicyRefused("inputs-cardinal", "it is not known how far the index is behind")
        if facts.tip_height - facts.index_height > MOST_BLOCKS_BEHIND:
            raise PolicyRefused("inputs-cardinal", "the index is behind the chain")
        if facts.inscriptions != ():
            raise PolicyRefused("inputs-cardinal", "a coin holds an inscription, or that is not known")
        if facts.runes != ():
            raise PolicyRefused("inputs-cardinal", "a coin holds runes, or that is not known")
        tips.append(facts.tip_height)
    return min(tips)


def _outputs(outputs: Sequence[TxOutput], template: OfferTemplate, owner: Owner, price: int) -> tuple[TxOutput, int]:
    """Returns the escrow, and the change in sats; the outputs must be the template's, but change may be missing."""
    if sum(output.value for output in outputs) > MAX_SATS:
        raise PolicyRefused("outputs-known", "the outputs pay more than there are bitcoin")
    known = ["escrow", *(["announcement"] if template.is_announced else []), "change"]
    kinds = [_kind(output, template, owner) for output in outputs]
    if kinds not in (known, known[:-1]):
        if sorted(kinds) in (sorted(known), sorted(known[:-1])):
            raise PolicyRefused("outputs-order", "the outputs are not in the template's order")
        raise PolicyRefused("outputs-known", "an output is not the template's, or one is missing")
    escrow = outputs[0]
    if not price <= escrow.value <= template.most_escrowed(price):
        raise PolicyRefused("escrow", f"the escrow gets {escrow.value} sats for a price of {price}")
    return escrow, sum(output.value for output in outputs[1:])


def _kind(output: TxOutput, template: OfferTemplate, owner: Owner) -> str:
    """Returns the output's kind: `change` pays the coins' own address, `escrow` a script of the venue's kind."""
    if output.script in owner.destinations:
        return "change"
    if output.script[:2] == _ANNOUNCES and len(output.script) == _ANNOUNCEMENT_BYTES and output.value == 0:
        return "announcement"
    kind = _PROGRAMS.get(output.script[:2]) if len(output.script) == _PROGRAM_BYTES else None
    if kind not in template.escrow_kinds or output.script in owner.scripts:
        return "unknown"
    if kind == "p2tr":
        try:
            x_only(output.script[2:])
        except WireError:
            raise PolicyRefused("escrow", "what is paid to the escrow could never be spent again") from None
    return "escrow"


def _announced(outputs: Sequence[TxOutput], vault_key: bytes) -> None:
    """Refuses an escrow that is not the announced one, or not the vault's to spend alone by key path (BIP-341)."""
    told = outputs[1].script[2:]
    internal, merkle_root = told[:32], told[32:]
    if internal != vault_key[1:]:
        raise PolicyRefused("escrow", "the escrow that is announced is not the vault's to take back")
    output_key = PublicKey.from_xonly(internal).taproot_tweak(merkle_root).xonly()
    if outputs[0].script[2:] != output_key:
        raise PolicyRefused("escrow", "the escrow is another one than is announced")


def _sighash_allowed(item: Map) -> None:
    """Refuses every sighash but ALL, which a PSBT that names none also asks for (BIP-174)."""
    if named_sighash(item) not in (None, ALL):
        raise PolicyRefused("sighash-allowed", "an input asks for another sighash than ALL")


def _fee(transaction: Transaction, spent: Sequence[TxOutput], template: OfferTemplate, price: int) -> int:
    """Returns the network's sats. What does not come back as change is among them, so change is never too little."""
    fee = sum(output.value for output in spent) - sum(output.value for output in transaction.outputs)
    if fee < 0:
        raise PolicyRefused("fee-abs", "the coins do not pay for the outputs")
    if fee > template.max_fee_rate * _vsize(transaction):
        raise PolicyRefused("fee-rate", f"{fee} sats are more than {template.max_fee_rate} sat/vB")
    if fee > template.max_fee_sats:
        raise PolicyRefused("fee-abs", f"{fee} sats for the network are more than {template.max_fee_sats}")
    if fee > price * template.max_fee_ppm // PPM:
        raise PolicyRefused("fee-share", f"{fee} sats for the network are too much for a price of {price}")
    return fee


def _vsize(transaction: Transaction) -> int:
    """Returns the virtual bytes of the transaction once signed (BIP-141), rounded up."""
    weight = 4 * len(transaction.encode()) + 2 + _WITNESS_BYTES * len(transaction.inputs)
    return -(-weight // 4)
