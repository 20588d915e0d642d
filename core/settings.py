"""Settings: one frozen object, made of `bidkeeper.toml` and environment variables, and checked at start.

A variable `BIDKEEPER_...` overrides the file. `docs/settings.md` describes each setting, as a test checks. Plans are
in the TOML file only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import field
from msgspec.structs import replace

from core import setting_values as read
from core.errors import SettingsError
from core.fields import secret
from core.layout import DIRECTORIES, HOST_OPTIONS, Layout, layout_problems
from core.logs import FORMATTERS
from core.setting_values import HELD, Option, add_database, add_secrets, is_loopback, read_table, read_texts
from core.subscription_plans import DEFAULT_PLANS, SubscriptionPlan, read_plans

PLAY_MARKET = "simulator"
MARKETS = (PLAY_MARKET, "satflow", "ordnet")
DIALECTS = ("satflow", "ordnet", "unisat", "ordinalswallet")  # the marketplaces that can be traded at
# The practice market's venues by name, each with its dialect. Play keys sign for these venues only.
PLAY_VENUES = {PLAY_MARKET: "satflow"} | {f"{PLAY_MARKET}-{dialect}": dialect for dialect in DIALECTS[1:]}
VENUES = (*DIALECTS, *PLAY_VENUES)  # all names of venues, whether set up here or not
_MONTHLY_CALLS = {"satflow": 100_000, "unisat": 60_000}  # Satflow's partners' keys, UniSat's free plan
_DAILY_CALLS = {"unisat": 2_000}  # for the same plans
MOST_SLOTS = 100
SPAWNERS = ("zygote", "popen")
MOST_SELLER_FEE_PPM = 100_000  # a tenth of the price
# The practice market's seller fee, for dialects whose venue documents such a fee.
_PRACTICE_SELLER_FEES_PPM = {"ordnet": 10_000}


class Settings(Layout, frozen=True):
    """The settings of this installation. Times are seconds, money is sats."""

    hidden = frozenset({"database_url", "satflow_api_key", "unisat_api_key"})

    host: str = "127.0.0.1"
    port: int = 8888
    server_processes: int = 1
    trusted_proxies: tuple[read.Network, ...] = ()
    public_name: str = ""
    database_url: str = ""  # a password may be in it
    whitelist: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()
    market: str = "simulator"
    simulator_port: int = 8890
    simulator_seed: int = 1
    simulator_background: bool = False
    simulator_scenes: bool = False
    simulator_seller_fee_ppm: int = 0
    play_wallet: bool = False
    satflow_url: str | None = None
    satflow_api_key: str | None = None
    satflow_monthly_calls: int | None = None
    satflow_daily_calls: int | None = None
    satflow_bid_challenge: str = "timestamp"
    satflow_rune_price: str | None = None
    satflow_seller_fee_ppm: int = 0
    satflow_secure_listings: bool = False
    unisat_url: str | None = None
    unisat_api_key: str | None = None
    unisat_monthly_calls: int | None = None
    unisat_daily_calls: int | None = None
    unisat_seller_fee_ppm: int = 0
    ordnet_url: str | None = None
    ordnet_co_signers: tuple[str, ...] | None = None
    ordnet_listing_key: str | None = None
    ordnet_seller_fee_ppm: int = 0
    ordinalswallet_url: str | None = None
    ordinalswallet_protected_listings: bool = False
    ordinalswallet_seller_fee_ppm: int = 0
    mempool_url: str | None = None
    ord_url: str | None = None
    hook_networks: tuple[read.Network, ...] = ()
    smtp_url: str | None = None
    smtp_password_file: Path | None = None
    mail_from: str = ""
    keystore_passphrase_file: Path | None = None
    signer_clients: frozenset[int] = frozenset()
    gateway_clients: frozenset[int] = frozenset()
    facts_clients: frozenset[int] = frozenset()
    challenge_seconds: int = 300
    sign_in_per_minute: int = 600
    lookups_per_minute: int = 15
    log_level: str = "INFO"
    log_format: str = "text"
    spawner: str = "zygote" if sys.platform == "linux" else "popen"
    max_workers: int = 1000
    slot: int | None = None
    lease_seconds: int = 15
    tolerance: Decimal = Decimal("0.01")
    min_age_seconds: int = 60
    max_exposure_sats: int = 0
    max_sats_per_hour: int = 0
    min_listing_sats: int = 0
    max_withdrawal_sats_per_day: int = 0
    plans: Mapping[str, SubscriptionPlan] = field(default_factory=lambda: dict(DEFAULT_PLANS))

    @property
    def users_of_signer(self) -> frozenset[int]:
        """Returns the signer's own user: the users who may ask for facts and are no clients of the signer."""
        return self.facts_clients - self.signer_clients if self.signer_clients else frozenset()

    def monthly_calls(self, dialect: str) -> int:
        """Returns the key's calls per month at a marketplace: as set, else its usual plan's; 0 = no quota."""
        given: int | None = getattr(self, f"{dialect}_monthly_calls", None)
        if given is not None:
            return given
        return 0 if self.market == PLAY_MARKET else _MONTHLY_CALLS.get(dialect, 0)

    def daily_calls(self, dialect: str) -> int:
        """Returns the key's calls per day at a marketplace: as set, else its usual plan's; 0 = no quota.

        A key with more monthly calls than the usual plan, or without that quota, has another plan.
        """
        given: int | None = getattr(self, f"{dialect}_daily_calls", None)
        if given is not None:
            return given
        is_usual = self.market != PLAY_MARKET and 0 < self.monthly_calls(dialect) <= _MONTHLY_CALLS[dialect]
        return _DAILY_CALLS.get(dialect, 0) if is_usual else 0

    def key_calls(self, venue: str) -> tuple[int, int]:
        """Returns the key's calls per month and per day at a venue; 0 = no such quota."""
        dialect = dialect_of(venue) or ""
        return self.monthly_calls(dialect), self.daily_calls(dialect)

    def seller_fee_ppm(self, venue: str) -> int:
        """Returns the maximum seller fee of a venue, in millionths of the price."""
        dialect = dialect_of(venue) or ""
        if venue == PLAY_MARKET:
            return self.simulator_seller_fee_ppm
        if venue != dialect:
            return _PRACTICE_SELLER_FEES_PPM.get(dialect, 0)
        kept: int = getattr(self, f"{dialect}_seller_fee_ppm")
        return kept

    def known_seller_fee(self, venue: str, price_sats: int) -> int | None:
        """Returns the venue's seller fee for a sale (sats); None if it may charge one of an unknown amount.

        The practice market charges exactly its maximum.
        """
        ppm = self.seller_fee_ppm(venue)
        return price_sats * ppm // 1_000_000 if ppm == 0 or venue in PLAY_VENUES else None

    @property
    def venues(self) -> tuple[str, ...]:
        """The names of the venues that are set up here, the default one first."""
        found = PLAY_VENUES if self.market == PLAY_MARKET else [each for each in DIALECTS if self.venue_url(each)]
        return tuple(sorted(found, key=lambda name: name != self.market))

    def why_no_venue(self, name: str) -> str | None:
        """Returns why users cannot trade at the venue of this name, as a message for them; None if they can."""
        if name in self.venues:
            return None
        dialect = dialect_of(name)
        if dialect is None or (name == dialect) == (self.market == PLAY_MARKET):
            return f"there is no venue {name[:40]!r} here, but {', '.join(self.venues)}"
        return f"not set up here: BIDKEEPER_{dialect.upper()}_URL is not set"

    @property
    def has_play_wallet(self) -> bool:
        """Whether any client may sign in as the practice market's own user; never where money is real."""
        return self.play_wallet and self.market == PLAY_MARKET

    def server_at(self, index: int = 0) -> read.HostPort:
        """Returns the address that the server process number `index` listens on."""
        return read.HostPort(self.host, self.port + index)

    @property
    def simulator_at(self) -> read.HostPort:
        """The address that the practice marketplace listens on; always on loopback."""
        return read.HostPort("127.0.0.1", self.simulator_port)

    @property
    def simulator_url(self) -> str:
        return self.simulator_at.url

    def venue_url(self, venue: str) -> str | None:
        """Returns the address of `venue` (a dialect, mempool, ord): as set, else the simulator's, else None."""
        given: str | None = getattr(self, f"{venue}_url")
        if given:
            return given
        if self.market != "simulator":
            return None
        return f"{self.simulator_url}/satflow/v1" if venue == "satflow" else f"{self.simulator_url}/{venue}"

    @property
    def sign_in_name(self) -> str:
        """The service's name in the sign-in text."""
        return self.public_name or str(self.server_at())


