"""The description: well-formed OpenAPI 3.1 of the whole route table, equal to its golden."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from decimal import Decimal
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta

from server import description as openapi
from server.description import render
from server.http.shapes import Body, camel, read_fields
from server.task_config import FIELDS as BID_FIELDS
from server.task_config import LISTING_FIELDS
from server.urls import DECLARED
from strategy.config.bid import BidConfig
from strategy.config.bid import problems as problems_of_bids
from strategy.config.listing import ListingConfig
from strategy.config.listing import problems as problems_of_listing
from strategy.config.table import Field, table_of
from tests import postgresql
from tests.goldens import HERE, answers, description, faults, hold
from tests.goldens.world import BODIES, QUERIES, World, with_goldens_settings
from tests.server.driver import DOCUMENT, KEYWORDS, Shapes
from tests.server.matrix import operations
from tests.web.test_texts import FORBIDDEN
from tests.worlds.service import Service

COMPONENTS = DOCUMENT["components"]
NAMES = {"([0-9]+)": "{id}", "([1-9][0-9]*)": "{deliveryId}", "([^/]+)": "{inscriptionId}"}
NAMES["([A-Za-z0-9]+)"] = "{address}"

# Object of OpenAPI 3.1 → the fields it must have, and those it may.
SHAPES = {
    "document": ({"openapi", "info", "paths"}, {"servers", "tags", "components"}),
    "info": ({"title", "version"}, {"description", "license"}),
    "operation": (
        {"responses", "operationId", "summary", "description", "tags", "security"},
        {"parameters", "requestBody"},
    ),
    "parameter": ({"name", "in", "required", "schema"}, {"description"}),
    "requestBody": ({"content", "required"}, set()),
    "response": ({"description", "content"}, {"headers"}),
    "components": (set(), {"schemas", "responses", "securitySchemes"}),
}


def check_shape(kind: str, found: dict[str, Any]) -> None:
    must, may = SHAPES[kind]
    assert must <= found.keys() <= must | may, (kind, sorted(found))


def described() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each operation."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yields every object within the value."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(item)


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every schema of the document, with those inside it."""

    def within(at: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        yield at, schema
        for name, property_ in schema.get("properties", {}).items():
            yield from within(f"{at}.{name}", property_)
        for inner in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]:
            yield from within(at, inner)

    for name, schema in COMPONENTS["schemas"].items():
        yield from within(name, schema)
    for _, path, operation in described():
        for node in nodes(operation):
            if isinstance(node.get("schema"), dict):
                yield from within(path, node["schema"])


def response(found: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in found:
        return dict(COMPONENTS["responses"][found["$ref"].removeprefix("#/components/responses/")])
    return found


def test_every_operation_of_the_route_table_is_described_and_nothing_else() -> None:
    def named(path: str) -> str:
        for group, name in NAMES.items():
            path = path.replace(group, name)
        return path

    there = sorted((method, named(path)) for method, path in operations())
    assert sorted((method, path) for method, path, _ in described()) == there


def test_a_bound_that_the_reader_of_bodies_would_ignore_is_refused() -> None:
    class Open(Body, frozen=True, kw_only=True):
        count: Annotated[int, Meta(ge=1)]

    class Odd(Body, frozen=True, kw_only=True):
        name: Annotated[str, Meta(pattern="^a")]

    for shape in (Open, Odd):
        with pytest.raises(TypeError, match="of a body has both"):
            read_fields(shape, {})


def test_objects_have_their_fields() -> None:
    check_shape("document", DOCUMENT)
    check_shape("info", DOCUMENT["info"])
    check_shape("components", COMPONENTS)
    assert re.fullmatch(r"3\.1\.\d", DOCUMENT["openapi"])
    for scheme in COMPONENTS["securitySchemes"].values():
        assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    tags = [tag["name"] for tag in DOCUMENT["tags"]]
    assert len(tags) == len(set(tags)) and all(tag["description"] for tag in DOCUMENT["tags"])
    for _, path, operation in described():
        check_shape("operation", operation)
        assert operation["description"], path
        assert set(operation["tags"]) <= set(tags)
        assert operation["responses"], path
        for status, found in operation["responses"].items():
            assert re.fullmatch("[2-5][0-9][0-9]", status)
            check_shape("response", response(found))
            for media, content in response(found)["content"].items():
                assert re.fullmatch(r"[a-z]+/[a-z.+-]+", media) and content.keys() - {"example"} == {"schema"}
        for parameter in operation.get("parameters", ()):
            check_shape("parameter", parameter)
            assert parameter["in"] in ("path", "query")


def test_every_answer_of_an_object_has_an_example_that_its_schema_takes() -> None:
    shapes, seen = Shapes(COMPONENTS["schemas"], closed=True), 0
    for _, path, operation in described():
        for status, found in operation["responses"].items():
            for media, content in response(found)["content"].items():
                if media != "application/json" or "$ref" not in str(content["schema"]):
                    continue
                assert shapes.faults(content["example"], content["schema"]) == [], (path, status)
                seen += 1
    assert seen > 150


def test_ids_are_unique_and_fit_for_names_of_functions() -> None:
    ids = [operation["operationId"] for _, _, operation in described()]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch("[a-z][A-Za-z]+", each) for each in ids)


