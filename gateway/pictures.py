"""Pictures for the server, from a cache on disk or fetched; concurrent requests for one picture share a fetch.

Fetches are not calls to marketplaces, so they use no quota, no look-up budget and no breaker. They have their own rate
limit and threads, so that no bid waits for a picture.

Venues supply the addresses, so these are untrusted: only https on public hosts is fetched, redirects are not followed,
no key is sent, and at most MOST_PICTURE_BYTES are read. On the practice market only its own pictures are fetched.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import logging
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from core.files import require_room
from core.public_connection import Connection, public_url_problem
from core.setting_values import Network
from gateway.picture_sizes import judged, media_of
from gateway.program import Call, answers
from gateway.quota import Priority
from gateway.venue import CallBudget
from markets import verbs
from markets.base import MOST_PICTURE_BYTES, PICTURE_MEDIA, Media, NoPicture, Picture
from markets.verbs import text

log = logging.getLogger(__name__)

LONGEST_S = 10.0  # from the first look-up of the name to the last byte
_AT_ONCE = 65_536
_THIS_MACHINE = (ipaddress.ip_network("127.0.0.0/8"),)
_HEADERS = {
    "User-Agent": "bidkeeper",
    "Accept": ", ".join(PICTURE_MEDIA),
    "Accept-Encoding": "identity",
    "Connection": "close",
}


class PictureSource:
    """The source of pictures. Thread-safe.

    `practice` is the practice market's address if that is the market in use. `networks` are the private networks from
    which pictures may be fetched too.
    """

    def __init__(
        self,
        practice: str | None = None,
        networks: Sequence[Network] = (),
        longest_s: float = LONGEST_S,
        public_name: str = "",
    ) -> None:
        self._practice = practice
        self._networks = _THIS_MACHINE if practice is not None else networks
        self._longest_s = longest_s
        self._public_name = public_name

    def address_of(self, inscription_id: str | None, url: str | None) -> str | None:
        """Returns the address of an inscription's picture, or None if it may not be fetched; `url` is the venue's."""
        if self._practice is not None:
            return None if inscription_id is None else f"{self._practice}/content/{quote(inscription_id, safe='')}"
        if url is None or public_url_problem(url, self._networks) is not None:
            return None
        # Only port 443, so that a venue cannot make us probe other services of a public host.
        return url if self._networks or urlsplit(url).port in (None, 443) else None

    def fetch(self, address: str) -> Picture | NoPicture:
        """Fetches a picture in one request, without retries; never raises."""
        try:
            return self._fetch(address)
        except (OSError, HTTPException, ValueError) as error:
            log.info("failed to fetch a picture of %s: %s", urlsplit(address).hostname, type(error).__name__)
            return NoPicture("unreachable")
        except Exception:
            log.exception("failed at a picture of %s", urlsplit(address).hostname)
            return NoPicture("file")

    def _fetch(self, address: str) -> Picture | NoPicture:
        parts = urlsplit(address)
        is_tls = parts.scheme == "https"
        connection = Connection(
            parts.hostname or "",
            parts.port or (443 if is_tls else 80),
            is_tls=is_tls,
            networks=self._networks,
            ends_at=time.monotonic() + self._longest_s,
            public_name=self._public_name,
        )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request("GET", path, headers=_HEADERS)
            answer = connection.answer()
            if answer.status != 200:
                return NoPicture("unreachable")
            if answer.length is not None and answer.length > MOST_PICTURE_BYTES:
                return NoPicture("too_large")
            data = bytearray()
            while chunk := answer.read(min(_AT_ONCE, MOST_PICTURE_BYTES + 1 - len(data))):
                data += chunk
            if len(data) > MOST_PICTURE_BYTES:
                return NoPicture("too_large")
            if answer.length:
                return NoPicture("unreachable")  # the connection ended early
        finally:
            connection.close()
        return judged(bytes(data))


MOST_KEPT_BYTES = 256 << 20
KEPT_S = 30 * 86_400.0  # because a venue's preview of an inscription may change, unlike the inscription
_BLOCK = 4_096  # the smallest allocation of most file systems
_NAME = re.compile(r"[0-9a-f]{64}")


class _File(NamedTuple):
    size: int
    written_at: float
    media: Media | None = None  # None: written by an earlier run and not checked since


class KeptPictures:
    """A cache of pictures in `directory`, for one process, readable by our own user only. Thread-safe.

    `clock` is the file system's (epoch seconds). A file that cannot be read or written counts as not cached.
    """

    def __init__(
        self, directory: Path, most_bytes: int = MOST_KEPT_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._is_failing = False  # so that a run of failed writes is logged once
        self._files: OrderedDict[str, _File] | None = None  # least recently used first
        self._taken = 0  # bytes on disk

    def read(self, address: str) -> Picture | None:
        """Returns the cached picture of this address, or None."""
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
        # Read without the lock, so that a large file does not delay other reads.
        try:
            data = (self._directory / name).read_bytes()
        except OSError:
            data = b""
        media = media_of(data)
        is_known = media is not None and media == kept.media
        found = Picture(media, data) if media is not None and is_known else judged(data)
        is_good = isinstance(found, Picture) and len(data) == kept.size
        with self._lock:
            if self._files is not None and self._files.get(name) is kept:  # not replaced meanwhile
                if is_good:
                    self._files[name] = kept._replace(media=media)
                else:
                    self._drop(name)
        return found if is_good and isinstance(found, Picture) else None

    def keep(self, address: str, picture: Picture) -> None:
        """Caches a picture, and evicts the least recently used ones if the cache is full."""
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
        """Returns the cached files; the first call lists those of an earlier run, oldest first."""
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


RATE, BURST, SLOTS = 10, 60, 6  # a burst for a page of 60 pictures, then 10 a second
_READERS = 2  # threads reserved for cached pictures
_WAIT_S = 12.0
# Failures are cached: an hour if the content is not a picture, a minute if the host was unreachable.
_REMEMBERED_S = 3_600.0
_AWAY_S = 60.0
_MOST_REMEMBERED = 5_000
Value = TypeVar("Value")


class Pictures:
    """Answers the verb `picture`; `clock` is monotonic."""

    def __init__(self, source: PictureSource, kept: KeptPictures, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._kept = kept
        self._clock = clock
        self._budget = CallBudget(RATE, BURST, SLOTS, clock)
        self._threads = ThreadPoolExecutor(SLOTS + _READERS, thread_name_prefix="picture")
        self._flights: dict[str, asyncio.Task[str]] = {}
        self._lacking: OrderedDict[str, tuple[float, NoPicture]] = OrderedDict()  # failures, with their expiry

    def close(self) -> bool:
        """Stops accepting fetches; returns whether one was still running."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        return bool(self._flights)

    @answers(verbs.Picture)
    async def _picture(self, call: Call[verbs.Picture]) -> str:
        return await self.show(call.args.inscription_id, call.args.url)

    async def show(self, inscription_id: str | None, url: str | None) -> str:
        """Returns the picture, or the reason why there is none, as JSON text. `url` is the venue's.

        Raises Unavailable when a fetch had to wait longer than 12 s for its turn.
        """
        address = self._source.address_of(inscription_id, url)
        if address is None:
            return text(NoPicture("none"))
        flight = self._flights.get(address)
        if flight is None:
            flight = self._flights[address] = asyncio.create_task(self._find(address))
            flight.add_done_callback(lambda done: self._landed(address, done))
        return await asyncio.shield(flight)

    async def _find(self, address: str) -> str:
        until, lacking = self._lacking.get(address, (float("-inf"), None))
        if lacking is not None and self._clock() < until:
            return text(lacking)
        kept = await self._in_thread(lambda: _text_of(self._kept.read(address)))
        if kept is not None:
            return kept
        await self._budget.take(Priority.LOOKUP, self._clock() + _WAIT_S)
        try:
            found = await self._in_thread(lambda: self._fetch(address))
        finally:
            self._budget.done()
        if isinstance(found, NoPicture):
            self._remember(address, found)
            return text(found)
        return found

    def _fetch(self, address: str) -> str | NoPicture:
        found = self._source.fetch(address)
        if isinstance(found, NoPicture):
            return found
        self._kept.keep(address, found)
        return text(found)

    def _remember(self, address: str, lacking: NoPicture) -> None:
        for_s = _AWAY_S if lacking.instead == "unreachable" else _REMEMBERED_S
        self._lacking.pop(address, None)
        self._lacking[address] = (self._clock() + for_s, lacking)
        while len(self._lacking) > _MOST_REMEMBERED:
            self._lacking.popitem(last=False)

    def _landed(self, address: str, flight: asyncio.Task[str]) -> None:
        self._flights.pop(address, None)
        if not flight.cancelled():
            flight.exception()  # marks it as retrieved, because all callers may have left

    async def _in_thread(self, work: Callable[[], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _text_of(picture: Picture | None) -> str | None:
    return None if picture is None else text(picture)
