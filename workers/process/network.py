"""A worker's network, which it gives up: it asks the gateway, the signer and a database in a file."""

from __future__ import annotations

import logging

from core import no_network
from core.setting_values import database_hosts

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
    """Returns the hosts that a database is reached at over a network; "" for a file and for Unix sockets."""
    if not database_url.startswith("postgresql://"):
        return ""
    return ", ".join(host for host in database_hosts(database_url) if not host.startswith("/"))
