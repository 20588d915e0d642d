"""`bidkeeper wallet ADDRESS`: a user's addresses, each with its purpose, its sats and their way out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from cli.arguments import address
from cli.migrate import migrate
from core.errors import BidkeeperError
from core.settings import Settings
from markets.base import NotFound, VenueError
from markets.client import MarketClient
from markets.venues import Funding, facts, funding_of
from models.database import base
from models.users import User
from wallet.protocol import UserKeys
from wallet.signer_client import SignerClient


def fundings(settings: Settings) -> Iterator[Funding]:
    """Yields the funding of bids at each venue of this installation that takes bids."""
    for venue in settings.venues:
        if funding := funding_of(facts(venue, is_default=venue == settings.market).capabilities):
            yield funding


def funds(market: MarketClient, funding: Funding, keys: UserKeys, receive: str) -> tuple[str, int]:
    """Returns the address to fund and the sats there now. Raises VenueError; NotFound without a wallet yet."""
    if funding.place == "bidding":
        wallet = market.at(funding.venue).balance(keys.payment, receive, keys.payment_pubkey, 0.0)
        return wallet.address, wallet.sats
    return keys.payment, confirmed(market, keys.payment)


def confirmed(market: MarketClient, address: str) -> int:
    """Returns the confirmed sats at an address. Raises VenueError."""
    return sum(coin.value for coin in market.coins(address, 0.0) if coin.is_confirmed)


PATIENCE_S = 15.0


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds ADDRESS."""
    parser.add_argument("address", type=address, help="the address that the user signs in with")


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the addresses. Raises BidkeeperError when the user is not known, or the service does not run."""
    receive = receive_of(settings, options.address)
    keys = SignerClient(settings.signer_socket, PATIENCE_S).addresses(options.address)
    with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
        for line in _lines(settings, market, keys, receive):
            print(line)
    return 0


def receive_of(settings: Settings, address: str) -> str:
    """Returns where a user's bids deliver to. Raises BidkeeperError for an address that has never signed in."""
    migrate(settings)
    base.connect(settings.database_url)
    try:
        user = User.get_or_none(User.address == address)
        if user is None:
            raise BidkeeperError(f"{address} has never signed in here: bidkeeper sign-in {address}")
        return str(user.ordinals_address)
    finally:
        base.close()


def _lines(settings: Settings, market: MarketClient, keys: UserKeys, receive: str) -> Iterator[str]:
    yield f"payment  {keys.payment}  {_sats_at(market, keys.payment)}"
    yield "         signs bids; what comes out of a bidding wallet, and the price of what is sold, arrives here"
    yield f"vault    {keys.vault}"
    yield "         send inscriptions here that are to be listed; rare sats and runes do not belong here"
    yield f"bought   {receive}"
    yield "         what bids buy is delivered here, or to the vault by a task whose deliverTo says so"
    for funding in fundings(settings):
        yield ""
        yield f"{funding.venue}: fund {_place(market, funding, keys, receive)}"
        yield f"         {funding.backs}"
        yield f"         out: {funding.way_out}"
    yield ""
    yield 'out      POST /api/wallet/withdraw {"from": "payment", "dryRun": true}; docs/withdrawing.md'


def _place(market: MarketClient, funding: Funding, keys: UserKeys, receive: str) -> str:
    try:
        address, sats = funds(market, funding, keys, receive)
    except NotFound:
        return "nothing yet: the marketplace has no bidding wallet for these addresses"
    except VenueError as error:
        return f"nothing now: {error.message}"
    return f"{address}  {sats:,} sats"


def _sats_at(market: MarketClient, address: str) -> str:
    try:
        return f"{confirmed(market, address):,} sats confirmed"
    except VenueError as error:
        return f"(its coins cannot be read: {error.message})"
