"""A database on machines of its own: a primary and a synchronous standby, reached over TLS."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from drills.hosts.machine import family
from drills.hosts.networks import Bridge
from tests import postgresql
from tests.authority import Authority
from tests.databases import rows
from tests.e2e.installation import until
from tests.postgresql import Cluster

NAME = "bidkeeper"
_CONNECTIONS = 1100  # for a thousand tasks, by the doctor's rule: each holds one in a cycle


class FarServer(Cluster):
    """A server at an address of its own, for everybody on the bridge who comes with TLS."""

    def __init__(self, directory: Path, network: str, address: str, certificate: Path, *, is_empty: bool) -> None:
        tls = directory / "tls"
        shutil.copytree(certificate, tls)
        owner = pwd.getpwnam("postgres")
        for path in (tls, *tls.iterdir()):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        files = (f"ssl_{name}_file={tls}/{file}" for name, file in (("cert", "cert.pem"), ("key", "key.pem")))
        settings = (f"listen_addresses={address}", "ssl=on", f"max_connections={_CONNECTIONS}", "fsync=off", *files)
        super().__init__(directory, *settings, is_empty=is_empty)
        self.network, self.address = network, address
        self._stopped: list[int] = []
        if not is_empty:
            with (directory / "data" / "pg_hba.conf").open("a") as file:
                for what in ("all", "replication"):
                    file.write(f"hostssl {what} all {address}/24 trust\n")
        self._as_user = ["ip", "netns", "exec", network, *self._as_user]

    @property
    def way(self) -> str:
        return f"host={self.address} sslmode=require sslcert=none connect_timeout=5"

    def link(self, state: str) -> None:
        """Cuts the server off ("down"), or connects it again ("up")."""
        subprocess.run(["ip", "-n", self.network, "link", "set", "eth0", state], check=True)

    def stand_still(self) -> None:
        """Stops all of the server's processes, as a machine that is frozen."""
        self._stopped = family(self.pid)
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        for pid in self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class FarDatabase:
    """Two servers that change places; what is answered is on both."""

    def __init__(self) -> None:
        self._directories = [Path(tempfile.mkdtemp(prefix="bk-pg-")) for _ in range(3)]
        authority = Authority(self._directories[0] / "authority")
        certificate = authority.certificate("database", "database")
        for directory in self._directories:
            directory.chmod(0o755)
        (self._directories[0] / "authority").chmod(0o755)
        certificate.chmod(0o755)
        self.bridge = Bridge(certificate)
        self.primary, self.standby = (
            FarServer(directory, *self.bridge.add_database(number), certificate, is_empty=number > 0)
            for number, directory in enumerate(self._directories[1:])
        )
        self._servers = (self.primary, self.standby)
        try:
            self.primary.start()
            self._tell(f"CREATE DATABASE {NAME}")
            self.follow()
        except BaseException:
            self.remove()
            raise

    @property
    def url(self) -> str:
        """The address of whichever is the primary, from here, past the networks."""
        return self.primary.url(NAME)

    def follow(self) -> None:
        """Makes the standby anew, out of the primary."""
        if self.standby.is_running:
            self.standby.stop()
        self.standby.link("up")
        self.standby.follow(self.primary, "one" if self.standby is self._servers[0] else "two")
        self._wait_for("one, two")
        until(lambda: self._states() == ["sync"], "a synchronous standby", 60)

    def take_over(self) -> None:
        """Makes the standby the primary, whatever has become of the former one. It waits for no standby yet."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary
        self._wait_for("")

    def remove(self) -> None:
        for server in self._servers:
            server.go_on()
            if server.is_running:
                server.stop()
        self.bridge.remove()
        for directory in self._directories:
            shutil.rmtree(directory, ignore_errors=True)

    def _wait_for(self, standbys: str) -> None:
        """Has commits wait for these standbys, as a cluster's manager would."""
        self._tell(f"ALTER SYSTEM SET synchronous_standby_names TO '{standbys}'")
        self._tell("SELECT pg_reload_conf()")

    def _states(self) -> list[str]:
        text = "SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"
        return [str(state) for (state,) in rows(self.primary.url("postgres"), text)]

    def _tell(self, text: str) -> None:
        postgresql.command(self.primary.url("postgres"), text)
