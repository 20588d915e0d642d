"""A second opinion on a signed listing, by other code: own parsing, own digests, own curve arithmetic.

It shares nothing with `wallet/`. It asks what a signature gives away, not which checks were made: which input it is of,
what whoever uses it must pay us, and whether it is made under facts. What it does not cover is nobody's business.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

from embit.util import key as curve  # arithmetic in Python, not libsecp256k1

from tests.wallet.listings import Case, script_by


class Unreadable(Exception):
    """Not a PSBT in its one way of writing."""


@dataclass
class Parsed:
    maps: list[list[tuple[bytes, bytes]]]
    tx: dict[str, Any]


def number(data: bytes, at: int) -> tuple[int, int]:
    if at >= len(data):
        raise Unreadable("no length")
    width = {0xFD: 2, 0xFE: 4, 0xFF: 8}.get(data[at], 0)
    if not width:
        return data[at], at + 1
    chunk = data[at + 1 : at + 1 + width]
    value = int.from_bytes(chunk, "little")
    if len(chunk) < width or value < (253 if width == 2 else 1 << 4 * width):
        raise Unreadable("length")
    return value, at + 1 + width


def chunk(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise Unreadable("short")
    return data[at : at + length], at + length


def counted(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = number(data, at)
    return chunk(data, at, length)


def parse_transaction(data: bytes) -> dict[str, Any]:
    """Without witnesses."""
    tx: dict[str, Any] = {"ins": [], "outs": []}
    raw, at = chunk(data, 0, 4)
    tx["version"] = int.from_bytes(raw, "little")
    many, at = number(data, at)
    for _ in range(many):
        prevout, at = chunk(data, at, 36)
        script_sig, at = counted(data, at)
        sequence, at = chunk(data, at, 4)
        tx["ins"].append((prevout, script_sig, sequence))
    many, at = number(data, at)
    for _ in range(many):
        value, at = chunk(data, at, 8)
        paid, at = counted(data, at)
        tx["outs"].append((int.from_bytes(value, "little"), paid))
    raw, at = chunk(data, at, 4)
    tx["locktime"] = int.from_bytes(raw, "little")
    if at != len(data):
        raise Unreadable("more")
    return tx


def former_output(data: bytes, prevout: bytes) -> tuple[int, bytes] | None:
    """Returns the output `prevout` (36 bytes) of this network transaction; None when it is another transaction's."""
    at, many, outs = (6 if data[4:6] == b"\0\x01" else 4), 0, []
    start = at
    many, at = number(data, at)
    for _ in range(many):
        at = counted(data, at + 36)[1] + 4
    many, at = number(data, at)
    for _ in range(many):
        value = int.from_bytes(data[at : at + 8], "little")
        paid, at = counted(data, at + 8)
        outs.append((value, paid))
    bare = data[:4] + data[start:at] + data[-4:]
    which = int.from_bytes(prevout[32:], "little")
    return outs[which] if sha(sha(bare)) == prevout[:32] and which < len(outs) else None


def parse(data: bytes) -> Parsed:
    if data[:5] != b"psbt\xff":
        raise Unreadable("magic")
    at, wanted, maps = 5, 1, []
    tx: dict[str, Any] = {}
    while len(maps) < wanted:
        pairs: list[tuple[bytes, bytes]] = []
        while True:
            key, at = counted(data, at)
            if not key:
                break
            value, at = counted(data, at)
            number(key, 0)
            if key in [k for k, _ in pairs]:
                raise Unreadable("twice")
            pairs.append((key, value))
        if not maps:
            tx = parse_transaction(dict(pairs).get(b"\0", b""))
            wanted = 1 + len(tx["ins"]) + len(tx["outs"])
        maps.append(pairs)
    if at != len(data):
        raise Unreadable("more")
    return Parsed(maps, tx)


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def le(value: int, width: int) -> bytes:
    return value.to_bytes(width, "little")


def txout(value: int, paid: bytes) -> bytes:
    assert len(paid) < 253
    return le(value, 8) + bytes([len(paid)]) + paid


