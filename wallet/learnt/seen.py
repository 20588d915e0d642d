"""A draft as a form compares it: read from the PSBT of a venue."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from wallet.learnt.form import InputForm, SeenDraft, SeenOutput, Whose
from wallet.psbt.common import claimed, named_sighash
from wallet.psbt.decode import Psbt, encode


def seen_in(psbt: Psbt, index: int, price: int, postage: int, ours: Mapping[bytes, Whose]) -> SeenDraft:
    """Reads the draft of a listing for `price` sats, of the item that our input at `index` spends with `postage` sats.

    `ours` names our own scripts. Raises PolicyRefused when an input contradicts its outpoint (`inputs-reserved` has
    refused that before).
    """
    transaction = psbt.transaction
    return SeenDraft(
        price=price,
        postage=postage,
        sha256=hashlib.sha256(encode(psbt)).hexdigest(),
        sighash=named_sighash(psbt.inputs[index]),
        index=index,
        version=transaction.version,
        locktime=transaction.locktime,
        inputs=tuple(_input(psbt, at, is_ours=at == index) for at in range(len(transaction.inputs))),
        outputs=tuple(
            SeenOutput(each.value, each.script.hex(), ours.get(each.script, "varying")) for each in transaction.outputs
        ),
    )


def _input(psbt: Psbt, at: int, *, is_ours: bool) -> InputForm:
    source = psbt.transaction.inputs[at]
    if is_ours:
        return InputForm("ours", source.sequence)
    return InputForm("told" if claimed(psbt.inputs[at], source.outpoint) else "silent", source.sequence)
