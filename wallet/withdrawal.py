"""Withdrawals: their rules, our own transactions, and the checks of a venue's PSBT.

Each rule is one small function, named by its tag. It raises PolicyRefused; a missing fact (None) is a refusal. Nothing
here reads a clock, a file or a key.

Our own transactions are written from facts alone. Sats that leave the payment address or the vault go to the user's
sign-in address; the change returns to where the coins lay. An inscription's coin is the first input and its value the
first output, so that the inscription's sat keeps its place: ordinals go first in, first out. Its fee is paid by coins
of the payment address, which get their change back; they also fill the output up where the destination needs more than
lay in the vault (P2SH: 540, P2TR: 330).

A venue's PSBT takes sats out of its bidding wallet. Every input is the bidding wallet's, a script that our payment key
is part of; every output goes to the payment address or back to that script. So its author can move sats between the two
and pay a bounded fee, and no more: at any venue, and whatever else the script asks for. The wallet's other signers do
not matter for safety, because a signature covers all outputs, and these are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from core.fields import MAX_SATS
from wallet.address import AddressError, parse
from wallet.protocol import LEAST_FEE_PER_KVB, MAX_COINS, MOST_FEE_PER_KVB, VIRTUAL_KB, PolicyRefused
from wallet.psbt import fields
from wallet.psbt.common import MOST_BLOCKS_BEHIND, OutpointFacts, claimed, named_sighash, psbt_strict, tx_form
from wallet.psbt.decode import Map, Psbt, key_type
from wallet.psbt.script import (
    RECOVERY_BLOCKS,
    TAPSCRIPT,
    Escrow,
    WalletScript,
    has_key,
    leaf_hash,
    output_script,
    p2wsh,
    script_of,
)
from wallet.psbt.transaction import Outpoint, Transaction, TxInput, TxOutput, WireError, compact
from wallet.terms import Ceilings

Facts = Mapping[str, OutpointFacts]

MOST_FEE = 200_000
# A tenth of the sats sent, but never less than this: small amounts take as many bytes as large ones.
FEE_SHARE, FEE_SHARE_FLOOR = 10, 20_000
MOST_A_DAY = 100
_BLOCKS_AN_HOUR = 6
# Nodes relay no smaller output. It is three times the cost of spending it at the minimum rate.
_DUST = {22: 294, 34: 330, 23: 540}  # by the script's length: P2WPKH; P2TR and P2WSH; P2SH


def halt_file(is_there: bool) -> None:
    """Refuses while the halt file exists. Control states stop bids and listings only; the file also withdrawals."""
    if is_there:
        raise PolicyRefused("control-state", "the halt file is there: no withdrawal is signed")


def destination(user: str, known_users: Sequence[str], own_scripts: frozenset[bytes]) -> bytes:
    """Returns the script of the address that `user` signs in with. `own_scripts` are the scripts of the user's keys.

    `known_users` is the keystore's append-only list, because the requesting process could invent any other name.
    """
    if user not in known_users:
        raise PolicyRefused("dest-allow", "no user of this signer signs in with this address")
    try:
        script = script_of(parse(user))
    except AddressError as error:
        raise PolicyRefused("dest-allow", str(error)) from None
    if script is None:
        raise PolicyRefused("dest-allow", "nothing can be sent to this kind of address")
    if script in own_scripts:
        raise PolicyRefused(
            "dest-allow", "the sign-in address is one of those that the coins are at: they are out already"
        )
    return script


def inputs_confirmed(outpoint: str, facts: OutpointFacts | None) -> OutpointFacts:
    if facts is None or str(facts.outpoint) != outpoint:
        raise PolicyRefused("inputs-confirmed", f"nothing is known of {outpoint}")
    if facts.is_unspent is not True or facts.is_confirmed is not True:
        raise PolicyRefused("inputs-confirmed", f"{outpoint} is spent, not confirmed, or not known to be neither")
    return facts


def amount_proof(facts: OutpointFacts, script: bytes) -> TxOutput:
    """Returns the coin at our own `script`. Its value is proven by the transaction that made it
    (wallet/signer/reading.py).
    """
    if facts.value_sats is None or facts.script is None or not 0 < facts.value_sats <= MAX_SATS:
        raise PolicyRefused("amount-proof", f"the value or the script of {facts.outpoint} is not known")
    if facts.script != script:
        raise PolicyRefused("inputs-own", f"{facts.outpoint} is not held by the key that it is to be spent with")
    return TxOutput(facts.value_sats, facts.script)


def inputs_cardinal(facts: OutpointFacts, inscriptions: tuple[str, ...] = ()) -> int:
    """Returns the chain's tip. The coin must hold exactly these inscriptions and no rune, by a current index."""
    if facts.tip_height is None or facts.index_height is None:
        raise PolicyRefused("inputs-cardinal", "it is not known how far the index is behind")
    if facts.tip_height - facts.index_height > MOST_BLOCKS_BEHIND:
        raise PolicyRefused("inputs-cardinal", "the index is behind the chain")
    if facts.inscriptions is None or facts.runes is None:
        raise PolicyRefused("inputs-cardinal", f"it is not known what lies on {facts.outpoint}")
    if facts.inscriptions != inscriptions:
        if inscriptions:
            raise PolicyRefused("inputs-cardinal", f"{facts.outpoint} does not hold this inscription alone")
        raise PolicyRefused("inputs-cardinal", f"{facts.outpoint} holds an inscription")
    if facts.runes:
        raise PolicyRefused("inputs-cardinal", f"{facts.outpoint} holds runes")
    return facts.tip_height


