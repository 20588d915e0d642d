"""`bidkeeper wallet|judge`: a user's addresses and their sats, or the signer's judgement of an unsigned listing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from cli.arguments import address, collection, inscription
from cli.database import migrated
from core.errors import BidkeeperError
from core.fields import MAX_SATS
from core.settings import VENUES, Settings
from markets.base import NotFound, VenueError
from markets.client import MarketClient
from markets.orders import ListingToDraft
from markets.venues import Funding, facts, funding_of
from models.users import User
from wallet.protocol import UserKeys, in_words, to_judge
from wallet.signer_client import SignerClient


def fundings(settings: Settings) -> Iterator[Funding]:
    """Yields the funding of bids at each venue of this installation that takes bids."""
    for venue in settings.venues:
        if funding := funding_of(facts(venue, is_default=venue == settings.market).capabilities):
            yield funding


def funds(market: MarketClient, funding: Funding, keys: UserKeys, receive: str) -> tuple[str, int]:
    """Returns the address to fund and its sats now. Raises VenueError; NotFound before there is a bidding wallet."""
    if funding.place == "bidding":
        wallet = market.at(funding.venue).balance(keys.payment, receive, keys.payment_pubkey, 0.0)
        return wallet.address, wallet.sats
    return keys.payment, confirmed(market, keys.payment)


def confirmed(market: MarketClient, address: str) -> int:
    """Returns the confirmed sats at an address. Raises VenueError."""
    return sum(coin.value for coin in market.coins(address, 0.0) if coin.is_confirmed)


PATIENCE_S = 15.0


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds ADDRESS, and for judge INSCRIPTION PRICE [--venue NAME] [--collection SLUG]."""
    parser.add_argument("address", type=address, help="the address that the user signs in with")
    if verb == "judge":
        parser.add_argument("inscription", type=inscription, help="the id of an inscription in that user's vault")
        parser.add_argument("price", type=_price, help="sats")
        text = "where to list it, if not at the default venue"
        parser.add_argument("--venue", choices=VENUES, metavar="NAME", help=text)
        text = "the inscription's collection, for ord.net"
        parser.add_argument("--collection", type=collection, metavar="SLUG", help=text)


def _price(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= MAX_SATS:
        raise argparse.ArgumentTypeError("a price is a whole number of sats above 0")
    return int(text)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Prints the addresses, or a judgement. Raises BidkeeperError if the user is unknown or a program is down."""
    if options.verb == "judge":
        return _judge(settings, options)
    receive = receive_of(settings, options.address)
    keys = SignerClient(settings.signer_socket, PATIENCE_S).addresses(options.address)
    with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
        for line in _lines(settings, market, keys, receive):
            print(line)
    return 0


def receive_of(settings: Settings, address: str) -> str:
    """Returns the address that a user's bids deliver to. Raises BidkeeperError if the user has never signed in."""
    with migrated(settings):
        user = User.get_or_none(User.address == address)
    if user is None:
        raise BidkeeperError(f"{address} has never signed in here: bidkeeper sign-in {address}")
    return str(user.ordinals_address)


def _lines(settings: Settings, market: MarketClient, keys: UserKeys, receive: str) -> Iterator[str]:
    try:
        yield f"payment  {keys.payment}  {confirmed(market, keys.payment):,} sats confirmed"
    except VenueError as error:
        yield f"payment  {keys.payment}  (its coins cannot be read: {error.message})"
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


def _judge(settings: Settings, options: argparse.Namespace) -> int:
    """Returns 0 if the draft would be signed, else 1; raises BidkeeperError if there is nothing to judge."""
    venue = options.venue or settings.market
    if problem := settings.why_no_venue(venue):
        raise BidkeeperError(problem)
    receive_of(settings, options.address)
    signer = SignerClient(settings.signer_socket, PATIENCE_S)
    keys = signer.addresses(options.address)
    with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
        item, slug = options.inscription, options.collection
        found = market.whereabouts(item, 0.0)
        if (outpoint := found.outpoint) is None or found.address != keys.vault:
            where = found.address or "no address"
            raise BidkeeperError(f"the inscription is at {where}: send it to the vault, {keys.vault}")
        ask = ListingToDraft(options.price, item, keys.vault, keys.payment, keys.vault_pubkey, slug, outpoint)
        draft = market.at(venue).draft_listing(ask)
    secure = (each.psbt for each in draft.secure)
    listing = to_judge(ask.inscription_id, outpoint, ask.price, draft.psbt, secure, draft.transfer, draft.recovery)
    judgements = signer.judge(options.address, venue, listing)
    for judgement in judgements:
        for line in in_words(judgement):
            print(line)
    return 0 if judgements[0].is_signed else 1