def test_parameters_of_paths_are_those_of_their_templates() -> None:
    for _, path, operation in described():
        given = [each for each in operation.get("parameters", ()) if each["in"] == "path"]
        assert [each["name"] for each in given] == re.findall(r"\{(\w+)\}", path)
        assert all(each["required"] is True for each in given)
        names = [(each["in"], each["name"]) for each in operation.get("parameters", ())]
        assert len(names) == len(set(names))


def test_references_lead_somewhere_and_every_component_is_used() -> None:
    used = {node["$ref"] for node in nodes(DOCUMENT) if "$ref" in node}
    there = {f"#/components/{kind}/{name}" for kind in ("schemas", "responses") for name in COMPONENTS[kind]}
    assert used == there


def test_schemas_use_only_keywords_that_the_checker_knows_and_require_what_they_have() -> None:
    for at, schema in schemas():
        assert schema.keys() <= KEYWORDS, at
        assert set(schema.get("required", ())) <= schema.get("properties", {}).keys(), at
        assert "type" not in schema or isinstance(schema["type"], str), at
        if "pattern" in schema:
            re.compile(schema["pattern"])


def test_who_needs_a_token_is_told_of_401_and_every_write_of_bodies_that_are_refused() -> None:
    for method, path, operation in described():
        statuses = operation["responses"].keys()
        if operation["security"] == [{"bearer": []}]:
            assert "401" in statuses, path
        assert ({"413", "415"} <= statuses) == (method != "GET"), path
        assert "requestBody" not in operation or "400" in statuses, path
        assert "{id}" not in path or "404" in statuses, path


def test_every_field_of_a_config_is_explained() -> None:
    for name in ("NewBiddingTask", "BiddingTaskChange", "BiddingConfig", "NewAutolistTask", "AutolistConfig"):
        for field, shape in COMPONENTS["schemas"][name]["properties"].items():
            assert shape["description"], (name, field)


def test_defaults_and_examples_are_values_of_their_schemas() -> None:
    shapes, seen = Shapes(COMPONENTS["schemas"]), 0
    for at, schema in schemas():
        for value in [*([schema["default"]] if "default" in schema else []), *schema.get("examples", ())]:
            assert shapes.faults(value, schema) == [], at
            seen += 1
    assert seen > 100


def test_no_schema_has_the_name_of_its_own_list() -> None:
    """Generated clients name the variable of an object after its class, next to those of its fields."""
    for name, schema in COMPONENTS["schemas"].items():
        lists = [field for field, shape in schema.get("properties", {}).items() if shape.get("type") == "array"]
        assert name.lower() not in map(str.lower, lists), name


