"""A worker's network, which it gives up: it asks the gateway, the signer and a database in a file."""

from __future__ import annotations

import logging
from urllib.parse import parse_qs, urlsplit

from core import no_network

log = logging.getLogger(__name__)


def give_up_network(database_url: str) -> None:
    """Takes the network from this process and its children for good, unless its database is at another host.

    The log says so when the network stays.
    """
    host = database_host(database_url)
    if host:
        log.warning("workers keep the network: their database is at %s", host)
        return
    if problem := no_network.give_up_network():
        log.warning("the network cannot be taken from workers: %s", problem)


def database_host(database_url: str) -> str:
    """Returns the host that a database is reached at over a network; "" for a file or a Unix socket."""
    url = urlsplit(database_url)
    if url.scheme in ("", "sqlite"):
        return ""
    host = url.hostname or parse_qs(url.query).get("host", ["localhost"])[-1]
    return "" if host.startswith("/") else host
