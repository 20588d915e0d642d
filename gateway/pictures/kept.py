"""Pictures kept on disk, each in a file named by the hash of its address; the one unused for longest goes first."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from core.files import require_room
from gateway.picture_sizes import judged, media_of
from markets.pictures import Media, Picture

log = logging.getLogger(__name__)

MOST_BYTES = 256 << 20
KEPT_S = 30 * 86_400.0  # an inscription never changes, but a venue's preview of it may
_BLOCK = 4_096  # a file takes no less on most disks
_NAME = re.compile(r"[0-9a-f]{64}")


class _File(NamedTuple):
    size: int
    written_at: float
    media: Media | None = None  # None: an earlier run kept it, and it was not judged since


class KeptPictures:
    """The files in `directory`, of one process, for our own user only. May be used by several threads at once.

    `clock` is that of files (epoch seconds). What cannot be read or written is as if it were not kept.
    """

    def __init__(self, directory: Path, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._is_failing = False  # logged once, until a picture is kept again
        self._files: OrderedDict[str, _File] | None = None  # the last used last
        self._taken = 0  # bytes of the disk

    def read(self, address: str) -> Picture | None:
        """Returns the picture from there, if it is kept."""
        name = _name(address)
        with self._lock:
            files = self._listed()
            kept = files.get(name)
            if kept is None:
                return None
            if self._clock() - kept.written_at > KEPT_S:
                self._drop(name)
                return None
            files.move_to_end(name)
        # Without the lock: a large file takes its time, and others are read meanwhile.
        try:
            data = (self._directory / name).read_bytes()
        except OSError:
            data = b""
        media = media_of(data)
        is_known = media is not None and media == kept.media
        found = Picture(media, data) if media is not None and is_known else judged(data)
        is_good = isinstance(found, Picture) and len(data) == kept.size
        with self._lock:
            if self._files is not None and self._files.get(name) is kept:  # not kept anew meanwhile
                if is_good:
                    self._files[name] = kept._replace(media=media)
                else:
                    self._drop(name)
        return found if is_good and isinstance(found, Picture) else None

    def keep(self, address: str, picture: Picture) -> None:
        """Keeps a picture, and drops others to make room for it."""
        name = _name(address)
        with self._lock:
            files = self._listed()
            try:
                self._write(name, picture.data)
            except OSError as error:
                if not self._is_failing:
                    log.warning("failed to keep a picture in %s: %s", self._directory, error.strerror)
                self._is_failing = True
                return
            self._is_failing = False
            self._taken -= _room(files.pop(name, _File(0, 0)))
            files[name] = _File(len(picture.data), self._clock(), picture.media)
            self._taken += _room(files[name])
            while len(files) > 1 and self._taken > self._most_bytes:
                self._drop(next(iter(files)))

    def _write(self, name: str, data: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_room(self._directory)
        half = self._directory / f"{name}.half"
        half.unlink(missing_ok=True)
        handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            half.replace(self._directory / name)
        except OSError:
            half.unlink(missing_ok=True)
            raise

    def _listed(self) -> OrderedDict[str, _File]:
        """Returns the files; those of an earlier run are found by looking, oldest first."""
        if self._files is None:
            found = []
            with contextlib.suppress(OSError), os.scandir(self._directory) as entries:
                for entry in entries:
                    if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                        told = entry.stat(follow_symlinks=False)
                        found.append((told.st_mtime, entry.name, told.st_size))
                    elif entry.name.endswith(".half"):
                        Path(entry.path).unlink()
            self._files = OrderedDict((name, _File(size, written_at)) for written_at, name, size in sorted(found))
            self._taken = sum(map(_room, self._files.values()))
        return self._files

    def _drop(self, name: str) -> None:
        self._taken -= _room(self._listed().pop(name, _File(0, 0)))
        with contextlib.suppress(OSError):
            (self._directory / name).unlink()


def _name(address: str) -> str:
    return hashlib.sha256(address.encode()).hexdigest()


def _room(file: _File) -> int:
    return -(-file.size // _BLOCK) * _BLOCK
