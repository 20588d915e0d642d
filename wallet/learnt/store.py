"""The learnt forms on disk: learnt.json in the signer's own directory, sealed under a key of the keystore.

A file that was changed, comes from another installation or is older than the last one stored is not believed: then no
listing is signed before an operator has put it right. The seal is an HMAC, and the audit log says which file was stored
last: a new one is on disk beside the old before the log has its line, and takes the old one's place after it, so that a
crash between any two leaves a file that is believed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wallet.keystore import keystore_file
from wallet.learnt.form import TAG, LearntForm, canonical, read_form
from wallet.policy import PolicyRefused

LEARNT_FILE = "learnt.json"
NOTHING = "none"  # the digest of a store that was never written
OPERATIONS = ("learn", "forget")  # in the audit log
_REMEDY = "bidkeeper venue learnt forget --all, then learn again"

Forms = Mapping[tuple[str, str], LearntForm]


class LearntForms:
    """The forms by venue and kind. `problem` says why the file is not believed, else it is empty."""

    def __init__(self, path: Path, key: bytes, last_digest: str) -> None:
        """Reads the file. `key` seals it, `last_digest` is the digest that the audit log has of it, or NOTHING."""
        self._path = path
        self._key = key
        self._forms: Forms = {}
        self.problem = ""
        try:
            self._finish(last_digest)
            self._forms = self._read(last_digest)
        except (OSError, ValueError, RecursionError) as error:
            self.problem = f"{path.name} is not believed: {error}: {_REMEDY}"

    def all(self) -> list[LearntForm]:
        """Returns every form, by venue and kind. Raises PolicyRefused while the file is not believed."""
        self._believed()
        return [self._forms[name] for name in sorted(self._forms)]

    def of(self, venue: str, kind: str) -> LearntForm | None:
        """Returns the form of this kind of draft, None when none was learnt. Raises PolicyRefused as `all`."""
        self._believed()
        return self._forms.get((venue, kind))

    def put(self, form: LearntForm, before_writing: Callable[[str], None]) -> None:
        """Stores a form in place of the former one. `before_writing` is told the file's digest before it counts."""
        self._believed()
        self._write({**self._forms, (form.venue, form.kind): form}, before_writing)

    def forget(self, venue: str, before_writing: Callable[[str], None]) -> int:
        """Drops the forms of a venue; returns their number. "" drops all, also a file that is not believed."""
        if venue:
            self._believed()
        kept = {name: form for name, form in self._forms.items() if venue and name[0] != venue}
        gone = len(self._forms) - len(kept)
        if gone or self.problem:
            self._write(kept, before_writing)
        return gone

    def _believed(self) -> None:
        if self.problem:
            raise PolicyRefused(TAG, self.problem)

    def _finish(self, last_digest: str) -> None:
        """Finishes a change that a crash cut off after its line in the audit log."""
        try:
            is_noted = _digest(json.loads(keystore_file.beside(self._path).read_bytes())) == last_digest
        except (OSError, ValueError, RecursionError):
            return  # there is none, or it was not written to its end: then the log has no line of it
        if is_noted:
            keystore_file.take_beside(self._path)

    def _read(self, last_digest: str) -> Forms:
        try:
            stored = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            if last_digest != NOTHING:
                raise ValueError("it is gone") from None
            return {}
        if not isinstance(stored, dict) or not {"forms", "hmac"} <= stored.keys():
            raise ValueError("it holds no forms")
        if not hmac.compare_digest(self._seal(stored["forms"]).encode(), str(stored["hmac"]).encode()):
            raise ValueError("it was changed, or is of other keys")
        if _digest(stored) != last_digest:
            raise ValueError("it is not the one that was stored last")
        try:
            forms = [read_form(each) for each in stored["forms"]]
        except (KeyError, TypeError):
            raise ValueError("it was written by another version") from None
        return {(form.venue, form.kind): form for form in forms}

    def _write(self, forms: Forms, before_writing: Callable[[str], None]) -> None:
        listed = json.loads(canonical([asdict(forms[name]) for name in sorted(forms)]))
        stored = {"forms": listed, "hmac": self._seal(listed)}
        keystore_file.write_beside(self._path, stored)
        before_writing(_digest(stored))
        keystore_file.take_beside(self._path)
        self._forms, self.problem = forms, ""

    def _seal(self, listed: Any) -> str:
        return hmac.new(self._key, canonical(listed), hashlib.sha256).hexdigest()


def _digest(stored: Any) -> str:
    return hashlib.sha256(canonical(stored)).hexdigest()


def last_digest(audit_log: Path) -> str:
    """Returns the digest that the audit log's last line about learnt forms has; NOTHING without one.

    Lines of other operations hold texts of anybody's choosing, such as slugs: the name alone says nothing.
    """
    found = NOTHING
    if audit_log.exists():
        with audit_log.open("rb") as lines:
            for line in lines:
                if b'"learnt_sha256"' in line and (entry := json.loads(line)).get("operation") in OPERATIONS:
                    found = entry["learnt_sha256"]
    return found