def taproot_message(tx: dict[str, Any], index: int, spent: tuple[int, bytes], flag: int) -> bytes:
    """BIP-341's, for 0x81 and 0x83."""
    covered = tx["outs"] if flag == 0x81 else [tx["outs"][index]]
    outputs = sha(b"".join(txout(*out) for out in covered))
    prevout, _, sequence = tx["ins"][index]
    head = bytes([0, flag]) + le(tx["version"], 4) + le(tx["locktime"], 4)
    own = b"\0" + prevout + txout(*spent) + sequence
    message = head + outputs + own if flag == 0x81 else head + own + outputs
    return bytes(curve.TaggedHash("TapSighash", message))


def segwit_message(tx: dict[str, Any], index: int, key_hash: bytes, value: int, flag: int) -> bytes:
    """BIP-143's, for 0x81 and 0x83."""
    covered = tx["outs"] if flag == 0x81 else [tx["outs"][index]]
    prevout, _, sequence = tx["ins"][index]
    code = bytes.fromhex("1976a914") + key_hash + bytes.fromhex("88ac")
    message = le(tx["version"], 4) + bytes(64) + prevout + code + le(value, 8) + sequence
    message += sha(sha(b"".join(txout(*out) for out in covered))) + le(tx["locktime"], 4) + le(flag, 4)
    return sha(sha(message))


@functools.lru_cache(maxsize=100_000)
def verifies(kind: str, public_key: bytes, message: bytes, signature: bytes) -> bool:
    if kind == "p2tr":
        return bool(curve.verify_schnorr(public_key, signature, message))
    point = curve.ECPubKey()
    point.set(public_key)
    return bool(point.verify_ecdsa(signature, message))


def faults(case: Case, raw: bytes, answer: bytes) -> list[str]:
    """Returns the faults in having answered `raw` with the signed PSBT `answer`; none if all is well."""
    try:
        asked, given = parse(raw), parse(answer)
    except Unreadable as error:
        return [f"signed what cannot be read: {error}"]
    wrong = _about_intent(case)
    if len(raw) > 32_768:
        wrong.append("too large")
    if dict(asked.maps[0])[b"\0"] != dict(given.maps[0])[b"\0"]:
        return [*wrong, "another transaction was signed"]
    index, about = _about_transaction(case, asked)
    wrong += about
    if wrong:
        return wrong  # what follows takes the transaction's shape for granted
    return _about_input(case, asked, index) + _about_answer(case, asked, given, index)


def _about_intent(case: Case) -> list[str]:
    intent, facts = case.intent, case.facts
    if facts is None:
        return ["signed without facts"]
    known = [facts.is_unspent, facts.is_confirmed, facts.value_sats == 10_000, facts.runes == ()]
    known += [facts.inscriptions == (intent.inscription_id,), facts.outpoint == intent.outpoint]
    known += [facts.script == script_by(case.kind, case.key), intent.price_sats == 250_000]
    known += [isinstance(intent.min_price_sats, int) and 0 < intent.min_price_sats <= 250_000]
    known += [facts.tip_height is not None and facts.index_height in range(facts.tip_height - 1, 1_000_000_000)]
    known += [intent.payout_address == "bc1q5k0g7ha32jspn49vhs80a5p0kam8x3f4y77g30"]
    known += [intent.seller_fee_ppm in (0, 20_000)]
    return [] if all(known) else [f"signed against facts or intent: {known}"]


