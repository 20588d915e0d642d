"""Checks, in their order, of a venue's PSBT that takes sats out of its bidding wallet.

Every input is the bidding wallet's, a script that our payment key is part of; every output goes to the payment address
or back to that script. So its author can move sats between the two and pay a bounded fee, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from wallet import multisig
from wallet.multisig import Multisig
from wallet.policy import PolicyRefused
from wallet.protocol import MAX_COINS, MAX_SATS
from wallet.psbt import fields
from wallet.psbt.check_listing import claimed, psbt_strict
from wallet.psbt.decode import Map, Psbt, key_type
from wallet.psbt.rules import LOCKTIME_IS_A_TIME
from wallet.psbt.sighash import ALL
from wallet.psbt.transaction import TxOutput, WireError, compact
from wallet.withdrawal import rules
from wallet.withdrawal.rules import Facts
from wallet.withdrawal.template import WithdrawalTemplate

# Fields of an input of this kind before it is signed. Any other known field means that it is signed already, or is to
# be spent in another way.
_UNSIGNED = frozenset(
    {fields.IN_NON_WITNESS_UTXO, fields.IN_WITNESS_UTXO, fields.IN_SIGHASH_TYPE, fields.IN_WITNESS_SCRIPT, 0x06}
)
# Weight units of a transaction without witnesses and outputs, and of an input without its witness; bytes of a
# signature.
_FRAME, _INPUT, _SIGNATURE = 4 * 10 + 2, 4 * 41, 1 + 72


@dataclass(frozen=True, slots=True)
class ApprovedWithdrawal:
    """A PSBT that passed every check. `spent` are the inputs' outputs, all of them at `witness_script`'s address."""

    psbt: Psbt
    witness_script: bytes
    spent: tuple[TxOutput, ...]
    sent_sats: int
    fee_sats: int


def check_withdrawal(
    raw: bytes,
    amount_sats: int,
    coins: tuple[str, ...],
    facts: Facts,
    template: WithdrawalTemplate | None,
    public_key: bytes,
    payment_script: bytes,
) -> ApprovedWithdrawal:
    """Approves the PSBT `raw`, or raises Refused; the tag is of the first rule that it breaks.

    `coins` are its inputs as named in the request. `public_key` (33 bytes) is the payment address's.
    """
    if template is None:
        raise PolicyRefused(
            "op-allowed", "no template captured: it is not known what this venue's withdrawals look like"
        )
    psbt = psbt_strict(raw)
    _inputs_reserved(psbt, coins)
    known = [rules.inputs_confirmed(coin, facts.get(coin)) for coin in coins]
    script = _witness_script(psbt, template, public_key)
    paid_to = multisig.p2wsh(script)
    spent = tuple(rules.amount_proof(each, paid_to) for each in known)
    for item, of_input, output in zip(psbt.inputs, known, spent, strict=True):
        _claims(claimed(item, of_input.outpoint), output, item)
    tip = min(rules.inputs_cardinal(each) for each in known)
    sent = _outputs(psbt, payment_script, paid_to)
    fee = _fee(psbt, spent, sent, amount_sats, script, template)
    for item in psbt.inputs:
        _unsigned(item)
    _tx_form(psbt, template, tip)
    return ApprovedWithdrawal(psbt, script, spent, sent, fee)


def _inputs_reserved(psbt: Psbt, coins: tuple[str, ...]) -> None:
    outpoints = tuple(str(item.outpoint) for item in psbt.transaction.inputs)
    if not 0 < len(outpoints) <= MAX_COINS:
        raise PolicyRefused("inputs-reserved", f"{len(outpoints)} inputs instead of 1 to {MAX_COINS}")
    if len(set(outpoints)) != len(outpoints):
        raise PolicyRefused("inputs-reserved", "one output is spent twice")
    if outpoints != coins:
        raise PolicyRefused("inputs-reserved", "the inputs are not those that were written down")


def _witness_script(psbt: Psbt, template: WithdrawalTemplate, public_key: bytes) -> bytes:
    """Returns the one script that all inputs are spent by: the template's multisig, with our key in it."""
    scripts = {item.get(compact(fields.IN_WITNESS_SCRIPT)) for item in psbt.inputs}
    script = scripts.pop()
    if scripts or script is None:
        raise PolicyRefused("inputs-own", "the inputs have no script, or different ones")
    try:
        found = multisig.decode(script)
    except WireError as error:
        raise PolicyRefused("inputs-own", str(error)) from None
    if found != Multisig(template.required, found.keys) or len(found.keys) != template.keys:
        raise PolicyRefused("inputs-own", f"the script is not the template's: {found.required} of {len(found.keys)}")
    if public_key not in found.keys:
        raise PolicyRefused("inputs-own", "the script is none that our key is part of")
    return script


