"""`bidkeeper judge ADDRESS INSCRIPTION PRICE`: the signer's judgement of a listing that a venue drafts, unsigned."""

from __future__ import annotations

import argparse

from cli import arguments
from cli.wallet import PATIENCE_S, receive_of
from cli.wallet import add_arguments as add_address
from core.errors import BidkeeperError
from core.fields import MAX_SATS
from core.settings import VENUES, Settings
from markets.client import MarketClient
from markets.orders import ListingToDraft
from wallet.judgement import in_words, to_judge
from wallet.protocol import UserKeys
from wallet.signer_client import SignerClient


def add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    """Adds ADDRESS INSCRIPTION PRICE [--venue NAME] [--collection SLUG]."""
    add_address(verb, parser)
    parser.add_argument("inscription", type=arguments.inscription, help="the id of an inscription in that user's vault")
    parser.add_argument("price", type=_price, help="sats")
    parser.add_argument("--venue", choices=VENUES, metavar="NAME", help="where to list it, if not at the default venue")
    text = "the inscription's collection, for ord.net"
    parser.add_argument("--collection", type=arguments.collection, metavar="SLUG", help=text)


def _price(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= MAX_SATS:
        raise argparse.ArgumentTypeError("a price is a whole number of sats above 0")
    return int(text)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Returns 0 when the first form would be signed, else 1; raises BidkeeperError when there is nothing to judge."""
    venue = options.venue or settings.market
    if problem := settings.why_no_venue(venue):
        raise BidkeeperError(problem)
    receive_of(settings, options.address)
    signer = SignerClient(settings.signer_socket, PATIENCE_S)
    keys = signer.addresses(options.address)
    with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
        outpoint = _outpoint(market, options.inscription, keys)
        item, slug = options.inscription, options.collection
        ask = ListingToDraft(options.price, item, keys.vault, keys.payment, keys.vault_pubkey, slug, outpoint)
        draft = market.at(venue).draft_listing(ask)
    secure = (each.psbt for each in draft.secure)
    listing = to_judge(ask.inscription_id, outpoint, ask.price, draft.psbt, secure, draft.transfer, draft.recovery)
    judgements = signer.judge(options.address, venue, listing)
    for judgement in judgements:
        for line in in_words(judgement):
            print(line)
    return 0 if judgements[0].is_signed else 1


def _outpoint(market: MarketClient, inscription: str, keys: UserKeys) -> str:
    """Returns the output that holds it. Raises BidkeeperError unless that is in the vault."""
    found = market.whereabouts(inscription, 0.0)
    if found.outpoint is None or found.address != keys.vault:
        where = found.address or "no address"
        raise BidkeeperError(f"the inscription is at {where}: send it to the vault, {keys.vault}")
    return found.outpoint
