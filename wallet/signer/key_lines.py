"""The audit log's lines about users' keys: which number each user has, and which addresses.

The keystore is written first, its line after it, and the addresses are shown last. So a crash leaves a keystore that is
newer than the log by keys that nobody has seen. One that lacks keys which the log has is an older copy: it would give
the next user the number, and so the keys, of one whom it has forgotten. Play keys have no lines.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wallet.keystore.keys import Keystore
from wallet.keystore.keystore_file import KeystoreError
from wallet.protocol import UserKeys

_OPERATION = "keys"
_ADDRESSES = ("payment", "vault")

Line = dict[str, Any]


def line_of(user_number: int, user: str, keys: UserKeys) -> Line:
    """Returns the audit entry of a user's keys."""
    addresses = {"payment": keys.payment, "vault": keys.vault}
    return {"operation": _OPERATION, "user": user, "user_number": user_number, **addresses}


def require_noted(audit_log: Path, opened: Keystore) -> list[Line]:
    """Returns the lines that the log still lacks, in order of the users' numbers.

    Raises KeystoreError when the keystore is not the one that the log tells of, or an older copy of it.
    """
    noted = _noted(audit_log)
    _require_numbers(noted, opened.users)
    missing = []
    for number, user in enumerate(opened.users):
        line = line_of(number, user, opened.secrets_of(user).public)
        said = noted.get(number, [])
        if not said:
            missing.append(line)
        elif not _says(said[-1], line):
            imported = opened.imported_of(user)
            is_newer = all(line[name] == said[-1][name] or name in imported for name in _ADDRESSES)
            if not is_newer or any(_says(each, line) for each in said):
                raise KeystoreError(
                    f"keystore.json has other keys for the user of line {said[-1]['number']} of audit.jsonl: put the"
                    " newest keystore.json back, or import that user's keys again"
                )
            missing.append(line)  # an import whose line was never written
    return missing


def require_numbers(audit_log: Path, users: Sequence[str]) -> None:
    """Raises KeystoreError when one of these users has a number that the log says is another's."""
    _require_numbers({number: lines for number, lines in _noted(audit_log).items() if number < len(users)}, users)


def _noted(audit_log: Path) -> dict[int, list[Line]]:
    """Returns the log's lines about keys, oldest first, by the users' numbers."""
    found = defaultdict(list)
    with audit_log.open("rb") as lines:
        for line in lines:
            # Lines of other operations hold texts of anybody's choosing: the name alone says nothing.
            if b'"user_number"' in line and (entry := json.loads(line)).get("operation") == _OPERATION:
                found[entry["user_number"]].append(entry)
    return found


def _require_numbers(noted: dict[int, list[Line]], users: Sequence[str]) -> None:
    for number, lines in noted.items():
        for line in lines:
            if line["user"] != (users[number] if number < len(users) else None):
                raise KeystoreError(
                    f"keystore.json does not have the user of line {line['number']} of audit.jsonl as number {number}:"
                    " put the newest keystore.json back, or make it anew from its words with all users in their order"
                )


def _says(noted: Line, line: Line) -> bool:
    return line.items() <= noted.items()
