"""Ray on several machines, which are directories here: started by the command and the settings that are shipped."""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from drills.engines.machines import Middle, Trading
from tests.deploy.front import DEPLOY
from tests.e2e.installation import until
from tests.needs import need_root
from tests.ports import free_ports

ROOM = 2


def need_ray() -> None:
    """Skips the test where Ray is missing."""
    if find_spec("ray") is None:
        pytest.skip("missing: Ray (make test-ray)")
    need_root("give each machine processes of its own, by which Ray tells them apart")


@cache
def shipped() -> tuple[dict[str, str], list[str]]:
    """Returns the settings of deploy/ray/environment, and the options in the unit's command."""
    text = (DEPLOY / "ray" / "environment").read_text()
    settings = dict(re.findall(r"^(RAY_\w+)=(.*)$", text, re.M))
    command = re.search(r"^ExecStart=(.*)$", (DEPLOY / "ray" / "bidkeeper-ray.service").read_text(), re.M)
    assert command
    return settings, shlex.split(command[1].replace("$BIDKEEPER_RAY", ""))[1:]


def settings(directory: Path, token: Path) -> dict[str, str]:
    """Returns Ray's settings, as shipped, for a machine with this directory and file with the secret."""
    return shipped()[0] | {"RAY_AUTH_TOKEN_PATH": str(token), "RAY_gcs_storage_path": str(directory / "gcs")}


def command(directory: Path) -> list[str]:
    """Returns the command of the unit, without what says which machine it is; its directory is made."""
    (directory / "gcs").mkdir(parents=True, exist_ok=True)
    ray = str(Path(sys.executable).with_name("ray"))
    options = [f"--temp-dir={directory}" if option.startswith("--temp-dir=") else option for option in shipped()[1]]
    # Processes of its own, since Ray looks for others of its kind on the machine, and takes them for its own.
    return ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", ray, *options]


class RayCluster:
    """What the machines share: the address of the one that leads, and the secret."""

    def __init__(self, middle: Middle) -> None:
        self.middle = middle
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.token = middle.data_dir / "ray-token"
        self.token.write_text(secrets.token_hex(32))
        self.token.chmod(0o400)


class RayMachine(Trading):
    """A machine with Ray; the one that `leads` runs no managers."""

    def __init__(self, cluster: RayCluster, *, leads: bool = False) -> None:
        super().__init__(cluster.middle)
        self._port = cluster.address.rpartition(":")[2]
        self._directory = self.data_dir / "ray"
        self._starts = 0
        self.environment |= settings(self._directory, cluster.token) | {"RAY_ADDRESS": cluster.address}
        own = f"--head --port={self._port} --include-dashboard=false"
        self._own = own if leads else f'--address={cluster.address} --resources={{"bidkeeper_slot":{ROOM}}}'

    def up(self, verb: str = "") -> None:
        self._starts += 1
        # Ports as there are free ones: the usual ones are for one cluster a machine.
        ports = ["--min-worker-port=0", "--max-worker-port=0", "--node-ip-address=127.0.0.1"]
        environment = {name: value for name, value in self.environment.items() if name != "RAY_ADDRESS"}
        with (self.data_dir / "ray.out").open("ab") as out:
            self.process = subprocess.Popen(
                [*command(self._directory), *ports, *self._own.split()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        until(self._is_up, "Ray", 120)

    def _is_up(self) -> bool:
        assert self.process is not None
        said = (self.data_dir / "ray.out").read_text()
        assert self.process.poll() is None, said[-3000:]
        return said.count("Ray runtime started") == self._starts

    def kill(self) -> None:
        """Ends all processes at once: they end with the first one of their own."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
        until(lambda: not self.processes(), "the end of all processes")

    def last_words(self, lines: int = 12) -> str:
        """Returns the end of what Ray and the managers said here."""
        files = [self.data_dir / "ray.out", *sorted(self._directory.glob("session_2*/logs/worker-*.err"))]
        ends = {file.name: file.read_text(errors="replace").splitlines()[-lines:] for file in files if file.exists()}
        return "\n".join(f"{name[:30]}: {line[:300]}" for name, end in ends.items() for line in end)

    def bidkeeper(self, *words: str) -> tuple[int, str]:
        """Runs `bidkeeper ray ...` on this machine; returns its result and its words."""
        line = [sys.executable, "-m", "cli.main", "ray", *words]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr
