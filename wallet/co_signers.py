"""The keys of marketplaces that together may spend a bid's escrow: pinned, since no signature of ours binds them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from core.settings import PLAY_MARKET, Settings

SETTING = "BIDKEEPER_ORDNET_CO_SIGNERS"


class CoSigners(NamedTuple):
    """The x-only keys that all must sign with: the market's own, its gate's, its enclave's."""

    market: bytes
    gate: bytes
    enclave: bytes


# The practice market's own, which nobody else has.
PRACTICE_CO_SIGNERS: Mapping[str, CoSigners] = MappingProxyType(
    {
        f"{PLAY_MARKET}-ordnet": CoSigners(
            bytes.fromhex("28e4d123544dcb211954cfac57d0d4d89c26e59d3e69d38a132dc52e26ed1258"),
            bytes.fromhex("a03699e15bce47a25133d5633e161b589e51c45d0cc3a968d194261360404c3e"),
            bytes.fromhex("18b916a21b7c7574b5da61b952a7dde278470d243bea389e53a0f3a7ae402131"),
        )
    }
)


def co_signers_of(settings: Settings) -> Mapping[str, CoSigners]:
    """Returns the pinned keys by venue. Without the operator's own there are the practice market's only."""
    if settings.ordnet_co_signers is None:
        return PRACTICE_CO_SIGNERS
    return {**PRACTICE_CO_SIGNERS, "ordnet": CoSigners(*map(bytes.fromhex, settings.ordnet_co_signers))}
