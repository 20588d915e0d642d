"""Signatures per second on one core: bids as messages and listings as PSBTs, each checked, signed and verified."""

from __future__ import annotations

import itertools
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from embit.ec import PrivateKey
from embit.psbt import PSBT

from bench.measuring import Row, median_seconds
from wallet.address import hash160, p2wpkh
from wallet.bip322 import verify_ownership
from wallet.keystore.keys import Keystore, sign_message
from wallet.policy import PLAY_VENUE
from wallet.protocol import BidMessage, GiveGrant, Grant, SignBid
from wallet.psbt.check_listing import check_listing
from wallet.psbt.common import ListingIntent, OutpointFacts, Owner
from wallet.psbt.decode import Psbt, encode
from wallet.psbt.script import OwnKind, own_script
from wallet.psbt.sign import sign_listing
from wallet.psbt.transaction import LISTING, Outpoint, Transaction, TxInput, TxOutput
from wallet.signer.audit import AuditLog
from wallet.signer.ledger import Ledger
from wallet.signer.signer import Signer
from wallet.terms import Ceilings, Rate

_KEY = PrivateKey(b"\x07" * 32)
_PUBLIC = _KEY.get_public_key().sec()
_PRICE, _POSTAGE, _TIP = 250_000, 10_000, 900_000
_ADDRESS = p2wpkh(hash160(_PUBLIC))
_INSCRIPTION = "00" * 32 + "i0"
_KINDS: tuple[OwnKind, ...] = ("p2tr", "p2wpkh", "p2sh-p2wpkh")


def rows() -> Iterator[Row]:
    """Yields the rows. The peer signs without checks, in the minimum time that signing takes in Python here."""

    def bid() -> None:
        assert verify_ownership(_ADDRESS, "bench", sign_message(_KEY, "p2wpkh", "bench"))

    def unverified() -> None:
        sign_message(_KEY, "p2wpkh", "bench")

    yield _row("bid message signed and verified, P2WPKH, one core", bid, "unverified", unverified)
    yield _whole_signer(unverified)
    for kind in _KINDS:
        yield _listing(kind)


def _whole_signer(unverified: Callable[[], object]) -> Row:
    """Measures the whole signer: grant, rules, the sums of an hour, and two files synced to disk for each bid."""
    now_ms, user = 1_800_000_000_000, _ADDRESS
    bids = itertools.count()
    with (
        tempfile.TemporaryDirectory() as name,
        closing(AuditLog(Path(name, "audit.jsonl"))) as audit,
        closing(Ledger(Path(name, "signer.db"))) as store,
    ):
        keys = Keystore.open_or_create_play(Path(name, "keystore.json"), os.urandom)
        no_rate = Rate(1 << 60, 1 << 60)
        ceilings = Ceilings(task=no_rate, user=no_rate, host=no_rate)
        signer = Signer(store, audit, keys, ceilings=ceilings, clock=lambda: now_ms)
        grant = Grant(
            1, user, 1, PLAY_VENUE, ("bid",), "frogs", 1, 1 << 50, 1 << 50, user, 3_600_000, now_ms + 3_600_000
        )
        secret = signer.handle(GiveGrant(grant)).secret

        def bid() -> None:
            asked = BidMessage(f"{next(bids):032x}", 1, "1", now_ms + 900_000, "frogs", now_ms, user)
            signer.handle(SignBid(1, 1, secret, asked))

        return _row("bid through the whole signer, synced to disk", bid, "unverified", unverified, calls=50)


def _listing(kind: OwnKind) -> Row:
    script, payout = own_script(kind, _PUBLIC), own_script("p2wpkh", _PUBLIC)
    former = Transaction(2, (TxInput(Outpoint(b"\x01" * 32, 0), b"", 0),), (TxOutput(_POSTAGE, script),), 0)
    outpoint = Outpoint(former.txid(), 0)
    transaction = Transaction(2, (TxInput(outpoint, b"", 0xFFFFFFFD),), (TxOutput(_PRICE + _POSTAGE, payout),), 0)
    asks = {b"\x01": former.outputs[0].encode(), b"\x03": struct.pack("<I", LISTING)}
    if kind != "p2tr":
        asks[b"\x00"] = former.encode()
    if kind == "p2sh-p2wpkh":
        asks[b"\x04"] = payout
    raw = encode(Psbt(0, transaction, {}, (asks,), ({},)))
    scripts = frozenset({script, payout})
    owner = Owner(kind, _PUBLIC, scripts, scripts)
    intent = ListingIntent(_INSCRIPTION, outpoint, _PRICE, _PRICE, _ADDRESS)
    facts = OutpointFacts(outpoint, _POSTAGE, script, True, True, (_INSCRIPTION,), (), _TIP, _TIP)

    def ours() -> None:
        sign_listing(check_listing(raw, intent, facts, LISTING, owner), _KEY)

    def blind() -> None:
        psbt = PSBT.parse(raw)
        assert psbt.sign_with(_KEY, sighash=LISTING) == 1
        psbt.serialize()

    return _row(f"listing PSBT checked and signed, {kind}, one core", ours, "embit, unchecked", blind)


def _row(what: str, ours: Callable[[], object], peer: str, blind: Callable[[], object], calls: int = 500) -> Row:
    seconds, least = median_seconds(ours, calls=calls), median_seconds(blind, calls=calls)
    return Row(what, f"{1 / seconds:,.0f}/s", f"{peer} {1 / least:,.0f}/s", f"{seconds / least:.1f} x")
