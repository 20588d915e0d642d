"""Checks of an offer's funding PSBT in their order; each refusal has its rule's tag.

The PSBT is only compared with the intent, with facts from sources independent of the venue, and with our own keys. A
missing fact (None) is a refusal. Nothing here reads a clock, a file or a private key.

Every input is ours, and every signature covers all inputs and outputs: all sats but the escrow's come back, and the
transaction cannot be extended, cut or redirected. The escrow is rebuilt from our own key and the leaf by which the
venue may spend it: our key can take it back alone, and otherwise only the pinned co-signers together, for the price at
most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from core.fields import MAX_SATS
from wallet.protocol import PolicyRefused
from wallet.psbt.common import (
    MOST_BLOCKS_BEHIND,
    OutpointFacts,
    Owner,
    claimed,
    input_unsigned,
    key_path,
    named_sighash,
    psbt_strict,
    tx_form,
)
from wallet.psbt.decode import Map, Psbt
from wallet.psbt.script import TAPSCRIPT, OfferLeaf, leaf_hash, output_script, own_script, read_leaf
from wallet.psbt.transaction import ALL, Outpoint, Transaction, TxOutput, WireError
from wallet.terms import CoSigners


class OfferIntent(Struct, frozen=True):
    """A bid as recorded before the venue is asked: the price in sats, and the coins that may pay it.

    The goods go to `receive_script`. `internal_keys` (x-only) are the user's keys; any of them may own the escrow.
    """

    price_sats: int | None
    expires_ms: int
    coins: frozenset[Outpoint]
    receive_script: bytes
    internal_keys: frozenset[bytes]
    co_signers: CoSigners


class ApprovedOffer(Struct, frozen=True):
    """A PSBT that passed every check, with everything needed to sign it. Made by `check_offer` only.

    `spent` are the outputs its inputs spend, all of them `owner`'s. Escrow and change are in sats.
    """

    psbt: Psbt
    spent: tuple[TxOutput, ...]
    owner: Owner
    escrow: TxOutput
    change_sats: int


# A version 3 transaction cannot be pinned (BIP-431). It pays no fee, and is only broadcast together with one that pays
# for both.
VERSIONS = frozenset({3})
# A venue sets a bid's lifetime in whole hours, counted from its draft.
EXPIRY_GRID_MS = 3_600_000
_OP_RETURN = b"\x6a"

Facts = Mapping[Outpoint, OutpointFacts]


def check_offer(raw: bytes, script: bytes, intent: OfferIntent, facts: Facts, owner: Owner) -> ApprovedOffer:
    """Approves the funding PSBT `raw`, or raises PolicyRefused; the tag is of the first rule that it breaks.

    `script` is the leaf of its escrow, `facts` describe the coins that it may spend; `owner` holds them with a P2WPKH
    key.
    """
    psbt = psbt_strict(raw)
    price = _price(intent)
    leaf = _leaf(script)
    _leaf_terms(leaf, intent, price)
    outpoints = _inputs_reserved(psbt, intent)
    known = _inputs_confirmed(outpoints, facts)
    spent = tuple(_amount_proof(item, each, owner) for item, each in zip(psbt.inputs, known, strict=True))
    tip = _inputs_cardinal(known)
    escrow = TxOutput(price, _escrow_script(leaf.buyer, leaf_hash(script)))
    change = _outputs(psbt.transaction.outputs, escrow, _announcement(leaf.buyer, leaf_hash(script)), owner)
    for item in psbt.inputs:
        _sighash_allowed(item)
    _no_fee(psbt.transaction, spent)
    tx_form(psbt.transaction, tip, versions=VERSIONS)
    for item in psbt.inputs:
        input_unsigned(item)
        key_path(item, owner)
    return ApprovedOffer(psbt, spent, owner, escrow, change)


def _price(intent: OfferIntent) -> int:
    if intent.price_sats is None or not 0 < intent.price_sats <= MAX_SATS:
        raise PolicyRefused("max-bid", "the price is not known, or no price")
    return intent.price_sats


def _leaf(script: bytes) -> OfferLeaf:
    try:
        return read_leaf(script)
    except WireError as error:
        raise PolicyRefused("leaf", str(error)) from None


def _leaf_terms(leaf: OfferLeaf, intent: OfferIntent, price: int) -> None:
    """Refuses a leaf whose terms are not the intent's. The co-signers know the terms from the leaf alone."""
    if leaf.price_sats != price:
        raise PolicyRefused("leaf-terms", f"the leaf is for {leaf.price_sats} sats instead of {price}")
    if leaf.receive_script != intent.receive_script:
        raise PolicyRefused("leaf-terms", "the leaf sends the goods to somebody else")
    if leaf.expires_s * 1000 > intent.expires_ms + EXPIRY_GRID_MS:
        raise PolicyRefused("leaf-terms", f"the leaf is good until {leaf.expires_s}, longer than was asked for")
    if leaf.buyer not in intent.internal_keys:
        raise PolicyRefused("leaf-terms", "the leaf's buyer is not us")
    if leaf.co_signers != intent.co_signers:
        found = ",".join(key.hex() for key in leaf.co_signers)
        raise PolicyRefused("leaf-keys", f"the leaf's co-signers are not the pinned ones, but {found}")


