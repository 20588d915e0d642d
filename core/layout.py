"""The paths of an installation's files and of its tasks' files."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from core import setting_values as read
from core.call import socket_path_problem
from core.fields import WithSecrets, variable
from core.logs import as_text, mask
from core.process import PYTHON
from core.setting_values import HostPort, Option

_LONGEST_PID = 1 << 22  # the kernel's highest
OPERATORS_SOCKET = "ops.sock"  # in the signer's own directory, which is closed to other users
DIRECTORIES = ("data_dir", "signer_dir", "signer_run_dir", "gateway_run_dir", "tls_dir", "relay_dir")


class Layout(WithSecrets, frozen=True):
    """The settings of paths and of addresses between hosts.

    Each serving program has its own socket (`own_...`). Clients connect to that socket, or to a socket of this host's
    relay if `..._hosts` (or `signer_host`) names other hosts.
    """

    data_dir: Path = Path("data")
    signer_dir: Path | None = None
    signer_run_dir: Path | None = None
    gateway_run_dir: Path | None = None
    tls_dir: Path | None = None
    relay_dir: Path | None = None
    gateway_hosts: tuple[HostPort, ...] = ()
    facts_hosts: tuple[HostPort, ...] = ()
    signer_host: HostPort | None = None
    gateway_listen: HostPort | None = None
    facts_listen: HostPort | None = None
    manager_listen: HostPort | None = None
    signer_listen: HostPort | None = None

    @property
    def run_dir(self) -> Path:
        return self.data_dir / "run"

    @property
    def log_dir(self) -> Path:
        return self.data_dir / "logs"

    @property
    def manager_socket(self) -> Path:
        return self.manager_file("sock", None)

    def manager_file(self, kind: str, slot: int | None) -> Path:
        """Returns the socket or the lock of the manager of one slot, or of the only manager (None)."""
        return self.run_dir / (f"manager.{kind}" if slot is None else f"manager-{slot}.{kind}")

    def manager_at(self, slot: int) -> HostPort | None:
        """Returns the address at which this host's manager of the slot serves other hosts, or None."""
        at = self.manager_listen
        return HostPort(at.host, at.port + slot) if at else None

    @property
    def own_gateway_socket(self) -> Path:
        return (self.gateway_run_dir or self.run_dir) / "gateway.sock"

    @property
    def own_facts_socket(self) -> Path:
        return self.own_gateway_socket.with_name("facts.sock")

    @property
    def own_signer_socket(self) -> Path:
        return (self.signer_run_dir or self.run_dir) / "signer.sock"

    @property
    def relay_files(self) -> Path:
        """The directory of the relay's sockets. Every user who may enter it may use them."""
        return self.relay_dir or self.data_dir / "relay"

    @property
    def gateway_socket(self) -> Path:
        return self.relay_files / "gateway.sock" if self.gateway_hosts else self.own_gateway_socket

    @property
    def facts_socket(self) -> Path:
        return self.relay_files / "facts.sock" if self.facts_hosts else self.own_facts_socket

    @property
    def signer_socket(self) -> Path:
        return self.relay_files / "signer.sock" if self.signer_host else self.own_signer_socket

    @property
    def hooks_socket(self) -> Path:
        return self.run_dir / "hooks.sock"

    @property
    def hooks_dir(self) -> Path:
        """The directory of the hooks' receivers and their secrets, closed to other users."""
        return self.data_dir / "hooks"

    @property
    def pictures_dir(self) -> Path:
        """The directory of pictures that the gateway has fetched, next to `quota_file`."""
        return self.quota_file.with_name("pictures")

    @property
    def quota_file(self) -> Path:
        """The gateway's count of calls by key: in the gateway's own directory if it has one, else with the data."""
        return (self.gateway_run_dir or self.data_dir) / "quota.json"

    @property
    def signer_files(self) -> Path:
        """The directory of the signer's keys and records, closed to other users."""
        return self.signer_dir or self.data_dir / "signer"

    @property
    def operators_socket(self) -> Path:
        """The signer's socket for its own user and root."""
        return self.signer_files / OPERATORS_SOCKET


HOST_OPTIONS = (
    Option("tls_dir", Path, "directory of ca.pem, cert.pem and key.pem (mode 0600), for talking to other hosts"),
    Option("relay_dir", Path, "directory of the relay's sockets; relay in the data directory when unset"),
    Option("gateway_hosts", read.host_ports, "HOST:PORT of each host that may have the gateway, comma-separated"),
    Option("facts_hosts", read.host_ports, "HOST:PORT of each host with the process facts, comma-separated"),
    Option("signer_host", read.host_port, "HOST:PORT of the signer's host"),
    Option("gateway_listen", read.host_port, "HOST:PORT at which this host's gateway answers other hosts"),
    Option("facts_listen", read.host_port, "HOST:PORT at which this host's process facts answers other hosts"),
    Option("manager_listen", read.host_port, "HOST:PORT at which this host's managers answer other hosts"),
    Option("signer_listen", read.host_port, "HOST:PORT at which this host's relay answers for its signer"),
)
_BETWEEN_HOSTS = [option.name for option in HOST_OPTIONS if option.name.endswith(("_hosts", "_host", "_listen"))]


