"""A fresh Debian in a directory, for tests of a whole system."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

RELEASE = "bookworm"
PACKAGES = (
    "systemd,systemd-sysv,dbus,python3,python3-venv,python3-dev,gcc,libc6-dev,nginx-light,ca-certificates,procps,curl"
)


def debian(directory: Path) -> Path:
    """Makes a Debian in `directory`; copies the one that BIDKEEPER_TEST_DEBIAN names, since a new one takes minutes."""
    root = directory / "root"
    if ready := os.environ.get("BIDKEEPER_TEST_DEBIAN"):
        subprocess.run(["cp", "-a", ready, str(root)], check=True)
    else:
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(root)], check=True)
    return root
