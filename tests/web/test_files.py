"""The files of web/, and the unit tests written in JavaScript."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.needs import LIBATOMIC, need
from tests.web.javascript import NODE, WEB, WITH_MADE, file_of, graph, import_map, imported, index
from tests.web.visitor import ROOT
from tools import vendor

OWN = sorted(path for path in (WEB / "js").rglob("*.js"))
SHARED = {"rows", "price_form", "gain"}  # styles that two screens import
STYLES = [WEB / "app.css", *sorted((WEB / "css").glob("*.css"))]
LONGEST = 200  # lines
name_of = lambda path: path.relative_to(WEB).as_posix()  # noqa: E731

# What turns a text into a program or into elements, asks in a dialog that no test can style, or goes around api.js.
NEVER = {
    r"\.(inner|outer)HTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|DOMParser|document\.write": (),
    r"\beval\(|new Function\(|set(Timeout|Interval)\(\s*[\"'`]": (),
    r"<script|javascript:|\son[a-z]+=\"|\sstyle=\"": (),
    r"(?<![.\w])(alert|confirm|prompt)\(": (),
    r"\bfetch\(|XMLHttpRequest|EventSource|WebSocket|sendBeacon": ("js/api.js",),
    r"https?://(?!www\.w3\.org/)": ("js/texts/*", "js/wallets.js"),
}


def test_vendored_files_are_what_their_packages_published() -> None:
    assert list(vendor.faults()) == []


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda web: (web / "vendor" / "preact.mjs").write_text("x"), "vendor/preact.mjs: is not what was taken"),
        (lambda web: (web / "vendor" / "htm.mjs").unlink(), "vendor/htm.mjs: is missing"),
        (lambda web: (web / "vendor" / "more.mjs").write_text("x"), "vendor/more.mjs: is not in LOCK.json"),
        (lambda web: (web / "fonts" / "more.woff2").write_text("x"), "fonts/more.woff2: is not in LOCK.json"),
        (lambda web: relicense(web / "vendor" / "LOCK.json"), "the licence GPL-3.0 is none of"),
    ],
    ids=["changed", "missing", "unknown", "unknown font", "licence"],
)
def test_a_vendored_file_that_is_not_is_found(spoil: object, fault: str, tmp_path: Path) -> None:
    web = tmp_path / "web"
    shutil.copytree(WEB, web)
    assert list(vendor.faults(web)) == []
    spoil(web)  # type: ignore[operator]
    assert [each for each in vendor.faults(web) if fault in each]


def relicense(lock: Path) -> None:
    lock.write_text(lock.read_text().replace('"MIT"', '"GPL-3.0"', 1))


def test_what_is_preloaded_is_what_the_page_imports() -> None:
    """One file too few is fetched a round trip later, one too many for nothing."""
    listed = [file_of(path) for path in re.findall(r'<link rel="modulepreload" href="([^"]+)"', index())]
    needed = [file for file in graph(WEB / "js" / "app.js") if file != WEB / "js" / "app.js"]

    assert sorted(map(name_of, listed)) == sorted(map(name_of, needed))
    assert index().index("importmap") < index().index("modulepreload"), "older browsers take no map after it"


def test_every_import_leads_to_a_file_of_ours() -> None:
    for file in OWN:
        for found in imported(file):
            assert found.is_file() and found.is_relative_to(WEB), f"{name_of(file)} imports {found}"
    assert all(file.is_file() for file in import_map().values())
    assert len(graph(WEB / "js" / "app.js")) > 10


def test_every_file_that_is_served_is_one_that_the_page_may_ask_for() -> None:
    """What nothing loads is dead, or was forgotten in the list of what is loaded."""
    if missing := [name for _, name in routes() if not (WEB / "js" / "screens" / f"{name}.js").is_file()]:
        pytest.skip(f"these screens are not built yet: {', '.join(missing)}")
    lazily = {each for file in OWN for each in imported(file, lazily=True) if each.is_file()}
    starts = [WEB / "js" / "app.js", WEB / "js" / "theme.js", *(WEB / "js" / "screens").glob("*.js"), *lazily]
    reached = {file for start in starts for file in graph(start)}
    assert sorted(name_of(file) for file in OWN if file not in reached) == []


def routes() -> list[tuple[str, str]]:
    """Returns the pattern and the screen of every place in the page."""
    return re.findall(r'\[/\^(.+?)\$/, "(\w+)"\]', (WEB / "js" / "app.js").read_text())


def test_every_screen_has_a_place_and_a_style_and_draws_by_default() -> None:
    named = {name for _, name in routes()} | {"signin"}
    for file in sorted((WEB / "js" / "screens").glob("*.js")):
        assert file.stem in named, f"no place shows {file.name}"
        assert (WEB / "css" / f"{file.stem}.css").is_file(), file.stem
        assert re.search(r"^export default (function|\w)|as default\b", file.read_text(), re.M), file.name
    assert {file.stem for file in STYLES[1:]} <= named | SHARED


@pytest.mark.parametrize("file", [*OWN, *STYLES], ids=name_of)
def test_a_file_is_short_and_does_nothing_that_the_policy_forbids(file: Path) -> None:
    text = file.read_text()
    assert file.suffix == ".css" or text.count("\n") <= LONGEST
    code = re.sub(r"^\s*//.*", "", text, flags=re.M)
    for pattern, allowed in NEVER.items():
        found = re.search(pattern, code)
        assert found is None or any(file.match(f"web/{each}") for each in allowed), found
    if file.suffix == ".css":
        assert set(re.findall(r"@import (.*);", text)) <= {f'url("{name}.css")' for name in SHARED}
        assert set(re.findall(r"(?<!@import )url\(([^)]*)\)", text)) <= {
            '"/web/fonts/inter-latin.woff2"',
            "/web/fonts/inter-latin.woff2",
        }


FILES = sorted((Path(__file__).parent / "unit").glob("*.test.js"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_in_javascript(file: Path) -> None:
    need(LIBATOMIC)
    done = subprocess.run(
        [*NODE, "--test", str(file)], capture_output=True, text=True, cwd=ROOT, timeout=120, env=WITH_MADE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nℹ tests 0\n" not in done.stdout and "# tests 0\n" not in done.stdout
