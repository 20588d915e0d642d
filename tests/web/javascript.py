"""The dashboard's modules without a browser, in the Node that Playwright brings: no other has to be installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright._impl._driver import compute_driver_executable

from server.web import CODES
from strategy.reasons import page_module
from tests.needs import LIBATOMIC, need
from tests.web.visitor import ROOT

WEB = ROOT / "web"
_HERE = Path(__file__).parent / "unit"
# The one module that the server makes: Node gets it as a browser does.
MADE = WEB / CODES
WITH_MADE = {**os.environ, "MADE_MODULE": page_module()}
NODE = [str(compute_driver_executable()[0]), "--no-warnings", "--import", (_HERE / "_as_in_a_browser.mjs").as_uri()]


class Modules:
    """A Node that calls exported functions of web/js/ and answers with what they return."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def call(self, module: str, name: str, *arguments: Any) -> Any:
        """Returns what the function `name` of web/js/`module` returns. Raises RuntimeError where it throws."""
        return self._ask({"module": module, "call": name, "arguments": arguments})

    def value(self, module: str, name: str) -> Any:
        """Returns an exported value, as far as it is JSON; of a signal, its value."""
        return self._ask({"module": module, "value": name})

    def set(self, module: str, name: str, value: Any) -> None:
        """Sets an exported signal."""
        self._ask({"module": module, "set": name, "to": value})

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"thrown": "Node has ended"}')
        if "thrown" in answer:
            raise RuntimeError(answer["thrown"])
        return answer.get("returned")


@contextmanager
def modules() -> Iterator[Modules]:
    """Starts a Node, and ends it."""
    need(LIBATOMIC)
    process = subprocess.Popen(
        [*NODE, str(_HERE / "_answers.mjs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=WITH_MADE,
    )
    try:
        yield Modules(process)
    finally:
        process.stdin and process.stdin.close()
        process.wait(120)
        process.stdout and process.stdout.close()


def index() -> str:
    """Returns the page's text."""
    return (WEB / "index.html").read_text()


def import_map() -> dict[str, Path]:
    """Returns the files of the bare names that modules may import."""
    found = re.search(r'<script type="importmap">(.*?)</script>', index(), re.S)
    assert found, "index.html has no import map"
    return {name: file_of(path) for name, path in json.loads(found[1])["imports"].items()}


def file_of(path: str) -> Path:
    """Returns the file behind a path of the page, such as /web/js/app.js."""
    assert path.startswith("/web/"), path
    return WEB / path.removeprefix("/web/")


def imported(file: Path, *, lazily: bool = False) -> list[Path]:
    """Returns the files of web/ that a module imports: statically, or with `lazily` by import()."""
    names = import_map()
    text = re.sub(r"^\s*(//|\*|/\*).*", "", file.read_text(), flags=re.M)
    pattern = (
        r"""\bimport\(\s*["'`]([^"'`]+)["'`]"""
        if lazily
        else (r"""(?:^|[\n;}])\s*(?:import|export)\b(?:[^"'`;()]*?\bfrom)?\s*["']([^"']+)["']""")
    )
    found = [names[each] if each in names else (file.parent / each).resolve() for each in re.findall(pattern, text)]
    return [each for each in found if each != MADE]


def graph(start: Path) -> list[Path]:
    """Returns all files that are loaded with `start`, itself first, in the order in which they are found."""
    found = [start]
    for file in found:
        found.extend(each for each in imported(file) if each not in found)
    return found