def _inputs_reserved(psbt: Psbt, intent: OfferIntent) -> list[Outpoint]:
    """Returns the spent coins, which must be among the offer's coins, each once."""
    outpoints = [item.outpoint for item in psbt.transaction.inputs]
    if not outpoints:
        raise PolicyRefused("inputs-reserved", "nothing is spent")
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

    A segwit v0 signature covers its own input's amount alone. The facts have all amounts from the bytes of the former
    transactions (wallet/signer/reading.py), so a venue's false amount is refused.
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
    """Returns the chain's lowest known tip. No coin may hold an inscription or rune, by a current index."""
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


def _escrow_script(internal: bytes, leaf: bytes) -> bytes:
    """Returns the output script of our internal key with this leaf only."""
    return output_script(leaf, bytes([TAPSCRIPT]) + internal)


def _announcement(internal: bytes, leaf: bytes) -> TxOutput:
    """Returns the OP_RETURN output with internal key and merkle root, which recovery by our key needs."""
    return TxOutput(0, _OP_RETURN + bytes([len(internal + leaf)]) + internal + leaf)


def _outputs(outputs: Sequence[TxOutput], escrow: TxOutput, announcement: TxOutput, owner: Owner) -> int:
    """Returns the change in sats, 0 if there is none. Refuses outputs other than these and one change, in any order."""
    escrowed = [output.value for output in outputs if output.script == escrow.script]
    announced = [output for output in outputs if output.script[:1] == _OP_RETURN]
    change = [output.value for output in outputs if output.script in owner.destinations]
    if len(escrowed) + len(announced) + len(change) != len(outputs) or len(change) > 1:
        raise PolicyRefused(
            "outputs-known", "an output is neither the leaf's escrow, nor its announcement, nor our one change"
        )
    if escrowed != [escrow.value]:
        raise PolicyRefused("escrow", f"the escrow gets {escrowed} sats for a price of {escrow.value}")
    if announced != [announcement]:
        raise PolicyRefused("escrow", "it is not told, or told wrong, how our key takes the escrow back")
    return sum(change)


def _sighash_allowed(item: Map) -> None:
    """Refuses every sighash except ALL, which is the default of a PSBT that names none (BIP-174)."""
    if named_sighash(item) not in (None, ALL):
        raise PolicyRefused("sighash-allowed", "an input asks for another sighash than ALL")


def _no_fee(transaction: Transaction, spent: Sequence[TxOutput]) -> None:
    """Refuses a fee. Sats missing from the change would be a fee, so too little change is refused, too."""
    fee = sum(output.value for output in spent) - sum(output.value for output in transaction.outputs)
    if fee:
        raise PolicyRefused("fee-abs", f"{fee} sats for the network, where none are due")
