"""A withdrawal as it is asked for, and its row in the ledger."""

from __future__ import annotations

from typing import Any

from models.ledger.withdrawals import Withdrawal
from tests.server.conftest import Service

WITHDRAW = "/api/wallet/withdraw"


async def withdraw(service: Service, **body: Any) -> Any:
    return await service.ask(
        "POST", WITHDRAW, {"from" if name == "from_" else name: each for name, each in body.items()}
    )


def row() -> Withdrawal:
    (found,) = Withdrawal.select()
    return found
