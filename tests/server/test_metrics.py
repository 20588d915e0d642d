"""The metrics for Prometheus, in its format, and the callers that get them."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import pytest
from tornado.httputil import HTTPHeaders
from tornado.netutil import bind_unix_socket

from core import version
from models.ledger import listings
from models.ledger.listings import NewListing
from models.ledger.states import Order
from models.tasks import cycles, tasks
from models.tasks.tasks import Task
from server import health
from server.app import make_server
from server.http.gate import is_local
from server.http.services import Histogram, Metric, render
from tests.server.ledger_rows import open_order
from tests.worlds.service import START_MS, Answer, Service

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")
SHORT = {
    "is_cut_off": False,
    "quota": {"limit": 100_000, "used": 60_000, "left": 40_000, "projected": 130_000, "stretch_s": 600, "rungs": 3}
    | {"users": {"7": 50_000, "9": 4_000}}
    | {"day": {"limit": 2_000, "used": 900, "left": 1_100, "projected": 1_900, "ends_ms": 1, "users": {"7": 880}}},
}
_USERS = ("7", "9", "others")
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> tuple[Samples, dict[str, str]]:
    """Returns the samples and the type of each metric. Fails where the text breaks a rule of the format."""
    assert text.endswith("\n")
    samples: Samples = {}
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    newest = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            newest = line.split(" ")[2]
            assert newest not in helped, "all lines of one metric stand together"
            helped.add(newest)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == newest and name not in kinds
            kinds[name] = kind
        else:
            found = _SAMPLE.fullmatch(line)
            assert found is not None, line
            assert _of(found[1], kinds) == newest, line
            labels = re.findall(_LABEL, found[2] or "")
            assert len({name for name, _ in labels}) == len(labels), line
            key = (found[1], frozenset(labels))
            assert key not in samples, line
            samples[key] = float(line.rpartition(" ")[2])
    assert kinds.keys() == helped == {_of(name, kinds) for name, _ in samples}
    for name, kind in kinds.items():
        assert kind in ("gauge", "counter", "histogram") and name.endswith("_total") == (kind == "counter"), name
    return samples, kinds


def _of(sample: str, kinds: dict[str, str]) -> str:
    """Returns the metric that a sample belongs to: a histogram's have names of their own."""
    metric = re.sub("_(bucket|sum|count)$", "", sample)
    return metric if kinds.get(metric) == "histogram" else sample


async def scrape(service: Service) -> Samples:
    answer = await service.api("GET", "/metrics")
    assert answer.status == 200
    return parsed(answer.text)[0]


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


def test_what_could_break_the_format_is_escaped() -> None:
    metric = Metric("odd", "gauge", 'a\\b\n"c"', (({"a": 'x"\\\n{},= ', "b": ""}, 1.5), ({"a": "y"}, 2)))

    assert render([metric]).splitlines() == [
        '# HELP odd a\\\\b\\n"c"',
        "# TYPE odd gauge",
        'odd{a="x\\"\\\\\\n{},= ",b=""} 1.5',
        'odd{a="y"} 2',
    ]
    parsed(render([metric]))
    assert render([Metric("none", "gauge", "", ())]) == ""


async def test_rows_left_out_of_a_venues_answers_are_counted_by_operation(service: Service) -> None:
    venues = {"satflow": {"unread_rows": {"asks": 3, "own_bids": 1}}, "ordnet": {}}
    service.gateway.answers["status"] = {"venues": venues}
    samples = await scrape(service)
    name = "bidkeeper_venue_unread_rows_total"
    assert value(samples, name, venue="satflow", operation="asks") == 3
    assert value(samples, name, venue="satflow", operation="own_bids") == 1
    assert sum(found == name for found, _ in samples) == 2


