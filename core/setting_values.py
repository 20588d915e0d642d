"""Readers of the texts of settings."""

from __future__ import annotations

import ipaddress
import pwd
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import Struct

from core.fields import NotText, read_text, variable

HELD = "held by the gateway"

Texts = dict[str, tuple[str, str]]  # by a setting's name: where it was set, and its text


def table_file(environment: Mapping[str, str]) -> Path | None:
    """Returns the TOML file that BIDKEEPER_CONFIG names, or bidkeeper.toml; None if it does not exist."""
    path = Path(_named_file("BIDKEEPER_CONFIG", environment) or "bidkeeper.toml")
    return path if path.exists() else None


def read_table(environment: Mapping[str, str], known: Collection[str], problems: list[str]) -> dict[str, Any]:
    """Reads the file of `table_file`, if it exists; adds faults to `problems`."""
    path = table_file(environment)
    if path is None:
        if named := _named_file("BIDKEEPER_CONFIG", environment):
            problems.append(f"BIDKEEPER_CONFIG names {named}, which is not there")
        return {}
    try:
        table = tomllib.loads(read_text(path))
    except NotText as error:
        problems.append(f"{path} {error}")
        return {}
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}")
        return {}
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path} cannot be read: {error}")
        return {}
    problems += [f"{path}: unknown setting {name}" for name in table if name not in known]
    return table


def read_texts(
    environment: Mapping[str, str], table: Mapping[str, Any], variables: Mapping[str, str], problems: list[str]
) -> Texts:
    """Returns the texts of settings from the environment, else from the TOML table.

    `variables` has each setting's variable by the setting's name. Faults are added to `problems`.
    """
    texts: Texts = {}
    for name, named in variables.items():
        if name in table:
            value = table[name]
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            texts[name] = (f"{name} in the TOML file", text)
        try:
            if text := variable(environment.get(named, "")):
                texts[name] = (named, text)
        except ValueError as error:
            problems.append(f"{named} {error}")
            texts.pop(name, None)
    return texts


def add_secrets(
    texts: Texts,
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    names: Collection[str],
    problems: list[str],
    read: Collection[str],
) -> None:
    """Adds secrets from files of their own unless they are set otherwise; HELD stands for secrets not in `read`."""
    for name in names:
        file, source = _file(name, "key", environment, table)
        if file and name not in texts:
            try:
                texts[name] = (source, read_text(Path(file)) if name in read else HELD)
            except NotText as error:
                problems.append(f"{source} {error}")
            except OSError as error:
                problems.append(f"{_variable(name)} cannot be read: {error.strerror}")


def add_database(texts: Texts, environment: Mapping[str, str], table: Mapping[str, Any], problems: list[str]) -> str:
    """Adds the database's address from a file of its own unless it is set otherwise.

    Returns the file if this user may not read it, else "". This is not a fault, because a program that needs no
    database, such as the signer, runs without the address.
    """
    file, source = _file("database_url", "address", environment, table)
    if file and "database_url" not in texts:
        try:
            texts["database_url"] = (source, read_text(Path(file)).strip())
        except PermissionError:
            return str(Path(file).absolute())
        except NotText as error:
            problems.append(f"{source} {error}")
        except OSError as error:
            problems.append(f"{_variable('database_url')} cannot be read: {error.strerror}")
    return ""


def _variable(name: str) -> str:
    return f"BIDKEEPER_{name.upper()}_FILE"


def own_file(name: str, environment: Mapping[str, str], table: Mapping[str, Any]) -> str:
    """Returns the path of the separate file that holds a setting's text, or ""."""
    return _named_file(_variable(name), environment) or str(table.get(f"{name}_file") or "")


def _named_file(variable_name: str, environment: Mapping[str, str]) -> str:
    return environment.get(variable_name, "").strip()


def _file(name: str, what: str, environment: Mapping[str, str], table: Mapping[str, Any]) -> tuple[str, str]:
    """Returns `own_file`, and how a fault names the text in it."""
    file = own_file(name, environment, table)
    return file, f"the {what} in {file} ({_variable(name)})"


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Option(Struct, frozen=True):
    """One setting: its field in Settings, the reader of its text, and one line of help."""

    name: str
    read: Callable[[str], Any]
    help: str

    @property
    def variable(self) -> str:
        return f"BIDKEEPER_{self.name.upper()}"


class HostPort(NamedTuple):
    """A program's network address. Only this class joins a host and a port to one text."""

    host: str
    port: int

    def __str__(self) -> str:
        """Writes HOST:PORT, with an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_every_address(self) -> bool:
        """Whether this is the wildcard address, which stands for all addresses of its family."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def nearby(self) -> HostPort:
        """The address for clients on this machine: loopback instead of the wildcard address."""
        loopback = "::1" if ":" in self.host else "127.0.0.1"
        return HostPort(loopback, self.port) if self.is_every_address else self

    @property
    def url(self) -> str:
        """The origin for a browser on this machine."""
        return f"http://{self.nearby}"


def text(value: str) -> str:
    return value


def whole(low: int, high: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number, not {value!r}") from None
        if not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}, not {number}")
        return number

    return read


def flag(value: str) -> bool:
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"must be true or false, not {value!r}")


def fraction(value: str) -> Decimal:
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise ValueError(f"must be a number, not {value!r}") from None
    if not (number.is_finite() and 0 <= number < 1):
        raise ValueError(f"must be at least 0 and below 1, not {value}")
    return number


