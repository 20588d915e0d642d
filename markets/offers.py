"""Values that cross the gateway's socket for a venue that drafts its bids itself, or that needs a sign-in.

Prices are sats of the whole order, PSBTs and signatures base64, keys hex. Nothing in a venue's draft is true until it
was checked against the intent. Workers import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from core.fields import Outpoint, matching, within
from markets.base import Kind, Reference, Signature, Slug, SomeSats, Trait, Word, check_goods, check_outputs

MOST_COINS = 100
MOST_SIGN_IN_TEXTS = 4
LONGEST_SIGN_IN_TEXT = 2000  # characters

Pubkey = Annotated[str, matching("0[23][0-9a-f]{64}")]  # compressed
InternalKey = Annotated[str, matching("[0-9a-f]{64}")]  # of a taproot address, x-only
TextId = Annotated[str, matching("[!-~]{1,200}")]


class Pair(Struct, frozen=True, forbid_unknown_fields=True):
    """The two addresses that a session binds, with their public keys.

    `payment_pubkey` is compressed (66 digits); `ordinals_pubkey` the x-only internal key (64) of a taproot address.
    """

    payment: Word
    payment_pubkey: Pubkey
    ordinals: Word
    ordinals_pubkey: InternalKey


class Coin(Struct, frozen=True, forbid_unknown_fields=True):
    """An output of the payment address that a bid may spend: `outpoint` as txid:vout, `value` in sats."""

    outpoint: Outpoint
    value: SomeSats


class BidToDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A bid to be drafted: `price` of the whole order, valid for `valid_hours`, paid with some of `coins`.

    `payment` pays, `ordinals` receives the goods; the keys are as in `Pair`.
    """

    price: SomeSats
    quantity: Decimal
    slug: Slug
    kind: Kind
    trait: Trait | None
    payment: Word
    payment_pubkey: Pubkey
    ordinals: Word
    ordinals_pubkey: InternalKey
    valid_hours: Annotated[int, within(1, 24 * 366)]
    coins: Annotated[tuple[Coin, ...], Meta(max_length=MOST_COINS)]

    def check(self) -> None:
        """Raises ValueError for goods or coins that are none."""
        check_goods(self.kind, self.quantity, self.slug, self.trait)
        check_outputs(*(coin.outpoint for coin in self.coins))


class DraftPsbt(Struct, frozen=True, forbid_unknown_fields=True):
    """A PSBT whose inputs at `indices` the venue wants signed with `sighash` (None = the default of the input).

    `role` is its purpose in the venue's words (such as "funding").
    """

    role: str
    psbt: str
    indices: tuple[int, ...]
    sighash: int | None


class BidDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """The PSBTs that the venue wants signed for a bid. `reference` goes back unchanged with the signed ones.

    `leaf` is the script, in hex, by which the venue may spend the escrow that they pay to; empty where it tells none.
    """

    reference: str
    psbts: tuple[DraftPsbt, ...]
    leaf: str = ""


class SignInText(Struct, frozen=True, forbid_unknown_fields=True):
    """A text that `address` must sign by BIP-322; `id` names it in the answer."""

    id: str
    message: str
    address: str


class SignInTexts(Struct, frozen=True, forbid_unknown_fields=True):
    """The texts that the venue wants signed before it opens a session; `reference` goes back with the signatures."""

    reference: str
    texts: tuple[SignInText, ...]


class SignInAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """The signatures, base64, by the ids of the texts."""

    pair: Pair
    reference: Reference
    signatures: Annotated[Mapping[TextId, Signature], Meta(min_length=1, max_length=MOST_SIGN_IN_TEXTS)]
