"""Values that cross the gateway's socket for a venue that drafts its bids itself, or that needs a sign-in.

Prices are sats of the whole order, PSBTs and signatures base64, keys hex. Nothing in a venue's draft is true until it
was checked against the intent. Standard library only: workers import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from markets.base import Kind

MOST_DRAFTED = 8  # PSBTs of one bid
MOST_COINS = 100
MOST_SIGN_IN_TEXTS = 4
LONGEST_SIGN_IN_TEXT = 2000  # characters
LONGEST_REFERENCE = 4096  # characters: some venues hand out a signed token


@dataclass(frozen=True, slots=True)
class Pair:
    """The two addresses that a session binds, with their public keys.

    `payment_pubkey` is compressed (66 digits); `ordinals_pubkey` the x-only internal key (64) of a taproot address.
    """

    payment: str
    payment_pubkey: str
    ordinals: str
    ordinals_pubkey: str


@dataclass(frozen=True, slots=True)
class Coin:
    """An output of the payment address that a bid may spend: `outpoint` as txid:vout, `value` in sats."""

    outpoint: str
    value: int


@dataclass(frozen=True, slots=True)
class BidToDraft:
    """A bid to be drafted: `price` of the whole order, valid for `valid_hours`, paid with some of `coins`.

    `payment` pays, `ordinals` receives the goods; the keys are as in `Pair`.
    """

    price: int
    quantity: Decimal
    slug: str
    kind: Kind
    trait: tuple[str, str] | None
    payment: str
    payment_pubkey: str
    ordinals: str
    ordinals_pubkey: str
    valid_hours: int
    coins: tuple[Coin, ...]


@dataclass(frozen=True, slots=True)
class DraftPsbt:
    """A PSBT whose inputs at `indices` the venue wants signed with `sighash` (None = the default of the input).

    `role` is its purpose in the venue's words (such as "funding").
    """

    role: str
    psbt: str
    indices: tuple[int, ...]
    sighash: int | None


@dataclass(frozen=True, slots=True)
class BidDraft:
    """The PSBTs that the venue wants signed for a bid. `reference` goes back unchanged with the signed ones.

    `leaf` is the script, in hex, by which the venue may spend the escrow that they pay to; empty where it tells none.
    """

    reference: str
    psbts: tuple[DraftPsbt, ...]
    leaf: str = ""


@dataclass(frozen=True, slots=True)
class SignInText:
    """A text that `address` must sign by BIP-322; `id` names it in the answer."""

    id: str
    message: str
    address: str


@dataclass(frozen=True, slots=True)
class SignInTexts:
    """The texts that the venue wants signed before it opens a session; `reference` goes back with the signatures."""

    reference: str
    texts: tuple[SignInText, ...]


@dataclass(frozen=True, slots=True)
class SignInAnswer:
    """The signatures, base64, by the ids of the texts."""

    pair: Pair
    reference: str
    signatures: Mapping[str, str]
