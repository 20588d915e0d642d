"""Gain and worth over time: what follows from the trades, and what a sample an hour keeps."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from models import worth
from models.tasks import cycles
from models.worth import Worth
from server.http.services import Services
from server.worth import sample_worth
from tests.server.ledger_rows import MINUTE_MS, bought, open_order, proved, sold
from tests.server.test_profit import A, B, the_example
from tests.worlds.service import START_MS, Service

HOUR_MS, DAY_MS = 60 * MINUTE_MS, 1_440 * MINUTE_MS
START_S = START_MS // 1000


def floor(price: str, now_ms: int, **key: str) -> None:
    cycles.record_reference("ordinals", "goosinals", key.get("measure", "floor"), Decimal(price), now_ms)


async def sampled(service: Service) -> list[tuple[int, Worth]]:
    services: Services = service.app.settings["services"]
    await sample_worth(services)
    return worth.between(service.user_id, 0, 2 * START_MS)


async def gain(service: Service, query: str = "") -> dict[str, Any]:
    answer = await service.ask("GET", f"/api/pnl/series{query}")
    assert answer.status == 200, answer.text
    return dict(answer.json)


async def test_a_sample_has_the_open_bids_and_what_is_held_at_the_floor(service: Service) -> None:
    the_example(service)
    open_order(service, await service.new_task(), 7)
    floor("95000.7", START_MS)
    service.clock.now_ms = START_MS + 4 * MINUTE_MS

    found = await sampled(service)

    assert found == [(service.clock.now_ms, Worth(70_000, 80_600, 95_000, 0))]
    assert await sampled(service) == found, "an hour has one"
    service.clock.now_ms += HOUR_MS
    assert [each for _, each in await sampled(service)] == [found[0][1], Worth(70_000, None, None, 1)]
    service.clock.now_ms -= HOUR_MS
    assert len(await sampled(service)) == 2, "nor does a clock that goes back write it again"


async def test_an_item_without_a_known_floor_is_counted_and_in_no_sum(service: Service) -> None:
    bought(service.user_id, 75_000, inscription_id=A, network_fee_sats=0)
    bought(service.user_id, 5_000, inscription_id=B, venue="ordnet")
    bought(service.user_id, 1, inscription_id="cc" * 32 + "i0", dry_run=True)
    floor("95000", START_MS)
    assert (await sampled(service))[0][1] == Worth(0, 75_000, 95_000, 1)


async def test_a_death_before_the_write_leaves_the_hour_to_the_next_try(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    bought(service.user_id, 75_000, inscription_id=A)
    with monkeypatch.context() as patched:
        patched.setattr(worth, "add", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await sampled(service)
    assert worth.between(service.user_id, 0, 2 * START_MS) == []
    assert len(await sampled(service)) == 1


async def test_nothing_was_ever_done(service: Service) -> None:
    columns = ("time", "realizedSats", "unrealizedSats", "exposureSats", "unknownItems")
    assert await gain(service) == {name: [] for name in columns} | {"unknownFees": 0}


async def test_the_gain_follows_from_the_trades_and_the_rest_from_the_samples(service: Service) -> None:
    """The worked example of docs/profit.md, with a sample before its sale, and another item that is lost on later."""
    the_example(service)
    worth.add(service.user_id, Worth(9, 156_200, 190_000, 0), START_MS + 2 * MINUTE_MS + 30_000)
    sold(service.user_id, 60_000, minute=90, inscription_id=B, venue_fee_sats=0)
    service.clock.now_ms = START_MS + 100 * MINUTE_MS + 5_000

    found = await gain(service, "?from=2025-11-20T12:00:00Z")

    late = [each - START_S - at for each, at in zip(found["time"], (60, 150, 180, 5_400, 6_000), strict=True)]
    assert (late[:2], late[4]) == ([0, 0], 0)
    assert all(0 <= each < 14 for each in late), "a sale is shown within a five hundredth of the time"
    assert found["realizedSats"] == [0, 0, 27_300, 6_700, 6_700]
    assert found["unrealizedSats"] == [None, 33_800, None, None, 0]
    assert found["exposureSats"] == [None, 9, None, None, 0]
    assert found["unknownItems"] == [None, 0, None, None, 0]
    assert found["unknownFees"] == 0
    assert (await gain(service, "?from=2025-11-20T12:30:00Z"))["realizedSats"] == [27_300, 6_700, 6_700]
    assert (await gain(service, "?to=2025-11-20T12:30:00Z"))["realizedSats"][-1] == 27_300


async def test_the_last_moment_has_the_state_of_now(service: Service) -> None:
    bought(service.user_id, 75_000, inscription_id=A)
    open_order(service, await service.new_task(), 7)
    floor("95000", START_MS)
    service.clock.now_ms = START_MS + 59_999
    first = await service.ask("GET", "/api/pnl/series")
    assert first.json["time"][-1] == START_S
    assert [first.json[name][-1] for name in ("unrealizedSats", "exposureSats", "unknownItems")] == [20_000, 70_000, 0]
    assert first.json["unknownFees"] == 1
    service.clock.now_ms -= 20_000
    again = await service.ask("GET", "/api/pnl/series")
    assert again.headers["ETag"] == first.headers["ETag"], "an answer without news stays the same"


async def test_a_proved_purchase_has_the_fee_that_the_chain_shows(service: Service) -> None:
    """Two bids that fill together leave the balance silent about each."""
    order = bought(service.user_id, 75_000, inscription_id=A)
    assert (await gain(service))["unknownFees"] == 1
    proved(order, 75_412)
    assert (await gain(service))["unknownFees"] == 0
    (fill,) = (await service.ask("GET", "/api/fills")).json["fills"]
    assert fill["networkFee"] == 412


async def test_a_long_time_has_a_sample_a_day_and_a_bounded_number_of_sales(service: Service) -> None:
    for hour in range(0, 63 * 24, 6):
        worth.add(service.user_id, Worth(hour, 0, 0, 0), START_MS - 63 * DAY_MS + hour * HOUR_MS)
    for number in range(700):
        bought(service.user_id, 1, minute=number, inscription_id=f"{number:064x}i0")
        sold(service.user_id, 2, minute=number, inscription_id=f"{number:064x}i0")
    service.clock.now_ms = START_MS + 700 * MINUTE_MS
    found = await gain(service, "?from=2025-09-01")
    hours = [each for each in found["exposureSats"] if each is not None]
    assert len(hours) == 65 and hours[:2] == [0, 12]
    assert found["realizedSats"][-1] == 700
    assert len(found["time"]) <= 65 + 500 + 2
    assert found["time"] == sorted(set(found["time"]))
    fine = await gain(service, "?from=2025-11-20T12:00:00Z")
    assert 300 < len(fine["time"]) <= 502


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("from=2025-11-21&to=2025-11-20", "from: must be before to"),
        ("from=2022-11-20&to=2025-11-20", "from: must be at most 731 days before to"),
    ],
)
async def test_a_time_that_cannot_be_shown_is_refused(service: Service, query: str, fault: str) -> None:
    answer = await service.ask("GET", f"/api/pnl/series?{query}")
    assert (answer.status, answer.json["details"]) == (400, [fault]), answer.text


async def test_another_user_sees_none_of_it(service: Service) -> None:
    the_example(service)
    worth.add(service.user_id, Worth(9, 0, 0, 0), START_MS)
    answer = await service.api("GET", "/api/pnl/series", token=service.other_token)
    assert json.loads(answer.text)["time"] == []
