"""Versions of leases that the programs of a home have seen, kept in files there for those that are started later.

A program that has just been started would have to watch another's lease for all of its time before it may take it. One
that has a lease itself looks at all of them at each renewal; so in its place the watch began when that one saw the
version first. Moments are of the machine's clock: what was noted before its restart, or by another clock, says nothing.
Nor does what one has noted whose own lease is over: it looks no more, and a database that has gone back since (a
restored backup) shows an old version again, whose holder may live.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from models.leases.lease_watch import Seen

log = logging.getLogger(__name__)


class Sightings:
    """A program's record of what it sees, in a file of its own in `directory`; `own` is the lease that it has."""

    def __init__(self, directory: Path, own: str) -> None:
        self._path = directory / f"seen-{own.replace(' ', '-')}.json"
        self.seen: dict[str, Seen] = {}

    def note(self, versions: Mapping[str, str], now_s: float, until_s: float) -> None:
        """Notes the versions of all leases by their names; `now_s` (of `death_timer.now_s`) is after they were read.

        `until_s`: the end of our own lease, unless it is renewed.
        """
        former = self.seen
        self.seen = {
            name: former[name] if name in former and former[name].version == version else Seen(version, now_s)
            for name, version in versions.items()
        }
        made = self._path.with_suffix(f".{os.getpid()}")
        try:
            made.write_text(json.dumps({"clock": _clock(), "until_s": until_s, "seen": self.seen}))
            made.replace(self._path)
        except OSError as error:  # a program that is started here will have to watch for longer
            log.warning("failed to note which leases were seen: %s", error)


def seen_in(directory: Path, name: str, now_s: float) -> Seen | None:
    """Returns the newest version of the lease that this user's programs see here, with its first moment."""
    found = [seen for path in directory.glob("seen-*.json") if (seen := _seen_by(path, name, now_s)) is not None]
    if not found:
        return None
    newest = max(found, key=lambda seen: seen.at_s).version
    return min((seen for seen in found if seen.version == newest), key=lambda seen: seen.at_s)


def _seen_by(path: Path, name: str, now_s: float) -> Seen | None:
    try:
        if path.stat().st_uid != os.geteuid():
            return None
        noted = json.loads(path.read_text())
        seen = noted["seen"] if noted["clock"] == _clock() and now_s < noted["until_s"] else {}
        return Seen(*seen[name]) if name in seen else None
    except (OSError, ValueError, LookupError, TypeError) as error:
        log.warning("failed to read which leases were seen: %s: %s", path, error)
        return None


def _clock() -> str:
    """Returns what tells this machine's clock since its start from all others, those of containers too."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/time').readlink()}"
