"""`bidkeeper venue learn VENUE --listing ID`: a venue's drafts in words, and their form confirmed by an operator.

Nothing is signed. The forms are kept by the signer, which the signer's user and root may ask to: see
docs/learning-a-venue.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from cli import arguments, learn_others, refused_drafts
from core.errors import BidkeeperError
from core.settings import VENUES, Settings
from markets.capabilities import Capabilities
from markets.listings import ListingToDraft
from markets.market_client import MarketClient
from markets.venues import capabilities
from wallet import judgement
from wallet.escrow_terms import escrow_terms_of
from wallet.learnt import words
from wallet.learnt.client import LearntClient, Studied
from wallet.learnt.laws import LEAST_SPAN
from wallet.protocol import MAX_SATS, ListingToSign
from wallet.signer_client import SignerUnavailable

PATIENCE_S = 15.0
# High, so that nobody would lose by it.
USUAL_PRICE = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds VENUE --listing ID [--price N] | --withdraw SATS [--user ADDRESS] | --delist ID."""
    parser.add_argument("venue", choices=VENUES, metavar="VENUE", help=", ".join(VENUES))
    drafted = parser.add_mutually_exclusive_group(required=True)
    drafted.add_argument(
        "--listing",
        type=arguments.inscription,
        metavar="ID",
        action="append",
        help="an inscription in a vault; can be repeated",
    )
    drafted.add_argument("--withdraw", metavar="SATS", type=_sats, help="sats out of a bidding wallet")
    drafted.add_argument(
        "--delist", type=arguments.inscription, metavar="ID", help="an inscription that is listed there"
    )
    parser.add_argument(
        "--user",
        type=arguments.address,
        metavar="ADDRESS",
        help="with --withdraw: the user of the wallet, if there are several",
    )
    parser.add_argument(
        "--price", type=_price, metavar="SATS", help="draft at this price, one tick above it, and at twice it"
    )


