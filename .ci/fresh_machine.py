#!/usr/bin/env python3
"""Tries the README's own commands on a fresh minimal Debian, as a normal user: `.ci/fresh_machine.py bookworm`.

It reads the commands from the README, so that the two cannot differ. The machine is a root file system that mmdebstrap
makes in `.venv-machines`, with its own process tree. Its tests run in a network with only loopback. It uses this
machine's settings for packages: sources, certificates, pip's configuration.
It needs root and mmdebstrap. Without them it prints that and tries nothing, which is an error under CI."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
MACHINES = CHECKOUT / ".venv-machines"
SETTINGS_OF_PACKAGES = (
    "etc/apt/apt.conf.d",
    "etc/pip.conf",
    "etc/resolv.conf",
    "etc/ssl/certs/ca-certificates.crt",
    "etc/xdg/pip",
    "usr/local/share/ca-certificates",
)
VARIABLES = re.compile(r"CI|PIP_(?!FIND_LINKS).*|.*_CA_BUNDLE|SSL_CERT_.*|(https?|no)_proxy", re.IGNORECASE)
TASKS = 4  # of the demo: three that bid, and one that lists
PATIENCE_S = 600
# The mounts end with the processes that see them.
ENTER = """
set -e
mount -t tmpfs tmpfs "$ROOT/dev/shm"
mount -t devpts devpts "$ROOT/dev/pts" -o newinstance,ptmxmode=0666
ip link set lo up
exec chroot --userspec="$USER_THERE" --groups= "$ROOT" env -i HOME="$HOME_THERE" PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