def dialect_of(venue: str) -> str | None:
    """Returns the dialect that a venue of this name speaks, or None when no venue has this name."""
    return venue if venue in DIALECTS else PLAY_VENUES.get(venue)


def _seller_fee(dialect: str, title: str) -> Option:
    return Option(
        f"{dialect}_seller_fee_ppm",
        read.whole(0, MOST_SELLER_FEE_PPM),
        f"millionths of a listing's price that {title} may keep of it (docs/custody.md)",
    )


def _key_calls(dialect: str, title: str) -> tuple[Option, ...]:
    return tuple(
        Option(
            f"{dialect}_{often}_calls", read.whole(0, 10**9), f"calls a {span} that the {title} key has; 0 = no quota"
        )
        for often, span in (("monthly", "calendar month"), ("daily", "day (UTC)"))
    )


OPTIONS = (
    Option("data_dir", Path, "where everything is kept: database, keys, sockets, logs"),
    Option("host", read.host, "address the HTTP server listens on; 0.0.0.0 or :: = every one of its family"),
    Option("port", read.whole(1, 65535), "port of the (first) HTTP server"),
    Option("server_processes", read.whole(1, 16), "number of HTTP server processes, on consecutive ports"),
    Option("trusted_proxies", read.networks, "addresses of proxies, beside loopback, that may name their clients"),
    Option("public_name", read.text, "name of this service in the sign-in text; host:port when unset"),
    Option(
        "database_url",
        read.database,
        "sqlite:///FILE or postgresql://...; bidkeeper.db in the data directory when unset",
    ),
    Option("whitelist", read.addresses, "addresses that may sign in, comma-separated; * = everybody"),
    Option("admins", read.addresses, "addresses of administrators, comma-separated"),
    Option("market", read.choice(*MARKETS), "the default venue: simulator (play money), satflow or ordnet"),
    Option("simulator_port", read.whole(1, 65535), "loopback port of the practice marketplace"),
    Option("simulator_seed", read.whole(0, 2**31), "seed of the practice marketplace's traders"),
    Option("simulator_background", read.flag, "whether seeded traders move the practice marketplace from the start"),
    Option("simulator_scenes", read.flag, "whether the practice marketplace shows oddities of real ones' answers"),
    Option(
        "simulator_seller_fee_ppm",
        read.whole(0, MOST_SELLER_FEE_PPM),
        "millionths of a listing's price that the practice marketplace keeps of it",
    ),
    Option("play_wallet", read.flag, "whether everybody may sign in as the practice marketplace's play wallet"),
    Option("satflow_url", read.url, "Satflow API, with /v1; needed when it is the market"),
    Option("satflow_api_key", secret, "Satflow API key (or name a file in BIDKEEPER_SATFLOW_API_KEY_FILE)"),
    *_key_calls("satflow", "Satflow"),
    Option("satflow_bid_challenge", read.bid_challenge, "what makes a bid's text unique at Satflow: timestamp"),
    Option("satflow_rune_price", read.choice("order", "token"), "what the price of rune bids at Satflow is of"),
    _seller_fee("satflow", "Satflow"),
    Option("satflow_secure_listings", read.flag, "whether secure forms of listings are signed there (docs/custody.md)"),
    Option("unisat_url", read.url, "UniSat open API; runes need it"),
    Option("unisat_api_key", secret, "UniSat API key (or name a file in BIDKEEPER_UNISAT_API_KEY_FILE)"),
    *_key_calls("unisat", "UniSat"),
    _seller_fee("unisat", "UniSat"),
    Option("ordnet_url", read.url, "ord.net API, with /api/v1; needed when it is the market"),
    Option("ordnet_co_signers", read.co_signers, "keys that may spend a bid's escrow at ord.net; bids there need them"),
    Option("ordnet_listing_key", read.listing_key, "key that co-signs sales at ord.net; as it publishes it when unset"),
    _seller_fee("ordnet", "ord.net"),
    Option("ordinalswallet_url", read.url, "Ordinals Wallet API"),
    Option(
        "ordinalswallet_protected_listings",
        read.flag,
        "whether listings there go through an escrow (docs/custody.md); else they are plain",
    ),
    _seller_fee("ordinalswallet", "Ordinals Wallet"),
    Option("mempool_url", read.url, "mempool server without /api; no task but a dry run starts without it"),
    Option("ord_url", read.url, "ord server; no task but a dry run starts without it, or UniSat as the index"),
    Option("hook_networks", read.networks, "private networks that hooks may reach, in plain http too; none when unset"),
    Option("smtp_url", read.smtp, "mail server for hooks by mail: smtps://USER@HOST or smtp://USER@HOST"),
    Option("smtp_password_file", Path, "file (mode 0600) with the password for the mail server"),
    Option("mail_from", read.text, "sender's address of mails; needed with a mail server"),
    Option("keystore_passphrase_file", Path, "file (mode 0600) with the keystore's passphrase; not used by play keys"),
    Option("signer_dir", Path, "the signer's keys and records; signer in the data directory when unset"),
    Option("signer_run_dir", Path, "directory of the signer's socket; run in the data directory when unset"),
    Option("signer_clients", read.users, "users whose processes may ask the signer; its own user when unset"),
    Option("gateway_run_dir", Path, "directory of the gateway's socket; run in the data directory when unset"),
    Option("gateway_clients", read.users, "users whose processes may ask the gateway; its own user when unset"),
    Option("facts_clients", read.users, "users whose processes may ask facts (the signer's); its own user when unset"),
    *HOST_OPTIONS,
    Option("challenge_seconds", read.whole(1, 3600), "lifetime of a sign-in challenge"),
    Option("sign_in_per_minute", read.whole(1, 1_000_000), "sign-in calls a minute from one client IP"),
    Option(
        "lookups_per_minute",
        read.whole(1, 1_000_000),
        "calls to marketplaces a minute that one user may cause by looking (docs/operations.md)",
    ),
    Option("log_level", read.choice("DEBUG", "INFO", "WARNING", "ERROR"), "how much the programs log"),
    Option("log_format", read.choice(*FORMATTERS), "text, or json: one object a line (docs/operations.md)"),
    Option("spawner", read.choice(*SPAWNERS), "how workers are started: zygote (forked, quick and small) or popen"),
    Option("max_workers", read.whole(1, 100_000), "most tasks that run at once; a start beyond them is 429"),
    Option(
        "slot", read.whole(0, MOST_SLOTS - 1), "the slot of users that this manager keeps (docs/several-machines.md)"
    ),
    Option("lease_seconds", read.whole(5, 300), "seconds until another one takes the place of a program that is gone"),
    Option("tolerance", read.fraction, "part of its price by which a bid may be off its target before it is replaced"),
    Option(
        "min_age_seconds", read.whole(0, 86_400), "a bid younger than this is not replaced only to follow the market"
    ),
    Option(
        "max_exposure_sats", read.whole(0, 2**53), "most that all users' open orders may sum up to; 0 = no such limit"
    ),
    Option(
        "max_sats_per_hour", read.whole(0, 2**53), "most that the signer signs bids for in an hour (docs/custody.md)"
    ),
    Option("min_listing_sats", read.whole(0, 2**53), "least that the signer signs any listing for (docs/custody.md)"),
    Option(
        "max_withdrawal_sats_per_day",
        read.whole(0, 2**53),
        "most that the signer lets a user withdraw in a day; 0 = no bound (docs/withdrawing.md)",
    ),
)
# The variable NAME_FILE may name a file with the secret instead, so that the secret is in no environment.
SECRETS = ("satflow_api_key", "unisat_api_key")
IN_FILES = (*SECRETS, "database_url")
_NEEDED = {"satflow": ("satflow_url", "satflow_api_key"), "ordnet": ("ordnet_url",)}  # by the default venue


