"""Wheel and sdist: they hold each file of ours, and an installed one works from any folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distributions import ROOT, TOP_LEVEL, files
from tests.e2e.installation import until
from tests.needs import require
from tests.ports import free_ports

PROGRAM = [path for name in TOP_LEVEL for path in (ROOT / name).rglob("*.py")]
# As in the demo's lines: a task that has placed a bid or listed its item.
ACTS = re.compile(r"^\S+ (?:auto-list )?task (\d+) .*: (?:placed [1-9]|listed at )", re.M)


def test_no_program_reads_a_file_outside_of_its_packages() -> None:
    """What lies beside them in a checkout is nowhere in a wheel."""
    leaves = re.compile(r"\.parents\[|\.parent\.parent|\.parent\b.*\.\.")
    assert len(PROGRAM) > 300
    assert [path for path in PROGRAM if leaves.search(path.read_text())] == []


def test_programs_are_started_in_one_way_that_takes_nothing_from_the_current_folder() -> None:
    starting = [path.relative_to(ROOT).as_posix() for path in PROGRAM if "sys.executable" in path.read_text()]
    assert starting == ["core/process.py"]
    assert 'PYTHON = (sys.executable, "-P")' in (ROOT / "core/process.py").read_text()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the sdist of this checkout, built as pip builds them."""
    source, to = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "supervisord.conf"):
        shutil.copy(ROOT / name, source)
    for name in TOP_LEVEL:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    for kind in ("sdist", "wheel"):
        build = f"import sys; from setuptools.build_meta import build_{kind} as build; build(sys.argv[1])"
        subprocess.run([sys.executable, "-c", build, to], cwd=source, check=True, capture_output=True)
    return to


@pytest.mark.slow
def test_wheel_and_sdist_hold_each_file_of_ours(built: Path) -> None:
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    with tarfile.open(sdist) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        of_sdist = {member.name.partition("/")[2]: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]
    with zipfile.ZipFile(wheel) as archive:
        of_wheel = {name: archive.read(name) for name in archive.namelist()}
    ours = {name: (ROOT / name).read_bytes() for name in files()}
    assert "cli/supervisord.conf" in ours and "web/index.html" in ours
    for held in (of_sdist, of_wheel):
        assert sorted(ours.keys() - held.keys()) == []
        assert [name for name, content in ours.items() if held[name] != content] == []


class Started:
    """A `bidkeeper up` or `demo` in a folder, by a command that is installed somewhere."""

    def __init__(self, folder: Path, command: Path, verb: str) -> None:
        self.folder, self.output = folder, folder / "said"
        self.port, self.simulator_port = free_ports(2)
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [command, verb],
                cwd=folder,
                env={
                    "PATH": "/usr/bin:/bin",
                    "LC_ALL": "C.UTF-8",
                    "BIDKEEPER_WHITELIST": "*",
                    "BIDKEEPER_PORT": str(self.port),
                    "BIDKEEPER_SIMULATOR_PORT": str(self.simulator_port),
                },
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        """Returns its output; fails when it has ended."""
        text = self.output.read_text()
        assert self.process.poll() is None, text
        return text

    def is_ready(self) -> bool:
        return f"ready http://127.0.0.1:{self.port}" in self.said()

    def left(self) -> list[int]:
        """Returns the pids of the living processes in this folder: of a worker the command line says nothing."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    is_in_it = (entry / "cwd").readlink() == self.folder
                except OSError:  # it has ended, or is not this user's
                    continue
                if is_in_it:
                    found.append(int(entry.name))
        return found

    def interrupt(self) -> int:
        """Presses Ctrl-C; returns the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(180)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder)


@pytest.fixture
def folder() -> Path:
    """An empty folder with a short name: a socket's path ends at 107 bytes."""
    return Path(tempfile.mkdtemp(prefix="bk-"))


@pytest.mark.slow
def test_a_folder_with_packages_of_our_names_is_not_taken_for_ours(folder: Path) -> None:
    for name in (*TOP_LEVEL, "supervisor", "tornado"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('this is a stranger')")
    started = Started(folder, Path(sys.executable).with_name("bidkeeper"), "up")
    try:
        until(started.is_ready, "ready")
        assert len(started.left()) >= 3
        assert started.interrupt() == 0
        assert started.left() == []
    finally:
        started.end()


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def installed(request: pytest.FixtureRequest, built: Path) -> Iterator[Path]:
    """The command of a wheel, or of an sdist that pip builds, in an environment with the lock's packages alone."""
    made = Path(tempfile.mkdtemp(prefix="bk-", dir=sys.prefix))  # libraries cannot be loaded from every /dev/shm
    pip = [made / "bin" / "python", "-m", "pip", "install", "-q", "--no-build-isolation"]
    try:
        subprocess.run([sys.executable, "-m", "venv", made], check=True, timeout=300)
        lock = (ROOT / "requirements.lock").read_text()
        (first,) = re.findall(r"^setuptools==.*\n(?: +--hash.*\n)+", lock, re.M)
        (made / "first.txt").write_text(first)
        asked = subprocess.run([*pip, "--require-hashes", "-r", made / "first.txt"], capture_output=True, timeout=600)
        require("" if asked.returncode == 0 else "missing: a package registry that pip reaches")
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True, timeout=900)
        (ours,) = built.glob(request.param)
        subprocess.run([*pip, "--no-deps", ours], check=True, timeout=300)
        yield made / "bin" / "bidkeeper"
    finally:
        shutil.rmtree(made)


@pytest.mark.thorough
@pytest.mark.slow
def test_an_installed_demo_is_ready_in_an_empty_folder_and_its_four_tasks_act(installed: Path, folder: Path) -> None:
    started = Started(folder, installed, "demo")
    try:
        until(started.is_ready, "ready")
        assert (folder / "data" / "bidkeeper.db").exists()
        until(lambda: len(set(ACTS.findall(started.said()))) == 4, "an act of each of the four tasks")
        assert len(started.left()) >= 3
        assert started.interrupt() == 0
        assert started.left() == []
    finally:
        started.end()
