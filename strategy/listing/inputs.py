"""The inputs and the result of a decision about a listing."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from strategy.book import Ask
from strategy.config.listing import ListingConfig
from strategy.reasons import Reason

InscriptionState = Literal["held", "moved", "spent", "pending", "unknown"]
Action = Literal["list", "reprice", "keep", "wait", "pause", "ended"]


@dataclass(frozen=True, slots=True)
class Listed:
    """Our listing: its price in sats, and the time since which it has had that price."""

    price: int
    since_ms: int


@dataclass(frozen=True, slots=True)
class ListingInputs:
    """The inputs of one cycle of an auto-list task. Prices in sats; None is unknown.

    `asks` is the whole book with our own listings, () when nothing is listed; `trait_asks` are those known to have
    `config.trait`. `own_wallets` are the addresses whose asks are ours, or to be ignored. `fee_ppm` is the venue's fee
    of a sale, in millionths of the price. `median_60m` is of the asks that the price depends on. `last_sales` are the
    prices of the collection's recent sales, newest first.

    `listed` is our listing, with `missing_reads` as it was when last seen; `own_read` False says that our listings
    could not be read. `highest_last_hour` is the highest price at which the inscription was listed at any time within
    the last hour, `delistings_last_hour` the number of times that the venue dropped the listing by itself.
    `missing_reads` counts the good reads in a row that do not show our listing.

    `inscription_state`: the inscription is on the output that the listing was (or would be) signed for `held`, on
    another output of ours `moved`, is gone `spent`, about to be moved by an unconfirmed transaction `pending`, or
    `unknown`.
    """

    now_ms: int
    config: ListingConfig
    tick: int
    fee_ppm: int
    asks: tuple[Ask, ...] | None
    trait_asks: tuple[Ask, ...] | None
    own_wallets: frozenset[str]
    median_60m: Decimal | None
    last_sales: tuple[int, ...] | None
    listed: Listed | None
    own_read: bool
    highest_last_hour: int | None
    delistings_last_hour: int
    missing_reads: int
    inscription_state: InscriptionState


@dataclass(frozen=True, slots=True)
class ListingPlan:
    """The action, the resulting price, one reason, and `note` with the same in words.

    `list` signs a listing at `price` if there is none, or none that can be filled; `reprice` replaces the live one.
    `keep` leaves the listing at `price` (None if unknown) as it is. `wait`, `pause` and `ended` sign nothing: for now,
    until the venue stops dropping the listing, and for good.
    """

    action: Action
    price: int | None
    reason: Reason
    note: str
