"""Withdrawals, honest and not: a venue's PSBTs, and requests for coins of our own, with what decides on them.

The PSBTs are written without any check (see `listings.Draft`), so that whatever a liar may send can be written.
"""

from __future__ import annotations

import base64
import copy
import functools
import struct
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
from embit import script
from embit.ec import PrivateKey
from embit.util import key as curve

from tests.shapes import asdict, replace
from tests.wallet import listings as ls
from tests.worlds.signer import USER, Bench, fixed_keys
from wallet.keystore.keys import Keystore
from wallet.policy import PLAY_VENUE
from wallet.protocol import WithdrawalToSign
from wallet.psbt.common import OutpointFacts
from wallet.psbt.transaction import Outpoint
from wallet.signer.withdrawals import sign_withdrawal
from wallet.withdrawal import ApprovedWithdrawal, check_withdrawal

PAYMENT_SCRIPT, VAULT_SCRIPT = ls.script_by("p2wpkh", ls.PAYMENT), ls.script_by("p2tr", ls.VAULT)
STRANGER_SCRIPT = ls.script_by("p2tr", ls.STRANGER)
PUBKEY = ls.PAYMENT.get_public_key().sec()
COIN, AMOUNT, FEE = 60_000, 100_000, 2_000


def multisig(required: int, *keys: PrivateKey) -> bytes:
    return bytes(script.multisig(required, [each.get_public_key() for each in keys]).data)


@functools.cache
def p2wsh(witness_script: bytes) -> bytes:
    return bytes(script.p2wsh(script.Script(witness_script)).data)


WALLET = multisig(2, ls.PAYMENT, ls.VENUE)


def facts_of(outpoint: str, value: int, paid: bytes, **changes: Any) -> OutpointFacts:
    known = OutpointFacts(Outpoint.parse(outpoint), value, paid, True, True, (), (), ls.TIP, ls.TIP - 1)
    return replace(known, **changes)


@dataclass
class Case:
    """A PSBT that takes AMOUNT out of a bidding wallet, with everything else that decides on it."""

    draft: ls.Draft
    facts: dict[str, OutpointFacts]
    amount: int = AMOUNT
    coins: tuple[str, ...] = ()
    key: PrivateKey = ls.PAYMENT

    def check(self) -> ApprovedWithdrawal:
        public_key = self.key.get_public_key().sec()
        coins = self.coins or outpoints(self.draft)
        paid = ls.script_by("p2wpkh", self.key)
        return check_withdrawal(self.draft.encode(), self.amount, coins, self.facts, public_key, paid)

    def sign(self) -> bytes:
        return sign_withdrawal(self.check(), self.key)

    def copy(self) -> Case:
        return replace(self, draft=copy.deepcopy(self.draft), facts=dict(self.facts))


def outpoints(draft: ls.Draft) -> tuple[str, ...]:
    return tuple(f"{spend.txid[::-1].hex()}:{spend.vout}" for spend in draft.spends)


def wallet_spend(at: int = 0, witness_script: bytes = WALLET, value: int = COIN) -> ls.Spend:
    """Returns an input of the bidding wallet, a different one for each `at`."""
    made_by = ls.former(p2wsh(witness_script), value, at)
    fields = [
        (b"\x00", made_by),
        (b"\x01", ls.output(value, p2wsh(witness_script))),
        (b"\x03", struct.pack("<I", 1)),
        (b"\x05", witness_script),
    ]
    return ls.Spend(ls.txid_of(made_by), at, fields=fields)


def honest(witness_script: bytes = WALLET) -> Case:
    """Two coins, AMOUNT to the payment address, the rest back."""
    return _case([wallet_spend(at, witness_script) for at in range(2)], p2wsh(witness_script))


def _case(spends: list[ls.Spend], paid: bytes) -> Case:
    draft = ls.Draft(spends, [ls.Pay(AMOUNT, PAYMENT_SCRIPT), ls.Pay(2 * COIN - AMOUNT - FEE, paid)])
    return Case(draft, {each: facts_of(each, COIN, paid) for each in outpoints(draft)})


def both_must_sign(*keys: PrivateKey) -> bytes:
    """A leaf that all of these must sign for."""
    first, *others = [b"\x20" + each.get_public_key().xonly() for each in keys]
    return first + b"\xac" + b"".join(key + b"\xba" for key in others) + bytes([0x50 + len(keys), 0x9C])