def timelock(facts: OutpointFacts, blocks: int) -> None:
    """Refuses a coin whose script locks it for `blocks` blocks, unless the next block may spend it (BIP-68)."""
    if facts.height is None or facts.tip_height is None:
        raise PolicyRefused("timelock", f"it is not known since which block {facts.outpoint} is there")
    first = facts.height + blocks
    if (left := first - facts.tip_height - 1) > 0:
        raise PolicyRefused("timelock", f"its escrow keeps it until block {first}, about {_time(left)}")


def _time(blocks: int) -> str:
    """Returns the expected time of that number of blocks, in words."""
    hours = -(-blocks // _BLOCKS_AN_HOUR)
    return "an hour" if hours == 1 else f"{hours} hours"


def fee_rate(fee_per_kvb: int) -> None:
    if not LEAST_FEE_PER_KVB <= fee_per_kvb <= MOST_FEE_PER_KVB:
        raise PolicyRefused(
            "fee-rate", f"{fee_per_kvb} sats for 1000 vB are not from {LEAST_FEE_PER_KVB} to {MOST_FEE_PER_KVB}"
        )


def fee_rate_of(fee_sats: int, vsize: int) -> None:
    """Refuses too high a fee rate of a venue's transaction; the venue itself refuses too low a rate."""
    if fee_sats * VIRTUAL_KB > MOST_FEE_PER_KVB * vsize:
        raise PolicyRefused("fee-rate", f"{fee_sats} sats for {vsize} vB are more than {MOST_FEE_PER_KVB} for 1000 vB")


def fee_abs(fee_sats: int) -> None:
    if not 0 <= fee_sats <= MOST_FEE:
        raise PolicyRefused("fee-abs", f"a fee of {fee_sats} sats is not from 0 to {MOST_FEE}")


def fee_share(fee_sats: int, sent_sats: int) -> None:
    """Refuses a fee that is too large a share of the sats sent. Not for an inscription, whose value is not its sats."""
    if fee_sats > max(sent_sats // FEE_SHARE, FEE_SHARE_FLOOR):
        raise PolicyRefused("fee-share", f"a fee of {fee_sats} sats is too much for {sent_sats}")


def dust(output: TxOutput) -> None:
    if output.value < dust_limit(output.script):
        raise PolicyRefused("dust", f"{output.value} sats are less than the network carries")


def dust_limit(script: bytes) -> int:
    """Returns the minimum sats of an output to `script`."""
    return _DUST[len(script)]


def velocity(ceilings: Ceilings, count: int | None, sats_today: int | None, sats: int) -> None:
    """Refuses a withdrawal beyond the day's number or sats.

    `count` and `sats_today` are of the withdrawals signed for this user in a day, confirmed or not: either from vault
    and payment address together, or from the bidding wallet. `sats` and `sats_today` include fees.
    """
    if count is None or sats_today is None:
        raise PolicyRefused("velocity", "it is not known how much was withdrawn today")
    if count >= MOST_A_DAY:
        raise PolicyRefused("velocity", f"{count} withdrawals in a day")
    most = ceilings.withdrawn_a_day
    if most and sats_today + sats > most:
        raise PolicyRefused("velocity", f"with {sats} sats more than {most} would be withdrawn in a day")


# "recovery": an escrow that only its recovery leaf opens; other escrows are "p2tr", opened by key path.
CoinKind = Literal["p2wpkh", "p2tr", "recovery"]

_VERSION = 2
_REPLACEABLE = 0xFFFFFFFD
# Weight units: version, two counts and locktime; the witness marker and flag; outpoint, empty script, sequence.
_FRAME, _MARK, _INPUT = 4 * 10, 2, 4 * 41
# Witness sizes: a count and lengths, with the longest ECDSA signature and the key; or with a key path's signature; or
# with a leaf's signature, the leaf and its control block.
WITNESS: dict[CoinKind, int] = {
    "p2wpkh": 1 + 1 + 72 + 1 + 33,
    "p2tr": 1 + 1 + 64,
    "recovery": 1 + 1 + 64 + 1 + 39 + 1 + 65,
}
# Virtual bytes of one more input, rounded up.
INPUT_VSIZE: dict[CoinKind, int] = {kind: -(-(_INPUT + witness) // 4) for kind, witness in WITNESS.items()}


class Coin(Struct, frozen=True):
    """An output of the user to be spent. `escrow` is set for a listed item's escrow."""

    outpoint: Outpoint
    spent: TxOutput
    kind: CoinKind
    escrow: Escrow | None = None


class Composed(Struct, frozen=True):
    """An unsigned transaction, the coins of its inputs in their order, and the sats sent and paid as a fee."""

    transaction: Transaction
    coins: tuple[Coin, ...]
    sent_sats: int
    fee_sats: int


def vsize(kinds: Sequence[CoinKind], scripts: Sequence[bytes]) -> int:
    """Counts a transaction's virtual bytes, rounded up, for inputs of these kinds and outputs to these scripts."""
    weight = _FRAME + _MARK + sum(_INPUT + WITNESS[kind] for kind in kinds)
    return -(-(weight + 4 * sum(8 + 1 + len(script) for script in scripts)) // 4)


def send_sats(coins: Sequence[Coin], amount_sats: int | None, destination: bytes, fee_per_kvb: int) -> Composed:
    """Composes a transaction that spends all `coins` and sends `amount_sats` (None: all) to `destination`.

    The change goes back to the coins' script.

    Example: of two coins of 60,000 with 50,000 sent, 70,000 less the fee come back. Change below the dust limit is
    added to the fee. Raises PolicyRefused.
    """
    whole = sum(coin.spent.value for coin in coins)
    kinds, back = [coin.kind for coin in coins], coins[0].spent.script
    least_fee = _fee(vsize(kinds, [destination]), fee_per_kvb)
    if amount_sats is None:
        return _composed(coins, [TxOutput(_positive(whole - least_fee), destination)])
    change = whole - amount_sats - _fee(vsize(kinds, [destination, back]), fee_per_kvb)
    if change >= dust_limit(back):
        return _composed(coins, [TxOutput(amount_sats, destination), TxOutput(change, back)])
    _positive(whole - amount_sats - least_fee + 1)
    return _composed(coins, [TxOutput(amount_sats, destination)])


def send_inscription(item: Coin, fee_coins: Sequence[Coin], destination: bytes, fee_per_kvb: int) -> Composed:
    """Composes a transaction that sends an inscription's coin to `destination`; `fee_coins` pay the fee.

    Raises PolicyRefused.
    """
    coins = [item, *fee_coins]
    moved = TxOutput(max(item.spent.value, dust_limit(destination)), destination)
    funds = sum(coin.spent.value for coin in coins) - moved.value
    kinds, back = [coin.kind for coin in coins], fee_coins[0].spent.script
    change = funds - _fee(vsize(kinds, [destination, back]), fee_per_kvb)
    if change >= dust_limit(back):
        return _composed(coins, [moved, TxOutput(change, back)], is_item=True)
    _positive(funds - _fee(vsize(kinds, [destination]), fee_per_kvb) + 1)
    return _composed(coins, [moved], is_item=True)


def _fee(size: int, fee_per_kvb: int) -> int:
    return -(-size * fee_per_kvb // VIRTUAL_KB)


def _positive(sats: int) -> int:
    if sats <= 0:
        raise PolicyRefused(
            "funds", f"the coins do not pay for this and its fee: at least {1 - sats:,} sats are missing"
        )
    return sats


def _sequence(coin: Coin) -> int:
    """Returns an input's sequence; a recovery leaf needs its number of blocks (BIP-68) and is replaceable."""
    return RECOVERY_BLOCKS if coin.kind == "recovery" else _REPLACEABLE


def _composed(coins: Sequence[Coin], outputs: Sequence[TxOutput], *, is_item: bool = False) -> Composed:
    inputs = tuple(TxInput(coin.outpoint, b"", _sequence(coin)) for coin in coins)
    sent = outputs[0].value
    fee = sum(coin.spent.value for coin in coins) - sum(output.value for output in outputs)
    for output in outputs:
        dust(output)
    fee_abs(fee)
    if not is_item:
        fee_share(fee, sent)
    return Composed(Transaction(_VERSION, inputs, tuple(outputs), 0), tuple(coins), sent, fee)


# Bytes of the shortest signature, with its length.
_SHORTEST_SIGNATURE = 1 + 64


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

    `coins` are its inputs as the request names them. `public_key` (33 bytes) is the payment address's.
    """
    psbt = psbt_strict(raw)
    _inputs_reserved(psbt, coins)
    known = [inputs_confirmed(coin, facts.get(coin)) for coin in coins]
    wallet = _inputs_own(psbt, public_key)
    spent = tuple(amount_proof(each, wallet.paid_to) for each in known)
    for item, of_input, output in zip(psbt.inputs, known, spent, strict=True):
        _claims(claimed(item, of_input.outpoint), output, item, wallet)
    tip = min(inputs_cardinal(each) for each in known)
    sent = _outputs(psbt, payment_script, wallet.paid_to)
    fee = _checked_fee(psbt, spent, sent, amount_sats, wallet)
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
    """Returns the one script of all inputs, which must have our key."""
    found = {wallet_script(item, public_key) for item in psbt.inputs}
    if len(found) != 1:
        raise PolicyRefused("inputs-own", "the inputs have different scripts")
    return found.pop()


def _claims(said: list[TxOutput], spent: TxOutput, item: Map, wallet: WalletScript) -> None:
    if not said or any(output != spent for output in said):
        raise PolicyRefused("amount-proof", "the PSBT does not say what an input spends, or says it wrong")
    # A taproot signature covers the amounts of all inputs, a segwit v0 signature only its own input's.
    if not wallet.is_leaf and compact(fields.IN_NON_WITNESS_UTXO) not in item:
        raise PolicyRefused("amount-proof", "the transaction that made a coin is missing")


def _outputs(psbt: Psbt, payment_script: bytes, change_script: bytes) -> int:
    """Returns the sats paid to the payment address in one output; the only other output allowed is change."""
    outputs = psbt.transaction.outputs
    if sum(output.value for output in outputs) > MAX_SATS:
        raise PolicyRefused("outputs-known", "the outputs pay more than there are bitcoin")
    if any(output.script not in (payment_script, change_script) for output in outputs):
        raise PolicyRefused(
            "dest-allow", "an output goes neither to the payment address nor back to the bidding wallet"
        )
    paid = [output.value for output in outputs if output.script == payment_script]
    if len(paid) != 1 or len(outputs) > 2:
        raise PolicyRefused("outputs-known", "the outputs are not one to the payment address and change at most")
    for output in outputs:
        dust(output)
    return paid[0]


def _checked_fee(psbt: Psbt, spent: tuple[TxOutput, ...], sent: int, amount_sats: int, wallet: WalletScript) -> int:
    fee = sum(output.value for output in spent) - sum(output.value for output in psbt.transaction.outputs)
    fee_abs(fee)
    if not amount_sats - fee <= sent <= amount_sats:
        raise PolicyRefused("amount", f"{sent} sats arrive instead of {amount_sats} less {fee} at most")
    fee_share(fee, sent)
    outputs = sum(8 + 1 + len(output.script) for output in psbt.transaction.outputs)
    # The minimum witness: count, our signature, script and a leaf's control block. Further signatures only lower the
    # real rate.
    witness = 1 + _SHORTEST_SIGNATURE + 1 + len(wallet.script) + len(wallet.control_block)
    weight = _FRAME + _MARK + len(spent) * (_INPUT + witness) + 4 * outputs
    fee_rate_of(fee, -(-weight // 4))
    return fee


def _unsigned(item: Map, wallet: WalletScript) -> None:
    if named_sighash(item) not in (None, *wallet.sighashes):
        raise PolicyRefused("sighash-allowed", "an input asks for another sighash than one that covers all")
    known = {key_type(key) for key in item if key_type(key) in fields.INPUT}
    if known - wallet.unsigned_fields - {fields.PROPRIETARY}:
        raise PolicyRefused("input-signed", "an input is signed already, or is to be spent in another way")


def wallet_script(item: Map, public_key: bytes) -> WalletScript:
    """Returns the script that spends an input. Raises PolicyRefused if our key (33 bytes) is not in it."""
    leaves = [(key, value) for key, value in item.items() if key_type(key) == fields.IN_TAP_LEAF_SCRIPT]
    script = item.get(compact(fields.IN_WITNESS_SCRIPT))
    if len(leaves) + (script is not None) != 1:
        raise PolicyRefused("inputs-own", "an input has no script to be spent by, or several")
    try:
        if script is not None:
            found = WalletScript(script, p2wsh(script))
        else:
            found = _leaf(*leaves[0])
        if not has_key(found, public_key):
            raise PolicyRefused("inputs-own", "the script is none that our key is part of")
    except WireError as error:
        raise PolicyRefused("inputs-own", str(error)) from None
    return found


def _leaf(key: bytes, value: bytes) -> WalletScript:
    """Reads a PSBT's leaf field: control block in the key, script and version in the value."""
    control_block, script, version = key[1:], value[:-1], value[-1]
    if version != TAPSCRIPT or control_block[0] & 0xFE != TAPSCRIPT:
        raise WireError("a leaf of an unknown version")
    return WalletScript(script, output_script(leaf_hash(script), control_block), control_block)
