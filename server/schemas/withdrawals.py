"""The requests and answers of the caller's money here and its withdrawal."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PlainValidator

from models.ledger.withdrawals import STATES
from server.http.bodies import MAX_SATS, SATS, Body, Flag, number, one_of, read, text, whole_within, wrong
from server.schemas.answers import Answer
from server.schemas.listing.config import INSCRIPTION_ID
from wallet.protocol import LEAST_FEE_PER_KVB, MOST_FEE_PER_KVB, SOURCES, VIRTUAL_KB

State = Literal["reserved", "signed", "submitted", "unknown", "confirmed", "refused"]
From = Literal["bidding", "payment", "vault", "escrow"]
TIERS = ("fastestFee", "halfHourFee", "hourFee", "economyFee", "minimumFee")
_LEAST, _MOST = LEAST_FEE_PER_KVB // VIRTUAL_KB, MOST_FEE_PER_KVB // VIRTUAL_KB
_RATE = f"must be {', '.join(TIERS)}, or {_LEAST} to {_MOST} sat/vB with at most 3 decimals"
assert set(State.__args__) == set(STATES)  # type: ignore[attr-defined]


def _fee_rate(value: Any) -> str | Decimal:
    if isinstance(value, str):
        if text(value) not in TIERS:
            raise wrong(_RATE)
        return value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise wrong("must be text or a number")
    rate = number(value)
    exponent = rate.as_tuple().exponent
    if not _LEAST <= rate <= _MOST or not isinstance(exponent, int) or exponent < -3:
        raise wrong(_RATE)
    return rate


def _required(schema: dict[str, Any]) -> None:
    for name in ("from", "amountSats", "inscriptionId", "feeRate"):
        schema["properties"][name].pop("default", None)
    schema["required"] = ["from"]


class WithdrawalBody(Body):
    """The coins to be sent.

    There is no field for the destination: it is the address that the caller signs in with; from the marketplace's
    bidding wallet the caller's own payment address, and from an escrow the caller's vault.
    """

    model_config = ConfigDict(json_schema_extra=_required)

    from_: Annotated[
        str,
        one_of(SOURCES),
        Field(
            alias="from",
            description="`payment` and `vault` are addresses of the caller's here; `bidding` is the marketplace's; "
            "`escrow` is what a listed inscription passes through, and back to the vault is where it goes.",
        ),
    ] = ""
    amount_sats: Annotated[
        int | None,
        whole_within(1, MAX_SATS),
        Field(description="Sats that arrive; left out: all, less the network's fee."),
    ] = None
    inscription_id: Annotated[
        INSCRIPTION_ID,
        Field(description="From the vault, or an escrow: this inscription, its fee paid by the payment address."),
    ] = ""
    fee_rate: Annotated[
        str | Decimal,
        PlainValidator(_fee_rate, json_schema_input_type=str | float),
        Field(description="A tier (halfHourFee when left out) or sat/vB. A bidding wallet's fee is the marketplace's."),
    ] = ""
    dry_run: Annotated[Flag, Field(description="Only says what would be sent; nothing is signed.")] = False
    force: Annotated[
        Flag, Field(description="Also where open bids lose their cover, or a listing its inscription.")
    ] = False


def read_body(given: dict[str, Any]) -> tuple[WithdrawalBody, list[str]]:
    """Reads the withdrawal from `given` (a JSON object), and all its faults as details."""
    body, faults = read(WithdrawalBody, given)
    named = {name for name, _ in faults}
    if "from" not in given and "from" not in named:
        faults.append(("from", "is required"))
    if body.inscription_id and body.from_ in ("payment", "bidding"):
        faults.append(("inscriptionId", "is for the vault and an escrow only"))
    if body.from_ == "escrow" and not body.inscription_id:
        faults.append(("inscriptionId", "is required from an escrow"))
    if body.inscription_id and body.amount_sats is not None:
        faults.append(("amountSats", "is not for an inscription, which goes with all that its output holds"))
    if body.from_ == "bidding" and body.fee_rate != "":
        faults.append(("feeRate", "is the marketplace's from a bidding wallet"))
    return body, [f"{name}: {fault}" for name, fault in faults]


class LeftOut(Answer):
    """A coin that is not spent, and why."""

    outpoint: str
    value_sats: SATS
    reason: str


class Withdrawal(Answer):
    """Money on its way out. Without a signature (yet) the amounts and the txid are null."""

    id: int
    from_: Annotated[From, Field(alias="from")]
    venue: Annotated[str | None, Field(description="Whose bidding wallet it leaves.")]
    inscription_id: str | None
    destination: Annotated[str, Field(description="The caller's own address that it goes to.")]
    state: Annotated[
        State,
        Field(
            description="`submitted`: the network has it, no block yet. `unknown`: it was sent, and nobody can say at "
            "the moment whether it arrived; it is looked up and sent again until that is clear. `refused`: it was not "
            "taken, and its coins are free again."
        ),
    ]
    sent_sats: SATS | None
    fee_sats: SATS | None
    txid: str | None
    reason: str | None
    coins: Annotated[list[str], Field(description="The outputs that it spends.")]
    created_at: datetime
    updated_at: datetime


class NewWithdrawal(Withdrawal):
    """A withdrawal that was just asked for."""

    left_out: list[LeftOut]


class Quote(Answer):
    """The amounts of a possible withdrawal."""

    dry_run: Literal[True]
    from_: Annotated[From, Field(alias="from")]
    destination: str
    sent_sats: SATS
    fee_sats: SATS
    coins: list[str]
    left_out: list[LeftOut]


class MarketplaceWallet(Answer):
    """The marketplace's wallet that pays for the caller's bids."""

    address: str
    balance_sats: Annotated[int, Field(ge=0)]


class FundingRow(Answer):
    """The place whose sats back the caller's bids at one marketplace."""

    venue: str
    from_: Annotated[
        Literal["bidding", "payment"], Field(alias="from", description="What a withdrawal names to get the sats out.")
    ]
    address: Annotated[str | None, Field(description="Send sats here. Null while the marketplace does not tell it.")]
    balance_sats: Annotated[int | None, Field(ge=0)]
    backs: Annotated[str, Field(description="How these sats back bids.")]
    way_out: Annotated[str, Field(description="How they come out again.")]


