"""Preflights of ord.net's dialect when the practice venue has turned evil."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest

from simulator.poison import POISONS
from tests.simulator.desk import ANN, Desk
from tests.simulator.ordnet_trader import LISTINGS, OFFERS, pay
from tests.simulator.seller import PUPPET, hold
from tests.simulator.test_ordnet_offers import opened
from wallet.psbt.decode import Psbt, decode
from wallet.psbt.script import own_script
from wallet.psbt.transaction import TxOutput, compact

pytestmark = pytest.mark.gen_test

OWN = own_script("p2wpkh", ANN.key.get_public_key().sec())
VAULT = own_script("p2tr", ANN.key.get_public_key().sec())


def _strange(outputs: list[TxOutput]) -> list[TxOutput]:
    return [output for output in outputs if output.script not in (OWN, VAULT)]


OFFER_EVILS: dict[str, Callable[[Psbt, Psbt], bool]] = {
    "wrong_payout": lambda good, bad: bad.transaction.outputs[2].script != OWN,
    "low_payout": lambda good, bad: bad.transaction.outputs[2].value == good.transaction.outputs[2].value - 1,
    "other_outpoint": lambda good, bad: bad.transaction.inputs[0].outpoint != good.transaction.inputs[0].outpoint,
    "extra_input": lambda good, bad: len(bad.transaction.inputs) == 2,
    "sighash_none": lambda good, bad: bad.inputs[0][compact(0x03)] == b"\x82\0\0\0",
    "extra_output": lambda good, bad: len(_strange(list(bad.transaction.outputs))) == 3,
    "two_inputs": lambda good, bad: len(bad.transaction.inputs) == 2,
}


@pytest.mark.parametrize("mode", sorted(OFFER_EVILS))
async def test_an_evil_funding_parent(desk: Desk, mode: str) -> None:
    client = await opened(desk)
    body = await client.offer()
    (good,) = (await client.good("POST", f"{OFFERS}/preflight", body))["offers"]
    await desk.sim("PUT", "poison", {"mode": mode})

    preflight = await client.good("POST", f"{OFFERS}/preflight", body)

    (bad,) = preflight["offers"]
    good_psbt, bad_psbt = (decode(b64decode(row["fundingParentStep"]["psbtBase64"])) for row in (good, bad))
    assert OFFER_EVILS[mode](good_psbt, bad_psbt)
    (asked,) = bad["fundingParentStep"]["inputsToSign"]
    assert asked["signingIndexes"] == ([0, 1] if mode == "two_inputs" else [0])
    await desk.sim("PUT", "poison", {"mode": None})
    (again,) = (await client.good("POST", f"{OFFERS}/preflight", body))["offers"]
    step = again["fundingParentStep"]
    assert decode(b64decode(pay(step["psbtBase64"], ANN))).transaction.inputs == good_psbt.transaction.inputs


LISTING_EVILS: dict[str, tuple[int, Callable[[Psbt, Psbt], bool]]] = {
    "wrong_payout": (1, lambda good, bad: bad.transaction.outputs[0].script != OWN),
    "low_payout": (1, lambda good, bad: bad.transaction.outputs[0].value == good.transaction.outputs[0].value - 1),
    "other_outpoint": (0, lambda good, bad: bad.transaction.inputs[0].outpoint != good.transaction.inputs[0].outpoint),
    "extra_input": (1, lambda good, bad: len(bad.transaction.inputs) == 2),
    "sighash_none": (1, lambda good, bad: bad.inputs[0][compact(0x03)] == b"\x82\0\0\0"),
    "extra_output": (0, lambda good, bad: len(bad.transaction.outputs) == 3),
    "two_inputs": (0, lambda good, bad: len(bad.transaction.inputs) == 3),
    "escrow_theirs": (0, lambda good, bad: bad.transaction.outputs[0].script != good.transaction.outputs[0].script),
    "escrow_short": (0, lambda good, bad: bad.transaction.outputs[0].value == good.transaction.outputs[0].value - 1),
    "sale_by_key": (1, lambda good, bad: len(bad.inputs[0]) == len(good.inputs[0]) - 1),
    "recovery_theirs": (2, lambda good, bad: VAULT not in {output.script for output in bad.transaction.outputs}),
}


def _steps(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [*found["listings"][0]["psbts"], found["recoveryPsbt"]]


@pytest.mark.parametrize("mode", sorted(POISONS))
async def test_an_evil_listing(desk: Desk, mode: str) -> None:
    client = await opened(desk)
    await hold(desk)
    at, is_evil = LISTING_EVILS[mode]
    _, found = await client.draft((PUPPET, 900_000))
    good = decode(b64decode(_steps(found)[at]["psbtBase64"]))
    await desk.sim("PUT", "poison", {"mode": mode})

    body, found = await client.draft((PUPPET, 900_000))

    assert is_evil(good, decode(b64decode(_steps(found)[at]["psbtBase64"])))
    if mode in ("wrong_payout", "low_payout", "extra_output", "other_outpoint", "escrow_theirs", "escrow_short"):
        # Who signs it all the same is not served: the venue keeps what it should have drafted.
        submit = client.signed_listing(body, found)
        assert (await client.ask("POST", f"{LISTINGS}/submit", submit))[0] == 400
