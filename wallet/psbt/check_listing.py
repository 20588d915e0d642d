"""Checks of a venue's listing PSBT in their order; each refusal has its rule's tag.

The PSBT is only compared with the intent, with facts from sources independent of the venue, and with our own keys. A
missing fact (None) is a refusal. Nothing here reads a clock, a file or a private key.

There is no network fee to bound: with ANYONECANPAY the buyer's inputs are not covered, so the buyer's fee is not our
money. The payout's rule makes sure that our own value comes back.
"""

from __future__ import annotations

from wallet.address import AddressError, parse
from wallet.policy import PolicyRefused
from wallet.protocol import MAX_SATS
from wallet.psbt import fields
from wallet.psbt.decode import Map, Psbt, decode, encode, key_type
from wallet.psbt.listing import ApprovedListing, ListingIntent, OutpointFacts, Owner
from wallet.psbt.listing_template import MOST_POSTAGE, PPM, DelistTemplate, ListingTemplate, Payout
from wallet.psbt.offer_template import OfferTemplate
from wallet.psbt.rules import LOCKTIME_IS_A_TIME
from wallet.psbt.script import own_script, redeem_script, script_of
from wallet.psbt.sighash import ANYONECANPAY, SINGLE
from wallet.psbt.transaction import Outpoint, TxOutput, WireError, compact, decode_network, decode_output

MAX_BYTES = 32 * 1024
MOST_BLOCKS_BEHIND = 1

# Fields of an input that is signed already, and fields that allow a spend without our key path.
_SIGNATURES = frozenset(
    {
        fields.IN_PARTIAL_SIG,
        fields.IN_FINAL_SCRIPTSIG,
        fields.IN_FINAL_SCRIPTWITNESS,
        fields.IN_TAP_KEY_SIG,
        fields.IN_TAP_SCRIPT_SIG,
        *fields.MUSIG2,
    }
)
_SCRIPT_PATH = frozenset({fields.IN_WITNESS_SCRIPT, fields.IN_TAP_LEAF_SCRIPT, fields.IN_TAP_MERKLE_ROOT})


def check_listing(
    raw: bytes, intent: ListingIntent, facts: OutpointFacts | None, template: ListingTemplate | None, owner: Owner
) -> ApprovedListing:
    """Approves the listing PSBT `raw`, or raises Refused; the tag is of the first rule that it breaks."""
    template = _op_allowed(template, intent)
    psbt = psbt_strict(raw)
    price = _list_min(intent)
    payout_script = _dest_allow(intent, owner)
    own = _inputs_reserved(psbt, intent, template, owner)
    facts = _inputs_confirmed(facts, intent)
    spent = _amount_proof(own, facts, owner)
    tip = _inputs_cardinal(facts, intent)
    payout = _outputs(psbt, template, payout_script, price, spent.value)
    _sighash_allowed(own, template)
    tx_form(psbt, template, tip)
    key_path(own, owner)
    others = len(psbt.inputs) - 1 - template.index
    return ApprovedListing(
        psbt, template.index, template.sighash, (None,) * template.index + (spent,) + (None,) * others, owner, payout
    )


def psbt_strict(raw: bytes) -> Psbt:
    """Returns the PSBT: version 0, of a bounded size, and written back to the same bytes."""
    if len(raw) > MAX_BYTES:
        raise PolicyRefused("psbt-size", f"{len(raw)} bytes are more than {MAX_BYTES}")
    try:
        psbt = decode(raw)
    except WireError as error:
        raise PolicyRefused("psbt-strict", str(error)) from None
    if psbt.version != 0:
        raise PolicyRefused("psbt-strict", "only version 0 is signed")
    if encode(psbt) != raw:
        raise RuntimeError("a PSBT that was read is not written back the same: the reader is broken")
    return psbt


def _op_allowed(template: ListingTemplate | None, intent: ListingIntent) -> ListingTemplate:
    if template is None or template.venue != intent.venue:
        raise PolicyRefused("op-allowed", "no template captured: it is not known what this venue's listings look like")
    return template


