"""The doctor on settings: all their faults, valid values that are seldom intended, and the checklist for real money.

The checklist is in the order of docs/going-live.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from cli.doctor.check import Check, fail, first, is_missing, named, ok, warn, way_to_keys
from cli.doctor.data_check import DatabaseState
from cli.wallet import fundings, funds
from core.errors import BidkeeperError, SettingsError
from core.layout import supervisor_problems
from core.setting_values import HELD, own_file, read_table, table_file
from core.settings import IN_FILES, OPTIONS, PLAY_MARKET, SECRETS, Settings, load
from markets.base import NotFound, VenueError
from markets.client import MarketClient
from markets.venues import Capabilities, Funding, capabilities, funding_of
from server.task_handler import not_signed_bids, not_signed_listings
from wallet.address import with_normal_addresses
from wallet.protocol import UserKeys
from wallet.signer_client import SignerClient
from wallet.terms import SETTING, ceilings_of, escrow_terms_of

# Variables that are not settings: `up` and the installer set them for programs, and a service's file names what runs.
_OTHERS = {"CONFIG", "COMMAND", "CRASHPOINT", "INSTALL_ROOT", "INSTALL_OWNERS", "SLOTS", "RAY"}
_OTHERS |= {f"WITH_{name}" for name in ("SIMULATOR", "SERVER", "GATEWAY", "SIGNER", "MANAGER", "RELAY")}
_PATIENCE_S = 15.0
_PAGE = "docs/going-live.md"
_BY_MEANING = "signed after the signer has checked what each draft moves"
_IN_ESCROW = f"{_BY_MEANING}: transfer, sale and recovery, by an escrow that your own key opens"
_LOCKED = _BY_MEANING + ": transfer and sale, by an escrow that your own key opens {} blocks after an item came there"


def read(environment: Mapping[str, str]) -> tuple[Settings | None, list[Check]]:
    """Reads the settings (None if they are wrong), and makes a finding for each fault.

    A key's file that only another user may read counts as right; HELD takes the place of that key.
    """
    try:
        return with_normal_addresses(load(environment)), []
    except SettingsError as error:
        problems = error.problems
    try:
        settings = with_normal_addresses(load(environment, secrets=()))
    except SettingsError:
        return None, [fail(problem, "see docs/settings.md", "settings") for problem in problems]
    # The remaining faults are unreadable key files; a file that exists is another user's, as it should be.
    files = _key_files(environment)
    absent = [problem for problem in problems if not os.path.lexists(files.get(problem.split()[0], ""))]
    return settings, [fail(problem, "put the key into that file", "settings") for problem in absent]


def is_held(settings: Settings, secret: str) -> bool:
    """Returns True if this key is in a file that this user may not read."""
    return bool(getattr(settings, secret) == HELD)


def examine(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Examines valid settings."""
    yield from named("settings", _unknown_variables(settings, environment))
    yield from named("settings", _secret_files(settings, environment))
    remedy = "use another BIDKEEPER_DATA_DIR: bidkeeper up does not start in this one"
    # Loading the settings has already checked the paths of the programs' sockets.
    problems = [fail(problem, remedy, "sockets") for problem in supervisor_problems(settings)]
    yield from problems or [ok("the data directory's path is short enough, and supervisord can read it", "sockets")]
    yield from named("settings", _seldom_meant(settings, environment))


