"""The doctor's checklist for going live: real keys, bounds, sources and funds, in the order of docs/going-live.md."""

from __future__ import annotations

from collections.abc import Iterator

from cli.doctor import form_check
from cli.doctor.check import Check, fail, ok, warn, way_to_keys
from cli.doctor.database_check import DatabaseState
from cli.funds import fundings, funds
from core.errors import BidkeeperError
from core.settings import PLAY_MARKET, Settings
from markets.base import NotFound, VenueError
from markets.capabilities import Funding
from markets.client import MarketClient
from wallet.policy import SETTING, ceilings_of
from wallet.protocol import UserKeys
from wallet.signer_client import SignerClient

_PATIENCE_S = 15.0
_PAGE = "docs/going-live.md"


def examine(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    """Yields a line for each step; a setting that is right for practice only is a fault here."""
    if settings.market == PLAY_MARKET:
        yield fail(
            "live market", "this is the practice marketplace", "set BIDKEEPER_MARKET, and use another data directory"
        )
        return
    yield ok("live market", f"{settings.market}; tasks can trade at {', '.join(settings.venues)}")
    yield from _name(settings)
    yield from _bounds(settings)
    if settings.ordnet_url:
        yield _co_signers(settings)
    yield from _sources(settings)
    yield from _keys(settings)
    yield from form_check.examine(settings)
    yield from _people(settings, seen)


def _name(settings: Settings) -> Iterator[Check]:
    if settings.public_name:
        yield ok("live name", f"the sign-in text names {settings.public_name}")
    else:
        text = "the sign-in text names host and port, so a signature for another service could look the same"
        yield fail("live name", text, "set BIDKEEPER_PUBLIC_NAME to your domain")


def _bounds(settings: Settings) -> Iterator[Check]:
    """Yields what bounds everybody; the signer's own ceilings hold whatever anybody else says."""
    if settings.max_exposure_sats:
        most = ceilings_of(settings)
        text = (
            f"open bids: at most {settings.max_exposure_sats:,} sats; signed bids, which count until they expire: "
            f"at most {most.outstanding_host:,} sats, and {most.sats_hour_host:,} an hour"
        )
        yield ok("live bids", text)
    else:
        yield fail("live bids", "the bids of all users together have no limit", "set BIDKEEPER_MAX_EXPOSURE_SATS")
    if settings.min_listing_sats:
        yield ok("live listings", f"none is signed below {settings.min_listing_sats:,} sats")
    else:
        text = "no minimum price: only a task's own minimum limits its listing"
        yield warn("live listings", text, "set BIDKEEPER_MIN_LISTING_SATS if you list inscriptions")
    if settings.max_withdrawal_sats_per_day:
        text = f"at most {settings.max_withdrawal_sats_per_day:,} sats per user and day, to the sign-in address only"
        yield ok("live withdrawals", text)
    else:
        text = "no daily limit; they go to the sign-in address only"
        yield warn("live withdrawals", text, "set BIDKEEPER_MAX_WITHDRAWAL_SATS_PER_DAY")


def _co_signers(settings: Settings) -> Check:
    if settings.ordnet_co_signers is None:
        text = "no bid there is signed: the keys that can together take a bid's price are not set"
        return warn("live ord.net", text, f"set {SETTING} (docs/custody.md) to bid there")
    return ok("live ord.net", "bids are signed for the three keys you set; together they can take a bid's price")


def _sources(settings: Settings) -> Iterator[Check]:
    if not settings.mempool_url:
        text = "no mempool server, so fee rates and balances are unknown: no bid is placed"
        yield fail("live sources", text, "set BIDKEEPER_MEMPOOL_URL")
    elif not (settings.ord_url or settings.unisat_url):
        text = "no index of inscriptions: no listing and no withdrawal is signed, so no task is started"
        yield fail("live sources", text, "set BIDKEEPER_ORD_URL or BIDKEEPER_UNISAT_URL")
    else:
        yield ok("live sources", "set for fee rates, balances, and inscriptions on coins")


def _keys(settings: Settings) -> Iterator[Check]:
    try:
        status = SignerClient(settings.signer_socket, _PATIENCE_S).status()
    except BidkeeperError as error:
        yield fail("live keys", f"the signer does not answer: {error}", "bidkeeper up, then run the doctor again")
        return
    if status.state != "ready":
        yield fail("live keys", f"{status.state}: {status.reason}", way_to_keys(status.reason))
    elif status.play:
        yield fail("live keys", "these are play keys", "bidkeeper keys init in another data directory")
    else:
        yield ok("live keys", "real keys, unlocked; do you have the 24 words on paper, and a backup?")


def _people(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    """Yields the addresses that may sign in and, for each user who did, the funds behind their bids."""
    if seen.users is None:
        text, remedy = (seen.fault.text, seen.fault.remedy) if seen.fault else ("not read", "see the database's line")
        yield fail("live users", f"the database's users are unknown: {text}", remedy)
        return
    listed = seen.listed | settings.whitelist | settings.admins
    if "*" in listed:
        yield warn("live users", "any address can sign in", f"list the addresses in the whitelist ({_PAGE})")
    elif listed:
        yield ok("live users", f"{len(listed)} addresses can sign in")
    else:
        yield fail("live users", "no address can sign in", "bidkeeper whitelist add ADDRESS")
    if not seen.users:
        yield warn("live funds", "no user has signed in yet", "bidkeeper sign-in ADDRESS")
    for address, receive in seen.users:
        try:
            keys = SignerClient(settings.signer_socket, _PATIENCE_S).addresses(address)
        except BidkeeperError as error:
            yield fail(f"live funds of {address}", f"the signer did not return its addresses: {error}", "see live keys")
            continue
        with MarketClient(settings.gateway_socket, _PATIENCE_S) as market:
            for funding in fundings(settings):
                yield _funds(market, funding, keys, receive, f"live funds of {address} at {funding.venue}")


def _funds(market: MarketClient, funding: Funding, keys: UserKeys, receive: str, name: str) -> Check:
    try:
        address, sats = funds(market, funding, keys, receive)
    except NotFound:
        return warn(name, "the marketplace has no bidding wallet for these addresses yet", f"see {_PAGE}, Funding")
    except VenueError as error:
        return fail(name, f"cannot be read: {error.message}", "see the lines of that marketplace")
    if sats:
        return ok(name, f"{sats:,} sats at {address}")
    return warn(name, f"nothing at {address}: {funding.backs}", f"send a small amount there first ({_PAGE}, Funding)")
