"""The service with its three users: directories as install.sh makes them, each program as its user."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
import requests

from tests.deploy.front import DEPLOY, put
from tests.e2e.installation import until
from tests.needs import need_root
from tests.ports import free_ports

CHECKOUT = DEPLOY.parent
# Numbers that no account has: the kernel asks for no names.
GROUP = REST = 61100
GATEWAY, SIGNER, RELAY, STRANGER = 61101, 61102, 61103, 61109
PROGRAMS = {
    "simulator": (REST, 0o027),
    "signer": (SIGNER, 0o077),
    "facts": (GATEWAY, 0o077),
    "gateway": (GATEWAY, 0o077),
    "manager": (REST, 0o027),
    "hooks": (REST, 0o027),
    "server": (REST, 0o027),
}


@cache
def interpreter() -> str:
    """Returns a Python that other users can run with our packages; skips the test when there is none."""
    need_root("start programs as other users")
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            run_as(STRANGER, "import tornado, embit.ec, bip322, cli.programs", python=python, groups=[])
        except (PermissionError, FileNotFoundError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip("other users cannot read this checkout or its Python")


def run_as(user: int, code: str, *arguments: object, python: str = "", groups: list[int] | None = None) -> str:
    """Returns the output of `code` run as `user`, a member of the group by default. Raises CalledProcessError."""
    done = subprocess.run(
        [python or interpreter(), "-c", code, *map(str, arguments)],
        cwd=CHECKOUT,
        env={"PYTHONPATH": packages(), "PYTHONDONTWRITEBYTECODE": "1"},
        user=user,
        group=GROUP if groups is None else user,
        extra_groups=[] if groups is None else groups,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def packages() -> str:
    return os.pathsep.join([str(CHECKOUT), *site.getsitepackages()])


@dataclass
class House:
    root: Path
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.environment['BIDKEEPER_PORT']}"

    def path(self, name: str) -> Path:
        return Path(f"{self.root}{name}")

    def sim(self, method: str, path: str, body: Any) -> None:
        port = self.environment["BIDKEEPER_SIMULATOR_PORT"]
        assert requests.request(method, f"http://127.0.0.1:{port}{path}", json=body, timeout=30).status_code == 200

    def as_installation(self) -> Any:
        """Returns an installation's values that a Trader needs."""
        return SimpleNamespace(url=self.url)

    def start(self, program: str) -> None:
        user, umask = PROGRAMS[program]
        with self._log(program) as log:
            self.processes[program] = subprocess.Popen(
                [interpreter(), "-m", "cli.main", program], **self._as(user, umask), stdout=log, stderr=log
            )

    def migrate(self) -> None:
        with self._log("migrate") as log:
            command = [interpreter(), "-m", "cli.main", "migrate"]
            subprocess.run(command, check=True, **self._as(REST, 0o027), stdout=log, stderr=log)

    def up(self) -> None:
        self.migrate()
        for program in PROGRAMS:
            self.start(program)
        until(self.is_ready, "everything answers")

    def is_ready(self) -> bool:
        for name, process in self.processes.items():
            assert process.poll() is None, f"{name} ended: {self.said()}"
        try:
            return requests.get(self.url + "/readyz", timeout=10).status_code == 200
        except requests.RequestException:
            return False

    def said(self) -> str:
        logs = sorted(self.path("/var/log/bidkeeper").iterdir())
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs)

    def end(self) -> None:
        for program in reversed(self.processes):
            self.processes[program].terminate()
            self.processes[program].wait(30)
        shutil.rmtree(self.root)

    def _log(self, program: str) -> IO[bytes]:
        return self.path(f"/var/log/bidkeeper/{program}.log").open("ab")

    def _as(self, user: int, umask: int) -> dict[str, Any]:
        who = {"user": user, "group": GROUP, "extra_groups": [], "umask": umask}
        return who | {"cwd": CHECKOUT, "env": self.environment}


def house() -> House:
    """Directories and settings as they are shipped, under a root of their own; nothing runs yet."""
    interpreter()
    root = Path(tempfile.mkdtemp(prefix="bk-"))
    root.chmod(0o755)
    owners = {
        "BIDKEEPER_INSTALL_ROOT": str(root),
        "BIDKEEPER_INSTALL_OWNERS": f"{REST} {GATEWAY} {SIGNER} {GROUP} {RELAY}",
    }
    for _ in range(2):  # as an upgrade does it: nothing changes
        subprocess.run([DEPLOY / "install.sh", "directories", "settings"], env=os.environ | owners, check=True)
    key = root / "etc" / "bidkeeper" / "satflow.key"
    key.write_text("a-real-key\n")
    key.chmod(0o400)
    os.chown(key, GATEWAY, GROUP)
    text = (root / "etc" / "bidkeeper" / "environment").read_text()
    text = put(
        text,
        **{
            "#BIDKEEPER_SATFLOW_API_KEY_FILE": "BIDKEEPER_SATFLOW_API_KEY_FILE",
            "CLIENTS=bidkeeper,bidkeeper-signer": f"CLIENTS={REST},{SIGNER}",
            "CLIENTS=bidkeeper\n": f"CLIENTS={REST}\n",
            "=/": f"={root}/",
            "WHITELIST=": "WHITELIST=*",
        },
    )
    settings = dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))
    port, simulator_port = free_ports(2)
    settings |= {"BIDKEEPER_PORT": str(port), "BIDKEEPER_SIMULATOR_PORT": str(simulator_port)}
    python = {"PYTHONPATH": packages(), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
    return House(root, settings | python)


RELEASE = "bookworm"
PACKAGES = (
    "systemd,systemd-sysv,dbus,python3,python3-venv,python3-dev,gcc,libc6-dev,nginx-light,ca-certificates,procps,curl"
)


def debian(directory: Path) -> Path:
    """Makes a Debian in `directory`; copies the one that BIDKEEPER_TEST_DEBIAN names, since a new one takes minutes."""
    root = directory / "root"
    if ready := os.environ.get("BIDKEEPER_TEST_DEBIAN"):
        subprocess.run(["cp", "-a", ready, str(root)], check=True)
    else:
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(root)], check=True)
    return root
