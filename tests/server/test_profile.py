"""The profile over HTTP: names, the ordinals address, and a user's own ceilings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from markets.base import Balance, NotFound
from models import accounts
from models.tasks.tasks import RUNNING, Task
from models.users import OwnCeilings, User
from tests.server.ledger_rows import open_order
from tests.server.test_preview import EXAMPLE, preview, with_floor
from tests.wallet import proofs
from tests.worlds.service import OTHER, OWNER, Service
from wallet.keystore.keys import sign_message

NEW = proofs.p2tr_address(proofs.OWNER)


async def proof(service: Service, address: str = NEW, token: str = "") -> dict[str, Any]:
    """Proves with the owner's key, by a challenge asked for with `token` (default the owner's)."""
    challenge = await service.api("POST", "/api/auth/challenge", {"address": address}, token=token or service.token)
    signature = sign_message(proofs.OWNER, "p2tr", challenge.json["message"])
    proved = {"ordinalsAddress": address, "challengeId": challenge.json["challengeId"], "signature": signature}
    return proved | await approval(service, {"ordinalsAddress": address})


async def approval(service: Service, change: dict[str, Any]) -> dict[str, Any]:
    """The owner's consent to `change`."""
    opened = await service.ask("POST", "/api/auth/approval", change)
    assert opened.status == 200, opened.text
    signature = sign_message(proofs.OWNER, "p2wpkh", opened.json["message"])
    return {"approvalId": opened.json["challengeId"], "approvalSignature": signature}


async def test_a_display_name_is_set_and_taken_away(service: Service) -> None:
    named = await service.ask("PATCH", "/api/auth/me", {"displayName": " Zoë ★ "})
    untouched = await service.ask("PATCH", "/api/auth/me", {})
    unnamed = await service.ask("PATCH", "/api/auth/me", {"displayName": None})

    assert [answer.json["displayName"] for answer in (named, untouched, unnamed)] == ["Zoë ★", "Zoë ★", None]


async def test_a_proved_address_becomes_the_ordinals_address(service: Service) -> None:
    moved = await service.ask("PATCH", "/api/auth/me", await proof(service))
    same = await service.ask("PATCH", "/api/auth/me", {"ordinalsAddress": NEW})
    bare = await service.ask("PATCH", "/api/auth/me", {"ordinalsAddress": OWNER})
    change = {"ordinalsAddress": OWNER}
    back = await service.ask("PATCH", "/api/auth/me", change | await approval(service, change))

    assert (moved.status, moved.json["ordinalsAddress"]) == (200, NEW)
    assert (same.status, same.json["ordinalsAddress"]) == (200, NEW)
    assert (bare.status, bare.names()) == (400, {"approvalId", "approvalSignature"})
    assert (back.status, back.json["ordinalsAddress"]) == (200, OWNER)


async def test_a_stolen_token_moves_no_ordinals_address(service: Service) -> None:
    """The thief has the owner's token, and an address of their own that they can prove."""
    thiefs = proofs.p2tr_address(proofs.STRANGER)
    challenge = await service.ask("POST", "/api/auth/challenge", {"address": thiefs})
    signature = sign_message(proofs.STRANGER, "p2tr", challenge.json["message"])
    move = {"ordinalsAddress": thiefs, "challengeId": challenge.json["challengeId"], "signature": signature}
    opened = await service.ask("POST", "/api/auth/approval", {"ordinalsAddress": thiefs})
    forged = {
        "approvalId": opened.json["challengeId"],
        "approvalSignature": sign_message(proofs.STRANGER, "p2wpkh", opened.json["message"]),
    }
    of_another_change = await approval(service, {"ordinalsAddress": NEW})
    of_ceilings = await approval(service, {"maxExposure": 5})
    sign_in = await service.api("POST", "/api/auth/challenge", {"address": OWNER})
    signed_in = {
        "approvalId": sign_in.json["challengeId"],
        "approvalSignature": sign_message(proofs.OWNER, "p2wpkh", sign_in.json["message"]),
    }

    tried = ({}, forged, of_another_change, of_ceilings, signed_in)
    refused = [await service.ask("PATCH", "/api/auth/me", move | consent) for consent in tried]

    assert [answer.status for answer in refused] == [400] * 5
    assert all("approvalSignature" in answer.names() for answer in refused)
    assert User.get_by_id(service.user_id).ordinals_address == OWNER
    assert f"bought items go to {thiefs}" in opened.json["message"]