def _seldom_meant(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    is_real = settings.market != PLAY_MARKET
    if settings.gateway_clients & settings.users_of_signer:
        text = "BIDKEEPER_GATEWAY_CLIENTS names the signer's own user, whom the gateway does not answer"
        yield warn(text, "remove that user from BIDKEEPER_GATEWAY_CLIENTS")
    if environment.get("BIDKEEPER_CRASHPOINT"):
        found = fail if is_real else warn
        yield found("BIDKEEPER_CRASHPOINT makes workers crash on purpose", "unset it; it is for tests only")
    if is_real and not settings.max_exposure_sats:
        text = "BIDKEEPER_MAX_EXPOSURE_SATS is 0: the bids of all users together have no limit"
        yield warn(text, "set it to an amount you can afford to lose")


def _key_files(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the path of each key's file, and of the database address's, by its variable."""
    table = read_table(environment, (), [])
    return {f"BIDKEEPER_{name.upper()}_FILE": own_file(name, environment, table) for name in IN_FILES}


def _unknown_variables(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    source = str(table_file(environment) or "")
    yield ok(f"read from the environment{' and ' + source if source else ''}; market {settings.market}")
    known = {option.variable for option in OPTIONS} | {f"BIDKEEPER_{name}" for name in _OTHERS}
    known |= {f"BIDKEEPER_{name.upper()}_FILE" for name in IN_FILES}
    for name in sorted(environment):
        if name.startswith("BIDKEEPER_") and name not in known:
            yield warn(f"{name} is not a setting and has no effect", "see docs/settings.md")


def _secret_files(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Reports key files that users other than their owner may read."""
    files = _key_files(environment)
    files["BIDKEEPER_KEYSTORE_PASSPHRASE_FILE"] = str(settings.keystore_passphrase_file or "")
    if any(name in read_table(environment, (), []) for name in SECRETS):
        files["the settings file, which contains a key,"] = str(table_file(environment) or "")
    for what, name in files.items():
        # The service's group may read the database, so it may read its address too.
        strangers = 0o037 if what == "BIDKEEPER_DATABASE_URL_FILE" else 0o077
        try:
            if name and Path(name).is_file() and Path(name).stat().st_mode & strangers:
                yield fail(f"{what} can be read by other users: {name}", f"chmod 600 {name}")
        except OSError:
            continue  # it is in a directory that only its own user can enter


def examine_live(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    """Yields the checklist's lines; a setting that is right only for practice is a fault here."""
    if settings.market == PLAY_MARKET:
        remedy = "set BIDKEEPER_MARKET, and use another data directory"
        yield fail("this is the practice marketplace", remedy, "live market")
        return
    yield ok(f"{settings.market}; tasks can trade at {', '.join(settings.venues)}", "live market")
    yield from _live_settings(settings)
    yield from named("live keys", _keys(settings))
    yield from drafts(settings)
    yield from named("live users", _people(settings, seen))
    yield from named("live funds", _users_funds(settings, seen))


def _live_settings(settings: Settings) -> Iterator[Check]:
    text = "the sign-in text names host and port, so a signature for another service could look the same"
    wrong = fail(text, "set BIDKEEPER_PUBLIC_NAME to your domain", "live name")
    yield ok(f"the sign-in text names {settings.public_name}", "live name") if settings.public_name else wrong

    most = ceilings_of(settings)  # the signer's own limits, which always apply
    text = (
        f"open bids: at most {settings.max_exposure_sats:,} sats; signed bids, which count until they expire: "
        f"at most {most.outstanding_host:,} sats, and {most.sats_hour_host:,} an hour"
    )
    wrong = fail("the bids of all users together have no limit", "set BIDKEEPER_MAX_EXPOSURE_SATS", "live bids")
    yield ok(text, "live bids") if settings.max_exposure_sats else wrong

    text = "no minimum price: only a task's own minimum limits its listing"
    wrong = warn(text, "set BIDKEEPER_MIN_LISTING_SATS if you list inscriptions", "live listings")
    least = settings.min_listing_sats
    yield ok(f"none is signed below {least:,} sats", "live listings") if least else wrong

    text = "no daily limit; they go to the sign-in address only"
    wrong = warn(text, "set BIDKEEPER_MAX_WITHDRAWAL_SATS_PER_DAY", "live withdrawals")
    text = f"at most {settings.max_withdrawal_sats_per_day:,} sats per user and day, to the sign-in address only"
    yield ok(text, "live withdrawals") if settings.max_withdrawal_sats_per_day else wrong

    if settings.ordnet_url:
        text = "no bid there is signed: the keys that can together take a bid's price are not set"
        wrong = warn(text, f"set {SETTING} (docs/custody.md) to bid there", "live ord.net")
        text = "bids are signed for the three keys you set; together they can take a bid's price"
        yield wrong if settings.ordnet_co_signers is None else ok(text, "live ord.net")

    no_mempool = "no mempool server, so fee rates and balances are unknown: no bid is placed"
    no_index = "no index of inscriptions: no listing and no withdrawal is signed, so no task is started"
    well, has_index = "set for fee rates, balances, and inscriptions on coins", settings.ord_url or settings.unisat_url
    yield first(
        (not settings.mempool_url, fail(no_mempool, "set BIDKEEPER_MEMPOOL_URL", "live sources")),
        (not has_index, fail(no_index, "set BIDKEEPER_ORD_URL or BIDKEEPER_UNISAT_URL", "live sources")),
        (True, ok(well, "live sources")),
    )


def _keys(settings: Settings) -> Check:
    try:
        status = SignerClient(settings.signer_socket, _PATIENCE_S).status()
    except BidkeeperError as error:
        has_none = not settings.signer_dir and is_missing(settings.data_dir / "signer" / "keystore.json")
        init = "bidkeeper keys init, then " if has_none else ""
        return fail(f"the signer does not answer: {error}", f"{init}bidkeeper up, then run the doctor again")
    return first(
        (status.state != "ready", fail(f"{status.state}: {status.reason}", way_to_keys(status.reason))),
        (status.play, fail("these are play keys", "bidkeeper keys init in another data directory")),
        (True, ok("real keys, unlocked; do you have the 24 words on paper, and a backup?")),
    )


def drafts(settings: Settings) -> Iterator[Check]:
    """Yields a line for each venue and each kind of draft it writes: how it is signed, or why not."""
    secure = ceilings_of(settings).secure_listings
    for venue in settings.venues:
        can = capabilities(venue)
        if funding_of(can) is not None and not can.bids_are_psbt:
            yield _drafted(can, "withdrawals")
        if can.bids_are_psbt:
            yield _drafted(can, "bids", why=not_signed_bids(venue, settings))
        if not can.listings:
            continue
        terms = escrow_terms_of(settings).get(venue)
        if why := not_signed_listings(venue, settings):
            yield _drafted(can, "listings", why=why)
        elif terms is not None:
            yield _drafted(can, "listings", _LOCKED.format(terms.lock_blocks) if terms.lock_blocks else _IN_ESCROW)
        else:
            yield _drafted(can, "plain listings")
            if venue in secure:
                yield _drafted(can, "secure listings")
            elif can.delist_proof == "challenge":  # where secure listings are drafted
                yield _drafted(can, "secure listings", "not signed: the setting is off, so only plain ones are")


def _drafted(can: Capabilities, kind: str, text: str = _BY_MEANING, why: list[str] | None = None) -> Check:
    name = f"live {can.name} {kind}"
    if not why:
        return ok(text, name)
    reasons = "; ".join(each.removeprefix("venue: ") for each in why)
    return warn(f"not signed: {reasons}", "see docs/custody.md", name)


def _people(settings: Settings, seen: DatabaseState) -> Check:
    """Counts the addresses that may sign in."""
    if seen.users is None:
        text, remedy = (seen.fault.text, seen.fault.remedy) if seen.fault else ("not read", "see the database's line")
        return fail(f"the database's users are unknown: {text}", remedy)
    listed = seen.listed | settings.whitelist | settings.admins
    return first(
        ("*" in listed, warn("any address can sign in", f"list the addresses in the whitelist ({_PAGE})")),
        (listed, ok(f"{len(listed)} addresses can sign in")),
        (True, fail("no address can sign in", "bidkeeper whitelist add ADDRESS")),
    )


def _users_funds(settings: Settings, seen: DatabaseState) -> Iterator[Check]:
    """Reports the funds behind the bids of each user who has signed in."""
    if seen.users == []:
        yield warn("no user has signed in yet", "bidkeeper sign-in ADDRESS")
    for address, receive in seen.users or ():
        name = f"live funds of {address}"
        try:
            keys = SignerClient(settings.signer_socket, _PATIENCE_S).addresses(address)
        except BidkeeperError as error:
            yield fail(f"the signer did not return its addresses: {error}", "see live keys", name)
            continue
        with MarketClient(settings.gateway_socket, _PATIENCE_S) as market:
            for funding in fundings(settings):
                yield _funds(market, funding, keys, receive)._replace(name=f"{name} at {funding.venue}")


def _funds(market: MarketClient, funding: Funding, keys: UserKeys, receive: str) -> Check:
    try:
        address, sats = funds(market, funding, keys, receive)
    except NotFound:
        return warn("the marketplace has no bidding wallet for these addresses yet", f"see {_PAGE}, Funding")
    except VenueError as error:
        return fail(f"cannot be read: {error.message}", "see the lines of that marketplace")
    if sats:
        return ok(f"{sats:,} sats at {address}")
    return warn(f"nothing at {address}: {funding.backs}", f"send a small amount there first ({_PAGE}, Funding)")
