"""Random sets of two to six listings: no transaction spends more of our items than it pays for.

`PAYOUT_SETS` in the environment asks for more than 2,000 of them, `PSBT_SEED` for others.

An attacker with every signature made looks for transactions that hold several of them. The digests show which of them
are valid in one, and for every fifth set a consensus engine does as well.
"""

from __future__ import annotations

import base64
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.examples import part_of
from tests.wallet.listings import (
    ITEM_POSTAGE,
    OWNER,
    PAYOUT_SCRIPT,
    STRANGER_SCRIPT,
    VAULT,
    VAULT_SCRIPT,
    Draft,
    Item,
    Pay,
    Spend,
)
from tests.wallet.psbt_oracle import parse, parse_transaction, taproot_message
from tests.wallet.test_psbt_sign import is_valid
from wallet.protocol import PolicyRefused
from wallet.psbt.check_listing import check_listing
from wallet.psbt.sign import sign_listing
from wallet.psbt.transaction import LISTING, SECURE_LISTING, TxOutput, decode_unsigned
from wallet.signer.ledger import PAYOUTS_SCHEMA, PayoutStore, outputs_unique
from wallet.signer.withdrawals import with_witnesses

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

SETS = part_of(int(os.environ.get("PAYOUT_SETS", "2000")), dear=True)
SEED = int(os.environ.get("PSBT_SEED", "1"))
SHARDS = 4
ENGINE_EACH = 5  # it is a hundred times as slow as a digest
PRICES = (250_000, 251_000, 252_000)
OWN = (ITEM_POSTAGE, VAULT_SCRIPT)
Outputs = tuple[tuple[int, bytes], ...]


@dataclass(frozen=True)
class Signed:
    """A signature that got out: its price, the fields that it covers, and its message."""

    item: Item
    price: int
    sighash: int
    version: int
    sequence: int
    outputs: Outputs
    pair: tuple[int, bytes]
    message: bytes
    signature: bytes


def listing(rng: random.Random, item: Item, price: int) -> tuple[Draft, int]:
    """Makes a draft as a venue may send it, on a grid so narrow that payouts meet."""
    sighash, at = rng.choice((LISTING, SECURE_LISTING)), rng.choice((0, 0, 1, 2))
    others = [Pay(rng.choice((546, *PRICES)), rng.choice((STRANGER_SCRIPT,) * 5 + (PAYOUT_SCRIPT,))) for _ in range(at)]
    pays = [*others, Pay(price + rng.choice((0, 0, 0, 1_000)), PAYOUT_SCRIPT)]
    if rng.random() < 0.3:
        pays.append(Pay(rng.choice((546, *PRICES)), rng.choice((STRANGER_SCRIPT, PAYOUT_SCRIPT))))
    draft = item.draft(sighash, pays, at=at, version=rng.choice((2, 2, 2, 1)))
    draft.spends[-1].sequence = rng.choice((0xFFFFFFFD, 0xFFFFFFFF))
    return draft, sighash


def signed_set(rng: random.Random, judge: Callable[..., None], tags: Counter[str]) -> list[Signed]:
    """Returns the signatures that are made of two to six items, some of them listed twice."""
    database = sqlite3.connect(":memory:")
    database.executescript(PAYOUTS_SCHEMA)
    store, found = PayoutStore(database), []
    for number in [*range(rng.randrange(2, 7)), *rng.choices(range(2), k=rng.randrange(2))]:
        item, price = Item(number), rng.choice(PRICES)
        draft, sighash = listing(rng, item, price)
        try:
            approved = check_listing(draft.encode(), item.intent(price), item.facts, sighash, OWNER)
            judge(approved.payout, store.rivals(str(item.outpoint), approved.payout, sighash), {})
        except PolicyRefused as refused:
            tags[refused.tag] += 1
            continue
        store.put(str(item.outpoint), approved.payout, sighash, str(item.outpoint))
        signature = dict(parse(sign_listing(approved, VAULT)).maps[1 + approved.index])[b"\x13"]
        tx = parse_transaction(draft.unsigned())
        found.append(
            Signed(
                item,
                price,
                sighash,
                draft.version,
                draft.spends[-1].sequence,
                tuple(tx["outs"]),
                tx["outs"][approved.index] if sighash == LISTING else (0, b""),
                taproot_message(tx, approved.index, OWN, sighash),
                signature,
            )
        )
        tags["signed"] += 1
    database.close()
    return found


