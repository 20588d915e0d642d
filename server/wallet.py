"""The caller's addresses in this installation, the money behind their bids, and the maximum cost of those bids."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from msgspec import UNSET, UnsetType, field

from core.fields import Address, Count, iso, words
from core.settings import Settings
from markets.base import NotFound, VenueError
from markets.venues import Funding, Place, facts, funding_of
from models.accounts import READ
from models.ledger import orders, withdrawals
from models.ledger.limits import most_signed_user
from models.tasks.tasks import bidding_task_list
from server.http.answers import SIGNER_AWAY
from server.http.base import SignedIn, route
from server.http.blocking import UserMarket
from server.http.shapes import Answer
from server.withdraw import Withdrawal, look_after, withdrawal_shown
from strategy.config.bid import load_bid_config
from strategy.decision import SignedRoom
from wallet.protocol import UserKeys
from wallet.signer_client import SignerError

_MAX_AGE_S = 10.0
_NEWEST_WITHDRAWALS = 10
_PATIENCE_S = 3.0


class MarketplaceWallet(Answer, frozen=True, kw_only=True):
    """The marketplace's wallet that pays for the caller's bids."""

    address: Address
    balance_sats: Count


class FundingRow(Answer, frozen=True, kw_only=True):
    """The place whose sats back the caller's bids at one marketplace."""

    venue: str
    from_: Annotated[Place, words("What a withdrawal names to get the sats out.")] = field(name="from")
    address: Annotated[str | None, words("Send sats here. Null while the marketplace does not tell it.")]
    balance_sats: Count | None
    backs: Annotated[str, words("How these sats back bids.")]
    way_out: Annotated[str, words("How they come out again.")]


class Receiver(Answer, frozen=True, kw_only=True):
    """An address that gets what is bought."""

    deliver_to: Literal["ordinalsAddress", "vault"]
    address: Address
    tasks: Annotated[list[int], words("The bidding tasks that deliver there.")]


class Wallet(Answer, frozen=True, kw_only=True):
    """The caller's addresses here, the money behind their bids, and withdrawals on their way."""

    payment: Annotated[
        str, words("Bids are signed by this address's key. Which address backs them is told by `funding`.")
    ]
    vault: Annotated[str, words("Listings are signed here.")]
    ordinals_address: str
    receives: Annotated[list[Receiver], words("Which address gets what is bought, by `deliverTo`.")]
    bidding_wallet: MarketplaceWallet | None
    exposure: Annotated[Count, words("Sats of all orders that are not closed.")]
    worst_loss: Annotated[
        Count | None,
        words(
            "The most that bids can ever cost: the balances of all addresses that back them, each counted once. Null "
            "while one is unknown."
        ),
    ]
    if_all_fill_now: Annotated[
        Count | None,
        words(
            "The most that is spent if every open order is filled now: at each address, its open orders or its "
            "balance, whichever is less. Null with `worstLoss`."
        ),
    ]
    signed_sats: Annotated[
        Count | None,
        words(
            "Sats of bids that are signed and not expired, whether or not they were cancelled since. Null while the "
            "signer cannot be asked."
        ),
    ]
    signed_limit_sats: Annotated[Count | None, words("What signedSats may come to: no bid is signed above it.")]
    signed_free_at: Annotated[
        str | None, words("When the next signature expires, which makes room for others; null: there is none.")
    ]
    balance_error: (
        Annotated[str, words("Why biddingWallet is null: there is none yet, or the marketplace cannot be read.")]
        | UnsetType
    ) = UNSET
    payment_sats: Annotated[
        Count | None, words("Confirmed sats at the payment address; null when that cannot be read.")
    ]
    funding: Annotated[list[FundingRow], words("The address that backs bids, for each marketplace that takes any.")]
    withdrawals: Annotated[list[Withdrawal], words("The latest ten, newest first.")]


