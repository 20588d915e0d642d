"""The version and its commit: in a checkout, in every kind of build, and not in a worker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cli.main import main
from core import version
from core.version import COMMIT_FILE, VERSION, Version, commit_of
from tests.needs import need_root

ROOT = Path(version.__file__).parents[1]
PACKAGES = tuple(
    path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name not in ("tests", "drills", "bench")
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with what a build needs, without git."""
    made = tmp_path / "source"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, made / package, ignore=shutil.ignore_patterns("__pycache__", COMMIT_FILE))
    shutil.copytree(ROOT / "deploy", made / "deploy")
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, made)
    return made


def run(directory: Path, *command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=directory, env=os.environ | environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(directory: Path) -> str:
    """Makes the directory a checkout, all of it committed; returns the commit's first eight letters."""
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    run(directory, *git, "init", "-q")
    run(directory, *git, "add", "--all")
    run(directory, *git, "commit", "-q", "-m", "all")
    return run(directory, *git, "rev-parse", "HEAD")[:8]


def small(directory: Path) -> Path:
    """A checkout's `core`, as far as the version is concerned."""
    package = directory / "core"
    package.mkdir(parents=True)
    shutil.copy(version.__file__, package)
    return package


def test_a_checkout_names_its_commit_and_marks_changes(tmp_path: Path) -> None:
    package = small(tmp_path)
    expected = commit(tmp_path)
    assert commit_of(package) == expected
    (tmp_path / "data").write_text("not git's")
    assert commit_of(package) == expected
    with (package / "version.py").open("a") as file:
        file.write("# changed\n")
    assert commit_of(package) == f"{expected}+changes"


def test_a_tag_does_not_hide_the_commit(tmp_path: Path) -> None:
    package = small(tmp_path)
    expected = commit(tmp_path)
    run(tmp_path, "git", "tag", "v9")
    assert commit_of(package) == expected


def test_git_of_the_environment_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = small(tmp_path / "ours")
    expected = commit(tmp_path / "ours")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").touch()
    commit(tmp_path / "theirs")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "theirs" / ".git"))
    assert commit_of(package) == expected


def test_root_names_the_commit_of_another_users_checkout(tmp_path: Path) -> None:
    need_root("give a file to another user")
    package = small(tmp_path)
    expected = commit(tmp_path)
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, 61100, 61100)
    assert commit_of(package) == expected


def test_without_git_and_without_a_build_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = small(tmp_path / "inner")
    commit(tmp_path)  # a repository further up, which is another program's
    assert commit_of(package) == ""
    assert str(Version(VERSION, "")) == f"{VERSION} (unknown commit)"
    commit(tmp_path / "inner")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(package) == ""


def test_a_build_knows_its_commit_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = small(tmp_path)
    commit(tmp_path)
    (package / COMMIT_FILE).write_text("0123abcd\n")
    assert commit_of(package) == "0123abcd"


def test_the_command_prints_version_and_commit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"bidkeeper {version.running()}\n")


def test_no_other_word_asks_git(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def asked() -> Version:
        raise AssertionError("asked for the commit")

    monkeypatch.setattr(version, "running", asked)
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--version" in capsys.readouterr().out


@pytest.mark.slow
def test_a_warmed_up_zygote_has_not_imported_the_version() -> None:
    """Its workers are forked from it, so none of them has."""
    program = "import sys; from workers.spawning import zygote; assert zygote.dry_run(); print(*sys.modules)"
    assert "core.version" not in run(ROOT, sys.executable, "-c", program).split()


@pytest.mark.slow
def test_every_build_carries_the_commit_and_leaves_the_checkout_alone(source: Path, tmp_path: Path) -> None:
    (source / ".gitignore").write_text("*.egg-info/\n__pycache__/\nbuild/\n")
    expected = commit(source)
    builds = "import sys; from setuptools.build_meta import build_{0} as build; print(build(sys.argv[1]))"

    def build(kind: str, directory: Path) -> Path:
        made = tmp_path / f"made-in-{directory.name}"
        return made / run(directory, sys.executable, "-c", builds.format(kind), made).splitlines()[-1]

    wheel, archive = build("wheel", source), build("sdist", source)
    assert run(source, "git", "status", "--porcelain") == "" and not (source / "core" / COMMIT_FILE).exists()
    assert VERSION in wheel.name and VERSION in archive.name
    run(tmp_path, "tar", "-xf", archive)  # Python 3.11.2 and 3.14 differ in how they want it said
    of_archive = build("wheel", tmp_path / f"bidkeeper-{VERSION}")
    for each in (wheel, of_archive):
        unpacked = tmp_path / f"unpacked-{each.parent.name}"
        with zipfile.ZipFile(each) as file:
            file.extractall(unpacked)
        said = run(unpacked, sys.executable, "-m", "cli.main", "--version", PYTHONPATH=str(unpacked), PATH="/nowhere")
        assert said == f"bidkeeper {VERSION} ({expected})"
