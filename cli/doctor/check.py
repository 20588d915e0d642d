"""One line of what the doctor found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at (`name`), what was seen, and what to do about it: `remedy`, empty when nothing is to do."""

    status: Status
    name: str
    text: str
    remedy: str = ""

    def line(self) -> str:
        """`warn name: text -> remedy`"""
        return f"{self.status:<4} {self.name}: {self.text}" + (f" -> {self.remedy}" if self.remedy else "")

    def as_json(self) -> dict[str, str]:
        """The fields, `status` in lower case."""
        return asdict(self) | {"status": self.status.lower()}


def ok(name: str, text: str) -> Check:
    """Nothing is to do."""
    return Check("ok", name, text)


def warn(name: str, text: str, remedy: str) -> Check:
    """It works, or what it is for may not be wanted."""
    return Check("warn", name, text, remedy)


def fail(name: str, text: str, remedy: str) -> Check:
    """Something does not work, or must not be so."""
    return Check("FAIL", name, text, remedy)
