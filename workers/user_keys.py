"""The addresses and keys of a task's user, which a worker asks the signer for."""

from __future__ import annotations

from strategy.reasons import Step
from wallet.protocol import UserKeys
from wallet.signer_client import SignerError
from workers.context import Context
from workers.faults import Faults


def read_user_keys(context: Context, address: str, faults: Faults) -> UserKeys | None:
    """Asks the signer; returns None, with the fault noted, when it did not answer."""
    try:
        return context.signer.addresses(address)
    except SignerError as error:
        faults.add(Step.ADDRESSES, "get our addresses from the signer", error)
        return None
