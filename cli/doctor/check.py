"""The doctor's findings: a part's name and state, a text, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "FAIL"]


class Check(NamedTuple):
    """One finding: the checked part (`name`), its state, a text, and the `remedy`, which is empty if none is needed."""

    status: Status
    name: str
    text: str
    remedy: str = ""

    def line(self) -> str:
        """Returns `warn name: text -> remedy`."""
        return f"{self.status:<4} {self.name}: {self.text}" + (f" -> {self.remedy}" if self.remedy else "")

    def as_json(self) -> dict[str, str]:
        """Returns the fields, with `status` in lower case."""
        return self._asdict() | {"status": self.status.lower()}


def ok(text: str, name: str = "") -> Check:
    """Makes a finding without a fault. `named` names it if it has no name."""
    return Check("ok", name, text)


def warn(text: str, remedy: str, name: str = "") -> Check:
    """Makes a finding about a part that works, but perhaps not as intended."""
    return Check("warn", name, text, remedy)


def fail(text: str, remedy: str, name: str = "") -> Check:
    """Makes a finding about a part that does not work, or must not be in that state."""
    return Check("FAIL", name, text, remedy)


def first(*cases: tuple[object, Check]) -> Check:
    """Returns the finding of the first case that holds; at least one must."""
    return next(check for holds, check in cases if holds)


Found = Iterable[Check] | Check | None


def is_missing(path: Path) -> bool:
    """Returns True if nothing is at `path`, False if this user may not see it."""
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        pass
    return False


def unreadable(path: Path, error: Exception, remedy: str) -> Check:
    """Makes the finding of a path that cannot be read; `remedy` is for damaged contents."""
    why = error.strerror if isinstance(error, OSError) else None
    if isinstance(error, PermissionError):
        remedy = "run the doctor as the user of the installation, or as root"
    elif isinstance(error, IsADirectoryError | NotADirectoryError):
        remedy = "move what is there away: it must be a file in a directory"
    return fail(f"{path} cannot be read: {why or error}", remedy)


def named(name: str, found: Found) -> Iterator[Check]:
    """Yields the findings, and gives `name` to those without one; None yields none."""
    for check in (found,) if isinstance(found, Check) else found or ():
        yield check if check.name else check._replace(name=name)


def safely(part: str, checks: Iterator[Check]) -> Iterator[Check]:
    """Yields a part's checks. An error of the doctor itself ends only that part, with a line that says why."""
    try:
        yield from checks
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        yield fail(f"the check itself failed: {why}", "report this line; the other checks do not depend on it", part)


def way_to_keys(reason: str) -> str:
    """Returns how to unlock the signer, which is locked for `reason`."""
    if "play keystore" in reason:
        return "move the practice data away, then bidkeeper keys init (docs/going-live.md)"
    return f"run bidkeeper keys {'init' if 'keys init' in reason else 'unlock'}"
