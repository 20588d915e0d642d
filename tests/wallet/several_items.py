"""Several items of one vault, each in an output of its own, listed by drafts whose outputs a venue may choose."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from tests.wallet.listings import PAYOUT_ADDRESS, PAYOUT_SCRIPT, TIP, VAULT, Draft, Pay, Spend, output, script_by
from wallet.psbt.listing import ListingIntent, OutpointFacts, Owner
from wallet.psbt.transaction import Outpoint

VAULT_SCRIPT = script_by("p2tr", VAULT)
POSTAGE = 546
_SCRIPTS = frozenset({VAULT_SCRIPT, PAYOUT_SCRIPT})
OWNER = Owner("p2tr", VAULT.get_public_key().sec(), _SCRIPTS, _SCRIPTS)


@dataclass(frozen=True)
class Item:
    number: int

    @property
    def outpoint(self) -> Outpoint:
        return Outpoint(hashlib.sha256(b"item %d" % self.number).digest(), self.number % 3)

    @property
    def inscription_id(self) -> str:
        return f"{self.number:064x}i0"

    @property
    def facts(self) -> OutpointFacts:
        return OutpointFacts(
            self.outpoint, POSTAGE, VAULT_SCRIPT, True, True, (self.inscription_id,), (), TIP, TIP, False
        )

    def intent(self, price: int) -> ListingIntent:
        return ListingIntent(self.inscription_id, self.outpoint, price, 1, PAYOUT_ADDRESS)

    def draft(self, sighash: int, pays: list[Pay], *, at: int = 0, version: int = 2) -> Draft:
        """With this item's input at index `at` and strangers' before it."""
        spends = [Spend(bytes([0x90 + n]) * 32, n) for n in range(at)]
        fields = [(b"\x01", output(POSTAGE, VAULT_SCRIPT)), (b"\x03", struct.pack("<I", sighash))]
        spends.append(Spend(self.outpoint.txid, self.outpoint.vout, fields=fields))
        return Draft(spends, pays, version)
