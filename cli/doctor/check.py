"""One line of the doctor's findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Status = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True, slots=True)
class Check:
    """A finding: the part looked at (`name`), its state, and the `remedy`, empty when nothing is to be done."""

    status: Status
    name: str
    text: str
    remedy: str = ""

    def line(self) -> str:
        """Writes `warn name: text -> remedy`."""
        return f"{self.status:<4} {self.name}: {self.text}" + (f" -> {self.remedy}" if self.remedy else "")

    def as_json(self) -> dict[str, str]:
        """Returns the fields, `status` in lower case."""
        return asdict(self) | {"status": self.status.lower()}


def ok(name: str, text: str) -> Check:
    """Makes a finding that needs nothing."""
    return Check("ok", name, text)


def warn(name: str, text: str, remedy: str) -> Check:
    """Makes a finding that works, but may not be wanted."""
    return Check("warn", name, text, remedy)


def fail(name: str, text: str, remedy: str) -> Check:
    """Makes a finding that does not work, or must not be so."""
    return Check("FAIL", name, text, remedy)


def unreadable(name: str, path: Path, error: Exception, remedy: str) -> Check:
    """Makes the finding of a path that cannot be read; `remedy` is that of contents that are damaged."""
    why = error.strerror if isinstance(error, OSError) else None
    if isinstance(error, PermissionError):
        remedy = "run the doctor as the user of the installation, or as root"
    elif isinstance(error, IsADirectoryError | NotADirectoryError):
        remedy = "move what is there away: it must be a file in a directory"
    return fail(name, f"{path} cannot be read: {why or error}", remedy)


def safely(part: str, checks: Iterator[Check]) -> Iterator[Check]:
    """Yields a part's checks. A fault of ours ends that part with a line that says why; the other parts go on."""
    try:
        yield from checks
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        yield fail(part, f"the check itself failed: {why}", "report this line; the other checks do not depend on it")


def way_to_keys(reason: str) -> str:
    """Returns what to do about a locked signer, by the reason that it gives."""
    if "play keystore" in reason:
        return "move the practice data away, then bidkeeper keys init (docs/going-live.md)"
    return f"run bidkeeper keys {'init' if 'keys init' in reason else 'unlock'}"
