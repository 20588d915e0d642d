"""The documentation's promises are kept, and every part is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.main import VERBS
from server.http.shapes import parameters_of
from server.urls import DECLARED
from strategy.reasons import Code, FaultCode, LedgerLimit, ListingResult, PlaceResult, Reason, Step, WorkerReason
from tools import diagram

METHOD = r"\b(GET|POST|PUT|PATCH|DELETE)\b"
ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


REASONS = (ROOT / "docs" / "reasons.md").read_text()
# The heading of each list of its own; all the other lists are of reasons.
LISTS: dict[str, tuple[type[Code], ...]] = {
    "Fates of a bid to be placed": (PlaceResult, LedgerLimit),
    "The worker's own reasons to cancel": (WorkerReason,),
    "Fates of a listing to be put up": (ListingResult,),
    "Codes of errors": (FaultCode,),
    "Steps that fail": (Step,),
}


def test_every_code_is_documented_in_its_list_with_its_meaning_and_no_other() -> None:
    """The rows are those of strategy/reasons.py, in its order."""
    documented: dict[str, list[str]] = {}
    for section in REASONS.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        rows = re.findall(r"^\| `.*", text, re.M)
        documented.setdefault(heading if heading in LISTS else "reasons", []).extend(rows)
    there = {name: [code for kind in kinds for code in kind] for name, kinds in LISTS.items()} | {"reasons": [*Reason]}
    assert documented == {name: [f"| `{code}` | {code.meaning} |" for code in codes] for name, codes in there.items()}


def test_every_verb_is_mentioned() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert [verb for verb in VERBS if f"`bidkeeper {verb}" not in text and f"`{verb}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


# Examples, and files of the past.
NOT_THERE = (
    *("markets/tulip/", "tests/markets/test_tulip.py", "simulator/venues/tulip/", "markets/codec.py"),
    *("models/notes.py", "models/migrations/0007_notes.py", "server/notes.py"),
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:\w+/)+[\w.-]+\.(?:py|js|sh))`", page.read_text())
    ours = [name for name in named if (ROOT / name.partition("/")[0]).is_dir() and not name.startswith(NOT_THERE)]
    assert [name for name in ours if not (ROOT / name).exists()] == []


def routes_of_the_page() -> dict[tuple[str, str], set[str]]:
    """Returns the parameters of each method and path in the tables of the interface's page.

    Methods hold for the paths up to the next ones; `…` is the path before, up to its `:id`.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for row in re.findall(rf"^\| ({METHOD}.*?) \|", (ROOT / "docs" / "interface.md").read_text(), re.M):
        methods, before, text_came = list[str](), "", False
        for method, text in re.findall(rf"{METHOD}|`([/…][^`]*)`", row[0]):
            if method:
                methods = [method] if text_came else [*methods, method]
            else:
                path, _, query = text.replace("…", before).partition("?")
                before = re.sub(r"(:id).*", r"\1", path)
                found |= {(each, path): set(re.findall(r"(\w+)=", query)) for each in methods}
            text_came = bool(text)
    return found


def test_the_tables_of_routes_have_every_operation_and_its_parameters_only() -> None:
    declared = {
        (method, re.sub(r"\{(\w+)\}", r":\1", operation.path)): operation.query
        for route in DECLARED
        for method, operation in route.operations.items()
    }
    written = routes_of_the_page()
    assert sorted(written) == sorted(declared)
    unknown = {name: written[name] - set(parameters_of(query) if query else ()) for name, query in declared.items()}
    assert {name: names for name, names in unknown.items() if names} == {}


def test_the_diagram_of_the_architecture_shows_the_imports_of_today() -> None:
    page = diagram.PAGE.read_text()
    assert diagram.renewed(page) == page, "renew it: python -m tools.diagram --write"


def test_a_diagram_leaves_out_arrows_that_a_longer_path_implies() -> None:
    graph = {"cli": {"server", "core"}, "server": {"core"}, "core": set[str]()}
    assert diagram.direct(graph) == {"cli": {"server"}, "server": {"core"}, "core": set()}


README = (ROOT / "README.md").read_text()
# `.ci/` runs these, by the name in the comment above each.
BLOCKS = dict(re.findall(r"^<!-- ci: ([\w-]+) -->\n```sh\n(.*?)^```$", README, re.M | re.S))
NEVER = README.partition("## What it never does")[2].partition("\n\n**")[0]
NAMED_BELOW = re.compile(r"<!-- (\w[\w/]*\.py)::(test_\w+) -->$")
MAKEFILE = (ROOT / "Makefile").read_text()


def test_every_block_of_the_readme_has_a_name_by_which_ci_runs_it() -> None:
    assert set(BLOCKS) == {"packages-run", "run", "packages-test", "test", "wheel"}
    assert len(BLOCKS) == README.count("```") / 2


def test_the_readme_names_packages_and_targets_that_ci_can_run() -> None:
    for name in ("packages-run", "packages-test"):
        assert re.fullmatch(r"sudo apt-get install( [a-z0-9][a-z0-9+.-]+)+\n", BLOCKS[name]), name
    targets = re.findall(r"^make ([\w-]+)$", "".join(BLOCKS.values()), re.M)
    assert set(targets) == {"run", "test"}
    assert [target for target in targets if not re.search(rf"^{target}:", MAKEFILE, re.M)] == []


def test_every_promise_of_the_readme_names_its_test() -> None:
    items = re.findall(r"^- It never .*(?:\n  .*)*", NEVER, re.M)
    assert len(items) == NEVER.count("\n- ") >= 6
    named = [(item, *NAMED_BELOW.findall(item)) for item in items]
    assert [item for item, *tests in named if len(tests) != 1 or not is_test(*tests[0])] == []


def test_the_table_of_contents_has_every_page() -> None:
    linked = re.findall(r"\]\(([\w/-]+\.md)\)", (ROOT / "docs" / "README.md").read_text())
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert sorted(linked) == sorted(there)


def is_test(file: str, name: str) -> bool:
    """Tells whether a test of this name is in that file under tests/."""
    path = ROOT / "tests" / file
    return path.is_file() and bool(re.search(rf"^(?:async )?def {name}\(", path.read_text(), re.M))


CUSTODY = (ROOT / "docs" / "custody.md").read_text()
TAKEN_OVER = CUSTODY.partition("## If a part is taken over\n")[2].partition("\n## ")[0]
NAMED = re.compile(r"`(\w[\w/]*\.py)::(test_\w+)`")


def test_every_line_about_a_part_that_was_taken_over_names_its_test() -> None:
    items = re.findall(r"^- .*(?:\n  .*)*", TAKEN_OVER, re.M)
    rows = re.findall(r"^\| .*", TAKEN_OVER, re.M)[1:]  # without the table's head
    assert len(items) > 15 and len(rows) > 10
    assert [line for line in items + rows if not NAMED.search(line)] == []


def test_every_test_that_custody_names_is_there() -> None:
    named = set(NAMED.findall(CUSTODY))
    assert len(named) > 25
    missing = {each for each in named if not is_test(*each)}
    assert missing == set()
    # None is named that the pattern does not see.
    assert CUSTODY.count("::test_") == len(NAMED.findall(CUSTODY))