def _about_transaction(case: Case, asked: Parsed) -> tuple[int, list[str]]:
    """Which input is ours, and what is wrong with what has to be paid for it, or with when it can be."""
    assert case.facts
    tx, wrong = asked.tx, []
    if tx["version"] not in (1, 2, 3) or tx["locktime"] > min(case.facts.tip_height or 0, 499_999_999):
        wrong.append("version or locktime")
    listed = case.intent.outpoint.txid + le(case.intent.outpoint.vout, 4)
    ours = [at for at, (prevout, _, _) in enumerate(tx["ins"]) if prevout == listed]
    if len(ours) != 1:
        return 0, [*wrong, "our output is not spent once"]
    index = ours[0]
    if int.from_bytes(tx["ins"][index][2], "little") < 0xFFFFFFFD or any(script_sig for _, script_sig, _ in tx["ins"]):
        wrong.append("sequence or script_sig")
    covered = tx["outs"] if case.form.startswith("secure") else tx["outs"][index : index + 1]
    to_us = [value for value, paid in covered if paid == bytes.fromhex("0014a59e8f5fb154a019d4acbc0efed02fb776734535")]
    # Of 10,000 sats that the output holds the buyer may keep all; the price is 250,000, the declared fee 5,000 of it.
    least = 245_000 if case.intent.seller_fee_ppm else 250_000
    if len(to_us) != 1 or not least <= to_us[0] <= 2_100_000_000_000_000:
        wrong.append(f"pays us {to_us}")
    return index, wrong


def _about_input(case: Case, asked: Parsed, index: int) -> list[str]:
    """Returns the faults in the words of our input and of the others about themselves."""
    wrong = []
    for at, pairs in enumerate(asked.maps[1 : 1 + len(asked.tx["ins"])]):
        fields = dict(pairs)
        if at != index:
            if any(paid in fields.get(b"\x01", b"") for paid in case.owner.scripts):
                wrong.append("another input of ours")
            continue
        if fields.get(b"\x03") != le(case.sighash, 4):
            wrong.append("sighash not asked for")
        if b"\x01" in fields and fields[b"\x01"] != txout(10_000, script_by(case.kind, case.key)):
            wrong.append("witness utxo")
        if case.kind != "p2tr" and b"\0" not in fields:
            wrong.append("no former transaction")
        own = (10_000, script_by(case.kind, case.key))
        if b"\0" in fields and former_output(fields[b"\0"], asked.tx["ins"][at][0]) != own:
            wrong.append("another former transaction")
        if b"\0" not in fields and b"\x01" not in fields:
            wrong.append("no utxo")
        if any(key[0] in (0x02, 0x05, 0x07, 0x08, 0x13, 0x14, 0x15, 0x18, 0x1A, 0x1B, 0x1C) for key in fields):
            wrong.append("script path, or signed before")
        if fields.get(b"\x17", case.key.xonly()) != case.key.xonly():
            wrong.append("internal key")
        if b"\x04" in fields and (case.kind != "p2sh-p2wpkh" or fields[b"\x04"] != script_by("p2wpkh", case.key)):
            wrong.append("redeem script")
    return wrong


def _about_answer(case: Case, asked: Parsed, given: Parsed, index: int) -> list[str]:
    """Finds faults of the answer: not just one signature of ours, over the request, with the listing's sighash."""
    flag = 0x81 if case.form.startswith("secure") else 0x83
    wrong = []
    for at, (before, after) in enumerate(zip(asked.maps, given.maps, strict=True)):
        known = set(range(9)) | {0xFB} if at == 0 else set(range(0x1D))
        if any(key[0] not in known for key, _ in after):
            wrong.append("an unknown field was handed back")
        if at != index + 1 and not set(after) <= set(before):
            wrong.append("something was added elsewhere")
    fields = dict(given.maps[index + 1])
    if case.kind == "p2tr":
        signature, public_key = fields.pop(b"\x13", b""), script_by("p2tr", case.key)[2:]
        message = taproot_message(asked.tx, index, (10_000, script_by("p2tr", case.key)), flag)
    else:
        public_key = case.key.get_public_key().sec()
        signature = fields.pop(b"\x02" + public_key, b"")
        message = segwit_message(asked.tx, index, script_by("p2wpkh", case.key)[2:], 10_000, flag)
    if any(key[0] in (0x02, 0x07, 0x08, 0x13, 0x14) for key in fields):
        wrong.append("a second signature")
    if signature[-1:] != bytes([flag]) or not verifies(case.kind, public_key, message, signature[:-1]):
        wrong.append("the signature is not valid")
    return wrong
