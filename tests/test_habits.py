"""The files for contributors and for GitHub name what there is: targets, files, versions, pinned actions."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PAGES = ("SECURITY.md", "RELEASING.md", "CONTRIBUTING.md", ".github/PULL_REQUEST_TEMPLATE.md")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def jobs() -> list[dict[str, Any]]:
    return [job for path in WORKFLOWS for job in read(path)["jobs"].values()]


def steps() -> list[dict[str, Any]]:
    return [step for job in jobs() for step in job["steps"]]


def commands() -> str:
    return "\n".join(step["run"] for step in steps() if "run" in step)


def test_an_action_is_pinned_to_a_commit_and_says_its_version() -> None:
    lines = [line for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not re.search(r"uses: [\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line)] == []


def test_each_job_is_bounded_and_may_only_read_except_the_one_that_drafts() -> None:
    assert all(0 < job["timeout-minutes"] <= 180 for job in jobs())
    ci, release = (read(GITHUB / "workflows" / f"{name}.yml") for name in ("ci", "release"))
    assert (ci["permissions"], release["permissions"]) == ({"contents": "read"}, {})
    assert all("permissions" not in job for job in ci["jobs"].values())
    granted = {name: job["permissions"] for name, job in release["jobs"].items()}
    assert granted == {
        "build": {"contents": "read"},
        "check": {"contents": "read"},
        "draft": {"contents": "write"},
    }
    # It runs nothing that was checked out or installed.
    assert not re.search("checkout|pip|make|python", str(release["jobs"]["draft"]["steps"]))


def test_ci_runs_the_whole_check_and_the_fast_tests_as_a_user_on_each_supported_python() -> None:
    made = read(GITHUB / "workflows" / "ci.yml")["jobs"]
    assert made["whole"]["steps"][-1] == {"run": ".ci/run"}
    asked = [sys.executable, "setup.py", "-q", "--classifiers"]
    declared = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    supported = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", declared, re.M)
    assert made["fast"]["strategy"]["matrix"]["python"] == supported != []
    assert f'python_requires=">={supported[0]}"' in (ROOT / "setup.py").read_text()
    last = made["fast"]["steps"][-1]["run"]
    assert "runuser -u tester -- " in last and last.endswith("make test-fast\n")


def test_the_workflows_name_targets_and_files_that_there_are() -> None:
    text = commands()
    targets = set(re.findall(r"\bmake ([a-z-]+)", text))
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert targets and targets <= known
    files = {word for word in re.findall(r"(?<![/\w-])[\w.-]+(?:/[\w.-]+)*", text) if is_named_as_ours(word)}
    assert {".ci/run", "requirements.lock", "setup.py"} <= files
    assert [name for name in sorted(files) if not (ROOT / name).is_file()] == []
    modules = set(re.findall(r"python3? -m (tests[\w.]*)", text))
    assert modules == {"tests.needs"}


def is_named_as_ours(word: str) -> bool:
    """Tells whether a word of a command is a path of this repository."""
    return word.startswith((".ci/", "deploy/", "tools/")) or bool(re.fullmatch(r"[\w-]+\.(?:lock|py)", word))


def test_releases_come_from_tags_and_have_wheel_sdist_sbom_and_checksums() -> None:
    release = read(GITHUB / "workflows" / "release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads `on` so
    for word in ("sdist bdist_wheel", "cyclonedx-py requirements dist/requirements.lock", "sha256sum", "--draft"):
        assert word in commands(), word


def test_the_hooks_before_a_commit_use_the_linter_of_the_lock() -> None:
    """Its version stands in the lock alone: make lint and the hooks run the same file."""
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert lint
    for hook in local["hooks"]:
        program, verb, *_ = hook["entry"].split()
        assert hook["language"] == "system" and program == ".venv/bin/ruff"
        assert f"$(BIN)/ruff {verb}" in lint[1]
    assert re.search(r"^ruff==", "".join(path.read_text() for path in ROOT.glob("requirements*.lock")), re.M)


def test_a_bug_is_reported_with_its_version_and_the_doctors_findings() -> None:
    form = read(GITHUB / "ISSUE_TEMPLATE" / "bug.yml")
    asked = {part["id"]: part for part in form["body"] if "id" in part}
    assert "`bidkeeper --version`" in asked["version"]["attributes"]["description"]
    assert asked["doctor"]["attributes"]["label"] == "bidkeeper doctor --json"
    assert all(asked[name]["validations"]["required"] for name in ("version", "doctor"))
    assert "SECURITY.md" in form["body"][0]["attributes"]["value"]


def test_owners_are_named_for_folders_that_there_are() -> None:
    lines = [line.split() for line in (GITHUB / "CODEOWNERS").read_text().splitlines() if not line.startswith("#")]
    assert "/wallet/" in {path for path, *_ in lines}
    for path, *owners in lines:
        assert (ROOT / path.strip("/")).exists(), path
        assert owners and all(owner.startswith("@") for owner in owners)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_links_to_and_names_what_there_is(name: str) -> None:
    text = (ROOT / name).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if ":" not in link]
    named = re.findall(r"`((?:\.github|\.ci|deploy|docs|tests|tools|simulator|wallet)/[\w./-]*)`", text)
    assert [path for path in (*links, *named) if not (ROOT / path).exists()] == []
    targets = set(re.findall(r"`make ([a-z-]+)", text))
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


def test_editors_are_told_the_linters_line_length() -> None:
    (length,) = re.findall(r"^max_line_length = (\d+)$", (ROOT / ".editorconfig").read_text(), re.M)
    assert f"line-length = {length}\n" in (ROOT / "pyproject.toml").read_text()
