"""The unit under a real systemd: a fresh Debian booted in a container, with the service as install.sh puts it there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.front import DEPLOY
from tests.deploy.house import debian
from tests.needs import need, need_root

CHECKOUT = DEPLOY.parent
DRILL = Path(__file__).with_name("systemd-drill.sh")
NSPAWN = ("systemd-nspawn", "-q", "--register=no", "--keep-unit")
UNIT = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash /root/drill.sh
StandardOutput=file:/root/drill.txt
StandardError=file:/root/drill.err
[Install]
WantedBy=default.target
"""

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The drill's lines, by name; `log` is the rest that the machine wrote."""
    need("git", "systemd-nspawn", "debootstrap")
    need_root("boot a container")
    root = debian(tmp_path_factory.mktemp("debian"))
    checkout_into(root / "root/checkout")
    inside(root, "deploy/install.sh")
    (root / "root/drill.sh").write_bytes(DRILL.read_bytes())
    (root / "etc/systemd/system/drill.service").write_text(UNIT)
    inside(root, "systemctl", "enable", "drill.service")
    booted = subprocess.run(
        [*NSPAWN, f"--directory={root}", "--boot", "--private-network", "--machine=bidkeeper-drill"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=600,
    )
    lines = dict(line.partition("=")[::2] for line in read(root, "drill.txt").splitlines())
    logs = [read(root, name) for name in ("drill.txt", "drill.err", "doctor.txt", "journal.txt")]
    yield {**lines, "log": "\n".join([*logs, booted.stdout.decode(errors="replace")[-4000:]])}
    shutil.rmtree(root)


def checkout_into(place: Path) -> None:
    """Copies the files of this checkout that git tracks."""
    place.mkdir()
    files = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, check=True, capture_output=True).stdout
    subprocess.run(["cp", "--parents", "-t", place, "--", *files.decode().split("\0")[:-1]], cwd=CHECKOUT, check=True)


def inside(root: Path, *command: str) -> None:
    """Runs a command in the root before it is booted, with this machine's network and its trust in registries."""
    given = [f"--setenv={name}={value}" for name, value in os.environ.items() if name.startswith("PIP_")]
    subprocess.run(
        [
            *NSPAWN,
            f"--directory={root}",
            "--pipe",
            "--bind-ro=/etc/ssl/certs",
            "--chdir=/root/checkout",
            *given,
            *command,
        ],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )


def read(root: Path, name: str) -> str:
    path = root / "root" / name
    return path.read_text() if path.exists() else ""


def test_it_starts_with_each_program_as_its_user(seen: dict[str, str]) -> None:
    assert (seen.get("ready"), seen.get("active")) == ("yes", "active"), seen["log"]
    users = {
        name: seen[f"user_{name}"] for name in ("simulator", "signer", "facts", "gateway", "manager", "hooks", "server")
    }
    assert users == {
        "simulator": "bidkeeper",
        "signer": "bidkeeper-signer",
        "facts": "bidkeeper-gateway",
        "gateway": "bidkeeper-gateway",
        "manager": "bidkeeper",
        "hooks": "bidkeeper",
        "server": "bidkeeper",
    }, seen["log"]


def test_the_installed_command_works(seen: dict[str, str]) -> None:
    assert seen.get("whitelisted") == "yes", seen["log"]
    assert seen.get("doctor") == "0", seen["log"]


@pytest.mark.parametrize("name", ["signer", "gateway", "manager", "server", "supervisord"])
def test_what_is_killed_comes_back(seen: dict[str, str], name: str) -> None:
    assert seen.get(f"back_{name}") == "yes", seen["log"]


def test_it_restarts_and_leaves_nothing_behind_when_stopped(seen: dict[str, str]) -> None:
    assert (seen.get("restarted"), seen.get("left"), seen.get("result")) == ("yes", "0", "success"), seen["log"]
    assert int(seen["stopped_in"]) < 45, seen["log"]


def test_signer_and_workers_have_a_filter_more_than_the_rest(seen: dict[str, str]) -> None:
    """The unit's own filters must let them give up the network; `doctor` tries it where it is asked from."""
    units = int(seen["filters_gateway"])
    assert units > 0, seen["log"]
    names = "facts", "server", "manager", "signer", "zygote"
    counted = {name: int(seen[f"filters_{name}"]) - units for name in names}
    assert counted == {"facts": 0, "server": 0, "manager": 0, "signer": 1, "zygote": 1}, seen["log"]


def test_a_program_sees_no_process_of_another_user(seen: dict[str, str]) -> None:
    found = {name: seen[f"server_sees_{name}"] for name in ("signer", "gateway", "manager")}
    assert found == {"signer": "no", "gateway": "no", "manager": "yes"}, seen["log"]


def test_the_unit_is_confined(seen: dict[str, str]) -> None:
    """systemd's own reckoning of what a unit may do, from 0 to 10; a service without any setting has 9.6."""
    assert float(seen["exposure"]) < 4, seen["log"]
