"""The newest drafts of listings that were refused a signature, for the operator to look at.

A file for each, beside learnt.json in the signer's own directory, closed to other users. They hold what the marketplace
sent and the rule against it, nothing secret, and decide nothing.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wallet import protocol
from wallet.protocol import ListingToSign

REFUSED_DIRECTORY = "refused-drafts"
MOST_KEPT = 20
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RefusedDraft:
    """A listing that was to be signed in earnest for a user's task, and the rule that did not hold, with the reason.

    `min_price_sats` is the least that the task may ask.
    """

    refused_ms: int
    venue: str
    task: int
    user: str
    min_price_sats: int
    rule: str
    why: str
    listing: ListingToSign

    @property
    def kind(self) -> str:
        """The kind of drafts: through an escrow, with a secure form, or plain."""
        if self.listing.is_in_escrow:
            return "escrow"
        return "plain, secure" if self.listing.secure else "plain"


class RefusedDrafts:
    """The drafts in `directory`: MOST_KEPT, and of one task one for each rule, since a task tries again and again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, draft: RefusedDraft) -> None:
        """Writes a draft down in place of older ones. A failure is logged: it must not change the signer's answer."""
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            for former in self._directory.glob(f"*-{draft.task}-{draft.rule}.json"):
                former.unlink()
            for oldest in self._files()[: 1 - MOST_KEPT]:
                oldest.unlink()
            self._put(self._directory / f"{draft.refused_ms:015d}-{draft.task}-{draft.rule}.json", draft)
        except OSError as error:
            log.warning("failed to keep a refused draft: %s", error)

    def all(self) -> list[RefusedDraft]:
        """Returns the drafts, newest first, without files that cannot be read. Raises OSError for the directory."""
        return [found for path in reversed(self._files()) if (found := _read(path)) is not None]

    def _files(self) -> list[Path]:
        """Returns the files, oldest first: their names begin with the time."""
        try:
            return sorted(path for path in self._directory.iterdir() if path.suffix == ".json")
        except FileNotFoundError:
            return []

    def _put(self, path: Path, draft: RefusedDraft) -> None:
        fresh = path.with_suffix(".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(fresh, flags, 0o600), "w") as file:
            json.dump(asdict(draft), file, indent=1)
        fresh.replace(path)


def _read(path: Path) -> RefusedDraft | None:
    try:
        fields: dict[str, Any] = json.loads(path.read_bytes())
        return RefusedDraft(**fields | {"listing": protocol.read_listing(fields["listing"])})
    except (OSError, ValueError, KeyError, TypeError, protocol.RequestError) as error:
        log.warning("failed to read %s: %s", path, error)
        return None
