"""Third-party files in web/: each is exactly as its package published it, under a licence that allows redistribution.

`python -m tools.vendor --check` (offline, a part of `make lint`) compares every file with web/vendor/LOCK.json. `python
-m tools.vendor --update NAME VERSION` takes another version from the npm registry.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

WEB = Path(__file__).resolve().parent.parent / "web"
LOCK = WEB / "vendor" / "LOCK.json"
LICENCES = frozenset({"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "OFL-1.1", "0BSD", "(MIT OR Apache-2.0)"})
_REGISTRY = "https://registry.npmjs.org"
_FOLDERS = ("vendor", "fonts")

Lock = dict[str, Any]


def faults(web: Path = WEB) -> Iterator[str]:
    """Yields the faults of the vendored files: unknown, missing or changed files, and missing licences."""
    lock: Lock = json.loads((web / "vendor" / "LOCK.json").read_text())
    listed = {"vendor/LOCK.json"}
    for name, package in lock.items():
        if package["licence"] not in LICENCES:
            yield f"{name}: the licence {package['licence']} is none of {', '.join(sorted(LICENCES))}"
        for file in package["files"]:
            listed.add(file["to"])
            yield from _fault(web / file["to"], file)
        if not any(file["to"].startswith("vendor/licenses/") for file in package["files"]):
            yield f"{name}: its licence's text is missing"
    there = {str(path.relative_to(web)) for folder in _FOLDERS for path in (web / folder).rglob("*") if path.is_file()}
    yield from (f"{path}: is not in LOCK.json" for path in sorted(there - listed))


def _fault(path: Path, file: Lock) -> Iterator[str]:
    if not path.is_file():
        yield f"{file['to']}: is missing"
    elif _sha256(path.read_bytes()) != file["sha256"]:
        yield f"{file['to']}: is not what was taken from {file['from']}"


def update(name: str, version: str) -> None:
    """Takes a package's files in this version from the registry, and rewrites the lock. Raises SystemExit."""
    lock: Lock = json.loads(LOCK.read_text())
    if name not in lock:
        raise SystemExit(f"{name} is not in {LOCK}: add its licence and files there first")
    told = requests.get(f"{_REGISTRY}/{name}/{version}", timeout=30).json()
    packed = requests.get(told["dist"]["tarball"], timeout=60).content
    integrity = f"sha512-{base64.b64encode(hashlib.sha512(packed).digest()).decode()}"
    if integrity != told["dist"]["integrity"]:
        raise SystemExit(f"{name} {version}: the package is not the one that the registry names")
    package = lock[name]
    package |= {
        "version": version,
        "licence": told["license"],
        "tarball": told["dist"]["tarball"],
        "integrity": integrity,
    }
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for file in package["files"]:
            member = archive.extractfile(f"package/{file['from']}")
            if member is None:
                raise SystemExit(f"{name} {version}: has no file {file['from']}")
            body = member.read() + file.get("suffix", "").encode()
            path = WEB / file["to"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
            file["sha256"] = _sha256(body)
    LOCK.write_text(json.dumps(lock, indent=2) + "\n")


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def main() -> int:
    """Checks all packages, or updates one."""
    parser = argparse.ArgumentParser(description=__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--check", action="store_true")
    group.add_argument("--update", nargs=2, metavar=("NAME", "VERSION"))
    options = parser.parse_args()
    if options.update:
        update(*options.update)
    found = list(faults())
    print("\n".join(found) or f"{len(json.loads(LOCK.read_text()))} vendored packages are what they were", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
