"""A market that keeps listed items in its escrow, and a signer that knows the ways home."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from markets.base import Fees, OutpointFacts, Utxo
from tests.shapes import replace
from tests.workers.listing.listing_world import SECOND, ListingMarket, ListingSigner
from tests.worlds.worker import KEYS
from wallet.protocol import SignedWithdrawal, UserKeys, WithdrawalToSign
from wallet.signer_client import SignerUnavailable

ESCROW, HOME, COIN = "bc1pescrow", "44" * 32 + ":0", "55" * 32 + ":2"
OWN = replace(KEYS, escrows={ESCROW: "simulator"})


@dataclass
class EscrowMarket(ListingMarket):
    """Knows one coin of the payment address, and the network's fees."""

    coins_: list[Utxo] = field(default_factory=lambda: [Utxo(COIN, 50_000, True)])
    rate: Decimal = Decimal("7.5")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.facts[COIN] = OutpointFacts(COIN, 50_000, "0014", True, True, (), (), 9, 9, None)

    def coins(self, address: str, max_age_s: float) -> tuple[Utxo, ...]:
        self._turn("coins")
        assert address == KEYS.payment
        return tuple(self.coins_)

    def fees(self, max_age_s: float) -> Fees:
        self._turn("fees")
        return Fees(Decimal(9), Decimal(8), self.rate, Decimal(2), Decimal(1), self.clock())

    def strand(self) -> None:
        """The venue sends the transfer, and no sale."""
        self.move(ESCROW)

    def come_home(self) -> None:
        """The way home gets into a block."""
        self.chain(SECOND, is_unspent=False)
        self.chain(HOME)
        self.where, self.owner = HOME, KEYS.vault
        self.listed.clear()


@dataclass
class EscrowSigner(ListingSigner):
    ways_home: dict[str, WithdrawalToSign] = field(default_factory=dict)
    home_script: list[Any] = field(default_factory=list)
    judge_script: list[Any] = field(default_factory=list)
    home_fee: int = 1_500
    is_lost: bool = False

    def addresses(self, user_address: str) -> UserKeys:
        self._here()
        if self.is_lost:
            raise SignerUnavailable("away")
        return OWN

    def judge_withdrawal(self, asked: WithdrawalToSign) -> tuple[int, int]:
        if self.judge_script:
            raise self.judge_script.pop(0)
        return 546, self.home_fee

    def sign_withdrawal(self, asked: WithdrawalToSign) -> SignedWithdrawal:
        if self.home_script:
            raise self.home_script.pop(0)
        self.ways_home[asked.intent] = asked
        return SignedWithdrawal("44" * 32, "00", "", 546, 1_500)
