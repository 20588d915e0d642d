"""The rules of a withdrawal: one small function each, named by its tag.

Each raises PolicyRefused; a missing fact (None) is a refusal. Nothing here reads a clock, a file or a key.

A bidding wallet's other signers do not matter for safety: a signature covers all outputs, and these are ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from msgspec import Struct

from core.fields import MAX_SATS
from wallet.address import AddressError, parse
from wallet.protocol import LEAST_FEE_PER_KVB, MOST_FEE_PER_KVB, VIRTUAL_KB, PolicyRefused
from wallet.psbt import fields
from wallet.psbt.common import MOST_BLOCKS_BEHIND, OutpointFacts
from wallet.psbt.decode import Map, key_type
from wallet.psbt.script import TAPSCRIPT, leaf_hash, output_script, script_of
from wallet.psbt.transaction import ALL, DEFAULT, Reader, TxOutput, WireError, compact
from wallet.terms import Ceilings

_OP_CODESEPARATOR = 0xAB
_LARGEST_PUSH = 0x4B
_PUSH_LENGTHS = {0x4C: 1, 0x4D: 2, 0x4E: 4}  # bytes of the length behind OP_PUSHDATA1, 2 and 4

# Fields of an input before it is signed. Any other known field means that it is signed already, or is to be spent in
# another way.
_OF_ALL = {fields.IN_NON_WITNESS_UTXO, fields.IN_WITNESS_UTXO, fields.IN_SIGHASH_TYPE}
_OF_P2WSH = frozenset({*_OF_ALL, fields.IN_WITNESS_SCRIPT, 0x06})
_OF_LEAF = frozenset({*_OF_ALL, fields.IN_TAP_LEAF_SCRIPT, fields.IN_TAP_INTERNAL_KEY, fields.IN_TAP_MERKLE_ROOT, 0x16})


class WalletScript(Struct, frozen=True):
    """A script, and the output script `paid_to` that commits to it; `control_block` is a P2TR leaf's, else empty."""

    script: bytes
    paid_to: bytes
    control_block: bytes = b""

    @property
    def is_leaf(self) -> bool:
        """Whether it is a leaf of a taproot output."""
        return bool(self.control_block)

    @property
    def sighashes(self) -> tuple[int, ...]:
        """The sighashes that cover all; the first is the one of a PSBT that names none (BIP-174, BIP-371)."""
        return (DEFAULT, ALL) if self.is_leaf else (ALL,)

    @property
    def unsigned_fields(self) -> frozenset[int]:
        """The types of the fields that an input has before it is signed."""
        return _OF_LEAF if self.is_leaf else _OF_P2WSH


def wallet_script(item: Map, public_key: bytes) -> WalletScript:
    """Returns the script that an input is to be spent by, with our key (33 bytes) in it. Raises PolicyRefused."""
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


def has_key(wallet: WalletScript, public_key: bytes) -> bool:
    """Tells whether the script pushes our key (33 bytes; in a leaf its last 32). Raises WireError as `_pushes`."""
    return (public_key[1:] if wallet.is_leaf else public_key) in _pushes(wallet.script)


def p2wsh(witness_script: bytes) -> bytes:
    """Returns the script that pays to `witness_script`."""
    return b"\x00\x20" + hashlib.sha256(witness_script).digest()


def _leaf(key: bytes, value: bytes) -> WalletScript:
    """Reads the PSBT's field of a leaf: its control block in the key, script and version in the value."""
    control_block, script, version = key[1:], value[:-1], value[-1]
    if version != TAPSCRIPT or control_block[0] & 0xFE != TAPSCRIPT:
        raise WireError("a leaf of an unknown version")
    return WalletScript(script, output_script(leaf_hash(script), control_block), control_block)


def _pushes(script: bytes) -> list[bytes]:
    """Returns all that the script pushes. Raises WireError for one that is cut, or signs only its end."""
    reader, found = Reader(script), []
    while not reader.at_end():
        op = reader.number(1)
        if op == _OP_CODESEPARATOR:
            raise WireError("the script has an OP_CODESEPARATOR, with which a signature covers something else")
        if op <= _LARGEST_PUSH:
            found.append(reader.take(op))
        elif op in _PUSH_LENGTHS:
            found.append(reader.take(reader.number(_PUSH_LENGTHS[op])))
    return found


Facts = Mapping[str, OutpointFacts]

MOST_FEE = 200_000
# A tenth of the sats sent, but never less than this: small amounts take as many bytes as large ones.
FEE_SHARE, FEE_SHARE_FLOOR = 10, 20_000
MOST_A_DAY = 100
_BLOCKS_AN_HOUR = 6
# Nodes relay no smaller output: three times the cost of spending it at the minimum rate.
_DUST = {22: 294, 34: 330, 23: 540}  # by the script's length: P2WPKH; P2TR and P2WSH; P2SH


