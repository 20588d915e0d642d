"""Ordinals Wallet's dialect: signing in, taking a listing back, and what is not offered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.desk import ANN, BOB, PUPPETS, Desk
from tests.simulator.seller import (
    OW,
    PUPPET,
    hex_signed,
    hold,
    listed,
    outpoint_of,
    ow_draft,
    ow_listed,
    ow_read,
    own_listings,
    session,
    token,
)

pytestmark = pytest.mark.gen_test


async def _listings(desk: Desk) -> dict[str, int]:
    """Returns the listings of Ann's vault, by inscription, at the buyers' prices."""
    rows = await ow_read(desk, f"wallet/{ANN.ordinals}/inscriptions")
    return {row["id"]: row["escrow"]["satoshi_price"] for row in rows if row["escrow"]}


async def _delist(desk: Desk, signature: str, **which: Any) -> tuple[int, Any]:
    return await desk.ask("POST", f"{OW}/market/cancel-escrow", {"signature": signature} | which)


@pytest.mark.parametrize("by", ["inscription_id", "outpoint"])
async def test_the_owner_takes_a_listing_back(desk: Desk, by: str) -> None:
    await hold(desk)
    await ow_listed(desk)
    which = {"inscription_id": PUPPET, "outpoint": await outpoint_of(desk)}

    status, answer = await _delist(desk, await token(desk), **{by: which[by]})

    assert (status, answer) == (200, {"success": True})
    assert await _listings(desk) == {}
    assert [event["venue"] for event in await desk.events("cancelled")] == ["ordinalswallet"]
    again = await _delist(desk, await token(desk), inscription_id=PUPPET)
    assert (again[0], again[1]["code"]) == (404, "listing_not_found")


async def test_nobody_else_takes_a_listing_back(desk: Desk) -> None:
    await hold(desk)
    await ow_listed(desk)
    good = await token(desk)
    forged = good[:-1] + ("0" if good[-1] != "0" else "1")

    bob = await _delist(desk, await token(desk, BOB), inscription_id=PUPPET)
    assert (bob[0], bob[1]["code"]) == (401, "not_the_owner")
    for bad in (forged, "ows1.a.b", "nothing", hex_signed((await ow_draft(desk))[1]["psbt"])):
        assert (await _delist(desk, bad, inscription_id=PUPPET))[0] == 401
    for which in ({}, {"inscription_id": PUPPET, "outpoint": await outpoint_of(desk)}):
        status, answer = await _delist(desk, good, **which)
        assert (status, answer["code"]) == (400, "listing_identifier_required")
    desk.clock.advance(24 * 3600 + 1)
    assert (await _delist(desk, good, inscription_id=PUPPET))[0] == 401
    assert await _listings(desk) == {PUPPET: 924_974}


async def test_a_satflow_listing_is_not_taken_back_here(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)

    assert (await _delist(desk, await token(desk), inscription_id=PUPPET))[0] == 404
    assert await own_listings(desk) == {PUPPET: 900_000}


async def test_a_session_lasts_a_day_and_its_nonce_is_good_once(desk: Desk) -> None:
    nonce = "ab" * 16
    status, answer = await session(desk)
    assert (status, answer["address"]) == (200, ANN.ordinals)
    assert answer["expires_at"] == desk.clock.now_ms // 1000 + 86_400
    assert answer["token"].startswith("ows1.")

    # The signature is over another nonce; the nonce is burned all the same.
    assert (await session(desk, nonce=nonce))[0] == 401
    for changes in (
        {"issued_at": desk.clock.now_ms - 5 * 60_000 - 1},
        {"issued_at": desk.clock.now_ms + 10 * 60_000},
        {"address": BOB.ordinals},
        {"signature": "AA=="},
    ):
        status, answer = await session(desk, **changes)
        assert (status, answer) == (401, {"error": True, "message": "Invalid wallet signature"})
    for changes in ({"nonce": "short"}, {"issued_at": "now"}, {"address": "nowhere"}):
        assert (await session(desk, **changes))[0] == 400


async def test_one_signature_opens_one_session(desk: Desk) -> None:
    sent: list[Any] = []
    original = desk.ask

    async def keep(method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        sent.append(body)
        return await original(method, path, body, **options)

    desk.ask = keep  # type: ignore[method-assign]
    await token(desk)

    assert (await original("POST", f"{OW}/auth/session", sent[0]))[0] == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "market/secure-listing/recover"),
        ("POST", "market/offers/build"),
        ("POST", "market/offers/17/cancel"),
        ("GET", f"market/offers/collection/{PUPPETS}"),
        ("POST", "wallet/purchase-bulk"),
        ("POST", "market/secure-purchase/submit"),
    ],
)
async def test_what_is_not_offered_says_so(desk: Desk, method: str, path: str) -> None:
    status, answer = await desk.ask(method, f"{OW}/{path}", {} if method == "POST" else None)

    assert (status, answer["error"], answer["code"]) == (400, True, "not_offered")
