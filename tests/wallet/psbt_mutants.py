"""Listing PSBTs that were changed at random: a bit, a byte, a field, an output, a fact, or several of these."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tests.shapes import replace
from tests.wallet.listings import (
    FORMS,
    INSCRIPTION,
    KINDS,
    PAYMENT,
    PAYOUT_ADDRESS,
    PAYOUT_SCRIPT,
    PLACEHOLDER_SCRIPT,
    POSTAGE,
    PRICE,
    STRANGER,
    STRANGER_SCRIPT,
    TIP,
    VAULT,
    VENUE_SCRIPT,
    Case,
    Form,
    Pairs,
    Pay,
    Spend,
    former,
    honest,
    output,
    script_by,
)
from wallet.psbt.script import OwnKind
from wallet.psbt.transaction import Outpoint

Rng = random.Random

_HONEST: dict[tuple[OwnKind, Form], Case] = {(kind, form): honest(kind, form) for kind in KINDS for form in FORMS}
_OWN_SCRIPTS = [script_by(kind, VAULT) for kind in KINDS]
_SCRIPTS = [*_OWN_SCRIPTS, PAYOUT_SCRIPT, STRANGER_SCRIPT, VENUE_SCRIPT, PLACEHOLDER_SCRIPT, b"", b"\x51", b"\x6a"]
_AMOUNTS = [0, 1, 546, POSTAGE, PRICE, PRICE + POSTAGE, 245_000, 5_000, 2_500, 21 * 10**14, 2**63, 2**64 - 1]
_NUMBERS = [0, 1, 2, 3, TIP, TIP + 1, 499_999_999, 500_000_000, 0xFFFFFFFC, 0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF]
_FLAGS = [0x00, 0x01, 0x02, 0x03, 0x80, 0x81, 0x82, 0x83, 0x183]
_PUBLIC = [key.get_public_key().sec() for key in (VAULT, PAYMENT, STRANGER)]
_FORMERS = [former(script, value) for script in (*_OWN_SCRIPTS, STRANGER_SCRIPT) for value in (POSTAGE, POSTAGE + 1)]


def mutant(rng: Rng, kinds: Sequence[OwnKind] = KINDS, forms: Sequence[Form] = FORMS) -> Case:
    """Returns an honest listing of any of these kinds and forms with one to three changes."""
    case = _HONEST[rng.choice(kinds), rng.choice(forms)].copy()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(_CHANGES)(case, rng)
    if rng.random() < 0.3:
        case.draft.raw = _bytes_changed(case.draft.encode(), rng)
    return case


def _near(value: int, rng: Rng, bits: int, known: list[int]) -> int:
    way = rng.randrange(4)
    if way == 0:
        return (value + rng.choice((-1, 1))) % 2**bits
    if way == 1:
        return value ^ 1 << rng.randrange(bits)
    return (rng.choice(known) if way == 2 else rng.randrange(2**bits)) % 2**bits


def _changed(data: bytes, rng: Rng) -> bytes:
    """Returns a byte string with a byte more, fewer or other."""
    at = rng.randrange(len(data) + 1)
    way = rng.randrange(3)
    if way == 0:
        return data[:at] + bytes([rng.randrange(256)]) + data[at:]
    if way == 1:
        return data[:at] + data[at + 1 :]
    return data[:at] + bytes(byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]


def _bytes_changed(raw: bytes, rng: Rng) -> bytes:
    at, end = sorted(rng.randrange(len(raw) + 1) for _ in range(2))
    way = rng.randrange(8)
    if way < 4:
        return _changed(raw, rng)
    if way == 4:
        return raw[:at] + raw[end:]
    if way == 5:
        return raw[:end] + raw[at:]
    if way == 6:
        return (
            raw[:at] + rng.choice((b"\xfd\x01\0", b"\xfe\xff\xff\0\0", b"\xff" * 9, b"\0", b"\x01\0")) + raw[at + 1 :]
        )
    return raw[:at] + rng.randbytes(min(end - at, 9)) + raw[end:]


def _version(case: Case, rng: Rng) -> None:
    case.draft.version = _near(case.draft.version, rng, 32, _NUMBERS)


def _locktime(case: Case, rng: Rng) -> None:
    case.draft.locktime = _near(case.draft.locktime, rng, 32, _NUMBERS)


def _sequence(case: Case, rng: Rng) -> None:
    spend = _any_spend(case, rng)
    spend.sequence = _near(spend.sequence, rng, 32, _NUMBERS)


def _outpoint(case: Case, rng: Rng) -> None:
    spend = _any_spend(case, rng)
    if rng.random() < 0.5:
        spend.vout = _near(spend.vout, rng, 32, _NUMBERS)
    else:
        spend.txid = rng.choice((spend.txid[::-1], rng.randbytes(32), _any_spend(case, rng).txid))


def _script_sig(case: Case, rng: Rng) -> None:
    _any_spend(case, rng).script_sig = rng.choice(_SCRIPTS)


def _value(case: Case, rng: Rng) -> None:
    pay = _any_pay(case, rng)
    pay.value = _near(pay.value, rng, 64, _AMOUNTS)


def _script(case: Case, rng: Rng) -> None:
    pay = _any_pay(case, rng)
    pay.script = _changed(pay.script, rng) if rng.random() < 0.3 else rng.choice(_SCRIPTS)


def _spends(case: Case, rng: Rng) -> None:
    spends = case.draft.spends
    way = rng.randrange(4)
    if way == 0:
        fields: Pairs = [(b"\x01", output(rng.choice(_AMOUNTS), rng.choice(_SCRIPTS)))]
        spends.insert(rng.randrange(len(spends) + 1), Spend(rng.randbytes(32), rng.randrange(3), fields=fields))
    elif way == 1 and spends:
        spends.pop(rng.randrange(len(spends)))
    elif way == 2 and spends:
        spends.append(rng.choice(spends))
    else:
        rng.shuffle(spends)


def _pays(case: Case, rng: Rng) -> None:
    pays = case.draft.pays
    way = rng.randrange(4)
    if way == 0:
        pays.insert(rng.randrange(len(pays) + 1), Pay(rng.choice(_AMOUNTS), rng.choice(_SCRIPTS)))
    elif way == 1 and pays:
        pays.pop(rng.randrange(len(pays)))
    elif way == 2 and pays:
        pays.append(rng.choice(pays))
    else:
        rng.shuffle(pays)


def _sighash(case: Case, rng: Rng) -> None:
    flag = struct.pack("<I", _near(0x83, rng, 32, _FLAGS))
    _any_spend(case, rng).put(b"\x03", flag[: rng.choice((4, 4, 4, 1))])


def _utxo(case: Case, rng: Rng) -> None:
    spend = _any_spend(case, rng)
    if rng.random() < 0.3:
        spend.put(b"\x00", rng.choice(_FORMERS))
    else:
        value = _near(POSTAGE, rng, 64, _AMOUNTS) if rng.random() < 0.6 else POSTAGE
        spend.put(b"\x01", output(value, rng.choice(_SCRIPTS)))


def _field(case: Case, rng: Rng) -> None:
    """A field more in any map: known, unknown, proprietary, right and wrong."""
    kind = rng.choice((*range(0x1E), 0x70, 0xFB, 0xFC, 0xFD))
    key = bytes([kind]) + rng.choice((b"", b"", *_PUBLIC, *(public[1:] for public in _PUBLIC), b"\x02ab\x01", b"\0"))
    values = (b"", b"\0" * 4, rng.randbytes(32), rng.randbytes(64), rng.choice(_SCRIPTS), _PUBLIC[0][1:])
    maps = [case.draft.fields, *(s.fields for s in case.draft.spends), *(p.fields for p in case.draft.pays)]
    pairs = rng.choice(maps)
    pairs.insert(rng.randrange(len(pairs) + 1), (key, rng.choice(values)))


def _other_path(case: Case, rng: Rng) -> None:
    """A well-formed field that tells of another key, of a script, or of a signature made before."""
    der = bytes.fromhex("30440220" + "11" * 32 + "0220" + "22" * 32 + "83")
    public = rng.choice(_PUBLIC)
    fields = [
        (b"\x02" + public, der),
        (b"\x04", rng.choice(_SCRIPTS)),
        (b"\x05", rng.choice(_SCRIPTS)),
        (b"\x07", b""),
        (b"\x08", b"\x01\x00"),
        (b"\x13", rng.randbytes(64)),
        (b"\x14" + public[1:] + rng.randbytes(32), rng.randbytes(65)),
        (b"\x15\xc0" + public[1:], b"\x51\xc0"),
        (b"\x17", public[1:]),
        (b"\x18", rng.randbytes(32)),
        (b"\x1a" + public, public),
        (b"\x1b" + public * 2, rng.randbytes(66)),
        (b"\x1c" + public * 2, rng.randbytes(32)),
    ]
    _any_spend(case, rng).put(*rng.choice(fields))


def _field_changed(case: Case, rng: Rng) -> None:
    fields = _any_spend(case, rng).fields
    if not fields:
        return
    at = rng.randrange(len(fields))
    key, value = fields[at]
    way = rng.randrange(5)
    if way == 0:
        del fields[at]
    elif way == 1:
        fields.insert(at, (key, value))
    elif way == 2:
        fields[at] = (_changed(key, rng), value)
    elif way == 3:
        fields[at] = (key, _changed(value, rng))
    else:
        rng.shuffle(fields)


def _facts(case: Case, rng: Rng) -> None:
    if rng.random() < 0.1:
        case.facts = None
    if case.facts is None:
        return
    options: list[tuple[str, tuple[Any, ...]]] = [
        ("outpoint", (Outpoint(bytes(32), 0), Outpoint(case.intent.outpoint.txid, 0))),
        ("value_sats", (None, POSTAGE - 1, PRICE)),
        ("script", (None, STRANGER_SCRIPT, PAYOUT_SCRIPT)),
        ("is_unspent", (None, False)),
        ("is_confirmed", (None, False)),
        ("inscriptions", (None, (), (INSCRIPTION, INSCRIPTION), ("other",))),
        ("runes", (None, ("RUNE",))),
        ("tip_height", (None, TIP + 1, TIP - 1)),
        ("index_height", (None, TIP - 2, TIP)),
    ]
    name, values = rng.choice(options)
    case.facts = replace(case.facts, **{name: rng.choice(values)})


def _intent(case: Case, rng: Rng) -> None:
    options: list[tuple[str, tuple[Any, ...]]] = [
        ("seller_fee_ppm", (0, 20_000)),
        ("inscription_id", ("other",)),
        ("outpoint", (Outpoint(bytes(32), 0), Outpoint(case.intent.outpoint.txid, 0))),
        ("price_sats", (None, 0, -1, PRICE)),
        ("min_price_sats", (None, 0, PRICE, PRICE + 1)),
        ("payout_address", ("", "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx", PAYOUT_ADDRESS)),
    ]
    name, values = rng.choice(options)
    case.intent = replace(case.intent, **{name: rng.choice(values)})


def _any_spend(case: Case, rng: Rng) -> Spend:
    return rng.choice(case.draft.spends or [Spend(bytes(32), 0)])


def _any_pay(case: Case, rng: Rng) -> Pay:
    return rng.choice(case.draft.pays or [Pay(0, b"")])


_CHANGES: list[Callable[[Case, Rng], None]] = [
    _version,
    _locktime,
    _sequence,
    _outpoint,
    _script_sig,
    _value,
    _value,
    _script,
    _spends,
    _pays,
    _sighash,
    _utxo,
    _field,
    _field,
    _other_path,
    _field_changed,
    _field_changed,
    _facts,
    _intent,
]