def halt_file(is_there: bool) -> None:
    """Refuses when the halt file is there. Control states bind only bids and listings, the file all but cancels."""
    if is_there:
        raise PolicyRefused("control-state", "the halt file is there: no withdrawal is signed")


def destination(user: str, known_users: Sequence[str], own_scripts: frozenset[bytes]) -> bytes:
    """Returns the script of the address that `user` signs in with. `own_scripts` are those of the user's keys here.

    `known_users` is the keystore's append-only list: the requesting process made up any other name.
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
    """Returns the coin at our own `script`; its value comes from the bytes of the transaction that made it
    (wallet/signer/reading.py).
    """
    if facts.value_sats is None or facts.script is None or not 0 < facts.value_sats <= MAX_SATS:
        raise PolicyRefused("amount-proof", f"the value or the script of {facts.outpoint} is not known")
    if facts.script != script:
        raise PolicyRefused("inputs-own", f"{facts.outpoint} is not held by the key that it is to be spent with")
    return TxOutput(facts.value_sats, facts.script)


def inputs_cardinal(facts: OutpointFacts, inscriptions: tuple[str, ...] = ()) -> int:
    """Returns the chain's tip. The coin must hold just these inscriptions and no rune, by a current index."""
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
    """Refuses a coin that its script locks for `blocks` blocks, until the next block may spend it (BIP-68)."""
    if facts.height is None or facts.tip_height is None:
        raise PolicyRefused("timelock", f"it is not known since which block {facts.outpoint} is there")
    first = facts.height + blocks
    if (left := first - facts.tip_height - 1) > 0:
        raise PolicyRefused("timelock", f"its escrow keeps it until block {first}, about {_time(left)}")


def _time(blocks: int) -> str:
    """Returns the usual time of that number of blocks, in words."""
    hours = -(-blocks // _BLOCKS_AN_HOUR)
    return "an hour" if hours == 1 else f"{hours} hours"


def fee_rate(fee_per_kvb: int) -> None:
    if not LEAST_FEE_PER_KVB <= fee_per_kvb <= MOST_FEE_PER_KVB:
        raise PolicyRefused(
            "fee-rate", f"{fee_per_kvb} sats for 1000 vB are not from {LEAST_FEE_PER_KVB} to {MOST_FEE_PER_KVB}"
        )


def fee_rate_of(fee_sats: int, vsize: int) -> None:
    """Refuses too high a fee rate, as `fee_rate`, for a foreign transaction; a venue refuses too low a rate itself."""
    if fee_sats * VIRTUAL_KB > MOST_FEE_PER_KVB * vsize:
        raise PolicyRefused("fee-rate", f"{fee_sats} sats for {vsize} vB are more than {MOST_FEE_PER_KVB} for 1000 vB")


def fee_abs(fee_sats: int) -> None:
    if not 0 <= fee_sats <= MOST_FEE:
        raise PolicyRefused("fee-abs", f"a fee of {fee_sats} sats is not from 0 to {MOST_FEE}")


def fee_share(fee_sats: int, sent_sats: int) -> None:
    """Refuses a fee that is too large a part of plain sats; an inscription's worth is not in its sats."""
    if fee_sats > max(sent_sats // FEE_SHARE, FEE_SHARE_FLOOR):
        raise PolicyRefused("fee-share", f"a fee of {fee_sats} sats is too much for {sent_sats}")


def dust(output: TxOutput) -> None:
    if output.value < dust_limit(output.script):
        raise PolicyRefused("dust", f"{output.value} sats are less than the network carries")


def dust_limit(script: bytes) -> int:
    """Returns the fewest sats that an output to `script` may have."""
    return _DUST[len(script)]


def velocity(ceilings: Ceilings, count: int | None, sats_today: int | None, sats: int) -> None:
    """Refuses a withdrawal beyond the day's number or sats.

    `count` and `sats_today` are the withdrawals signed for this user in a day, from the vault and the payment address
    together or from the bidding wallet, arrived or not. `sats` and `sats_today` include fees.
    """
    if count is None or sats_today is None:
        raise PolicyRefused("velocity", "it is not known how much was withdrawn today")
    if count >= MOST_A_DAY:
        raise PolicyRefused("velocity", f"{count} withdrawals in a day")
    most = ceilings.withdrawn_a_day
    if most and sats_today + sats > most:
        raise PolicyRefused("velocity", f"with {sats} sats more than {most} would be withdrawn in a day")
