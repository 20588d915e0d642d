"""One installation on three hosts, which are directories here: they reach each other over TLS by their relays alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests import postgresql
from tests.authority import Authority
from tests.cli.commands import in_this_process
from tests.e2e.installation import Installation, until
from tests.needs import need
from tests.ports import free_ports


def need_relay() -> None:
    """Skips the test without an nginx that can be a relay."""
    need("nginx", "nginx's stream module", "openssl")


class Host:
    """A host's data directory and programs, each of which `command` starts."""

    command: tuple[str, ...] = (sys.executable, "-m", "cli.main")

    def __init__(self, data_dir: Path, environment: Mapping[str, str]) -> None:
        self.data_dir = data_dir
        self.environment = {**environment, "BIDKEEPER_DATA_DIR": str(data_dir)}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, program: str, called: str = "", **settings: str) -> subprocess.Popen[bytes]:
        name = called or program
        (self.data_dir / "logs").mkdir(exist_ok=True)
        with (self.data_dir / "logs" / f"{name}.log").open("ab") as log:
            environment = self.environment | settings
            # A session of its own, so that its children can be ended with it.
            started = subprocess.Popen(
                self.line(program), env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.processes[name] = started
        return started

    def line(self, program: str) -> list[str]:
        """Returns the command line of a program."""
        return [*self.command, program]

    def said(self, program: str) -> str:
        return (self.data_dir / "logs" / f"{program}.log").read_text()

    def end(self, program: str, number: int = signal.SIGTERM) -> None:
        """Ends a program with all its children."""
        process = self.processes.pop(program)
        if number == signal.SIGTERM:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


class Hosts(Installation):
    """The server's host is the installation itself; `away` has the gateway and facts, `vault` the signer.

    On PostgreSQL `trading` has the managers of two slots, else the server's host has the one there is. A second host
    that may have the gateway, and has not, is asked first: its port refuses.
    """

    def __init__(self) -> None:
        need_relay()
        super().__init__()
        self.authority = Authority(self.data_dir / "authority")
        gateway, facts, signer, standby, manager = (f"127.0.0.1:{port}" for port in free_ports(5))
        tls = {role: str(self.authority.certificate(role, role)) for role in ("trader", "signer")}
        asked = {"BIDKEEPER_GATEWAY_HOSTS": f"{standby},{gateway}", "BIDKEEPER_FACTS_HOSTS": facts}
        self.standby = standby
        self.listens = {"gateway": gateway, "facts": facts, "signer": signer, "manager": manager}
        trades = asked | {"BIDKEEPER_SIGNER_HOST": signer, "BIDKEEPER_TLS_DIR": tls["trader"]}
        listens = {"BIDKEEPER_MANAGER_LISTEN": manager, "BIDKEEPER_DATABASE_URL": self.database_url}
        self.here = self.trading = Host(self.data_dir, self.environment | trades | listens)
        if postgresql.is_wanted():
            self.here = Host(self.data_dir, self.environment | trades)
            self.trading = Host(Path(tempfile.mkdtemp(prefix="bk-")), self.environment | trades | listens)
        self.away = Host(
            Path(tempfile.mkdtemp(prefix="bk-")),
            self.environment
            | {
                "BIDKEEPER_DATABASE_URL": self.database_url,
                "BIDKEEPER_GATEWAY_LISTEN": gateway,
                "BIDKEEPER_FACTS_LISTEN": facts,
                "BIDKEEPER_TLS_DIR": tls["trader"],
            },
        )
        self.vault = Host(
            Path(tempfile.mkdtemp(prefix="bk-")),
            self.environment
            | {
                "BIDKEEPER_FACTS_HOSTS": facts,
                "BIDKEEPER_DATABASE_URL": "sqlite:////nonexistent",
                "BIDKEEPER_SIGNER_LISTEN": signer,
                "BIDKEEPER_TLS_DIR": tls["signer"],
            },
        )
        self.hosts = list({id(host): host for host in (self.here, self.trading, self.away, self.vault)}.values())

    def up(self, verb: str = "up") -> None:
        several = self.trading is not self.here
        code, *said = in_this_process(self.here.environment, "migrate", *(["--slots", "2"] if several else []))
        assert code == 0, said
        for host, programs in (
            (self.here, ("simulator", "relay")),
            (self.vault, ("relay", "signer")),
            (self.away, ("facts", "gateway")),
            (self.trading, ("relay",) if several else ("manager",)),
            (self.here, ("hooks", "server")),
        ):
            for program in programs:
                host.start(program)
        for slot in "01" if several else "":
            self.trading.start("manager", called=f"manager-{slot}", BIDKEEPER_SLOT=slot)
        until(self.everything_answers, "everything answers")

    def everything_answers(self) -> bool:
        for host in self.hosts:
            for program, process in host.processes.items():
                assert process.poll() is None, f"{program} ended: {host.said(program)}"
        return self.ready_again()

    def data_dirs(self) -> list[Path]:
        return [host.data_dir for host in self.hosts]

    def last_words(self, lines: int = 12) -> str:
        logs = [log for host in self.hosts for log in sorted((host.data_dir / "logs").glob("*.log"))]
        ends = {log: log.read_text(errors="replace").splitlines()[-lines:] for log in logs}
        return "\n".join(f"{log}: {line[:300]}" for log, end in ends.items() for line in end)

    def destroy(self) -> None:
        for host in self.hosts:
            for program in reversed(list(host.processes)):
                host.end(program)
        super().destroy()
        for host in self.hosts:
            shutil.rmtree(host.data_dir, ignore_errors=True)


@contextlib.contextmanager
def hosts() -> Iterator[Hosts]:
    made = Hosts()
    try:
        made.up()
        yield made
    finally:
        made.destroy()
