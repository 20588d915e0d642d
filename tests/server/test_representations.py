"""HEAD, tags of earlier answers, and gzip: as programs that speak HTTP expect them."""

from __future__ import annotations

import gzip
import json

import pytest

from core.version import VERSION, running
from tests.server.api import Answer
from tests.server.conftest import Service
from tests.server.test_access import operations
from tests.server.test_http import filled

READS = sorted(path for method, path in operations() if method == "GET")
TAGGED = ["/docs", "/api/openapi.json", "/api/tasks", "/api/autolist"]


def shown(answer: Answer) -> dict[str, str]:
    """Returns the headers that describe the body."""
    return {name: answer.headers[name] for name in answer.headers if name not in ("Date", "Server")}


@pytest.mark.parametrize("path", READS)
async def test_head_is_get_without_its_body(service: Service, path: str) -> None:
    await service.new_task()
    for token in (service.token, ""):
        got = await service.api("GET", filled(path), token=token)
        head = await service.api("HEAD", filled(path), token=token)
        assert (head.status, head.text) == (got.status, "")
        if path not in ("/metrics", "/readyz"):  # these say another thing each time
            assert shown(head) == shown(got)


async def test_head_of_what_is_no_read_is_refused(service: Service) -> None:
    answer = await service.api("HEAD", "/api/auth/verify")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert (await service.api("HEAD", "/nothing")).status == 404


@pytest.mark.parametrize("path", TAGGED)
async def test_what_has_not_changed_is_not_sent_again(service: Service, path: str) -> None:
    first = await service.api("GET", path, token=service.token)
    tag = first.headers["Etag"]
    assert tag.startswith('W/"') and first.text
    again = await service.api("GET", path, token=service.token, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status, again.text, again.headers["Etag"]) == (304, "", tag)
    assert (await service.api("GET", path, token=service.token, headers={"If-None-Match": '"other"'})).status == 200


async def test_a_list_that_has_changed_has_another_tag_and_a_stranger_sees_none(service: Service) -> None:
    before = (await service.api("GET", "/api/tasks", token=service.token)).headers["Etag"]
    await service.new_task()
    after = await service.api("GET", "/api/tasks", token=service.token, headers={"If-None-Match": before})
    assert after.status == 200 and after.headers["Etag"] != before
    stranger = await service.api("GET", "/api/tasks", headers={"If-None-Match": after.headers["Etag"]})
    assert stranger.status == 401 and "Etag" not in stranger.headers


async def test_a_write_is_not_tagged(service: Service) -> None:
    answer = await service.api("POST", "/api/tasks", {"slug": "a", "hardcapSats": 1}, token=service.token)
    assert answer.status == 201 and "Etag" not in answer.headers


async def test_large_texts_are_packed_for_who_takes_gzip(service: Service) -> None:
    async def asked(path: str, accepted: str) -> tuple[str | None, bytes]:
        request = {"Accept-Encoding": accepted, "Authorization": f"Bearer {service.token}"}
        reply = await service.api.raw(path, request)
        return reply.headers.get("Content-Encoding"), reply.body

    for slug in range(8):
        await service.new_task(slug=f"slug-{slug}")
    for path in ("/api/openapi.json", "/docs", "/api/tasks"):
        (encoding, packed), (none, plain) = await asked(path, "gzip"), await asked(path, "identity")
        assert (encoding, none) == ("gzip", None)
        assert gzip.decompress(packed) == plain and len(packed) < len(plain) / 3
    alive = {"status": "ok", "version": VERSION, "commit": running().commit or None}
    encoding, sent = await asked("/healthz", "gzip")
    assert encoding is None and json.loads(sent) == alive
