"""Withdrawals as they are asked for, and a chain for the service: coins by address, and what was broadcast."""

from __future__ import annotations

from typing import Any

from markets.base import NotFound, OutpointFacts, Unavailable, Utxo, Whereabouts
from models.ledger import withdrawals
from models.ledger.withdrawals import Withdrawal
from tests.worlds.service import OWNER, START_MS, Service, keys_of
from wallet.address import parse
from wallet.psbt.script import script_of

KEYS = keys_of(OWNER)
INSCRIPTION = "7" * 64 + "i0"
ITEM = "aa" * 32 + ":0"


def script(address: str) -> str:
    found = script_of(parse(address))
    assert found is not None
    return found.hex()


def coin(number: int, value: int = 50_000, *, confirmed: bool = True) -> Utxo:
    return Utxo(f"{number:064x}:0", value, confirmed)


class Chain:
    """Coins by address, and what lies on each; what is broadcast is kept."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.coins: dict[str, list[Utxo]] = {}
        self.facts: dict[str, OutpointFacts] = {}
        self.sent: list[str] = []
        self.seen: dict[str, bool] = {}
        answers = service.gateway.answers
        answers["coins"] = lambda address: tuple(self.coins.get(address, ()))
        answers["outpoint"] = lambda outpoint: self.facts.get(outpoint, Unavailable("no source answers"))
        answers["is_confirmed"] = lambda txid: self.seen.get(txid, NotFound("Transaction not found"))
        answers["broadcast"] = self.broadcast

    def put(self, address: str, *coins: Utxo, **facts: Any) -> None:
        self.coins.setdefault(address, []).extend(coins)
        for each in coins:
            known = {"inscriptions": (), "runes": (), "tip_height": 900_000, "index_height": 900_000} | facts
            self.facts[each.outpoint] = OutpointFacts(
                outpoint=each.outpoint,
                value=each.value,
                script=script(address),
                is_unspent=True,
                is_confirmed=each.is_confirmed,
                spent_by=None,
                **known,
            )

    def broadcast(self, transaction: str) -> Any:
        self.sent.append(transaction)
        row = withdrawals.newest(self.service.user_id, 1)[0]
        self.seen[row.txid or ""] = False
        return row.txid


def in_vault(service: Service, chain: Chain) -> None:
    chain.put(KEYS["vault"], Utxo(ITEM, 10_000, True), inscriptions=(INSCRIPTION,))
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, ITEM, KEYS["vault"], 10_000, START_MS)


WITHDRAW = "/api/wallet/withdraw"


async def withdraw(service: Service, **body: Any) -> Any:
    return await service.ask(
        "POST", WITHDRAW, {"from" if name == "from_" else name: each for name, each in body.items()}
    )


def row() -> Withdrawal:
    (found,) = Withdrawal.select()
    return found