async def test_an_approval_signs_nobody_in_and_is_for_its_user_once(service: Service) -> None:
    change = {"ordinalsAddress": NEW}
    body = await proof(service)
    signed_in = await service.api(
        "POST",
        "/api/auth/verify",
        {"challengeId": body["approvalId"], "address": OWNER, "signature": body["approvalSignature"]},
    )
    strangers = await service.api("POST", "/api/auth/approval", change, token=service.other_token)
    signature = sign_message(proofs.OWNER, "p2wpkh", strangers.json["message"])
    others = {"approvalId": strangers.json["challengeId"], "approvalSignature": signature}
    of_other = await service.ask("PATCH", "/api/auth/me", body | others)
    first = await service.ask("PATCH", "/api/auth/me", body)
    User.update(ordinals_address=OWNER).where(User.id == service.user_id).execute()
    newly_proved = await proof(service)
    consent = {name: body[name] for name in ("approvalId", "approvalSignature")}
    again = await service.ask("PATCH", "/api/auth/me", newly_proved | consent)

    assert signed_in.status == 401
    assert (of_other.status, first.status, again.status) == (400, 200, 400)


async def test_a_proof_works_once_for_its_user_and_its_address(service: Service) -> None:
    mine = await proof(service)
    others = await proof(service, token=service.other_token)
    consent = await approval(service, {"ordinalsAddress": OWNER})
    sign_in = await service.api("POST", "/api/auth/challenge", {"address": NEW})
    signature = sign_message(proofs.OWNER, "p2tr", sign_in.json["message"])
    for_sign_in = {"ordinalsAddress": NEW, "challengeId": sign_in.json["challengeId"], "signature": signature}

    refused = [
        await service.ask("PATCH", "/api/auth/me", body)
        for body in (mine | {"ordinalsAddress": OTHER}, others, for_sign_in)
    ]
    both = await asyncio.gather(
        service.ask("PATCH", "/api/auth/me", mine), service.ask("PATCH", "/api/auth/me", {"displayName": "x"})
    )
    await service.ask("PATCH", "/api/auth/me", {"ordinalsAddress": OWNER} | consent)
    again = await service.ask("PATCH", "/api/auth/me", mine)

    assert [(answer.status, answer.names()) for answer in refused] == [(400, {"signature"})] * 3
    assert [answer.status for answer in both] == [200, 200]
    assert again.status == 400


async def test_the_address_stays_while_money_or_bids_depend_on_it(service: Service) -> None:
    body = await proof(service)
    task_id = await service.new_task()
    order = open_order(service, task_id)
    bids = await service.ask("PATCH", "/api/auth/me", body)
    type(order).update(state="closed").execute()
    await service.ask("POST", f"/api/tasks/{task_id}/start")
    running = await service.ask("PATCH", "/api/auth/me", body)
    Task.update(desired="stopped", observed="stopped").execute()
    service.gateway.answers["balance"] = Balance("bc1qmultisig", 1, 1)
    funded = await service.ask("PATCH", "/api/auth/me", body)
    service.gateway.down = True
    unreadable = await service.ask("PATCH", "/api/auth/me", body)
    service.gateway.down = False
    service.gateway.answers["balance"] = NotFound("no bidding wallet yet")
    free = await service.ask("PATCH", "/api/auth/me", body)

    assert [answer.status for answer in (bids, running, funded, unreadable, free)] == [409, 409, 409, 502, 200]
    assert "bids are open" in bids.json["message"]
    assert "running" in running.json["message"]
    assert "bc1qmultisig" in funded.json["message"]


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