def load(environment: Mapping[str, str] | None = None, *, secrets: Collection[str] = SECRETS) -> Settings:
    """Reads all settings. Raises SettingsError with one line for each fault.

    `BIDKEEPER_CONFIG` names the TOML file (default: bidkeeper.toml in the working directory, if it exists). Of the
    secrets' files only those of `secrets` are opened; HELD stands for the other secrets.
    """
    environment = os.environ if environment is None else environment
    problems: list[str] = []
    variables = {option.name: option.variable for option in OPTIONS}
    table = read_table(environment, {*variables, *(f"{name}_file" for name in IN_FILES), "plans"}, problems)
    texts = read_texts(environment, table, variables, problems)
    add_secrets(texts, environment, table, SECRETS, problems, secrets)
    values: dict[str, Any] = {}
    if unreadable := add_database(texts, environment, table, problems):
        values["database_url"] = f"unreadable:///{unreadable}"
    for option in OPTIONS:
        if option.name in texts:
            source, text = texts[option.name]
            try:
                values[option.name] = text if text == HELD else option.read(text)
            except ValueError as error:
                problems.append(f"{source} {error}")
    plans, plan_problems = read_plans(table.get("plans", {}))
    problems += plan_problems
    if problems:
        raise SettingsError(problems)
    settings = Settings(**values, plans=plans)
    settings = _absolute(settings)
    problems = _problems(settings)
    if problems:
        raise SettingsError(problems)
    return settings


