"""Inscriptions that lie in the escrow of a listing: out of it to their owner, or back to the vault."""

from __future__ import annotations

from typing import Any

import pytest

from markets.base import Utxo, Whereabouts
from tests.server.api import START_MS
from tests.server.conftest import OWNER, Service
from tests.server.withdrawals.chain import INSCRIPTION, ITEM, KEYS, Chain, coin, in_vault, withdraw
from tests.wallet.listings import VAULT
from wallet.address import p2tr
from wallet.psbt.escrow import escrow_of
from wallet.terms import ESCROW_TERMS

VAULT_KEY = VAULT.get_public_key().sec()
ESCROW = p2tr(escrow_of(VAULT_KEY, ESCROW_TERMS["simulator-ordnet"]).script[2:])
ESCROWS = {"vault_pubkey": VAULT_KEY[1:].hex(), "escrows": {ESCROW: "simulator-ordnet"}}


def in_escrow(service: Service, chain: Chain) -> None:
    service.signer.more_keys = ESCROWS
    chain.put(ESCROW, Utxo(ITEM, 10_000, True), inscriptions=(INSCRIPTION,))
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, ITEM, ESCROW, 10_000, START_MS)
    chain.put(KEYS["payment"], coin(1))


@pytest.mark.parametrize(("source", "home"), [("vault", OWNER), ("escrow", KEYS["vault"])])
async def test_an_inscription_in_its_escrow_goes_out_or_back(
    service: Service, chain: Chain, source: str, home: str
) -> None:
    in_escrow(service, chain)
    asked: list[dict[str, Any]] = []
    service.signer.before_signing = asked.append

    quote = await withdraw(service, from_=source, inscriptionId=INSCRIPTION, dryRun=True)
    answer = await withdraw(service, from_=source, inscriptionId=INSCRIPTION)

    assert (quote.json["from"], quote.json["destination"], asked[0]["source"]) == (source, home, source)
    assert (answer.status, answer.json["destination"], answer.json["coins"]) == (201, home, [ITEM, coin(1).outpoint])


@pytest.mark.parametrize(("height", "is_open"), [(900_001 - 144, True), (900_002 - 144, False), (None, False)])
async def test_an_escrow_with_a_lock_says_until_when(
    service: Service, chain: Chain, height: int | None, is_open: bool
) -> None:
    """At Ordinals Wallet our key takes the item out 144 blocks after it came there."""
    locked = p2tr(escrow_of(VAULT_KEY, ESCROW_TERMS["simulator-ordinalswallet"]).script[2:])
    service.signer.more_keys = {**ESCROWS, "escrows": {locked: "simulator-ordinalswallet"}}
    chain.put(locked, Utxo(ITEM, 10_000, True), inscriptions=(INSCRIPTION,), height=height)
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, ITEM, locked, 10_000, START_MS)
    chain.put(KEYS["payment"], coin(1))

    for source in ("escrow", "vault"):
        answer = await withdraw(service, from_=source, inscriptionId=INSCRIPTION)
        assert answer.status == (201 if is_open else 409)
        if is_open:
            break
        assert answer.json["error"] == "The inscription cannot be moved"
        told = "until block 900002, about an hour" if height else "not known since which block"
        assert told in answer.json["message"]


async def test_back_to_the_vault_goes_what_is_in_an_escrow_alone(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["payment"], coin(1))
    refused = await withdraw(service, from_="escrow", inscriptionId=INSCRIPTION)
    assert (refused.status, refused.json["error"]) == (409, "The inscription is not in an escrow of yours")
    assert (await withdraw(service, from_="escrow")).details == ["inscriptionId: is required from an escrow"]


async def test_whoever_signs_in_with_the_vault_gets_it_back_too(service: Service, chain: Chain) -> None:
    """Their own wallet has the key, and knows nothing of the escrow."""
    in_escrow(service, chain)
    service.signer.more_keys = {**ESCROWS, "vault": OWNER}
    assert (await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)).status == 409
    answer = await withdraw(service, from_="escrow", inscriptionId=INSCRIPTION)
    assert (answer.status, answer.json["destination"]) == (201, OWNER)