class Machine:
    """A fresh Debian, whose only normal user is `trader`."""

    def __init__(self, suite: str) -> None:
        self.suite = suite
        self.root = MACHINES / suite
        self._began = time.monotonic()

    def make(self) -> None:
        """Makes the root file system, with this checkout's last commit in it for `git clone`."""
        MACHINES.mkdir(exist_ok=True)
        (MACHINES / ".gitignore").write_text("*\n")
        shutil.rmtree(self.root, ignore_errors=True)
        (sources := MACHINES / f"{self.suite}.sources").write_text(sources_of(self.suite))
        conf = [f"--aptopt={path}" for path in sorted(Path("/etc/apt/apt.conf.d").glob("99*"))]
        run("mmdebstrap", "--quiet", "--variant=minbase", *conf, self.suite, self.root, sources)
        self.use_settings_of_packages()
        run("chroot", self.root, "useradd", "--create-home", "--shell", "/bin/bash", "trader")
        run("git", "-C", CHECKOUT, "bundle", "create", "--quiet", self.root / "srv/bidkeeper", "HEAD")
        self.say("is made")

    def use_settings_of_packages(self) -> None:
        """Copies this machine's settings for packages again, because an installed package may have replaced some."""
        for name in SETTINGS_OF_PACKAGES:
            here, there = Path("/", name), self.root / name
            there.parent.mkdir(parents=True, exist_ok=True)
            if name == "etc/apt/apt.conf.d":
                for each in here.glob("99*"):
                    shutil.copy(each, there)
            elif here.is_dir():
                shutil.copytree(here, there, dirs_exist_ok=True)
            elif here.exists():
                shutil.copy(here, there)

    @contextmanager
    def started(
        self, words: str, *, is_root: bool = False, has_network: bool = True, variables: Mapping[str, str] = {}
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Starts a shell command there, in the user's home; it ends with the block."""
        self.say(words)
        given = {name: value for name, value in os.environ.items() if VARIABLES.fullmatch(name)} | dict(variables)
        there = {"ROOT": str(self.root), "USER_THERE": "root", "HOME_THERE": "/root"}
        if not is_root:
            there |= {"USER_THERE": "trader:trader", "HOME_THERE": "/home/trader"}
        apart = ["--pid", "--mount", "--fork", "--kill-child", f"--mount-proc={self.root}/proc"]
        command = subprocess.Popen(
            ["unshare", *apart, *([] if has_network else ["--net"]), "sh", "-c", ENTER, "sh"]
            + [f"{name}={value}" for name, value in given.items()]
            + ["bash", "-ec", f"cd; {words}"],
            env=os.environ | there,
            stdin=subprocess.DEVNULL,
            process_group=0,
        )
        try:
            yield command
        finally:
            command.kill()
            command.wait()

    def run(self, words: str, **how: Any) -> None:
        """Runs a shell command there to its end. Raises SystemExit if it fails."""
        with self.started(words, **how) as command:
            code = command.wait()
        if code:
            sys.exit(f"{self.suite}: {words}: ended with {code}")

    def install(self, words: str) -> None:
        """Runs the README's command that installs packages, as root and without asking."""
        words = re.sub(r"^(sudo )?apt-get install", "apt-get install -q -y", words)
        self.run(f"export DEBIAN_FRONTEND=noninteractive; apt-get update -q; {words}", is_root=True)
        self.use_settings_of_packages()

    def try_demo(self, words: str, port: int) -> None:
        """Runs the README's `make run` until each task of the demo has acted, then ends it as Ctrl-C does."""
        words = re.sub(r"git clone \S+ ", "git clone -q /srv/bidkeeper ", words)
        ports = {"BIDKEEPER_PORT": str(port), "BIDKEEPER_SIMULATOR_PORT": str(port + 2)}
        log = self.root / "home/trader/run.log"
        # The last line names the remaining processes: this shell, and ls itself.
        words = f"set +e; trap : INT; ({words}) >run.log 2>&1; echo left: $(ls -d /proc/[0-9]*) >>run.log"
        with self.started(words, variables=ports) as demo:
            while len(acting := tasks_that_acted(log, port)) < TASKS:
                if demo.poll() is not None or time.monotonic() - self._began > PATIENCE_S:
                    sys.exit(f"{self.suite}: make run: of its tasks acted {acting}\n{log.read_text()}")
                time.sleep(0.2)
            self.say(f"tasks have acted: {', '.join(acting)}")
            os.killpg(demo.pid, signal.SIGINT)
            demo.wait(PATIENCE_S)
        print(text := log.read_text())
        if not re.search(r"^left: /proc/1 /proc/\d+$", text, re.M):
            sys.exit(f"{self.suite}: make run: Ctrl-C left processes")

    def say(self, words: str) -> None:
        print(f"=== {self.suite}, {time.monotonic() - self._began:.0f} s: {words}", flush=True)


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def sources_of(suite: str) -> str:
    """Returns this machine's package sources, changed to another release of Debian."""
    text = Path("/etc/apt/sources.list.d/debian.sources").read_text()
    ours = platform.freedesktop_os_release()["VERSION_CODENAME"]
    if suite != "sid":
        return re.sub(rf"\b{ours}\b", suite, text)
    return re.sub(r"^Suites:.*$", "Suites: sid", text.partition("\n\n")[0], flags=re.M) + "\n"


def readme_commands() -> dict[str, str]:
    """Returns the README's commands by the name in the comment before each."""
    blocks = re.findall(r"<!-- ci: ([\w-]+) -->\n+```sh\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.S)
    return {name: " && ".join(lines.strip().splitlines()) for name, lines in blocks}


def tasks_that_acted(log: Path, port: int) -> list[str]:
    """Returns the tasks of the demo's user whose last cycle succeeded."""
    token = re.search(r"TOKEN=(\S+)", log.read_text()) if log.exists() else None
    if token is None:
        return []
    found = []
    for path in ("tasks", "autolist"):
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/api/{path}")
        asked.add_header("Authorization", f"Bearer {token[1]}")
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            tasks = json.load(answer)
        found += [f"{path} {task['id']}" for task in tasks if task["lastCycle"] and not task["lastError"]]
    return found


def try_it(suite: str, commands: Mapping[str, str], target: str, port: int) -> None:
    """Tries the README's commands on one machine. Raises SystemExit if one fails."""
    machine = Machine(suite)
    machine.make()
    machine.install(commands["packages-run"])
    machine.try_demo(commands["run"], port)
    machine.install(commands["packages-test"])
    # Packages need the network; the tests run without it.
    machine.run("cd bidkeeper; make tools")
    test = re.sub(r"\bmake test\b", f"make {target}", commands["test"])
    machine.run(f"cd bidkeeper; {test}", has_network=False)
    machine.say("passed")
    shutil.rmtree(machine.root)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suites", nargs="+", metavar="RELEASE", help="a release of Debian: bookworm, trixie or sid")
    parser.add_argument("--target", default="test-fast", help="what is made in place of the README's `make test`")
    parser.add_argument("--port", type=int, default=14888, help="the demo's")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it, and so would make
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        print(f"{', '.join(options.suites)}: not tried: it needs root and mmdebstrap")
        return 1 if os.environ.get("CI") else 0
    commands = readme_commands()
    for suite in options.suites:
        try_it(suite, commands, options.target, options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