@dataclass(frozen=True)
class Leaf:
    """A leaf of a taproot wallet with another one beside it; the arithmetic is embit's in Python, not libsecp256k1."""

    script: bytes = both_must_sign(ls.PAYMENT, ls.VENUE)
    version: int = 0xC0
    beside: tuple[bytes, ...] = (b"\x51" * 32,)
    internal: PrivateKey = ls.VENUE

    @property
    def hash(self) -> bytes:
        return bytes(curve.TaggedHash("TapLeaf", bytes([self.version]) + ls.with_size(self.script)))

    @property
    def root(self) -> bytes:
        found = self.hash
        for other in self.beside:
            found = bytes(curve.TaggedHash("TapBranch", min(found, other) + max(found, other)))
        return found

    @property
    def output(self) -> tuple[bytes, bool]:
        """The output's script, and whether its key is odd."""
        internal = self.internal.get_public_key().xonly()
        key, is_odd = curve.tweak_add_pubkey(internal, curve.TaggedHash("TapTweak", internal + self.root))
        return b"\x51\x20" + key, is_odd

    @property
    def control_block(self) -> bytes:
        internal = self.internal.get_public_key().xonly()
        return bytes([self.version | self.output[1]]) + internal + b"".join(self.beside)

    def spend(self, at: int) -> ls.Spend:
        paid = self.output[0]
        made_by = ls.former(paid, COIN, at)
        fields = [
            (b"\x01", ls.output(COIN, paid)),
            (b"\x15" + self.control_block, self.script + bytes([self.version])),
            (b"\x17", self.internal.get_public_key().xonly()),
            (b"\x18", self.root),
        ]
        return ls.Spend(ls.txid_of(made_by), at, fields=fields)

    def honest(self) -> Case:
        """As `honest`, out of a wallet with this leaf."""
        return _case([self.spend(at) for at in range(2)], self.output[0])


def coin(number: int, value: int = COIN, paid: bytes = PAYMENT_SCRIPT, **changes: Any) -> tuple[str, OutpointFacts]:
    """Returns an output of ours, and what is known of it."""
    outpoint = f"{number:064x}:{number % 7}"
    return outpoint, facts_of(outpoint, value, paid, **changes)


ITEM = coin(500, 10_000, VAULT_SCRIPT, inscriptions=(ls.INSCRIPTION,))
COINS = dict([coin(1), coin(2), coin(3, 25_000)])
VAULT_COINS = dict([coin(600, 40_000, VAULT_SCRIPT), coin(601, 30_000, VAULT_SCRIPT)])


def intent(number: int) -> str:
    return f"{number:040x}"


def from_payment(number: int = 1, **changes: Any) -> WithdrawalToSign:
    fields = {"coins": tuple(COINS), "fee_per_kvb": 10_000}
    return WithdrawalToSign(**{"intent": intent(number), "user": USER, "source": "payment", **fields, **changes})


def of_inscription(number: int = 1, **changes: Any) -> WithdrawalToSign:
    fields = {
        "coins": (ITEM[0],),
        "fee_coins": tuple(COINS)[:1],
        "inscription_id": ls.INSCRIPTION,
        "fee_per_kvb": 10_000,
    }
    return WithdrawalToSign(**{"intent": intent(number), "user": USER, "source": "vault", **fields, **changes})


def from_bidding(number: int = 1, case: Case | None = None, **changes: Any) -> WithdrawalToSign:
    case = case or honest()
    psbt = base64.b64encode(case.draft.encode()).decode()
    fields = {"coins": outpoints(case.draft), "amount_sats": case.amount, "venue": PLAY_VENUE, "psbt": psbt}
    return WithdrawalToSign(**{"intent": intent(number), "user": USER, "source": "bidding", **fields, **changes})


@dataclass
class Desk(Bench):
    """A signer whose user has the keys of `listings.py`; `facts` are all that is known of outputs."""

    facts: dict[str, OutpointFacts] = field(
        default_factory=lambda: {**COINS, **VAULT_COINS, ITEM[0]: ITEM[1], **honest().facts}
    )

    def keystore(self) -> Keystore:
        keys = fixed_keys(USER)
        keys.users = (USER,)  # type: ignore[misc]
        return keys

    def known(self, asked: dict[str, Any]) -> dict[str, OutpointFacts]:
        return self.facts

    def sign(self, asked: WithdrawalToSign) -> dict[str, Any]:
        return self.ask("sign_withdrawal", withdrawal=asdict(asked))


desk = Desk.opened


def runs(raw: bytes, spent: list[tuple[int, bytes]]) -> bool:
    """Tells whether btclib's consensus engine takes every input of the signed transaction `raw`."""
    engine: ModuleType = pytest.importorskip("btclib.script.engine")
    from btclib.exceptions import BTClibException
    from btclib.tx.tx import Tx
    from btclib.tx.tx_out import TxOut

    try:
        tx = Tx.parse(raw)
        prevouts = [TxOut(value, script_pubkey) for value, script_pubkey in spent]
        engine.verify_transaction(prevouts, tx)
    except (BTClibException, ValueError, IndexError):
        return False
    return True
