"""Environments and installed versions are made anew when they have to be, and a failed step leaves what was there.

Python and pip are stand-ins here, so that no package is downloaded; tests/deploy/test_packages.py has real ones.
"""

from __future__ import annotations

import mmap
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.version import commit_of
from tests.deploy.front import DEPLOY, put

ROOT = DEPLOY.parent
# Names the version it stands in for; a copy in an environment knows the one that the environment was made of.
PYTHON = r"""#!/bin/sh
case "$1 $2" in
    "-c "*_base_executable*) echo BASE ;;
    "-c "*python_version*) echo "VERSION x86_64" ;;
    "-B -m") [ "$3" != core.version ] || echo 0123abcd ;;
    "-m venv")
        mkdir -p "$3/bin" "$3/lib/pythonVERSION/site-packages/bidkeeper-0.dist-info"
        echo cli >"$3/lib/pythonVERSION/site-packages/bidkeeper-0.dist-info/top_level.txt"
        cp "$0" "$3/bin/python"
        printf '#!/bin/sh\necho "$1 by VERSION"\n' >"$3/bin/bidkeeper"
        chmod +x "$3/bin/bidkeeper"
        ;;
    "-m pip")
        echo "$*" >>LOG
        case "$*" in *" /dev/stdin "*) sed 's/^/given /' >>LOG ;; esac
        [ ! -e PIP_FAILS ] || { echo "no such host" >&2; exit 1; }
        case "$*" in *postgresql*) mkdir -p "${0%/bin/python}/lib/pythonVERSION/site-packages/psycopg" ;; esac
        ;;
esac
"""


