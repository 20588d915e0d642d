"""The published vectors are complete, unchanged and of a stated source."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from tests.vectors import DIRECTORY, load

ROOT = Path(__file__).resolve().parents[1]
PAGE = (DIRECTORY / "README.md").read_text()
SECTIONS: dict[str, str] = dict(re.findall(r"^## (\w+\.json)\n(.*?)(?=^## )", PAGE, re.M | re.S))


def test_each_file_of_vectors_has_a_section() -> None:
    assert {path.name for path in DIRECTORY.glob("*.json")} == set(SECTIONS) != set()


@pytest.mark.parametrize("name", SECTIONS)
def test_a_file_of_vectors_equals_its_recorded_hash_and_states_its_licence(name: str) -> None:
    assert f"`{sha256((DIRECTORY / name).read_bytes()).hexdigest()}`" in SECTIONS[name]
    assert re.search("licence", SECTIONS[name], re.I)


def test_the_source_of_each_message_signature_is_listed() -> None:
    listed = tuple(re.findall(r"^\| ([^|]+?) \|", SECTIONS["bip322.json"], re.M))
    assert [vector["id"] for vector in load("bip322")["vectors"] if not vector["source"].startswith(listed)] == []


def test_no_test_reads_a_file_outside_the_checkout() -> None:
    climbs = []
    for path in (path for folder in ("tests", "drills") for path in (ROOT / folder).rglob("*.py")):
        top = len(path.relative_to(ROOT).parts) - 1  # this parent is the checkout
        found = re.findall(r"__file__\)\.resolve\(\)\.parents\[(\d+)\]( / \"\.\.\")?", path.read_text())
        climbs += [path.name for number, up in found if int(number) > top or up]
    assert climbs == []
