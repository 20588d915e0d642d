"""Every place of the page, as its route table has them: a screen that is added there is looked at by itself."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.web.javascript import WEB
from tests.web.visitor import Person

_ROUTES = re.findall(r'\[/\^(.+?)\$/, "(\w+)"\]', (WEB / "js" / "app.js").read_text())


def is_built(screen: str) -> bool:
    return (WEB / "js" / "screens" / f"{screen}.js").is_file()


def need_screen(screen: str) -> None:
    """Skips a test of a screen that is not there."""
    if not is_built(screen):
        pytest.skip(f"the screen {screen} is not built yet")


class Place(NamedTuple):
    """A place in the page: its pattern's text without marks (`:id` for a number), and its screen."""

    path: str
    screen: str

    @property
    def name(self) -> str:
        return self.path.strip("/").replace("/", "-").replace(":", "") or "overview"

    @property
    def is_built(self) -> bool:
        return is_built(self.screen)

    def route(self, person: Person) -> str:
        """Returns the part of the address behind the origin, of `person`'s first task or listing where it needs one."""
        if ":id" not in self.path:
            return f"#{self.path}"
        kind = "autolist" if self.path.startswith("/listings") else "tasks"
        return f"#{self.path.replace(':id', str(person.ok('GET', f'/api/{kind}')[0]['id']))}"


PLACES = [Place(pattern.replace(r"\/", "/").replace(r"(\d+)", ":id"), screen) for pattern, screen in _ROUTES]
BUILT = [place for place in PLACES if place.is_built]
