"""Small disks of a test's own, which it can fill to the last byte."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import needs


@contextmanager
def small_disk(at: Path, size: int) -> Iterator[Path]:
    """Mounts a file system of `size` bytes, in memory, at the directory. Skips the test where it may not."""
    needs.need_root("mount a small disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(at)], capture_output=True)
    needs.skip("" if mounted.returncode == 0 else f"mounting is not allowed here: {mounted.stderr.decode()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def fill(disk: Path, leave: int = 0) -> Path:
    """Fills the disk until no more than `leave` bytes are free; returns the file that has it all."""
    filler = disk / "filler"
    handle = os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for size in (1 << 20, 4096, 1):
            try:
                while _free_bytes(handle) >= leave + size or not leave:
                    os.write(handle, bytes(size))
            except OSError:
                continue
    finally:
        os.close(handle)
    return filler


def _free_bytes(handle: int) -> int:
    found = os.fstatvfs(handle)
    return found.f_bavail * found.f_frsize
