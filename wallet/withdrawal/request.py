"""Requests and answers about withdrawals between signer and server, and their strict reading.

Standard library only: the client imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Decimal
from typing import Any, Literal

from wallet import protocol
from wallet.protocol import MAX_COINS, MAX_PSBT_TEXT, MAX_SATS, RequestError

Source = Literal["bidding", "payment", "vault", "escrow"]

SOURCES: tuple[Source, ...] = ("bidding", "payment", "vault", "escrow")
WITHDRAWAL_INTENT_DIGITS = 40
MAX_FEE_PER_KVB = 10_000_000
VIRTUAL_KB = 1000
# Sats for 1000 vB. The least is the nodes' relay minimum; the most is above any price that blocks have had for long.
LEAST_FEE_PER_KVB, MOST_FEE_PER_KVB = 1_000, 300_000


@dataclass(frozen=True, slots=True)
class WithdrawalToSign:
    """Coins of a user to be sent to their own address. `intent` is 40 hex digits and names it for ever.

    From `payment` or `vault` all of `coins` (`txid:vout`) are spent and `amount_sats` of them (None: all, less the fee)
    go to the address that `user` signs in with; the signer writes the transaction. With an `inscription_id` the one
    coin, of the vault or of an escrow of the vault's key, goes there whole, and `fee_coins` of the payment address pay
    for it. `fee_per_kvb` is sats for 1000 vB: 12.5 sat/vB are 12,500.

    From `escrow` the inscription goes back to the vault instead.

    From `bidding` `psbt` (base64) is `venue`'s draft that takes `amount_sats` out of its wallet to the payment address.
    """

    intent: str
    user: str
    source: Source
    coins: tuple[str, ...]
    fee_coins: tuple[str, ...] = ()
    inscription_id: str = ""
    amount_sats: int | None = None
    fee_per_kvb: int = 0
    venue: str = ""
    psbt: str = ""


@dataclass(frozen=True, slots=True)
class SignedWithdrawal:
    """A signed withdrawal: either `transaction` in hex, ready for the network, or a `psbt` that the venue completes.

    `sent_sats` arrive, `fee_sats` are the network's. `txid` is final.
    """

    txid: str
    transaction: str
    psbt: str
    sent_sats: int
    fee_sats: int


def read_withdrawal(value: Any) -> WithdrawalToSign:
    """Reads a withdrawal from the socket; fields its source does not use must be empty. Raises RequestError."""
    if not isinstance(value, dict):
        raise RequestError("withdrawal must be an object")
    names = [field.name for field in fields(WithdrawalToSign)]
    fresh = dict(zip(names, protocol.take(value, *names), strict=True))
    source, amount = fresh["source"], fresh["amount_sats"]
    if source not in SOURCES:
        raise RequestError(f"source must be one of {', '.join(SOURCES)}")
    coins, fee_coins = _coins("coins", fresh["coins"]), _coins("fee_coins", fresh["fee_coins"])
    if len(coins) + len(fee_coins) > MAX_COINS or len({*coins, *fee_coins}) != len(coins) + len(fee_coins):
        raise RequestError(f"coins must be different ones, {MAX_COINS} at most")
    read = WithdrawalToSign(
        intent=protocol.hex_text("intent", fresh["intent"], WITHDRAWAL_INTENT_DIGITS),
        user=protocol.text("user", fresh["user"]),
        source=source,
        coins=coins,
        fee_coins=fee_coins,
        inscription_id=protocol.inscription_or_nothing(fresh["inscription_id"]),
        amount_sats=None if amount is None else protocol.whole("amount_sats", amount, 1, MAX_SATS),
        fee_per_kvb=protocol.whole("fee_per_kvb", fresh["fee_per_kvb"], 0, MAX_FEE_PER_KVB),
        venue=protocol.text_or_nothing("venue", fresh["venue"]),
        psbt=_psbt(fresh["psbt"]),
    )
    _refuse_leftovers(read)
    return read


def _refuse_leftovers(read: WithdrawalToSign) -> None:
    if read.source == "bidding":
        if read.amount_sats is None or not read.venue or not read.psbt:
            raise RequestError("bidding needs amount_sats, venue and psbt")
        if read.fee_coins or read.inscription_id or read.fee_per_kvb:
            raise RequestError("bidding takes neither fee_coins, inscription_id nor fee_per_kvb")
    elif read.venue or read.psbt:
        raise RequestError(f"{read.source} takes neither venue nor psbt")
    elif read.inscription_id:
        is_one = read.source in ("vault", "escrow") and len(read.coins) == 1
        if not is_one or not read.fee_coins or read.amount_sats is not None:
            raise RequestError("an inscription is one coin of the vault, with fee_coins and without amount_sats")
    elif read.source == "escrow":
        raise RequestError("escrow needs an inscription_id")
    elif read.fee_coins:
        raise RequestError("fee_coins are for an inscription")
    if not read.coins:
        raise RequestError("coins are missing")


def per_kvb(rate: Decimal) -> int:
    """Returns a fee rate of sats for a virtual byte as sats for 1000, rounded up."""
    return int((rate * VIRTUAL_KB).to_integral_value(ROUND_CEILING))


def as_request(withdrawal: WithdrawalToSign) -> Mapping[str, Any]:
    """Returns the JSON object that `read_withdrawal` reads."""
    plain = {field.name: getattr(withdrawal, field.name) for field in fields(WithdrawalToSign)}
    return plain | {"coins": list(withdrawal.coins), "fee_coins": list(withdrawal.fee_coins)}


def from_request(kept: Mapping[str, Any]) -> WithdrawalToSign:
    """Reads a stored object that `as_request` made."""
    return WithdrawalToSign(
        **{**kept, "coins": tuple(kept["coins"]), "fee_coins": tuple(kept["fee_coins"])},
    )


def _coins(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise RequestError(f"{name} must be a list of outpoints")
    return tuple(protocol.read_outpoint(each) for each in value[: MAX_COINS + 1])


def _psbt(value: Any) -> str:
    if type(value) is not str or len(value) > MAX_PSBT_TEXT or not value.isascii():
        raise RequestError(f"psbt must be base64 of at most {MAX_PSBT_TEXT} characters")
    return value
