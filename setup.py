"""Bidkeeper's metadata and dependencies, declared only here; tool settings are in pyproject.toml.

The packages keep their short top-level names (`server`, `models`, ...), so install Bidkeeper into its own virtual
environment, as `make setup` does.
"""

import sys
import tomllib
from pathlib import Path
from typing import Any

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # a build does not add it

from core import version  # noqa: E402

TOP_LEVEL = [
    "cli",
    "core",
    "gateway",
    "hooks",
    "markets",
    "models",
    "server",
    "simulator",
    "strategy",
    "wallet",
    "web",
    "workers",
]

# Builds embit, which has no wheels, and Bidkeeper itself.
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]

# The tools of make test and make lint.
TEST = [
    *BUILD,  # pytest-tornado imports pkg_resources, which setuptools 82 dropped
    "axe-playwright-python>=0.1.8,<0.2",  # checks the dashboard's accessibility in a browser
    "btclib>=2026.10",  # checks every signature type we make, by its own consensus engine
    "coverage>=7.6",  # make coverage
    "hypothesis>=6.100",
    "playwright>=1.60,<2",  # drives the system's Chromium, and brings the Node that runs the dashboard's unit tests
    "pytest>=8,<10",
    "pytest-tornado==0.8.1",
    "pyyaml>=6",  # compares the compose file with the other installations
    "responses>=0.26",
    "schemathesis>=4.32,<5",
    "standardwebhooks>=1.1,<2",  # checks the signatures of webhooks as a receiver does
    "mypy>=1.15",
    "ruff>=0.15",
    "types-requests",
]

# Only for `make test-ray`: Kubernetes' own schemas (108 MB), which check deploy/kubernetes without a cluster.
MANIFESTS = ["kubernetes-validate>=1.36,<2"]

# Only for the programs that `make bench` compares with, in their own environment.
BENCH = [
    "fastapi>=0.115",
    "httptools>=0.6",
    "sqlmodel>=0.0.22",
    "uvicorn>=0.34",
    "uvloop>=0.21",
]


def write_commit(package: Path) -> None:
    """Writes the sources' commit into a copy of `core`, never into the checkout."""
    file = package / version.COMMIT_FILE
    file.unlink(missing_ok=True)  # because a release tree may hold links to the sources
    file.write_text(version.running().commit)


class BuildWithCommit(build_py):
    """The build of a wheel that knows its commit; an editable installation asks git."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_commit(Path(self.build_lib) / "core")


class SourcesWithCommit(sdist):
    """A source archive that knows its commit, as does a wheel built from it."""

    def make_release_tree(self, base_dir: str, files: Any) -> None:
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir) / "core")


setup(
    name="bidkeeper",
    version=version.VERSION,
    cmdclass={"build_py": BuildWithCommit, "sdist": SourcesWithCommit},
    description="Self-hosted service that keeps bids and listings alive for traders of Bitcoin Ordinals and Runes",
    license="MIT",
    python_requires=">=3.11",
    # The versions that .github/workflows/ci.yml tests.
    classifiers=[f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)],
    packages=find_packages(include=[name + suffix for name in TOP_LEVEL for suffix in ("", ".*")]),
    package_data={
        "cli": ["supervisord.conf"],  # a link to the file at the top; a wheel has the file itself
        "web": ["*.html", "*.css", "*.svg", "*.png", "*.webmanifest", "css/*", "fonts/*", "js/**/*.js", "vendor/**/*"],
    },
    install_requires=[
        "tornado>=6.5,<7",
        "peewee>=4.5,<5",
        "requests>=2.32",
        "certifi>=2024.7.4",  # the certificates that hooks trust, the same as those of requests
        "bip322==0.3.0",  # older versions accept forged signatures (GHSA-5chw-87w3-j9cv)
        "supervisor>=4.3,<5",
        "msgspec>=0.20,<0.23",  # shapes: data that is read, written and described
        "embit==0.8.0",
        "cryptography>=44",  # AES-GCM for the keystore; only the signer and `bidkeeper keys` import it
        "setproctitle>=1.3",
    ],
    extras_require={
        "build": BUILD,
        "test": TEST,
        "bench": BENCH,
        "manifests": MANIFESTS,
        "postgres": ["psycopg[binary]>=3.2"],
        "ray": ["ray>=2.60,<3"],
    },
    entry_points={"console_scripts": ["bidkeeper = cli.main:main"]},
)