def _list_min(intent: ListingIntent) -> int:
    price, least = intent.price_sats, intent.min_price_sats
    if price is None or least is None:
        raise PolicyRefused("list-min", "the price or its minimum is not known")
    if not 0 < least <= price <= MAX_SATS:
        raise PolicyRefused("list-min", f"price {price} is not from {least} to {MAX_SATS} sats")
    return price


def _dest_allow(intent: ListingIntent, owner: Owner) -> bytes:
    """Returns the payout's script. Refuses one off mainnet, or where this user may not be paid."""
    try:
        address = parse(intent.payout_address)
    except AddressError as error:
        raise PolicyRefused("dest-allow", str(error)) from None
    if address.network != "mainnet":
        raise PolicyRefused("dest-allow", f"the payout address is of {address.network}")
    script = script_of(address)
    if script is None or script not in owner.destinations:
        raise PolicyRefused("dest-allow", "the payout address is not one of this user's")
    return script


def _inputs_reserved(psbt: Psbt, intent: ListingIntent, template: ListingTemplate, owner: Owner) -> Map:
    """Returns the fields of our input, which spends the intent's output; every other must be marked as not ours."""
    inputs = psbt.transaction.inputs
    if len(inputs) != template.other_inputs + 1:
        raise PolicyRefused("inputs-reserved", f"{len(inputs)} inputs instead of {template.other_inputs + 1}")
    if inputs[template.index].outpoint != intent.outpoint:
        raise PolicyRefused("inputs-reserved", "the input is not the output that is to be listed")
    if len({item.outpoint for item in inputs}) != len(inputs):
        raise PolicyRefused("inputs-reserved", "one output is spent twice")
    for at, item in enumerate(psbt.inputs):
        if at != template.index:
            said = claimed(item, inputs[at].outpoint)
            if not said or any(output.script in owner.scripts for output in said):
                raise PolicyRefused("inputs-reserved", "another input is ours, or may be")
    return psbt.inputs[template.index]


def _inputs_confirmed(facts: OutpointFacts | None, intent: ListingIntent) -> OutpointFacts:
    if facts is None or facts.outpoint != intent.outpoint:
        raise PolicyRefused("inputs-confirmed", "nothing is known of the output that is to be listed")
    if facts.is_unspent is not True or facts.is_confirmed is not True:
        raise PolicyRefused("inputs-confirmed", "the output is spent, not confirmed, or not known to be neither")
    return facts


def _amount_proof(own: Map, facts: OutpointFacts, owner: Owner) -> TxOutput:
    """Returns the output our input spends; facts, our own key and the PSBT must agree on it."""
    if facts.value_sats is None or facts.script is None:
        raise PolicyRefused("amount-proof", "the value or the script of the output is not known")
    spent = TxOutput(facts.value_sats, facts.script)
    if spent.script != own_script(owner.kind, owner.public_key) or spent.script not in owner.scripts:
        raise PolicyRefused("amount-proof", "the output is not held by our key")
    said = claimed(own, facts.outpoint)
    if not said or any(output != spent for output in said):
        raise PolicyRefused("amount-proof", "the PSBT does not say what the input spends, or says it wrong")
    # A segwit v0 signature covers our amount only, and a signer lied to about it twice can be made to burn coins as
    # fees: the whole former transaction cannot lie.
    if owner.kind != "p2tr" and compact(fields.IN_NON_WITNESS_UTXO) not in own:
        raise PolicyRefused("amount-proof", "the transaction that made the output is missing")
    return spent


def claimed(item: Map, outpoint: Outpoint) -> list[TxOutput]:
    """Returns the spent output as the PSBT describes it, in each of the two fields that may do so."""
    said = []
    former = item.get(compact(fields.IN_NON_WITNESS_UTXO))
    if former is not None:
        transaction = decode_network(former)
        if transaction.txid() != outpoint.txid or outpoint.vout >= len(transaction.outputs):
            raise PolicyRefused("amount-proof", "the former transaction is not the one that made the output")
        said.append(transaction.outputs[outpoint.vout])
    bare = item.get(compact(fields.IN_WITNESS_UTXO))
    if bare is not None:
        said.append(decode_output(bare))
    return said


