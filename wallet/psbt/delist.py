"""Check of the PSBT that takes a listing back: all that its one input holds must return to the same script.

The signature covers everything (DEFAULT), so the transaction cannot be extended, cut, or given a fee above zero.
Afterwards the sats are at the same script, at worst in another output that no listing was signed for. So no source but
the PSBT is asked: a false value or script makes the signature invalid (BIP-341), and a listing can be taken back while
all sources are away.
"""

from __future__ import annotations

from wallet.protocol import PolicyRefused
from wallet.psbt.common import claimed, input_unsigned, key_path, named_sighash, psbt_strict, tx_form
from wallet.psbt.listing import ApprovedListing, Owner
from wallet.psbt.script import own_script
from wallet.psbt.sighash import DEFAULT
from wallet.psbt.transaction import Outpoint


def check_delist(raw: bytes, outpoint: Outpoint, owner: Owner) -> ApprovedListing:
    """Approves the PSBT `raw` that takes back the listing of `outpoint`, or raises PolicyRefused.

    `owner` is a taproot key. The tag is of the first rule that it breaks.
    """
    psbt = psbt_strict(raw)
    inputs, outputs = psbt.transaction.inputs, psbt.transaction.outputs
    if len(inputs) != 1 or inputs[0].outpoint != outpoint:
        raise PolicyRefused("inputs-reserved", "the one input is not the output that is listed")
    own, script = psbt.inputs[0], own_script(owner.kind, owner.public_key)
    said = claimed(own, outpoint)
    if not said or any(output != said[0] for output in said) or said[0].script != script:
        raise PolicyRefused("amount-proof", "the PSBT does not say that our key holds what is listed")
    if len(outputs) != 1 or outputs[0].script != script:
        raise PolicyRefused("outputs-known", "it does not all go back to where it is")
    if outputs[0].value != said[0].value:
        raise PolicyRefused("payout", f"{outputs[0].value} sats come back instead of {said[0].value}")
    if named_sighash(own) not in (None, DEFAULT):
        raise PolicyRefused("sighash-allowed", "the input asks for another sighash than DEFAULT")
    tx_form(psbt.transaction, tip=0)
    input_unsigned(own)
    key_path(own, owner)
    return ApprovedListing(psbt, 0, DEFAULT, (said[0],), owner, outputs[0])