class Receiver(Answer):
    """An address that gets what is bought."""

    deliver_to: Literal["ordinalsAddress", "vault"]
    address: str
    tasks: Annotated[list[int], Field(description="The bidding tasks that deliver there.")]


class Wallet(Answer):
    """The caller's addresses here, the money behind their bids, and withdrawals on their way."""

    payment: Annotated[
        str, Field(description="Bids are signed by this address's key. Which address backs them is told by `funding`.")
    ]
    vault: Annotated[str, Field(description="Listings are signed here.")]
    ordinals_address: str
    receives: Annotated[list[Receiver], Field(description="Which address gets what is bought, by `deliverTo`.")]
    bidding_wallet: MarketplaceWallet | None
    exposure: Annotated[int, Field(ge=0, description="Sats of all orders that are not closed.")]
    worst_loss: Annotated[
        int | None,
        Field(
            ge=0,
            description="The most that bids can ever cost: the balances of all addresses that back them, each counted "
            "once. Null while one is unknown.",
        ),
    ]
    if_all_fill_now: Annotated[
        int | None,
        Field(
            ge=0,
            description="The most that is spent if every open order is filled now: at each address, its open orders or "
            "its balance, whichever is less. Null with `worstLoss`.",
        ),
    ]
    signed_sats: Annotated[
        int | None,
        Field(
            ge=0,
            description="Sats of bids that are signed and not expired, whether or not they were cancelled since. Null "
            "while the signer cannot be asked.",
        ),
    ]
    signed_limit_sats: Annotated[
        int | None, Field(ge=0, description="What signedSats may come to: no bid is signed above it.")
    ]
    signed_free_at: Annotated[
        str | None,
        Field(description="When the next signature expires, which makes room for others; null: there is none."),
    ]
    balance_error: Annotated[
        str, Field(description="Why biddingWallet is null: there is none yet, or the marketplace cannot be read.")
    ] = ""
    payment_sats: Annotated[
        int | None, Field(ge=0, description="Confirmed sats at the payment address; null when that cannot be read.")
    ]
    funding: Annotated[
        list[FundingRow], Field(description="The address that backs bids, for each marketplace that takes any.")
    ]
    withdrawals: Annotated[list[Withdrawal], Field(description="The latest ten, newest first.")]
