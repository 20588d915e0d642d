"""Listing PSBTs changed at random: whatever is signed is judged by other code, and nothing wrong may have been signed.

`PSBT_MUTANTS` and `PSBT_SEED` in the environment ask for more of them, and for others.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest

from tests.examples import part_of
from tests.shapes import replace
from tests.wallet.listings import FORMS, KINDS, PAYOUT_SCRIPT, Case, honest
from tests.wallet.psbt_mutants import mutant
from tests.wallet.psbt_oracle import faults
from wallet.protocol import PolicyRefused
from wallet.psbt import check_listing, sign
from wallet.psbt.transaction import SINGLE, TxOutput, decode_output, segwit_digest, taproot_digest

pytestmark = pytest.mark.slow

MUTANTS = part_of(int(os.environ.get("PSBT_MUTANTS", "20000")), dear=True)
SEED = int(os.environ.get("PSBT_SEED", "1"))
SHARDS = 4

EVERY_TAG = {
    *("psbt-strict", "list-min", "dest-allow", "inputs-reserved", "inputs-confirmed", "amount-proof"),
    *("inputs-cardinal", "single-pair", "outputs-known", "payout", "sighash-allowed"),
    *("tx-form", "key-path", "input-signed"),
}


def outcome(case: Case) -> tuple[str, list[str]]:
    """Returns the tag it was refused with, or `signed`; and what is wrong with that."""
    try:
        answer = case.sign()
    except PolicyRefused as refused:
        return refused.tag, []
    return "signed", faults(case, case.draft.encode(), answer)


@pytest.mark.sampled
@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_is_signed_wrongly(shard: int) -> None:
    rng = random.Random(f"{SEED}-{shard}")
    tags: Counter[str] = Counter()
    for number in range(MUTANTS // SHARDS):
        case = mutant(rng)
        tag, wrong = outcome(case)
        assert not wrong, f"mutant {number} of shard {shard}, seed {SEED}: {wrong}\n{case.draft.encode().hex()}"
        tags[tag] += 1
    print(f"shard {shard}, seed {SEED}: {dict(tags.most_common())}")
    # Else the mutants were so wild that nothing was tried, or left rules alone.
    assert tags["signed"] > MUTANTS // SHARDS // 50
    assert tags.keys() >= EVERY_TAG


def test_honest_listings_are_faultless() -> None:
    for kind in KINDS:
        for form in FORMS:
            assert outcome(honest(kind, form)) == ("signed", [])


def _facts_alone(draft: Any) -> TxOutput:
    return TxOutput(draft.facts.value_sats or 0, draft.facts.script or b"")


def _at_our_index(draft: Any) -> TxOutput:
    return cast(TxOutput, draft.psbt.transaction.outputs[draft.index])


def _anywhere(draft: Any) -> TxOutput:
    return next(output for output in draft.psbt.transaction.outputs if output.script == PAYOUT_SCRIPT)


def _witness_utxo_alone(item: Any, outpoint: Any) -> list[TxOutput]:
    return [decode_output(item[b"\x01"])] if b"\x01" in item else []


def _segwit_covering_all(transaction: Any, index: int, key: bytes, value: int, sighash: int) -> bytes:
    return segwit_digest(transaction, index, key, value, sighash & ~SINGLE | 1)


def _taproot_as_embit(transaction: Any, index: int, spent: Any, sighash: int) -> bytes:
    moved = [transaction.inputs[index]._replace(sequence=0xFFFFFFFF)]
    return taproot_digest(replace(transaction, inputs=tuple(moved * len(transaction.inputs))), index, spent, sighash)


# A rule that does nothing, or a step that does another thing, as a slip in the code would have it.
PLANTED: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "list-min": (check_listing, "list_min", lambda draft: 250_000),
    "dest-allow": (check_listing, "dest_allow", lambda draft: PAYOUT_SCRIPT),
    "inputs-reserved": (check_listing, "inputs_reserved", lambda psbt, intent, owner: len(psbt.inputs) - 1),
    "inputs-confirmed": (check_listing, "inputs_confirmed", lambda draft: draft.facts),
    "amount-proof": (check_listing, "amount_proof", _facts_alone),
    "amount-proof, former transaction": (check_listing, "claimed", _witness_utxo_alone),
    "inputs-cardinal": (check_listing, "inputs_cardinal", lambda draft: 900_000),
    "outputs-known, whoever is paid": (check_listing, "payout_of", _at_our_index),
    "outputs-known, paid anywhere": (check_listing, "payout_of", _anywhere),
    "payout": (check_listing, "_payout", lambda draft: None),
    "sighash-allowed": (check_listing, "_sighash_allowed", lambda draft: None),
    "tx-form": (check_listing, "tx_form", lambda *given, **named: None),
    "input-signed": (check_listing, "input_unsigned", lambda own: None),
    "key-path": (check_listing, "key_path", lambda own, owner: None),
    "unknown fields are handed back": (sign, "without_unknown", lambda psbt: psbt),
    "another digest, segwit": (sign, "segwit_digest", _segwit_covering_all),
    "another digest, taproot": (sign, "taproot_digest", _taproot_as_embit),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_bug_is_caught(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, slip = PLANTED[planted]
    for tag, rule in check_listing.RULES.items():
        if rule is getattr(where, name):
            monkeypatch.setitem(check_listing.RULES, tag, slip)
    monkeypatch.setattr(where, name, slip)
    rng = random.Random(f"planted {SEED}")
    for _ in range(10_000):
        try:
            if outcome(mutant(rng))[1]:
                return
        except (ValueError, AttributeError, IndexError, TypeError, StopIteration):
            continue  # a slip that ends in an error instead of a signature does no harm
    pytest.fail("the mutants and their judge do not notice")