def _claims(said: list[TxOutput], spent: TxOutput, item: Map) -> None:
    if not said or any(output != spent for output in said):
        raise PolicyRefused("amount-proof", "the PSBT does not say what an input spends, or says it wrong")
    if compact(fields.IN_NON_WITNESS_UTXO) not in item:
        raise PolicyRefused("amount-proof", "the transaction that made a coin is missing")


def _outputs(psbt: Psbt, payment_script: bytes, wallet_script: bytes) -> int:
    """Returns the sats paid to the payment address in one output; the only other output allowed is change."""
    outputs = psbt.transaction.outputs
    if sum(output.value for output in outputs) > MAX_SATS:
        raise PolicyRefused("outputs-known", "the outputs pay more than there are bitcoin")
    if any(output.script not in (payment_script, wallet_script) for output in outputs):
        raise PolicyRefused(
            "dest-allow", "an output goes neither to the payment address nor back to the bidding wallet"
        )
    paid = [output.value for output in outputs if output.script == payment_script]
    if len(paid) != 1 or len(outputs) > 2:
        raise PolicyRefused("outputs-known", "the outputs are not one to the payment address and change at most")
    for output in outputs:
        rules.dust(output)
    return paid[0]


def _fee(
    psbt: Psbt, spent: tuple[TxOutput, ...], sent: int, amount_sats: int, script: bytes, template: WithdrawalTemplate
) -> int:
    fee = sum(output.value for output in spent) - sum(output.value for output in psbt.transaction.outputs)
    rules.fee_abs(fee)
    if not amount_sats - fee <= sent <= amount_sats:
        raise PolicyRefused("amount", f"{sent} sats arrive instead of {amount_sats} less {fee} at most")
    rules.fee_share(fee, sent)
    outputs = sum(8 + 1 + len(output.script) for output in psbt.transaction.outputs)
    # The count of the stack, the empty item that CHECKMULTISIG drops, the signatures, the script.
    witness = 1 + 1 + template.required * _SIGNATURE + 1 + len(script)
    weight = _FRAME + len(spent) * (_INPUT + witness) + 4 * outputs
    rules.fee_rate_of(fee, -(-weight // 4))
    return fee


def _unsigned(item: Map) -> None:
    named = item.get(compact(fields.IN_SIGHASH_TYPE))
    if named is not None and int.from_bytes(named, "little") != ALL:
        raise PolicyRefused("sighash-allowed", "an input asks for another sighash than ALL")
    others = {key_type(key) for key in item if key_type(key) in fields.INPUT} - _UNSIGNED - {fields.PROPRIETARY}
    if others:
        raise PolicyRefused("input-signed", "an input is signed already, or is to be spent in another way")


def _tx_form(psbt: Psbt, template: WithdrawalTemplate, tip: int) -> None:
    transaction = psbt.transaction
    if transaction.version not in template.versions:
        raise PolicyRefused("tx-form", f"transaction version {transaction.version}")
    if transaction.locktime > min(tip, LOCKTIME_IS_A_TIME - 1):
        raise PolicyRefused("tx-form", f"locktime {transaction.locktime} is a time, or a height above {tip}")
    if any(item.sequence not in template.sequences for item in transaction.inputs):
        raise PolicyRefused("tx-form", "a sequence is not the template's")
