"""A venue that answers listings wrongly: faults of the two steps, and drafts that must not be signed."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from tests.simulator.desk import ANN, SATFLOW, Desk
from tests.simulator.seller import (
    OTHER,
    PUPPET,
    SECURE,
    ask,
    delist,
    drafted,
    hold,
    list_item,
    listed,
    outpoint_of,
    own_listings,
    signed,
    submit,
)
from wallet.psbt.decode import decode
from wallet.psbt.script import own_script
from wallet.psbt.transaction import compact

pytestmark = pytest.mark.gen_test

NO_ANSWER = (HTTPClientError, OSError)


@pytest.mark.parametrize("mode", ["accept_then_timeout", "accept_then_500", "bad_json"])
async def test_a_listing_is_taken_and_the_answer_lost(desk: Desk, mode: str) -> None:
    await hold(desk)
    await desk.fault("list", mode, count=1, delaySeconds=0.05)

    draft = await drafted(desk)
    body = {
        "listings": [ask()],
        "signedListingPSBT": signed(draft["plain"]),
        "signedSecureListingPSBTs": [signed(draft["secure"], sighash=SECURE)],
    }
    try:
        answer = await desk.fetch("POST", f"{SATFLOW}/list", body)
        assert (answer.code, answer.body) in ((500, answer.body), (200, b'{"success": tru'), (599, answer.body))
    except NO_ANSWER:
        assert mode == "accept_then_timeout"

    assert await own_listings(desk) == {PUPPET: 900_000}
    assert [e["event"] for e in await desk.events()] == ["accepted"]


@pytest.mark.parametrize(("mode", "status"), [("error_500", 500), ("rate_429", 429), ("refuse_400", 400)])
async def test_faults_without_a_deed_strike_whichever_step_comes_first(desk: Desk, mode: str, status: int) -> None:
    await hold(desk)
    draft = await drafted(desk)
    await desk.fault("list", mode, count=2)

    assert (await desk.ask("POST", f"{SATFLOW}/intent/sell", ask()))[0] == status
    secure = signed(draft["secure"], sighash=SECURE)
    assert (await submit(desk, signed(draft["plain"]), secure))[0] == status
    assert await own_listings(desk) == {}
    await listed(desk)


async def test_faults_of_drafts_strike_drafts_alone(desk: Desk) -> None:
    await hold(desk)
    await desk.fault("draft", "bad_json", count=1)

    answer = await desk.fetch("POST", f"{SATFLOW}/intent/sell", ask())

    assert answer.body == b'{"success": tru'
    await listed(desk)


async def test_a_late_listing_shows_after_its_delay(desk: Desk) -> None:
    await hold(desk)
    await desk.fault("list", "late", count=1, delaySeconds=5)

    await listed(desk)

    assert await own_listings(desk) == {}
    assert (await desk.data("item", inscriptionId=PUPPET))["listing"] is None
    desk.clock.advance(5)
    assert await own_listings(desk) == {PUPPET: 900_000}


async def test_a_lying_cancel_keeps_the_listing(desk: Desk) -> None:
    await hold(desk)
    await listed(desk)
    await desk.fault("cancel", "cancel_lie", count=1)

    _, answer = await delist(desk, inscriptionId=PUPPET)

    assert answer["data"]["success"] is True
    assert await own_listings(desk) == {PUPPET: 900_000}


THIEF = "a stranger"


def _seen(draft: dict[str, Any], form: str) -> dict[str, Any]:
    psbt = decode(b64decode(draft[form]))
    ours = {own_script(kind, ANN.key.get_public_key().sec()) for kind in ("p2tr", "p2wpkh")}
    return {
        "inputs": [f"{source.outpoint.txid[::-1].hex()}:{source.outpoint.vout}" for source in psbt.transaction.inputs],
        "pays": [(paid.value, ANN if paid.script in ours else THIEF) for paid in psbt.transaction.outputs],
        "sighash": [fields.get(compact(0x03), b"")[:1].hex() for fields in psbt.inputs],
    }


@pytest.mark.parametrize(("form", "sighash"), [("plain", "83"), ("secure", "81")])
async def test_an_evil_venue_drafts_what_must_not_be_signed(desk: Desk, form: str, sighash: str) -> None:
    await hold(desk, PUPPET, OTHER)
    own, other = await outpoint_of(desk), await outpoint_of(desk, OTHER)
    honest = _seen(await drafted(desk), form)
    (payout,) = honest["pays"]
    assert honest == {"inputs": [own], "pays": [payout], "sighash": [sighash]}
    seen = {}
    for mode in ("wrong_payout", "low_payout", "other_outpoint", "sighash_none", "extra_output", "two_inputs"):
        assert await desk.sim("PUT", "poison", {"mode": mode}) == {"mode": mode}
        desk.clock.advance(1)
        seen[mode] = _seen(await drafted(desk), form)

    assert seen == {
        "wrong_payout": honest | {"pays": [(payout[0], THIEF)]},
        "low_payout": honest | {"pays": [(899_999, ANN)]},
        "other_outpoint": honest | {"inputs": [other]},
        "sighash_none": honest | {"sighash": ["82"]},
        "extra_output": honest | {"pays": [payout, (1_000, THIEF)]},
        "two_inputs": honest | {"inputs": [own, other], "sighash": [sighash, sighash]},
    }
    desk.clock.advance(1)
    await desk.sim("PUT", "poison", {"mode": "extra_input"})
    extra = _seen(await drafted(desk), form)
    assert (len(extra["inputs"]), extra["inputs"][0], extra["sighash"]) == (2, own, [sighash, ""])
    await desk.sim("PUT", "poison", {"mode": None})
    assert _seen(await drafted(desk), form) == honest


async def test_what_an_evil_draft_was_signed_to_is_not_a_listing(desk: Desk) -> None:
    await hold(desk)
    await desk.sim("PUT", "poison", {"mode": "low_payout"})

    status, _ = await list_item(desk)

    assert status == 400
    assert (await desk.ask("PUT", "/sim/poison", {"mode": "nonsense"}))[0] == 400
    await desk.sim("POST", "reset", {"seed": 1})
    assert await desk.sim("GET", "poison") == {"mode": None}