def layout_problems(layout: Layout) -> list[str]:
    """Returns the faults of the layout, one line each."""
    sockets = {"data_dir": layout.manager_socket}
    sockets |= {"signer_run_dir": layout.own_signer_socket} if layout.signer_run_dir else {}
    sockets |= {"gateway_run_dir": layout.own_gateway_socket} if layout.gateway_run_dir else {}
    sockets |= {"signer_dir": layout.operators_socket} if layout.signer_dir else {}
    sockets |= {"relay_dir": layout.relay_files / "gateway.sock"} if layout.relay_dir else {}
    found = {name: socket_path_problem(path) for name, path in sockets.items()}
    problems = [f"BIDKEEPER_{name.upper()}: {too_long}" for name, too_long in found.items() if too_long]
    for name in DIRECTORIES:
        try:
            variable(str(getattr(layout, name) or ""))
        except ValueError as error:
            problems.append(f"BIDKEEPER_{name.upper()}, or the directory that it is in, {error}")
    far = [name for name in _BETWEEN_HOSTS if getattr(layout, name)]
    if far and layout.tls_dir is None:
        problems.append(f"BIDKEEPER_TLS_DIR is needed with BIDKEEPER_{far[0].upper()}: links between hosts need TLS")
    if layout.manager_listen and layout.manager_listen.is_every_address:
        problems.append("BIDKEEPER_MANAGER_LISTEN must name this host as the others reach it, not every address")
    return problems


def supervisor_problems(layout: Layout) -> list[str]:
    """Returns why `bidkeeper up` cannot run this installation under supervisord, one line each."""
    # supervisord binds its socket under a name that ends in its pid, and renames it.
    socket = layout.run_dir / f"supervisor.sock.{_LONGEST_PID}"
    problems = [f"BIDKEEPER_DATA_DIR: {too_long}" for too_long in [socket_path_problem(socket)] if too_long]
    for what, path in {"BIDKEEPER_DATA_DIR": str(layout.data_dir), "this program's path": PYTHON[0]}.items():
        if "%" in path:
            problems.append(
                f"{what} has a % in it, which supervisord takes for a variable: use another path than {path}"
            )
    return problems


MOST_LOG_BYTES = 256 * 1024  # shown from the end of a log
LOG_FILES = 3  # files of a log: the newest and two older ones

log = logging.getLogger(__name__)


def log_path(data_dir: Path, task_id: int) -> Path:
    """Returns the newest file of a task's log."""
    return data_dir / "logs" / f"task-{task_id}.log"


def journal_path(data_dir: Path, task_id: int) -> Path:
    """Returns the newer file of a task's journal."""
    return data_dir / "journal" / f"task-{task_id}.jsonl"


def older(path: Path, number: int = 1) -> Path:
    """Returns the name of a file after `number` rotations; `path` itself for 0."""
    return path.with_name(f"{path.name}.{number}") if number else path


def remove_task_files(data_dir: Path, task_id: int) -> None:
    """Removes log and journal of a task whose worker has ended. A failure is logged and does not stop the others."""
    for path in (log_path(data_dir, task_id), journal_path(data_dir, task_id)):
        for number in range(LOG_FILES):
            try:
                older(path, number).unlink(missing_ok=True)
            except OSError as error:
                log.warning("failed to remove %s: %s", older(path, number).name, error.strerror)


def end_of_log(path: Path, most: int) -> list[str]:
    """Returns the last `most` lines within the last MOST_LOG_BYTES of the file, as text without secrets.

    Returns no lines if the file does not exist. Raises OSError.
    """
    try:
        with path.open("rb") as file:
            start = max(0, os.fstat(file.fileno()).st_size - MOST_LOG_BYTES)
            file.seek(start)
            found = file.read(MOST_LOG_BYTES)
    except FileNotFoundError:
        return []
    if start:
        # The first line may begin in the middle of a secret, which would then not be recognised.
        found = found.partition(b"\n")[2]
    lines = found.decode("utf-8", "replace").removesuffix("\n").split("\n")
    # One more line is masked than shown, because a secret that begins on it may end on the next.
    shown = mask("\n".join(map(as_text, lines[-most - 1 :]))).split("\n")[-most:]
    return shown if found else []
