"""The networks of a drill's machines: addresses of the loopback network, or namespaces on one bridge."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from urllib.parse import quote

from tests.needs import missing

_PREFIX = 24


class Networks:
    """The loopback network, where each machine has an address of its own and nothing can be cut."""

    are_apart = False

    def address(self, number: int) -> str:
        return f"127.0.0.{number + 1}"

    def url(self, url: str) -> str:
        """Returns the database's address as the machines have to use it; `url` is the test's."""
        return url

    def join(self, name: str, address: str) -> str:
        """Makes a machine's network; returns its name, "" for that of all."""
        return ""


LOOPBACK = Networks()


class Bridge(Networks):
    """A network for each machine, on one bridge; the first machine is at the bridge itself. Needs root.

    The database's own machines are asked over TLS, and `certificates` has the authority that vouches for them.
    """

    are_apart = True

    def __init__(self, certificates: Path) -> None:
        self._mark = f"bk{os.getpid() % 10_000}"
        self._net = f"10.{77 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
        self._certificates = certificates
        self._made: list[str] = []
        self._databases: list[str] = []
        ip("link", "add", self._mark, "type", "bridge")
        ip("addr", "add", f"{self.address(0)}/{_PREFIX}", "dev", self._mark)
        ip("link", "set", self._mark, "up")

    def address(self, number: int) -> str:
        return f"{self._net}.{number + 1}"

    def add_database(self, number: int) -> tuple[str, str]:
        """Makes the network of one more of the database's machines; returns its name and its address."""
        address = self.address(100 + number)
        self._databases.append(address)
        return self.join(f"d{number}", address), address

    def url(self, url: str) -> str:
        name = url.removeprefix("postgresql:///").partition("?")[0]
        hosts, addresses = ",".join(["database"] * len(self._databases)), ",".join(self._databases)
        authority = quote(str(self._certificates / "ca.pem"))
        return (
            f"postgresql:///{name}?host={hosts}&hostaddr={addresses}&user=bidkeeper"
            f"&sslmode=verify-full&sslrootcert={authority}&connect_timeout=2"
        )

    def join(self, name: str, address: str) -> str:
        if address == self.address(0):
            return ""
        network = f"{self._mark}-{name}"
        ip("netns", "add", network)
        self._made.append(network)
        ip("link", "add", network, "type", "veth", "peer", "name", "eth0", "netns", network)
        ip("link", "set", network, "master", self._mark, "up")
        ip("-n", network, "addr", "add", f"{address}/{_PREFIX}", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", network, "link", "set", device, "up")
        return network

    def remove(self) -> None:
        """Takes away what was made."""
        for network in self._made:
            ip("netns", "del", network)
        ip("link", "del", self._mark)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def why_not() -> str:
    """Says why machines cannot have networks of their own here; "" where they can."""
    if os.geteuid() != 0:
        return "networks of machines are made by root alone: NOTHING was cut off"
    if reason := missing("ip"):
        return f"{reason}: NOTHING was cut off"
    tried = subprocess.run(["ip", "netns", "add", f"bk-try-{os.getpid()}"], capture_output=True)
    if tried.returncode != 0:
        return "this kernel makes no networks here: NOTHING was cut off"
    ip("netns", "del", f"bk-try-{os.getpid()}")
    return ""