class Page(HTMLParser):
    """The relevant parts of a page: its elements, ids, links, and whether they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found["href"] or ""] if "href" in found else []
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_every_operation_and_shape_and_every_link_leads_somewhere() -> None:
    page = Page()
    page.feed(render(DOCUMENT))

    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert set(page.ids) == {*COMPONENTS["schemas"], *(each["operationId"] for _, _, each in described())}
    assert all(link == "/api/openapi.json" or link.removeprefix("#") in page.ids for link in page.links)
    for _, path, operation in described():
        assert path in page.text and operation["summary"] in page.text


def test_the_page_has_no_scripts_and_nothing_from_elsewhere() -> None:
    page = Page()
    page.feed(render(DOCUMENT))

    assert page.seen.isdisjoint({"script", "link", "img", "iframe", "object", "form", "base"})
    assert not any(name.startswith("on") or name in ("style", "src") for name in page.attributes)
    assert "http://" not in render(DOCUMENT) and "https://" not in render(DOCUMENT)


def test_the_page_escapes_what_it_shows() -> None:
    evil = openapi.document(DECLARED)
    evil["info"]["title"] = evil["info"]["description"] = '<script>"&'
    evil["paths"]["/healthz"]["get"]["summary"] = "<b onclick='x'>"

    shown = render(evil)

    assert "<script" not in shown and "<b onclick" not in shown


async def test_description_and_page_need_no_token_and_the_page_allows_nothing(service: Service) -> None:
    told = await service.api("GET", "/api/openapi.json")
    page = await service.api("GET", "/docs")

    assert (told.status, told.headers["Content-Type"]) == (200, "application/json")
    assert told.json["openapi"] == "3.1.0"
    assert told.json["paths"].keys() == DOCUMENT["paths"].keys()
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src" not in policy and "unsafe" not in policy
    style = page.text.partition("<style>")[2].partition("</style>")[0]
    assert f"style-src 'sha256-{base64.b64encode(sha256(style.encode()).digest()).decode()}'" in policy


def test_the_enums_of_codes_are_the_lists_of_the_documentation() -> None:
    """tests/test_docs.py holds the lists against the code, so that all three have the same codes."""
    sections = (Path(__file__).parents[2] / "docs" / "reasons.md").read_text().split("\n## ")[1:]
    listed = {part.partition("\n")[0]: set(re.findall(r"^\| `(\w+)` \|", part, re.M)) for part in sections}
    fates, own = listed.pop("Fates of a bid to be placed"), listed.pop("The worker's own reasons to cancel")
    listing, errors = listed.pop("Fates of a listing to be put up"), listed.pop("Codes of errors")
    steps, reasons = listed.pop("Steps that fail"), set().union(*listed.values())
    schemas = COMPONENTS["schemas"]

    def codes(found: dict[str, Any]) -> set[str]:
        if "$ref" in found:
            return codes(schemas[found["$ref"].rpartition("/")[2]])
        return set(found.get("enum", ())).union(*(codes(each) for each in found.get("anyOf", ())))

    def of(schema: str, field: str) -> set[str]:
        found = schemas[schema]["properties"][field]
        return codes(found.get("items", found))

    assert of("CycleRung", "reason") == of("PlannedRung", "reason") == of("CycleDetail", "marks") == reasons
    assert of("CycleRung", "fate") == fates
    assert of("CycleBid", "reason") == reasons | own
    assert of("CycleDetail", "fate") == listing
    assert of("Fault", "code") == of("BiddingTask", "lastErrorCode") == of("AutolistTask", "lastErrorCode") == errors
    assert of("Fault", "step") == of("ErrorParams", "step") == steps


BID = BidConfig("cats", hardcap_sats=1000)
TABLES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bidding": (BID, problems_of_bids, BID_FIELDS),
    "autolist": (ListingConfig(), problems_of_listing, LISTING_FIELDS),
}
MARKS = [(kind, name, mark) for kind, (config, _, _) in TABLES.items() for name, mark in table_of(type(config)).items()]


async def shapes(service: Service) -> dict[str, Any]:
    answer = await service.ask("GET", "/api/shapes")
    assert answer.status == 200
    return dict(answer.json)


async def test_every_field_of_a_new_task_is_there_with_its_default(service: Service) -> None:
    found = await shapes(service)
    task = await service.ask("POST", "/api/tasks", {"slug": "goosinals", "hardcapSats": 1000})
    listing = await service.ask("POST", "/api/autolist", {"inscriptionId": "5" * 64 + "i0"})

    for kind, made, given in (("bidding", task, {"slug", "hardcapSats"}), ("autolist", listing, set())):
        config = made.json["config"]
        assert [field["name"] for field in found[kind]] == list(config)
        defaults = {field["name"]: field["default"] for field in found[kind]}
        assert {name: value for name, value in config.items() if name not in given} == {
            name: value for name, value in defaults.items() if name not in given
        }
    assert [field["name"] for field in found["bidding"] if field["isRequired"]] == ["slug"]


async def test_a_field_matters_by_values_that_another_field_can_have(service: Service) -> None:
    for fields in (await shapes(service)).values():
        by_name = {field["name"]: field for field in fields}
        for name, values in ((name, values) for field in fields for name, values in field["when"].items()):
            choices = [choice["value"] for choice in by_name[name]["choices"]]
            if choices:
                assert set(values) <= set(choices)
            else:
                assert values in ([True], [None])


@pytest.mark.parametrize(("kind", "name", "mark"), MARKS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_bound_is_the_last_value_that_is_taken(kind: str, name: str, mark: Field) -> None:
    config, problems, _ = TABLES[kind]

    def is_refused(value: Any) -> bool:
        made = type(config)(**{each: getattr(config, each) for each in table_of(type(config))} | {name: value})
        return any(problem.field == name and problem.text == mark.fault for problem in problems(made))

    if mark.most is not None:
        assert not is_refused(mark.most) and is_refused(mark.most * 2)
        low = mark.least if mark.least is not None else mark.above
        assert low is not None and is_refused(low - 1)
        assert is_refused(low) == (mark.above is not None)
    for choice in mark.choices:
        assert not is_refused(choice)
    if mark.choices:
        assert is_refused("none of these")
    if mark.longest is not None:
        assert not is_refused("x" * mark.longest) and is_refused("x" * (mark.longest + 1))
    is_bound = mark.most is not None or mark.longest is not None or bool(mark.choices)
    assert bool(mark.fault) == is_bound


@pytest.mark.parametrize(("kind", "name", "mark"), MARKS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_field_has_words_for_a_trader_and_for_programs(kind: str, name: str, mark: Field) -> None:
    spoken = [mark.label, mark.hint, *mark.choices.values()]
    assert [text for text in spoken if FORBIDDEN.search(text)] == []
    assert mark.label and mark.words.endswith(".")
    assert not mark.hint or (mark.hint.endswith(".") and len(mark.hint) <= 90)
    assert name in TABLES[kind][2] and camel(name).isalnum()


def test_decimals_have_as_many_places_as_their_field() -> None:
    assert table_of(BidConfig)["fee_rate"].takes(Decimal("1.234"))
    assert not table_of(BidConfig)["fee_rate"].takes(Decimal("1.2345"))


def file_of(operation: str) -> str:
    """Returns the golden of an operation's bodies."""
    return f"bodies/{re.sub('[^A-Za-z]+', '-', operation).strip('-')}.txt"