def add_learnt_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds list | show VENUE | refused [NUMBER] | forget VENUE|--all."""
    actions = parser.add_subparsers(dest="learnt", required=True, metavar="ACTION")
    actions.add_parser("list", help="venue, kind and date of each form")
    show = actions.add_parser("show", help="the forms of a venue in words")
    show.add_argument("venue", metavar="VENUE")
    refused = actions.add_parser("refused", help="the newest drafts of listings that the signer refused, or one whole")
    refused.add_argument("number", metavar="NUMBER", nargs="?", type=int, help="from that list")
    forget = actions.add_parser("forget", help="delete a venue's forms; only the rules decide again")
    which = forget.add_mutually_exclusive_group(required=True)
    which.add_argument("venue", metavar="VENUE", nargs="?")
    which.add_argument(
        "--all", action="store_true", help="delete the forms of every venue, even if the file is invalid"
    )


def _price(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not LEAST_SPAN <= int(text) <= MAX_SATS // 4:
        raise argparse.ArgumentTypeError(f"a price to learn from is a whole number of sats, {LEAST_SPAN:,} at least")
    return int(text)


def _sats(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= MAX_SATS:
        raise argparse.ArgumentTypeError("an amount is a whole number of sats above 0")
    return int(text)


def run(settings: Settings, options: argparse.Namespace) -> int:
    """Returns 0 when every form was confirmed and stored, or would be signed where none is stored; else 1.

    Raises BidkeeperError when nothing can be drafted.
    """
    venue = options.venue
    if problem := settings.why_no_venue(venue):
        raise BidkeeperError(problem)
    can = capabilities(venue)
    if options.listing and (why := _not_drafted(can, settings)):
        raise BidkeeperError(why)
    signer = _operators_client(settings)
    if not options.listing:
        with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
            if options.withdraw:
                is_signed = learn_others.withdrawal(market, signer, can, options.user or "", options.withdraw)
            else:
                is_signed = learn_others.delist(market, signer, can, options.delist)
        return 0 if is_signed else 1
    prices = _prices(options.price or max(USUAL_PRICE, settings.min_listing_sats), can)
    if len(prices) == 1:
        print(f"{can.title}: each draft is an order there, never confirmed; so only one is asked for.")
    with MarketClient(settings.gateway_socket, PATIENCE_S) as market:
        user, drafts = _drafted(market, signer, venue, options.listing, prices)
    studied = signer.study(user, venue, drafts)
    confirmed = [_confirmed(signer, user, venue, drafts, each) for each in studied]  # each is shown, whatever comes
    return 0 if all(confirmed) else 1


def _not_drafted(can: Capabilities, settings: Settings) -> str | None:
    if not can.listings:
        return f"{can.title} takes no listings: there is nothing to draft"
    if can.name in escrow_terms_of(settings):
        return f"listings at {can.title} go through an escrow that the signer rebuilds: there is no form to learn"
    return None


def _operators_client(settings: Settings) -> LearntClient:
    """Returns the client, once the signer has answered. Raises BidkeeperError with the remedy."""
    client = LearntClient(settings.operators_socket, PATIENCE_S)
    try:
        client.status()
    except SignerUnavailable as error:
        raise BidkeeperError(f"{error}: only the signer's own user and root may ask there, while it runs") from None
    return client


def _prices(price: int, can: Capabilities) -> tuple[int, ...]:
    """Returns the prices to draft at, on the venue's grid: three tell how each output follows from the price."""
    tick = can.listing_tick
    price = -(-price // tick) * tick
    return (price,) if can.drafts_are_orders else (price, price + tick, 2 * price)


def _drafted(
    market: MarketClient, signer: LearntClient, venue: str, inscriptions: Sequence[str], prices: Sequence[int]
) -> tuple[str, list[ListingToSign]]:
    """Has each inscription drafted at each price; returns the user who holds them, too."""
    users, drafts = set(), []
    for inscription in inscriptions:
        found = market.whereabouts(inscription, 0.0)
        if found.outpoint is None or found.address is None:
            raise BidkeeperError(f"{inscription} is in no output")
        user, keys = signer.holder(found.address)
        if found.address != keys.vault:
            raise BidkeeperError(f"{inscription} is at {found.address}: send it to the vault, {keys.vault}")
        users.add(user)
        for price in prices:
            ask = ListingToDraft(price, inscription, keys.vault, keys.payment, keys.vault_pubkey, None, found.outpoint)
            draft = market.at(venue).draft_listing(ask)
            secure = (each.psbt for each in draft.secure)
            drafts.append(judgement.to_judge(inscription, found.outpoint, price, draft.psbt, secure))
    if len(users) > 1:
        raise BidkeeperError("the inscriptions are of different users")
    return users.pop(), drafts


def _confirmed(signer: LearntClient, user: str, venue: str, drafts: Sequence[ListingToSign], studied: Studied) -> bool:
    """Shows one kind of draft; tells whether its form was confirmed and stored."""
    print(f"\ndraft 1 of {len(studied.judgements)}, as the signer judges it:")
    print("\n".join(judgement.in_words(studied.judgements[0])))
    print()
    if studied.form is None:
        print(f"{venue}, {studied.kind}: no form to learn: {studied.why}")
        return False
    print("\n".join(words.in_words(studied.form)))
    former = next((each for each in signer.learnt().forms if (each.venue, each.kind) == (venue, studied.kind)), None)
    if former is not None:
        is_same = words.body(former) == words.body(studied.form)
        print(f"{'the same as' if is_same else 'in place of'} the form learnt {date_of(former.learnt_ms)}")
        if not is_same:
            print("\n".join(words.body(former)))
    if _typed("Store this form? Type the venue's name: ") != venue:
        print("not stored")
        return False
    signer.learn(user, venue, drafts, studied)
    print("stored: drafts of another form are refused from now on")
    return True


def _typed(question: str) -> str:
    print(question, end="", flush=True)
    return sys.stdin.readline().strip()


def learnt(settings: Settings, options: argparse.Namespace) -> int:
    """Lists, shows or drops the forms. Returns 1 when the file is not believed, or there is nothing to show or drop."""
    if options.learnt == "refused":
        return refused_drafts.show(settings, options.number)
    signer = _operators_client(settings)
    if options.learnt == "forget":
        gone = signer.forget("" if options.all else options.venue)
        print(f"{gone} forms deleted: only the rules decide there now")
        return 0 if gone or options.all else 1
    found = signer.learnt()
    if found.problem:
        print(found.problem)
        return 1
    forms = [form for form in found.forms if options.learnt == "list" or form.venue == options.venue]
    for form in forms:
        shown = [f"{form.venue} {form.kind}"] if options.learnt == "list" else words.in_words(form)
        print("\n".join([f"{shown[0]}  learnt {date_of(form.learnt_ms)}", *shown[1:]]))
    if not forms:
        print("no form is learnt: only the rules decide")
    return 0 if forms or options.learnt == "list" else 1


def date_of(learnt_ms: int) -> str:
    """Returns the day (UTC) of a time in Unix milliseconds."""
    return datetime.fromtimestamp(learnt_ms / 1000, UTC).date().isoformat()
