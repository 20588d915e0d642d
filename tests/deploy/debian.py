"""A fresh Debian in a directory, for what is tried on a whole system."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

RELEASE = "bookworm"
PACKAGES = (
    "systemd,systemd-sysv,dbus,python3,python3-venv,python3-dev,gcc,libc6-dev,nginx-light,ca-certificates,procps,curl"
)


def debian(directory: Path) -> Path:
    """Its root, in `directory`; BIDKEEPER_TEST_DEBIAN names one that is there to be copied. Takes minutes without."""
    root = directory / "root"
    if ready := os.environ.get("BIDKEEPER_TEST_DEBIAN"):
        subprocess.run(["cp", "-a", ready, str(root)], check=True)
    else:
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", RELEASE, str(root)], check=True)
    return root
