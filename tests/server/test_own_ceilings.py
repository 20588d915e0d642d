"""A user's own ceilings over HTTP: lowered by any session, raised by the sign-in address only."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from models import accounts
from models.tasks.tasks import RUNNING, Task
from models.users import OwnCeilings, User
from tests.server.conftest import Service
from tests.server.test_preview import EXAMPLE, preview, with_floor
from tests.server.test_profile import approval
from tests.wallet import proofs
from wallet.signer.challenges import sign_message


async def put(service: Service, **fields: Any) -> Any:
    return await service.ask("PUT", "/api/ceilings", fields)


def shown(exposure: int | None, hardcap: int | None) -> dict[str, int | None]:
    return {"maxExposure": exposure, "maxHardcap": hardcap, "planMaxExposure": 50_000_000}


async def test_any_session_lowers_them(service: Service) -> None:
    first = await service.ask("GET", "/api/ceilings")
    lowered = [
        await put(service, maxExposure=5_000_000),
        await put(service, maxHardcap=200_000),
        await put(service, maxExposure=4_000_000, maxHardcap=100_000),
        await put(service, maxExposure=4_000_000),
    ]
    me = await service.ask("GET", "/api/auth/me")

    assert first.json == shown(None, None)
    assert [answer.json for answer in lowered] == [
        shown(5_000_000, None),
        shown(5_000_000, 200_000),
        shown(4_000_000, 100_000),
        shown(4_000_000, 100_000),
    ]
    assert me.json["stats"]["maxExposure"] == 4_000_000


@pytest.mark.parametrize(
    "change",
    [
        {"maxExposure": 4_000_001},
        {"maxExposure": None},
        {"maxHardcap": 100_001},
        {"maxHardcap": None},
        {"maxExposure": 1, "maxHardcap": 100_001},
    ],
)
async def test_a_stolen_token_raises_nothing(service: Service, change: dict[str, Any]) -> None:
    await put(service, maxExposure=4_000_000, maxHardcap=100_000)
    opened = await service.ask("POST", "/api/auth/approval", change)
    forged = {
        "approvalId": opened.json["challengeId"],
        "approvalSignature": sign_message(proofs.STRANGER, "p2wpkh", opened.json["message"]),
    }
    of_another = await approval(service, {"maxExposure": 4_000_002, "maxHardcap": 100_002})
    of_a_move = await approval(service, {"ordinalsAddress": proofs.p2tr_address(proofs.OWNER)})

    refused = [await put(service, **change, **consent) for consent in ({}, forged, of_another, of_a_move)]

    assert [answer.status for answer in refused] == [400] * 4
    assert (await service.ask("GET", "/api/ceilings")).json == shown(4_000_000, 100_000)


async def test_the_sign_in_address_raises_them_once(service: Service) -> None:
    await put(service, maxExposure=4_000_000, maxHardcap=100_000)
    opened = await service.ask("POST", "/api/auth/approval", {"maxExposure": 6_000_000})
    consent = await approval(service, {"maxExposure": 6_000_000})
    raised = await put(service, maxExposure=6_000_000, **consent)
    await put(service, maxExposure=4_000_000)
    again = await put(service, maxExposure=6_000_000, **consent)
    both = {"maxExposure": None, "maxHardcap": None}
    gone = await put(service, **both, **await approval(service, both))

    assert "bids may be up to 6000000 sats in all and 100000 sats each" in opened.json["message"]
    assert (raised.json, again.status, gone.json) == (shown(6_000_000, 100_000), 400, shown(None, None))


async def test_of_two_at_once_with_one_consent_one_is_taken(service: Service) -> None:
    await put(service, maxExposure=4_000_000)
    consent = await approval(service, {"maxExposure": 6_000_000})

    answers = await asyncio.gather(*(put(service, maxExposure=6_000_000, **consent) for _ in range(5)))

    # Those that come later raise nothing any more.
    assert {answer.status for answer in answers} == {200}
    assert (await put(service, maxExposure=6_000_001, **consent)).status == 400


async def test_the_row_decides_whether_something_is_raised(service: Service) -> None:
    """What a request has read before may be lower by the time it writes."""
    User.update(max_exposure=1_000).execute()
    with pytest.raises(accounts.ConsentMissing):
        accounts.set_own_ceilings(service.user_id, OwnCeilings(2_000, None), [], service.clock.now_ms)
    assert User.get_by_id(service.user_id).max_exposure == 1_000


@pytest.mark.parametrize("bad", [0, -1, 1.5, "5", True, 2_100_000_000_000_001])
@pytest.mark.parametrize("name", ["maxExposure", "maxHardcap"])
async def test_what_they_do_not_take(service: Service, name: str, bad: object) -> None:
    answer = await put(service, **{name: bad})
    assert (answer.status, answer.names()) == (400, {name})
    assert (await put(service)).status == 400


async def test_workers_are_started_anew_when_they_change(service: Service) -> None:
    """Their grants at the signer are of the former ceilings."""
    running, stopped = await service.new_task(slug="runs"), await service.new_task(slug="rests")
    Task.update(desired=RUNNING).where(Task.id == running).execute()
    before = {row.id: row.revision for row in Task.select()}

    await put(service, maxExposure=4_000_000)
    await put(service, maxExposure=4_000_000)

    assert {row.id: row.revision for row in Task.select()} == {running: before[running] + 1, stopped: before[stopped]}


async def test_a_preview_is_within_them(service: Service) -> None:
    with_floor(service, 100_000, 120_000)
    free = await preview(service, **EXAMPLE)
    await put(service, maxHardcap=50_000)
    capped = await preview(service, **EXAMPLE)
    await put(service, maxExposure=60_000)
    held = await preview(service, **EXAMPLE)

    assert [rung["price"] for rung in free.json["rungs"]] == [75_000, 60_000, 45_000, 30_000, 15_000]
    assert max(rung["price"] for rung in capped.json["rungs"]) == 50_000
    assert capped.json["total"] > 60_000 >= held.json["total"] > 0
