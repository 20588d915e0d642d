"""The description is well-formed OpenAPI 3.1, and it describes the route table: all of it and nothing else."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta

from server import description as openapi
from server.description import render
from server.http.shapes import Body, read_fields
from server.urls import DECLARED
from strategy.config.bid import BidConfig, dump_bid_config, load_bid_config, problems
from tests.server.conftest import Service
from tests.server.driver import DOCUMENT
from tests.server.json_schema import KEYWORDS, Shapes
from tests.server.test_access import operations

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


def test_an_id_that_is_answered_is_of_the_kind_that_is_asked_for() -> None:
    schemas = COMPONENTS["schemas"]
    told = schemas["Challenge"]["properties"]["challengeId"]
    assert (told["type"], "format" in told) == ("string", False)
    assert schemas["VerifyBody"]["properties"]["challengeId"] == {"type": "string"}
    assert {"type": "string"} in schemas["ProfileBody"]["properties"]["challengeId"]["anyOf"]


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


def test_defaults_of_a_new_task_are_the_real_ones() -> None:
    properties = COMPONENTS["schemas"]["NewBiddingTask"]["properties"]
    defaults = {name: shape["default"] for name, shape in properties.items() if "default" in shape}

    assert properties.keys() - defaults.keys() == {"slug", "venue", "tags"}  # the default venue is the installation's
    config = BidConfig(slug="a", hardcap_sats=1)
    assert problems(load_bid_config(dump_bid_config(config))) == []
    assert defaults["bidPercentHigh"] == config.bid_percent_high and defaults["feeRate"] == config.fee_rate


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