def _absolute(settings: Settings) -> Settings:
    given = {name: path for name in DIRECTORIES if (path := getattr(settings, name)) is not None}
    settings = replace(settings, **{name: path.expanduser().resolve() for name, path in given.items()})
    return replace(settings, database_url=settings.database_url or f"sqlite:///{settings.data_dir / 'bidkeeper.db'}")


def _problems(settings: Settings) -> list[str]:
    """Returns the faults of combinations of settings."""
    problems = layout_problems(settings)
    last_port = settings.port + settings.server_processes - 1
    if last_port > 65535:
        problems.append(f"BIDKEEPER_PORT is too high: {settings.server_processes} processes need ports to {last_port}")
    if settings.market == "simulator" and settings.port <= settings.simulator_port <= last_port:
        problems.append("BIDKEEPER_SIMULATOR_PORT must differ from BIDKEEPER_PORT")
    for venue in (*DIALECTS, "mempool", "ord"):
        url = getattr(settings, f"{venue}_url")
        if settings.market == "simulator" and url and not is_loopback(urlsplit(url).hostname or ""):
            problems.append(f"BIDKEEPER_{venue.upper()}_URL must be on this machine while the market is the simulator")
    if settings.play_wallet and settings.market != PLAY_MARKET:
        problems.append(
            f"BIDKEEPER_PLAY_WALLET lets everybody in: it must be false when money is real ({settings.market})"
        )
    if settings.smtp_url and "@" not in settings.mail_from:
        problems.append("BIDKEEPER_MAIL_FROM must be an address when BIDKEEPER_SMTP_URL is set")
    if settings.slot is not None and not settings.database_url.startswith("postgresql://"):
        problems.append("BIDKEEPER_SLOT needs PostgreSQL: on SQLite there is one manager, of all users")
    for name in _NEEDED.get(settings.market, ()):
        if not getattr(settings, name):
            problems.append(f"BIDKEEPER_{name.upper()} is needed when BIDKEEPER_MARKET is {settings.market}")
    return problems