async def test_the_tables_are_counted_at_each_scrape(service: Service) -> None:
    running, crashed, deleted = [await service.new_task(slug=slug) for slug in ("a", "b", "c")]
    Task.update(desired="running", observed="running", token=1).where(Task.id == running).execute()
    Task.update(desired="running", observed="crashed").where(Task.id == crashed).execute()
    Task.update(deleted_ms=1).where(Task.id == deleted).execute()
    first, second = open_order(service, running, 1), open_order(service, running, 2, "unknown")
    Order.create(
        **{name: getattr(first, name) for name in ("task_id", "user_id", "venue", "wallet", "slug", "quantity")},
        intent="f" * 32,
        price_sats=7,
        expires_ms=1,
        token=1,
        state="closed",
        created_ms=1,
        updated_ms=1,
    )
    for _ in range(3):
        cycles.record_cycle(running, 1, time_ms=START_MS, action="", error=None, detail="{}", memory="{}")
    listed = tasks.create_autolist_task(
        service.user_id, inscription_id="x", collection_id=None, config="{}", venue="simulator", now_ms=1
    )
    Task.update(desired="running", token=1).execute()
    item = NewListing("e" * 64, listed.id, service.user_id, "simulator", "vault", "x", None, "a:0", 5, 1, 1)
    listings.reserve(item, None, 1)

    seen = await scrape(service)
    Task.delete().execute()
    later = await scrape(service)

    assert value(seen, "bidkeeper_tasks", desired="running", observed="running") == 1
    assert value(seen, "bidkeeper_tasks", desired="running", observed="crashed") == 1
    assert value(seen, "bidkeeper_tasks", desired="stopped", observed="stopped") == 0
    assert sum(count for (name, _), count in seen.items() if name == "bidkeeper_tasks") == 2
    assert value(seen, "bidkeeper_cycles_total") == value(later, "bidkeeper_cycles_total") == 3
    assert value(seen, "bidkeeper_orders", state="live") == 1
    assert value(seen, "bidkeeper_orders", state="unknown") == 1
    assert value(seen, "bidkeeper_orders", state="reserved") == 0
    assert value(seen, "bidkeeper_orders", state="closed") == 1
    assert value(seen, "bidkeeper_autolist_tasks", desired="running", observed="stopped") == 1
    assert sum(count for (name, _), count in seen.items() if name == "bidkeeper_autolist_tasks") == 1
    assert value(seen, "bidkeeper_listings", state="reserved") == 1
    assert value(seen, "bidkeeper_listings", state="live") == 0
    assert value(seen, "bidkeeper_exposure_sats") == first.price_sats + second.price_sats
    assert value(seen, "bidkeeper_sessions") == 2
    labels = {"version": version.VERSION, "commit": version.running().commit or "unknown"}
    assert value(seen, "bidkeeper_build_info", **labels) == 1


async def test_sessions_that_are_over_are_not_counted(service: Service) -> None:
    service.clock.now_ms += 8 * 24 * 3_600_000

    assert value(await scrape(service), "bidkeeper_sessions") == 0


async def test_calls_and_budgets_are_the_gateways(service: Service) -> None:
    status = {
        "calls": {"place": {"ok": 5, "unknown": 1}, "floors": {"rate_limited": 2}},
        "budget_left": 3.25,
        "paused_s": 0.0,
        "waiting": 4,
        "running": 1,
    }
    service.gateway.answers["status"] = {"market": "simulator", "venues": {"satflow": status, "unisat": {}}}

    seen = await scrape(service)

    calls = {labels: count for (name, labels), count in seen.items() if name == "bidkeeper_venue_calls_total"}
    assert sorted(calls.values()) == [1, 2, 5]
    labels = {"venue": "satflow", "operation": "place", "outcome": "unknown"}
    assert value(seen, "bidkeeper_venue_calls_total", **labels) == 1
    assert value(seen, "bidkeeper_venue_budget_left", venue="satflow") == 3.25
    assert value(seen, "bidkeeper_venue_waiting", venue="satflow") == 4


async def test_the_quota_is_the_gateways(service: Service) -> None:
    service.gateway.answers["status"] = {"venues": {"satflow": SHORT, "unisat": {"is_cut_off": True}}}

    seen = await scrape(service)

    told = {
        name: value(seen, f"bidkeeper_venue_{name}", venue="satflow")
        for name in (
            "quota_used",
            "quota_left",
            "quota_projected",
            "day_quota_used",
            "day_quota_left",
            "day_quota_projected",
            "read_stretch_seconds",
            "quota_rungs",
            "cut_off",
        )
    }
    assert told == {
        "quota_used": 60_000,
        "quota_left": 40_000,
        "quota_projected": 130_000,
        "day_quota_used": 900,
        "day_quota_left": 1_100,
        "day_quota_projected": 1_900,
        "read_stretch_seconds": 600,
        "quota_rungs": 3,
        "cut_off": 0,
    }
    by_user = {user: value(seen, "bidkeeper_venue_quota_used_by_user", venue="satflow", user=user) for user in _USERS}
    assert by_user == {"7": 50_000, "9": 4_000, "others": 6_000}
    today = [value(seen, "bidkeeper_venue_day_quota_used_by_user", venue="satflow", user=user) for user in _USERS]
    assert today == [880, None, 20]
    assert value(seen, "bidkeeper_venue_cut_off", venue="unisat") == 1
    assert value(seen, "bidkeeper_venue_quota_used", venue="unisat") is None

    service.gateway.answers["status"] = {"venues": {"satflow": {"quota": {**SHORT["quota"], "rungs": None}}}}
    assert value(await scrape(service), "bidkeeper_venue_quota_rungs", venue="satflow") is None

    of_day = {"stretch_s": 0, "rungs": None, "day": SHORT["quota"]["day"]}
    service.gateway.answers["status"] = {"venues": {"unisat": {"quota": of_day}}}
    seen = await scrape(service)
    assert value(seen, "bidkeeper_venue_quota_used", venue="unisat") is None
    assert value(seen, "bidkeeper_venue_day_quota_used", venue="unisat") == 900


