"""The programs from outside `.venv` that tests use, each with the Debian package that brings it.

`python3 -m tests.needs` prints the packages that the whole of `make test` wants; it needs no `.venv`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from typing import NamedTuple


def which(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin")


def _has_stream() -> bool:
    from cli.relay import MODULES

    nginx = which("nginx")
    if nginx is None:
        return False
    built_with = subprocess.run([nginx, "-V"], capture_output=True, text=True, check=True).stderr
    return " --with-stream " in built_with or any(path.exists() for path in MODULES)


def _has_libatomic() -> bool:
    try:
        ctypes.CDLL("libatomic.so.1")
    except OSError:
        return False
    return True


def _has_postgresql() -> bool:
    from tests import postgresql

    return postgresql.programs() is not None


class Need(NamedTuple):
    package: str
    find: Callable[[], object]  # true where it is installed; of a program its path


def _program(name: str, package: str) -> Need:
    return Need(package, partial(which, name))


LIBATOMIC = "libatomic.so.1 (for Playwright's Node)"
# A test that needs one of these is skipped where it is missing, and fails in CI.
NEEDS = {
    # The shell is the same engine without windows, and takes a third of the processor's time.
    "chromium": Need("chromium-headless-shell", lambda: which("chromium-headless-shell") or which("chromium")),
    "git": _program("git", "git"),
    LIBATOMIC: Need("libatomic1", _has_libatomic),
    "nginx": _program("nginx", "nginx-light"),
    "nginx's stream module": Need("libnginx-mod-stream", _has_stream),
    "openssl": _program("openssl", "openssl"),
    "PostgreSQL": Need("postgresql", _has_postgresql),
}
# The drills of root use these, and CI does without.
DRILLS = {
    "debootstrap": _program("debootstrap", "debootstrap"),
    "ip": _program("ip", "iproute2"),
    "kubectl": _program("kubectl", "kubernetes-client"),
    "podman": _program("podman", "podman"),
    "podman-compose": _program("podman-compose", "podman-compose"),
    "runc": _program("runc", "runc"),
    "systemd-nspawn": _program("systemd-nspawn", "systemd-container"),
}
PACKAGES = sorted(need.package for need in NEEDS.values())


def is_ci() -> bool:
    """Tells whether everything has to be there."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def path(name: str) -> str:
    """Returns the path of a program that is installed."""
    return str(NEEDS[name].find())


def missing(*names: str) -> str:
    """Returns one line that says what to install; "" where nothing is missing."""
    absent = {name: each.package for name in names if not (each := {**NEEDS, **DRILLS}[name]).find()}
    return f"missing: {', '.join(absent)} (apt-get install {' '.join(absent.values())})" if absent else ""


def need(*names: str) -> None:
    """Skips the test where one of these is missing; fails it in CI, except for want of a drill's program."""
    require(missing(*(name for name in names if name in NEEDS)))
    skip(missing(*(name for name in names if name in DRILLS)))


def require(reason: str) -> None:
    """Skips the test for this reason, unless it is ""; fails it in CI."""
    import pytest

    if reason and is_ci():
        pytest.fail(f"CI needs everything; {reason}")
    skip(reason)


def need_root(purpose: str) -> None:
    """Skips the test where its user is not root, who alone can do this."""
    skip(f"only root can {purpose}" if os.geteuid() != 0 else "")


def skip(reason: str) -> None:
    """Skips the test for this reason, unless it is ""."""
    import pytest

    if reason:
        pytest.skip(reason)


if __name__ == "__main__":
    print(*PACKAGES)