def choice(*choices: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, not {value!r}")
        return value

    return read


def bid_challenge(value: str) -> str:
    """Reads the kind of challenge that ends a bid's text at Satflow."""
    if value == "challenge-id":
        raise ValueError(
            "cannot be challenge-id: Satflow documents neither who issues the ids nor the text that is signed with one"
        )
    return choice("timestamp")(value)


def addresses(value: str) -> frozenset[str]:
    return frozenset(part.strip() for part in value.split(",") if part.strip())


def users(value: str) -> frozenset[int]:
    """Reads user ids from a comma-separated list of user names and ids."""
    found = set()
    for part in filter(None, map(str.strip, value.split(","))):
        try:
            found.add(int(part) if part.isascii() and part.isdigit() else pwd.getpwnam(part).pw_uid)
        except KeyError:
            raise ValueError(f"names the user {part!r}, who is not on this machine") from None
    return frozenset(found)


def networks(value: str) -> tuple[Network, ...]:
    """Reads IP addresses and networks (172.17.0.0/16), comma-separated."""
    found = []
    for part in filter(None, map(str.strip, value.split(","))):
        try:
            network = ipaddress.ip_network(part)
        except ValueError as error:
            raise ValueError(f"must be IP addresses and networks: {error}") from None
        if network.prefixlen == 0:
            raise ValueError(f"must not be every address ({part})")
        found.append(network)
    return tuple(found)


def host(value: str) -> str:
    """Reads the IP address or name that a server listens on; an IPv6 address may have brackets."""
    found = value.strip()
    bare = found[1:-1] if found.startswith("[") and found.endswith("]") else found
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        if re.fullmatch(r"([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?", found):
            return found
    raise ValueError(f"must be an IP address or a host's name, without a port, not {value!r}")


def host_port(value: str) -> HostPort:
    """Reads HOST:PORT; an IPv6 address must have brackets."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", value.strip())
    if found is None or not 1 <= int(found[3]) <= 65535:
        raise ValueError(f"must be HOST:PORT, an IPv6 address in brackets, not {value!r}")
    return HostPort(found[1] or found[2], int(found[3]))


def host_ports(value: str) -> tuple[HostPort, ...]:
    """Reads HOST:PORT, comma-separated."""
    return tuple(host_port(part) for part in filter(None, map(str.strip, value.split(","))))


def co_signers(value: str) -> tuple[str, ...]:
    """Reads three x-only public keys: a market's, its gate's, its enclave's."""
    keys = tuple(part.strip() for part in value.split(","))
    if len(set(keys)) != 3 or len(keys) != 3 or not all(re.fullmatch(r"[0-9a-f]{64}", key) for key in keys):
        raise ValueError("must be three different keys of 64 lower-case hex digits, comma-separated")
    return keys


def listing_key(value: str) -> str:
    """Reads the x-only public key by which a market signs the sale of a listing in escrow."""
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise ValueError("must be a key of 64 lower-case hex digits")
    return value


def database(value: str) -> str:
    """Reads a database's address. Error texts do not repeat it, because it may contain a password."""
    if value.startswith("postgresql://"):
        return _postgresql(value)
    if value and not value.startswith("sqlite:///"):
        raise ValueError("must start with sqlite:/// or postgresql://")
    return value


def _postgresql(value: str) -> str:
    try:
        parts = urlsplit(value)
        named = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
    except ValueError:
        raise ValueError("cannot be read as an address") from None
    if "service" in named or not (parts.path.strip("/") or "dbname" in named):
        raise ValueError("must name the database itself: postgresql://HOST/NAME")
    hosts = database_hosts(value)
    if not hosts or not all(hosts):
        raise ValueError("must name a host, or a socket's directory: postgresql:///NAME?host=/run/postgresql")
    if not all(map(_is_here, hosts)) and named.get("sslmode") != ["verify-full"]:
        raise ValueError("must have sslmode=verify-full, since the database is not on this machine")
    if not {"read-write", "primary"}.issuperset(named.get("target_session_attrs", ())):
        raise ValueError("must have no target_session_attrs but read-write: a standby may not know the newest commits")
    return value


def database_hosts(url: str) -> list[str]:
    """Returns the hosts and the directories of Unix sockets in a PostgreSQL address."""
    parts = urlsplit(url)
    named = parse_qs(parts.query)
    hosts = [host for name in ("host", "hostaddr") for text in named.get(name, ()) for host in text.split(",")]
    return hosts + [unquote(_without_port(host)) for host in parts.netloc.rpartition("@")[2].split(",") if host]


def _is_here(host: str) -> bool:
    return host.startswith("/") or is_loopback(host)


def _without_port(host: str) -> str:
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def url(value: str) -> str:
    """Reads a venue's address: https anywhere, plain http on this machine only; no query, no user name."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"must be an http(s) address, not {value!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must be an origin with a path, without user name, query or fragment")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("must be https (plain http is for this machine only)")
    return value.rstrip("/")


def smtp(value: str) -> str:
    """Reads a mail server's address; its password is in a file."""
    parts = urlsplit(value)
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path.strip("/"):
        raise ValueError(f"must be smtps://HOST or smtp://HOST, with a user name and a port or without, not {value!r}")
    if parts.password is not None:
        raise ValueError("must have no password: BIDKEEPER_SMTP_PASSWORD_FILE names its file")
    return value.rstrip("/")


def is_loopback(host: str) -> bool:
    """Tells whether `host` (a name or an IP address) is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