async def test_peers_are_up_or_not_and_what_they_would_tell_is_left_out(service: Service) -> None:
    def up(samples: Samples) -> list[float | None]:
        return [value(samples, "bidkeeper_up", peer=peer) for peer in ("manager", "gateway", "signer")]

    there = await scrape(service)
    service.signer.state = "locked"
    locked = await scrape(service)
    await service.manager.stop()
    await service.gateway.stop()
    service.gateway.path.unlink()
    away = await scrape(service)

    assert (up(there), up(locked), up(away)) == ([1, 1, 1], [1, 1, 0], [0, 0, 0])
    assert value(there, "bidkeeper_workers") == 0
    assert value(away, "bidkeeper_workers") is None
    assert not any(name.startswith("bidkeeper_venue") for name, _ in away)
    assert value(away, "bidkeeper_cycles_total") == 0


@pytest.mark.slow
async def test_a_gateway_that_hangs_holds_a_scrape_up_for_a_moment_only(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PATIENCE_S", 5.0)
    await service.gateway.stop()
    service.gateway.path.unlink()
    over = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    hanging = await asyncio.start_unix_server(say_nothing, service.gateway.path)
    begun = time.monotonic()
    seen = await scrape(service)
    took_s = time.monotonic() - begun
    over.set()
    hanging.close()

    assert value(seen, "bidkeeper_up", peer="gateway") == 0
    assert value(seen, "bidkeeper_up", peer="signer") == 1
    assert took_s < 60


def test_a_histogram_counts_what_is_at_or_below_each_bound() -> None:
    times = Histogram("took_seconds", "How long.", (0.5, 1.0))
    for seconds in (0.25, 0.5, 0.75, 4.0):
        times.observe(seconds)

    samples, kinds = parsed(render([times]))

    assert kinds == {"took_seconds": "histogram"}
    assert [value(samples, "took_seconds_bucket", le=bound) for bound in ("0.5", "1.0", "+Inf")] == [2, 3, 4]
    assert value(samples, "took_seconds_sum") == 5.5
    assert value(samples, "took_seconds_count") == 4


async def test_only_what_was_started_counts_as_a_start(service: Service) -> None:
    task_id = await service.new_task()
    service.manager.refuse = ("start_failed", "")
    refused_ = await service.ask("POST", f"/api/tasks/{task_id}/start")
    service.manager.refuse = None
    starts = [await service.ask("POST", f"/api/tasks/{task_id}/start") for _ in range(2)]

    seen = await scrape(service)

    assert [answer.status for answer in (refused_, *starts)] == [503, 200, 200]
    assert value(seen, "bidkeeper_start_seconds_count") == 1, "the second start found it running"
    assert value(seen, "bidkeeper_start_seconds_bucket", le="+Inf") == 1
    assert 0 < (value(seen, "bidkeeper_start_seconds_sum") or 0) < 30


def refused(answer: Answer) -> None:
    assert (answer.status, answer.json) == (404, {"error": "Not found"})


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-Ip", "forwarded", "Via"])
async def test_through_a_proxy_there_is_nothing_whoever_it_says_is_asking(service: Service, header: str) -> None:
    for said in ("127.0.0.1", "::1", "203.0.113.5", "for=127.0.0.1"):
        refused(await service.api("GET", "/metrics", headers={header: said}, token=service.token))


async def test_over_a_unix_socket_as_a_proxy_would_use_it_there_is_nothing(service: Service, tmp_path: Path) -> None:
    server = make_server(service.app)
    server.add_socket(bind_unix_socket(str(tmp_path / "http.sock")))
    reader, writer = await asyncio.open_unix_connection(tmp_path / "http.sock")
    writer.write(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
    said = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    server.stop()

    assert said.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    ("peer", "is_there"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("203.0.113.5", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("2001:db8::1", False),
        ("::ffff:203.0.113.5", False),
        ("", False),
        ("None", False),
    ],
)
def test_only_this_machine_is_told(peer: str, is_there: bool) -> None:
    assert is_local(peer, HTTPHeaders()) == is_there
    assert not is_local(peer, HTTPHeaders({"X-Forwarded-For": "127.0.0.1"}))


async def test_every_metric_is_documented_and_no_other(service: Service) -> None:
    counts = {"calls": {"place": {"ok": 1}}, "unread_rows": {"asks": 1}}
    status = {**counts, "budget_left": 1, "paused_s": 0, "waiting": 0, "running": 0, **SHORT}
    service.gateway.answers["status"] = {"venues": {"satflow": status}}
    page = (Path(__file__).resolve().parents[2] / "docs" / "interface.md").read_text()
    rows = re.findall(r"^\| (`bidkeeper_.*?) \|", page, re.M)
    documented = {name for row in rows for name in re.findall(r"`(\w+)", row)}

    kinds = parsed((await service.api("GET", "/metrics")).text)[1]

    assert kinds.keys() == documented