def attempt(rng: random.Random, signed: list[Signed], base: Signed, outputs: Outputs) -> list[Signed | None]:
    """Places as many of our signatures as may be valid at the inputs of a transaction with these outputs."""
    slots: list[Signed | None] = [None] * len(outputs)
    chosen = {base.item: base}
    for each in rng.sample(signed, len(signed)):
        if each.version == base.version:
            chosen.setdefault(each.item, each)
    for each in chosen.values():
        places = [at for at, pay in enumerate(outputs) if slots[at] is None and pay == each.pair]
        if each.sighash == LISTING and places:
            slots[places[0]] = each
    for each in chosen.values():
        if each.sighash == SECURE_LISTING:
            if None in slots:
                slots[slots.index(None)] = each
            else:
                slots.append(each)
    return slots


def transaction_of(base: Signed, slots: list[Signed | None], outputs: Outputs) -> Draft:
    spends = [
        Spend(bytes([0x50 + at]) * 32, at)
        if each is None
        else Spend(each.item.outpoint.txid, each.item.outpoint.vout, sequence=each.sequence)
        for at, each in enumerate(slots)
    ]
    return Draft(spends, [Pay(*pay) for pay in outputs], base.version)


def valid(slots: list[Signed | None], draft: Draft) -> list[Signed]:
    """Returns the signatures whose digest in this draft is the signed one."""
    tx = parse_transaction(draft.unsigned())
    return [
        each
        for at, each in enumerate(slots)
        if each is not None
        and (each.sighash == SECURE_LISTING or at < len(tx["outs"]))
        and taproot_message(tx, at, OWN, each.sighash) == each.message
    ]


def overspends(signed: list[Signed], outputs: Outputs) -> bool:
    paid = sum(value for value, script in outputs if script == PAYOUT_SCRIPT)
    return paid < sum(each.price for each in signed)


def attack(rng: random.Random, signed: list[Signed]) -> tuple[bool, list[Signed | None], Draft] | None:
    """Returns the worst transaction found: does it pay for fewer items than it spends, its inputs, its draft."""
    best: tuple[int, bool, list[Signed | None], Draft] | None = None
    for base in signed:
        more = (base.pair, rng.choice(signed).pair)
        for outputs in {base.outputs, base.outputs[::-1], more, more[:1]}:
            if base.sighash == LISTING or outputs == base.outputs:
                slots = attempt(rng, signed, base, outputs)
                draft = transaction_of(base, slots, outputs)
                ours = valid(slots, draft)
                found = (len(ours), overspends(ours, outputs), slots, draft)
                if best is None or (found[1], found[0]) > (best[1], best[0]):
                    best = found
    return best and best[1:]


def agrees(engine: Any, slots: list[Signed | None], draft: Draft) -> None:
    """Asserts that a consensus engine takes exactly the signatures that the digests call valid."""
    stacks = [[] if each is None else [each.signature] for each in slots]
    raw = with_witnesses(decode_unsigned(draft.unsigned()), stacks)
    spent: list[TxOutput | None] = [TxOutput(*OWN)] * len(slots)
    by_digest = valid(slots, draft)
    for at, each in enumerate(slots):
        if each is not None:
            assert is_valid(engine, raw, at, spent) == (each in by_digest)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_transaction_spends_more_than_it_pays_for(shard: int) -> None:
    engine = pytest.importorskip("btclib.script.engine")
    rng, tags = random.Random(f"sets {SEED}-{shard}"), Counter[str]()
    for number in range(-(-SETS // SHARDS)):
        found = attack(rng, signed_set(rng, outputs_unique, tags))
        if found is None:
            continue
        is_over, slots, draft = found
        assert not is_over, f"set {number} of shard {shard}, seed {SEED}: {base64.b64encode(draft.encode()).decode()}"
        if number % ENGINE_EACH == 0:
            agrees(engine, slots, draft)
        tags["two bought together and paid for"] += sum(each is not None for each in slots) > 1
    print(f"shard {shard}, seed {SEED}: {dict(tags.most_common())}")
    assert tags["signed"] > SETS // SHARDS and tags["outputs-unique"] > SETS // SHARDS // 10
    assert tags["two bought together and paid for"] > SETS // SHARDS // 10


def test_without_the_rule_one_payment_buys_two() -> None:
    engine = pytest.importorskip("btclib.script.engine")
    rng, over = random.Random(f"planted {SEED}"), 0
    for _ in range(100):
        found = attack(rng, signed_set(rng, lambda *given: None, Counter()))
        if found is not None and found[0]:
            agrees(engine, *found[1:])
            over += 1
    assert over > 5