async def test_the_description_says_what_its_golden_says(service: Service) -> None:
    answer = await service.api("GET", "/api/openapi.json")

    hold("description.txt", description.facts(answer.json))


@pytest.mark.slow
@postgresql.left_out("each question finds the rows of the first, by a copy of the database's file")
@with_goldens_settings
@pytest.mark.parametrize("operation", BODIES)
async def test_wrong_bodies_are_refused_as_their_golden_says(service: Service, operation: str) -> None:
    world = await World.of(service)
    assert set(BODIES) == world.with_a_body()
    found = [(field, value, await world.told(operation, body)) for field, value, body in world.bodies(operation)]

    hold(file_of(operation), faults.lines(operation, found))


@pytest.mark.slow
@postgresql.left_out("each question finds the rows of the first, by a copy of the database's file")
@with_goldens_settings
async def test_wrong_queries_are_refused_as_their_golden_says(service: Service) -> None:
    world = await World.of(service)
    assert set(QUERIES) == world.with_a_query()
    lines: list[str] = []
    for operation in sorted(QUERIES):
        asked = world.queries(operation)
        found = [(field, value, await world.told(operation, None, query)) for field, value, query in asked]
        lines += faults.lines(operation, found)

    hold("queries.txt", lines)


@pytest.mark.slow
@postgresql.left_out("each question finds the rows of the first, by a copy of the database's file")
@with_goldens_settings
async def test_a_body_or_a_query_where_none_is_taken_is_refused_as_its_golden_says(service: Service) -> None:
    world = await World.of(service)
    found: dict[str, list[tuple[str, str, str]]] = {}
    for operation, value, body, query in world.unasked():
        found.setdefault(operation, []).append(("", value, await world.told(operation, body, query)))

    hold("unasked.txt", [line for operation, each in found.items() for line in faults.lines(operation, each)])


@pytest.mark.slow
@postgresql.left_out("it numbers rows in another way")
@with_goldens_settings
async def test_the_answers_of_a_day_are_those_of_their_golden(service: Service) -> None:
    found = await answers.lines(service)

    described = (await service.api("GET", "/api/openapi.json")).json
    assert answers.never_answered(described, found) == {
        "GET /api/openapi.json",  # description.txt
        "GET /docs",  # the same as a page
        "GET /metrics",
        "GET /readyz",  # it depends on what else runs here
    }
    hold("answers.txt", found)


def test_each_golden_is_held_by_a_test() -> None:
    kept = {
        path.relative_to(HERE).as_posix()
        for path in HERE.rglob("*.txt")
        if not path.name.startswith(("doctor_", "journal_"))
    }
    assert kept == {"day.txt", "answers.txt", "description.txt", "queries.txt", "unasked.txt", *map(file_of, BODIES)}
