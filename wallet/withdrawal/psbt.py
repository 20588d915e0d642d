"""Checks, in their order, of a venue's PSBT that takes sats out of its bidding wallet.

Every input is the bidding wallet's, a script that our payment key is part of; every output goes to the payment address
or back to that script. So its author can move sats between the two and pay a bounded fee, and no more: at any venue,
and whatever else the script asks for.
"""

from __future__ import annotations

from msgspec import Struct

from core.fields import MAX_SATS
from wallet.protocol import MAX_COINS, PolicyRefused
from wallet.psbt import fields
from wallet.psbt.common import claimed, named_sighash, psbt_strict, tx_form
from wallet.psbt.decode import Map, Psbt, key_type
from wallet.psbt.transaction import TxOutput, compact
from wallet.withdrawal import rules
from wallet.withdrawal.rules import Facts, WalletScript, wallet_script

# Weight units of a transaction without witnesses and outputs, and of an input without its witness; bytes of a
# signature with its length, as short as one gets.
_FRAME, _INPUT, _SIGNATURE = 4 * 10 + 2, 4 * 41, 1 + 64


class ApprovedWithdrawal(Struct, frozen=True):
    """A PSBT that passed every check. `spent` are the inputs' outputs, all of them at `wallet`'s address."""

    psbt: Psbt
    wallet: WalletScript
    spent: tuple[TxOutput, ...]
    sent_sats: int
    fee_sats: int


def check_withdrawal(
    raw: bytes,
    amount_sats: int,
    coins: tuple[str, ...],
    facts: Facts,
    public_key: bytes,
    payment_script: bytes,
) -> ApprovedWithdrawal:
    """Approves the PSBT `raw`, or raises PolicyRefused; the tag is of the first rule that it breaks.

    `coins` are its inputs as named in the request. `public_key` (33 bytes) is the payment address's.
    """
    psbt = psbt_strict(raw)
    _inputs_reserved(psbt, coins)
    known = [rules.inputs_confirmed(coin, facts.get(coin)) for coin in coins]
    wallet = _inputs_own(psbt, public_key)
    spent = tuple(rules.amount_proof(each, wallet.paid_to) for each in known)
    for item, of_input, output in zip(psbt.inputs, known, spent, strict=True):
        _claims(claimed(item, of_input.outpoint), output, item, wallet)
    tip = min(rules.inputs_cardinal(each) for each in known)
    sent = _outputs(psbt, payment_script, wallet.paid_to)
    fee = _fee(psbt, spent, sent, amount_sats, wallet)
    for item in psbt.inputs:
        _unsigned(item, wallet)
    tx_form(psbt.transaction, tip)
    return ApprovedWithdrawal(psbt, wallet, spent, sent, fee)


def _inputs_reserved(psbt: Psbt, coins: tuple[str, ...]) -> None:
    outpoints = tuple(str(item.outpoint) for item in psbt.transaction.inputs)
    if not 0 < len(outpoints) <= MAX_COINS:
        raise PolicyRefused("inputs-reserved", f"{len(outpoints)} inputs instead of 1 to {MAX_COINS}")
    if len(set(outpoints)) != len(outpoints):
        raise PolicyRefused("inputs-reserved", "one output is spent twice")
    if outpoints != coins:
        raise PolicyRefused("inputs-reserved", "the inputs are not those that were written down")


def _inputs_own(psbt: Psbt, public_key: bytes) -> WalletScript:
    """Returns the one script that all inputs are spent by, with our key in it."""
    found = {wallet_script(item, public_key) for item in psbt.inputs}
    if len(found) != 1:
        raise PolicyRefused("inputs-own", "the inputs have different scripts")
    return found.pop()


def _claims(said: list[TxOutput], spent: TxOutput, item: Map, wallet: WalletScript) -> None:
    if not said or any(output != spent for output in said):
        raise PolicyRefused("amount-proof", "the PSBT does not say what an input spends, or says it wrong")
    # A taproot signature covers the amounts of all inputs, one of segwit v0 only its own.
    if not wallet.is_leaf and compact(fields.IN_NON_WITNESS_UTXO) not in item:
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


def _fee(psbt: Psbt, spent: tuple[TxOutput, ...], sent: int, amount_sats: int, wallet: WalletScript) -> int:
    fee = sum(output.value for output in spent) - sum(output.value for output in psbt.transaction.outputs)
    rules.fee_abs(fee)
    if not amount_sats - fee <= sent <= amount_sats:
        raise PolicyRefused("amount", f"{sent} sats arrive instead of {amount_sats} less {fee} at most")
    rules.fee_share(fee, sent)
    outputs = sum(8 + 1 + len(output.script) for output in psbt.transaction.outputs)
    # The minimum: the count of the stack, our signature, the script, and of a leaf its control block. Others'
    # signatures make the real rate lower.
    witness = 1 + _SIGNATURE + 1 + len(wallet.script) + len(wallet.control_block)
    weight = _FRAME + len(spent) * (_INPUT + witness) + 4 * outputs
    rules.fee_rate_of(fee, -(-weight // 4))
    return fee


def _unsigned(item: Map, wallet: WalletScript) -> None:
    if named_sighash(item) not in (None, *wallet.sighashes):
        raise PolicyRefused("sighash-allowed", "an input asks for another sighash than one that covers all")
    known = {key_type(key) for key in item if key_type(key) in fields.INPUT}
    if known - wallet.unsigned_fields - {fields.PROPRIETARY}:
        raise PolicyRefused("input-signed", "an input is signed already, or is to be spent in another way")
