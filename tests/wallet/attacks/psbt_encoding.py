"""Attacks with the bytes of a listing's PSBT: its frame, its global map and its unsigned transaction."""

from __future__ import annotations

import struct

from tests.wallet.attacks.psbt_changes import (
    Attack,
    adding_to,
    of_draft,
    of_own,
    on_raw,
    on_transaction,
    own_field,
    put,
    top_field,
)
from tests.wallet.listings import Case, former, with_size

ATTACKS: list[Attack] = []
attack = adding_to(ATTACKS)

# --- the venue's form: none is known, and none is asked for ---
attack("a venue without a template", "op-allowed", lambda case: None)
attack("another venue's template", "op-allowed", lambda case: None)

# --- the bytes ---
attack("nothing at all", "psbt-strict", of_draft(raw=b""))
attack("the magic alone", "psbt-strict", of_draft(raw=b"psbt\xff"))
attack("another magic", "psbt-strict", of_draft(magic=b"psbu\xff"))
attack("elements' magic", "psbt-strict", of_draft(magic=b"pset\xff"))
attack("a network transaction instead of a PSBT", "psbt-strict", lambda case: put(case.draft, raw=former(b"\x51")))
attack("base64 instead of bytes", "psbt-strict", of_draft(raw=b"cHNidP8BAHUCAAAAASaBcTce"))
attack("cut by a byte", "psbt-strict", on_raw(lambda raw: raw[:-1]))
attack("cut in the middle", "psbt-strict", on_raw(lambda raw: raw[: len(raw) // 2]))
attack("a byte left over", "psbt-strict", of_draft(tail=b"\0"))
attack("a second PSBT behind it", "psbt-strict", on_raw(lambda raw: raw + raw))
attack("an input map too many", "psbt-strict", of_draft(tail=b"\x01\x03\x04\x83\0\0\0\0"))
attack("an output map missing", "psbt-strict", on_raw(lambda raw: raw[:-1] if raw.endswith(b"\0\0") else raw[:-2]))
attack("a byte above the largest size", "psbt-size", of_draft(raw=b"\0" * (32 * 1024 + 1)))
attack("padded with an unknown field to beyond the largest size", "psbt-size", own_field(b"\xf0", b"\0" * 33_000))
attack("a key's length in three bytes", "psbt-strict", on_raw(lambda raw: raw[:5] + b"\xfd\x01\x00" + raw[6:]))
attack("a key's length in five bytes", "psbt-strict", on_raw(lambda raw: raw[:5] + b"\xfe\x01\0\0\0" + raw[6:]))
attack("a key's length in nine bytes", "psbt-strict", on_raw(lambda raw: raw[:5] + b"\xff\x01" + b"\0" * 7 + raw[6:]))
attack("a key of 2^64 - 1 bytes", "psbt-strict", on_raw(lambda raw: raw[:5] + b"\xff" * 9 + raw[6:]))
attack("a value of 2^63 bytes", "psbt-strict", on_raw(lambda raw: raw[:7] + b"\xff" + b"\0" * 7 + b"\x80" + raw[8:]))
attack("a value's length too short by one", "psbt-strict", on_raw(lambda raw: raw[:7] + bytes([raw[7] - 1]) + raw[8:]))
attack("a value's length too long by one", "psbt-strict", on_raw(lambda raw: raw[:7] + bytes([raw[7] + 1]) + raw[8:]))
attack("a field's type in three bytes", "psbt-strict", own_field(b"\xfd\x03\x00", struct.pack("<I", 1)))
attack("a field's type cut short", "psbt-strict", own_field(b"\xfd\x03", b""))

# --- the global map ---
attack("no unsigned transaction", "psbt-strict", lambda case: put(case.draft, raw=b"psbt\xff\0\0\0"))
attack(
    "the unsigned transaction twice",
    "psbt-strict",
    lambda case: case.draft.fields.append((b"\0", case.draft.unsigned())),
)
attack(
    "a second unsigned transaction under a longer key",
    "psbt-strict",
    lambda case: case.draft.fields.append((b"\0\0", case.draft.unsigned())),
)
attack("PSBT version 1", "psbt-strict", top_field(b"\xfb", struct.pack("<I", 1)))
attack("PSBT version 2 with a transaction", "psbt-strict", top_field(b"\xfb", struct.pack("<I", 2)))
attack("PSBT version 3", "psbt-strict", top_field(b"\xfb", struct.pack("<I", 3)))
attack("a PSBT version of one byte", "psbt-strict", top_field(b"\xfb", b"\0"))
attack("a version 2 transaction version", "psbt-strict", top_field(b"\x02", struct.pack("<I", 2)))
attack("a version 2 locktime", "psbt-strict", top_field(b"\x03", struct.pack("<I", 0)))
attack("a version 2 input count", "psbt-strict", top_field(b"\x04", b"\x01"))
attack("a version 2 output count", "psbt-strict", top_field(b"\x05", b"\x01"))
attack("a version 2 flag that all may change", "psbt-strict", top_field(b"\x06", b"\x03"))
attack("an extended key of no point", "psbt-strict", top_field(b"\x01" + b"\0" * 78, b"\0" * 4))
attack("a misshapen proprietary field", "psbt-strict", top_field(b"\xfc\x05ab", b""))
attack(
    "the same unknown global field twice", "psbt-strict", lambda case: case.draft.fields.extend([(b"\x70", b"a")] * 2)
)


def whole_v2(case: Case) -> None:
    """The same listing as an honest version 2 PSBT."""
    own = case.own
    own.fields += [
        (b"\x0e", own.txid),
        (b"\x0f", struct.pack("<I", own.vout)),
        (b"\x10", struct.pack("<I", own.sequence)),
    ]
    pay = case.payout
    pay.fields += [(b"\x03", struct.pack("<Q", pay.value)), (b"\x04", pay.script)]
    top = [(b"\xfb", b"\2\0\0\0"), (b"\x02", b"\2\0\0\0"), (b"\x04", b"\x01"), (b"\x05", b"\x01")]
    maps = [top, own.fields, pay.fields]
    body = b"".join(b"".join(with_size(k) + with_size(v) for k, v in pairs) + b"\0" for pairs in maps)
    case.draft.raw = b"psbt\xff" + body


attack("an honest listing as version 2", "psbt-strict", whole_v2)

# --- the unsigned transaction's bytes ---
attack("a script_sig in the unsigned transaction", "psbt-strict", of_own(script_sig=b"\x51"))
attack(
    "witnesses in the unsigned transaction", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\0\x01" + raw[4:])
)
attack("a byte behind the transaction", "psbt-strict", on_transaction(lambda raw: raw + b"\0"))
attack("a transaction without its locktime", "psbt-strict", on_transaction(lambda raw: raw[:-4]))
attack("an empty transaction", "psbt-strict", on_transaction(lambda raw: b""))
attack("an input count in three bytes", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\xfd\x01\0" + raw[5:]))
attack("2^64 - 1 inputs", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\xff" * 9 + raw[5:]))
attack("2^64 - 1 outputs", "psbt-strict", on_transaction(lambda raw: raw[:46] + b"\xff" * 9 + raw[47:]))
attack(
    "a script's length in three bytes", "psbt-strict", on_transaction(lambda raw: raw[:55] + b"\xfd\x16\0" + raw[56:])
)
attack("a script longer than the transaction", "psbt-strict", on_transaction(lambda raw: raw[:55] + b"\xfc" + raw[56:]))
attack("no inputs", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\0" + raw[46:]))
attack(
    "an input more than maps", "psbt-strict", on_transaction(lambda raw: raw[:4] + b"\x02" + raw[5:46] * 2 + raw[46:])
)
attack("an output fewer than maps", "psbt-strict", on_transaction(lambda raw: raw[:46] + b"\0" + raw[-4:]))