def _inputs_cardinal(facts: OutpointFacts, intent: ListingIntent) -> int:
    """Returns the chain's tip. The listed output must hold only the inscription, by an index that is not behind."""
    if facts.tip_height is None or facts.index_height is None:
        raise PolicyRefused("inputs-cardinal", "it is not known how far the index is behind")
    if facts.tip_height - facts.index_height > MOST_BLOCKS_BEHIND:
        raise PolicyRefused("inputs-cardinal", "the index is behind the chain")
    if facts.inscriptions != (intent.inscription_id,):
        raise PolicyRefused("inputs-cardinal", "the output does not hold this inscription alone, or that is not known")
    if facts.runes != ():
        raise PolicyRefused("inputs-cardinal", "the output holds runes, or that is not known")
    return facts.tip_height


def _outputs(psbt: Psbt, template: ListingTemplate, payout_script: bytes, price: int, postage: int) -> int:
    """Returns the payout in sats; every output must be the template's, in its order and within its amount."""
    outputs = psbt.transaction.outputs
    if template.sighash & ~ANYONECANPAY == SINGLE and template.index >= len(outputs):
        raise PolicyRefused("single-pair", "there is no output at the index that SINGLE covers")
    if sum(output.value for output in outputs) > MAX_SATS:
        raise PolicyRefused("outputs-known", "the outputs pay more than there are bitcoin")
    scripts = [payout_script if isinstance(slot, Payout) else slot.script for slot in template.outputs]
    found = [output.script for output in outputs]
    if found != scripts:
        if sorted(found) == sorted(scripts):
            raise PolicyRefused("outputs-order", "the outputs are not in the template's order")
        raise PolicyRefused("outputs-known", "an output is not the template's, or one is missing")
    if not template.returns_postage and postage > MOST_POSTAGE:
        raise PolicyRefused("payout", f"the {postage} sats that the output holds would go to the buyer")
    payout = 0
    for output, slot in zip(outputs, template.outputs, strict=True):
        if isinstance(slot, Payout):
            payout = output.value
        elif output.value > price * slot.max_ppm // PPM:
            raise PolicyRefused("venue-fee", f"a venue fee of {output.value} sats is more than was declared")
    least = template.least_payout(price, postage)
    if payout < least:
        raise PolicyRefused("payout", f"the seller is paid {payout} sats instead of at least {least}")
    return payout


def _sighash_allowed(own: Map, template: ListingTemplate) -> None:
    """Refuses a sighash other than a listing's, also a PSBT that names none and so asks for another (BIP-174)."""
    named = own.get(compact(fields.IN_SIGHASH_TYPE))
    if named is None or int.from_bytes(named, "little") != template.sighash:
        raise PolicyRefused("sighash-allowed", f"the input does not ask for sighash {template.sighash:#x}")


def tx_form(psbt: Psbt, template: ListingTemplate | OfferTemplate | DelistTemplate, tip: int) -> None:
    """Refuses a version, locktime or sequence that is not the template's, and a wait for a future block."""
    transaction = psbt.transaction
    if transaction.version not in template.versions:
        raise PolicyRefused("tx-form", f"transaction version {transaction.version}")
    if transaction.locktime > min(tip, LOCKTIME_IS_A_TIME - 1):
        raise PolicyRefused("tx-form", f"locktime {transaction.locktime} is a time, or a height above {tip}")
    if any(item.sequence not in template.sequences for item in transaction.inputs):
        raise PolicyRefused("tx-form", "a sequence is not the template's")


def key_path(own: Map, owner: Owner) -> None:
    """Refuses our input when it is signed already or can be spent without our key."""
    kinds = {key_type(key) for key in own}
    if kinds & _SIGNATURES:
        raise PolicyRefused("input-signed", "our input has a signature already")
    if kinds & _SCRIPT_PATH:
        raise PolicyRefused("key-path", "our input has a script to be spent by")
    internal = own.get(compact(fields.IN_TAP_INTERNAL_KEY))
    if internal is not None and (owner.kind != "p2tr" or internal != owner.public_key[1:]):
        raise PolicyRefused("key-path", "the internal key is not ours")
    redeem = own.get(compact(fields.IN_REDEEM_SCRIPT))
    if redeem is not None and (owner.kind != "p2sh-p2wpkh" or redeem != redeem_script(owner.public_key)):
        raise PolicyRefused("key-path", "the redeem script is not ours")