@dataclass
class Machine:
    """A checkout, and a `python3` of a version that may change."""

    place: Path
    checkout: Path

    @property
    def log(self) -> Path:
        return self.place / "pip.log"

    @property
    def opt(self) -> Path:
        return self.place / "root" / "opt" / "bidkeeper"

    def has_python(self, version: str) -> None:
        python = self.place / "bin" / f"python{version}"
        text = put(
            PYTHON, VERSION=version, BASE=str(python), LOG=str(self.log), PIP_FAILS=str(self.place / "pip-fails")
        )
        python.write_text(text)
        python.chmod(0o755)
        (self.place / "bin" / "python3").unlink(missing_ok=True)
        (self.place / "bin" / "python3").symlink_to(python)

    def pip_fails(self, fails: bool) -> None:
        (self.place / "pip-fails").touch() if fails else (self.place / "pip-fails").unlink()

    def run(self, *command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the checkout, with a fresh log of pip."""
        self.log.write_text("")
        environment = {"PATH": f"{self.place / 'bin'}:/usr/bin:/bin", **settings}
        return subprocess.run(command, cwd=self.checkout, env=environment, capture_output=True, text=True, timeout=60)

    def make(self, target: str) -> str:
        """Returns what `make` printed of a target that it has made."""
        done = self.run("make", "--no-print-directory", target)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("deploy/install.sh", *words, "program", BIDKEEPER_INSTALL_ROOT=str(self.place / "root"))

    def locks(self) -> list[str]:
        """Returns the locks that pip was given last, in their order."""
        return [word for line in self.log.read_text().splitlines() for word in line.split() if word.endswith(".lock")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path, tmp_path / "checkout")
    made.checkout.mkdir()
    for path in (ROOT / "Makefile", ROOT / "setup.py", ROOT / "pyproject.toml", *ROOT.glob("requirements*.lock")):
        shutil.copy(path, made.checkout)
    shutil.copytree(DEPLOY, made.checkout / "deploy")
    (tmp_path / "bin").mkdir()
    # It may be any user's test: to install, only root's rights to give files away are missing.
    for name, does in (("id", "echo 0"), ("chown", "exit")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    made.has_python("3.11.2")
    return made


def test_make_run_installs_what_runs_and_make_test_adds_its_tools(machine: Machine) -> None:
    assert "demo by 3.11.2" in machine.make("run")
    assert machine.locks() == ["requirements.lock"]
    machine.make("test")
    assert machine.locks() == ["requirements.lock", "requirements-test.lock"]
    for target in ("test", "test-fast", "run"):
        machine.make(target)
        assert machine.locks() == [], f"make {target} installs again"


def another_python(machine: Machine) -> None:
    machine.has_python("3.13.5")


def moved(machine: Machine) -> None:
    machine.checkout = machine.checkout.rename(machine.place / "elsewhere")


def copied(machine: Machine) -> None:
    machine.checkout = Path(shutil.copytree(machine.checkout, machine.place / "copy"))


def another_lock(machine: Machine) -> None:
    with (machine.checkout / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")


CHANGES = [another_python, moved, copied, another_lock]


@pytest.mark.parametrize("change", CHANGES)
def test_make_run_makes_its_environment_anew_when_it_would_not_work(machine: Machine, change: object) -> None:
    machine.make("run")
    change(machine)  # type: ignore[operator]
    left = machine.checkout / ".venv" / "left"
    left.touch()
    version = "3.13.5" if change is another_python else "3.11.2"
    assert f"demo by {version}" in machine.make("run")
    assert machine.locks() == ["requirements.lock"] and not left.exists()
    machine.make("run")
    assert machine.locks() == []


@pytest.mark.parametrize("change", [another_python, moved])
@pytest.mark.parametrize("name", ["postgresql", "ray", "bench"])
def test_so_is_each_other_environment(machine: Machine, name: str, change: object) -> None:
    machine.make(f".venv-{name}/.ok")
    assert f"requirements-{name}.lock" in machine.locks()
    machine.make(f".venv-{name}/.ok")
    assert machine.locks() == []
    change(machine)  # type: ignore[operator]
    machine.make(f".venv-{name}/.ok")
    assert f"requirements-{name}.lock" in machine.locks()


def test_an_activated_environment_is_made_anew_by_the_python_that_it_was_made_of(machine: Machine) -> None:
    machine.make("run")
    another_lock(machine)
    binaries = machine.checkout / ".venv" / "bin"
    (binaries / "python3").symlink_to("python")
    done = machine.run("make", "run", PATH=f"{binaries}:{machine.place / 'bin'}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    assert "demo by 3.11.2" in done.stdout


def test_pip_is_given_its_switches_in_a_file(machine: Machine) -> None:
    """pip 23.0 warns without the last one; newer versions warn of it on their command line only."""
    machine.make("run")
    lines = machine.log.read_text().splitlines()
    given = [line.removeprefix("given ") for line in lines if line.startswith("given ")]
    assert given == ["--only-binary :all:", "--no-binary embit", "--use-feature no-binary-enable-wheel-cache"]
    assert not any("--use-feature" in line for line in lines if not line.startswith("given "))


def test_an_environment_whose_packages_failed_is_not_taken_for_a_whole_one(machine: Machine) -> None:
    machine.pip_fails(True)
    done = machine.run("make", "run")
    assert done.returncode != 0 and "no such host" in done.stderr
    machine.pip_fails(False)
    assert "demo by 3.11.2" in machine.make("run")


def test_make_help_names_every_target_for_people(machine: Machine) -> None:
    said = machine.make("help")
    assert {"run", "test", "lint", "test-postgresql", "clean"} <= {line.split()[0] for line in said.splitlines()}


def runs(machine: Machine) -> str:
    """Returns what the installed command says, which is the version of its Python, and checks its program."""
    assert (machine.opt / "program" / "supervisord.conf").is_file()
    return subprocess.run([machine.opt / "venv/bin/bidkeeper", "up"], capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("before", ["nothing", "a version", "a version of an older install.sh"])
def test_an_install_that_fails_leaves_what_was_installed(machine: Machine, before: str) -> None:
    whole_checkout(machine)
    if before == "a version":
        assert machine.install().returncode == 0
    elif before != "nothing":
        older_install(machine)
    was = None if before == "nothing" else runs(machine)
    machine.pip_fails(True)
    machine.has_python("3.13.5")
    done = machine.install()
    assert done.returncode != 0 and "is as it was" in done.stderr
    if was is None:
        assert list((machine.opt / "versions").iterdir()) == [] and not (machine.opt / "program").exists()
    else:
        assert (was, runs(machine)) == ("up by 3.11.2", "up by 3.11.2")
    machine.pip_fails(False)
    assert machine.install().returncode == 0
    assert runs(machine) == "up by 3.13.5"


def test_an_installed_program_knows_the_commit_of_its_checkout(machine: Machine) -> None:
    whole_checkout(machine)
    assert machine.install().returncode == 0
    assert commit_of(machine.opt / "program" / "core") == "0123abcd"


@pytest.mark.parametrize("older", [False, True])
def test_a_newer_python_gets_an_environment_of_its_own_with_the_driver(machine: Machine, older: bool) -> None:
    whole_checkout(machine)
    older_install(machine) if older else machine.install("--postgresql")
    machine.has_python("3.13.5")
    (machine.place / "bin" / "python3.11.2").unlink()
    done = machine.install()
    assert done.returncode == 0, done.stderr
    assert runs(machine) == "up by 3.13.5"
    assert machine.locks() == ["requirements.lock", "requirements-postgresql.lock"]


def test_the_version_before_is_kept_and_no_other(machine: Machine) -> None:
    whole_checkout(machine)
    older_install(machine)
    kept = []
    for version in ("3.11.3", "3.11.4", "3.11.5"):
        # Their directories are named by the time.
        (machine.place / "bin" / "date").write_text(f"#!/bin/sh\necho {version}\n")
        (machine.place / "bin" / "date").chmod(0o755)
        machine.has_python(version)
        assert machine.install().returncode == 0
        kept.append(sorted(path.name for path in machine.opt.iterdir()))
        assert runs(machine) == f"up by {version}"
    new = ["current", "program", "venv", "versions"]
    assert kept == [sorted([*new, "program.old", "venv.old"]), new, new]
    versions = sorted(path.name.partition("-")[0] for path in (machine.opt / "versions").iterdir())
    assert versions == ["3.11.4", "3.11.5"]


def test_a_version_that_still_runs_is_kept_however_often_one_is_installed(machine: Machine) -> None:
    whole_checkout(machine)
    assert machine.install().returncode == 0
    running = (machine.opt / "current").resolve()
    library = running / "venv" / "library"
    library.write_bytes(b"code")
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        for _ in range(2):
            assert machine.install().returncode == 0
        assert library.exists()
    assert machine.install().returncode == 0
    assert not running.exists()


def whole_checkout(machine: Machine) -> None:
    """Puts empty directories and files in the place of what install.sh takes and these tests have not."""
    text = (machine.checkout / "deploy" / "install.sh").read_text().partition("\nsources=(")[2].partition(")")[0]
    for name in text.split():
        path = machine.checkout / name
        if not path.exists():
            path.touch() if "." in name or name.isupper() else path.mkdir()


def older_install(machine: Machine) -> None:
    """Makes an installation as install.sh made it until it had `versions`: two directories."""
    (machine.opt / "program").mkdir(parents=True)
    (machine.opt / "program" / "supervisord.conf").touch()
    python = machine.place / "bin" / "python3"
    subprocess.run([python, "-m", "venv", machine.opt / "venv"], check=True)
    (machine.opt / "venv/lib/python3.11/site-packages/psycopg").mkdir(parents=True)