class Wallets(SignedIn):
    """The operation on the caller's addresses and money here."""

    tag = "wallet"

    @route(
        "GET /api/wallet",
        READ,
        says="`biddingWallet` is null, with `balanceError`, when it cannot be told.",
        errors={503: SIGNER_AWAY},
    )
    async def get_wallet(self) -> Wallet:
        """My addresses here and the money behind my bids

        With the balance behind the bids, what is signed, and the newest withdrawals.
        """
        keys = await self.ask_signer(lambda signer: signer.addresses(self.user.address))
        receive = self.user.ordinals_address
        # Read concurrently, so that a slow source does not hide the others.
        paying = asyncio.ensure_future(self._confirmed_sats(keys.payment))
        (wallet, trouble), payment_sats, behind, newest = await asyncio.gather(
            self._bidding_wallet(keys),
            paying,
            backings(self.services.settings, self.look, keys, receive, paying),
            self._withdrawals(),
        )
        open_sats = orders.exposure_by_venue(self.user.id)
        room = await self._signed_room()
        stake = at_stake(behind, open_sats)
        return Wallet(
            payment=keys.payment,
            vault=keys.vault,
            ordinals_address=receive,
            receives=self._receives(keys),
            bidding_wallet=wallet,
            exposure=sum(open_sats.values()),
            worst_loss=None if stake is None else stake.worst_loss,
            if_all_fill_now=None if stake is None else stake.if_all_fill_now,
            signed_sats=None if room is None else room.signed_sats,
            signed_limit_sats=None if room is None else room.most_sats,
            signed_free_at=None if room is None or room.frees_ms is None else iso(room.frees_ms),
            balance_error=trouble or UNSET,
            payment_sats=payment_sats,
            funding=[_funding_row(each) for each in behind],
            withdrawals=newest,
        )

    async def _bidding_wallet(self, keys: UserKeys) -> tuple[MarketplaceWallet | None, str | None]:
        """Returns the wallet, or None and the reason."""
        receive = self.user.ordinals_address
        try:
            balance = await self.look(
                lambda market: market.balance(keys.payment, receive, keys.payment_pubkey, _MAX_AGE_S)
            )
        except NotFound:
            return None, "the marketplace has no bidding wallet for these addresses yet"
        except VenueError as error:
            return None, error.message
        return MarketplaceWallet(address=balance.address, balance_sats=balance.sats), None

    async def _signed_room(self) -> SignedRoom | None:
        """Returns the use of the user's ceiling by all tasks; None if the signer does not respond."""
        plan, address = self.services.entitlements.plan(self.user), self.user.address
        most = most_signed_user(plan) if plan else 0
        try:
            rooms = await self.services.signer(lambda signer: signer.rooms_under(address, 0, 0, most))
        except SignerError:
            return None
        return next(room for room in rooms if room.whose == "user")

    def _receives(self, keys: UserKeys) -> list[Receiver]:
        """Returns the two possible delivery addresses, each with the bidding tasks that deliver there."""
        own = Receiver(deliver_to="ordinalsAddress", address=self.user.ordinals_address, tasks=[])
        vault = Receiver(deliver_to="vault", address=keys.vault, tasks=[])
        for task in bidding_task_list(self.user.id):
            (vault if load_bid_config(task.config).deliver_to == "vault" else own).tasks.append(task.id)
        return [own, vault]

    async def _confirmed_sats(self, payment: str) -> int | None:
        """Returns the confirmed sats at the payment address; None if they cannot be read."""
        try:
            coins = await self.look(lambda market: market.coins(payment, _MAX_AGE_S))
        except VenueError:
            return None
        return sum(coin.value for coin in coins if coin.is_confirmed)

    async def _withdrawals(self) -> list[Withdrawal]:
        """Returns the latest withdrawals, newest first; open ones are updated first, within a short time limit."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(look_after(self.services, withdrawals.open_of(self.user.id)), _PATIENCE_S)
        return [withdrawal_shown(row) for row in withdrawals.newest(self.user.id, _NEWEST_WITHDRAWALS)]


class Backing(NamedTuple):
    """The address and the sats behind the caller's bids at a venue, None if unknown.

    The sats are 0 as long as the wallet does not exist.
    """

    funding: Funding
    address: str | None
    sats: int | None


def _funding_row(found: Backing) -> FundingRow:
    funding = found.funding
    return FundingRow(
        venue=funding.venue,
        from_=funding.place,
        address=found.address,
        balance_sats=found.sats,
        backs=funding.backs,
        way_out=funding.way_out,
    )


async def backings(
    settings: Settings, ask: UserMarket, keys: UserKeys, receive: str, payment_sats: Awaitable[int | None]
) -> list[Backing]:
    """Returns the backing of bids at each venue that accepts bids."""
    known = (funding_of(facts(name, is_default=name == settings.market).capabilities) for name in settings.venues)
    return list(await asyncio.gather(*(_backing(ask, each, keys, receive, payment_sats) for each in known if each)))


class AtStake(NamedTuple):
    """The maximum cost of bids in sats: of any bids ever, and of the open orders."""

    worst_loss: int
    if_all_fill_now: int


def at_stake(found: Iterable[Backing], open_sats: Mapping[str, int]) -> AtStake | None:
    """Returns the sats at stake; `open_sats` has the sum of the open orders by venue.

    Each address counts once, with the lower of its balance and its own orders. None if a balance, or the backing of
    some orders, is unknown.
    """
    balances, wanted = dict[str, int](), Counter[str]()
    for each in found:
        if each.sats is None:
            return None
        address = each.address or each.funding.venue
        balances[address] = each.sats
        wanted[address] += open_sats.get(each.funding.venue, 0)
    if wanted.total() != sum(open_sats.values()):
        return None
    return AtStake(sum(balances.values()), sum(min(sats, wanted[address]) for address, sats in balances.items()))


async def _backing(
    ask: UserMarket, funding: Funding, keys: UserKeys, receive: str, payment_sats: Awaitable[int | None]
) -> Backing:
    if funding.place == "payment":
        return Backing(funding, keys.payment, await payment_sats)
    try:
        wallet = await ask(
            lambda market: market.at(funding.venue).balance(keys.payment, receive, keys.payment_pubkey, _MAX_AGE_S)
        )
    except NotFound:
        return Backing(funding, None, 0)
    except VenueError:
        return Backing(funding, None, None)
    return Backing(funding, wallet.address, wallet.sats)
