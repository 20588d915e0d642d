"""Presets: judged as a task's config is, one by one and as a file; nobody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from models import presets
from models.presets import Preset
from tests.server.conftest import Service
from tests.server.driver import check

CAREFUL = {"hardcapSats": 90_000, "bidPercentHigh": 0.7, "bidLevels": [{"at": 0.5, "count": 2}], "tags": ["a"]}


def exactly(answer: Any) -> Any:
    """The answer's values as any program reads them; the test's own client makes Decimals of fractions."""
    return json.loads(answer.text)


async def made(service: Service, name: str = "careful", config: dict[str, Any] | None = None) -> int:
    answer = await service.ask("POST", "/api/presets", {"name": name, "config": config or CAREFUL})
    assert answer.status == 201, answer.text
    check("createPreset", answer)
    return int(answer.json["id"])


async def test_a_preset_keeps_what_was_given_and_makes_a_task(service: Service) -> None:
    preset = await made(service)
    (shown,) = exactly(await service.ask("GET", "/api/presets"))
    assert (shown["id"], shown["name"], shown["config"]) == (preset, "careful", CAREFUL)
    task = await service.ask("POST", "/api/tasks", {"slug": "goosinals", **shown["config"]})
    assert (task.status, task.json["config"]["bidCount"], task.json["tags"]) == (201, 2, ["a"])


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({}, "hardcapSats: is required"),
        ({"hardcapSats": 1, "bidCount": 0}, "bidCount:"),
        ({"hardcapSats": 1, "colour": "red"}, "colour: unknown field"),
        ({"hardcapSats": 1, "slug": "a/b"}, "slug:"),
        ({"hardcapSats": 1, "bidType": "trait"}, "traitType:"),
        ({"hardcapSats": 1, "venue": "nowhere"}, "venue:"),
        ({"hardcapSats": 1, "type": "rune", "bidType": "trait", "traitType": "a", "traitValue": "b"}, "bidType:"),
        ({"hardcapSats": 1, "budgetId": 999}, "budgetId:"),
        ({"hardcapSats": 1.5}, "hardcapSats: must be a whole number"),
    ],
)
async def test_a_config_is_judged_as_a_tasks_is(service: Service, config: dict[str, Any], fault: str) -> None:
    preset = await made(service)
    task = await service.ask("POST", "/api/tasks", {"slug": "goosinals", **config})
    file = {"version": 1, "presets": [{"name": "new", "config": config}]}
    answers = [
        await service.ask("POST", "/api/presets", {"name": "new", "config": config}),
        await service.ask("PUT", f"/api/presets/{preset}", {"config": config}),
        await service.ask("POST", "/api/presets/import", file),
    ]
    assert task.status == 400
    for answer in answers:
        assert answer.status == 400
        assert any(fault in detail for detail in answer.json["details"]), answer.text
    assert [each.name for each in presets.of_user(service.user_id)] == ["careful"]


async def test_a_rune_needs_no_slug_either(service: Service) -> None:
    await made(service, "runes", {"type": "rune", "hardcapSats": 1})


async def test_a_name_is_there_once(service: Service) -> None:
    first, second = await made(service), await made(service, "bold")
    again = await service.ask("POST", "/api/presets", {"name": " careful ", "config": CAREFUL})
    moved = await service.ask("PUT", f"/api/presets/{second}", {"name": "careful"})
    assert (again.status, moved.status) == (409, 409)
    renamed = await service.ask("PUT", f"/api/presets/{first}", {"name": "calm"})
    assert (renamed.json["name"], exactly(renamed)["config"]) == ("calm", CAREFUL)


async def test_a_file_goes_to_another_user_whole_or_not_at_all(service: Service) -> None:
    await made(service)
    await made(service, "bold", {"hardcapSats": 5})
    file = exactly(await service.ask("GET", "/api/presets/export"))
    spoilt = file | {"presets": [*file["presets"], {"name": "bad", "config": {"bidCount": 0}}]}

    refused = await service.api("POST", "/api/presets/import", spoilt, token=service.other_token)
    assert (refused.status, refused.json["details"][0].split(" ")[:2]) == (400, ["presets:", "2.config"])
    assert (await service.api("GET", "/api/presets", token=service.other_token)).json == []

    stored = await service.api("POST", "/api/presets/import", file, token=service.other_token)
    check("importPresets", stored)
    assert exactly(await service.api("GET", "/api/presets/export", token=service.other_token)) == file
    assert Preset.select().count() == 4


async def test_a_file_replaces_only_when_told_to(service: Service) -> None:
    preset = await made(service)
    named = [{"name": "careful", "config": {"hardcapSats": 7}}, {"name": "b", "config": CAREFUL}]
    file = {"version": 1, "presets": named}
    assert (await service.ask("POST", "/api/presets/import", file)).status == 409
    assert Preset.select().count() == 1
    assert (await service.ask("POST", "/api/presets/import", file | {"replace": True})).status == 200
    assert (await service.ask("GET", f"/api/presets/{preset}")).json["config"] == {"hardcapSats": 7}


@pytest.mark.parametrize(
    "file",
    [{"presets": []}, {"version": 2, "presets": []}, {"version": True, "presets": []}, {"version": 1, "presets": [5]}],
)
async def test_what_is_no_file_of_presets_is_refused(service: Service, file: dict[str, Any]) -> None:
    assert (await service.ask("POST", "/api/presets/import", file)).status == 400


async def test_there_is_an_end(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "MOST_PRESETS", 1)
    await made(service)
    assert (await service.ask("POST", "/api/presets", {"name": "two", "config": CAREFUL})).status == 403
    one = {"version": 1, "replace": True, "presets": [{"name": "careful", "config": {"hardcapSats": 7}}]}
    assert (await service.ask("POST", "/api/presets/import", one)).status == 200


async def test_presets_of_others_are_not_there(service: Service) -> None:
    preset = await made(service)
    for method, body in (("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)):
        answer = await service.api(method, f"/api/presets/{preset}", body, token=service.other_token)
        assert answer.status == 404
    assert (await service.ask("GET", f"/api/presets/{preset}")).json["name"] == "careful"
    assert (await service.ask("DELETE", f"/api/presets/{preset}")).json == {"success": True}
