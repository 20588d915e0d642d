"""The practice marketplace's own drafts are signed here, and it takes what comes back; by a real signer, too."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from embit import script
from embit.transaction import TransactionOutput

from simulator.chain import Coin
from simulator.listing import drafts, read_signed
from tests.shapes import replace
from tests.wallet.listings import INSCRIPTION, PAYOUT_SCRIPT, POSTAGE, PRICE, VAULT, former, script_by, txid_of
from tests.worlds.signer import FACTS, HOUR_MS, LIST_GRANT, TASK, desk, listing, listing_intent
from tests.worlds.signer_process import Start, facts_server, now_ms, ok, wire
from wallet.protocol import ListingToSign
from wallet.psbt.transaction import Outpoint
from wallet.signer.audit import verify_chain
from wallet.signer_client import SignerRefused

OUTPOINT = "ab" * 32 + ":3"


def test_drafts_of_the_practice_marketplace_are_signed_and_taken_back(tmp_path: Path) -> None:
    coin = Coin(OUTPOINT, POSTAGE, script_by("p2tr", VAULT).hex())
    payout = TransactionOutput(PRICE + POSTAGE, script.Script(PAYOUT_SCRIPT))
    made = drafts(coin, payout, VAULT.get_public_key().xonly().hex())
    with desk(tmp_path) as opened:
        opened.facts = replace(FACTS, outpoint=Outpoint.parse(OUTPOINT))
        asked = listing(outpoint=OUTPOINT, psbt=made.plain.encode(), secure=[made.secure.encode()])
        signed = opened.sign(asked)
    for text, draft in ((signed["psbt"], made.plain), (signed["secure"][0], made.secure)):
        assert read_signed(text, draft, "it").payout.value == PRICE + POSTAGE


@pytest.mark.slow
def test_a_real_signer_lists_from_its_vault_and_remembers_it_after_kill_9(start: Start, tmp_path: Path) -> None:
    client = (signer := start()).client
    keys = client.addresses(LIST_GRANT.user)
    vault = script.address_to_scriptpubkey(keys.vault)
    payout = TransactionOutput(PRICE + POSTAGE, script.address_to_scriptpubkey(keys.payment))
    outpoint = Outpoint(txid_of(former(vault.data, at=3)), 3)
    made = drafts(Coin(str(outpoint), POSTAGE, vault.data.hex()), payout, keys.vault_pubkey)
    told = wire(replace(FACTS, outpoint=outpoint, script=vault.data))
    asked = ListingToSign(
        listing_intent(1), INSCRIPTION, str(outpoint), PRICE, made.plain.encode(), (made.secure.encode(),)
    )
    with facts_server(tmp_path / "facts.sock", lambda request: ok(told)):
        secret = client.grant(replace(LIST_GRANT, expires_ms=now_ms() + HOUR_MS))
        signed = client.sign_listing(TASK, 5, secret, asked)
    assert read_signed(signed.psbt, made.plain, "it").payout.value == PRICE + POSTAGE
    assert signed.secure == (), "nobody has turned the secure form on"
    signer.end(signal.SIGKILL)

    client = start().client
    assert client.sign_listing(TASK, 5, secret, asked) == signed
    assert client.lowest_listing(str(outpoint)) == PRICE
    with pytest.raises(SignerRefused) as refused:
        client.sign_listing(TASK, 5, secret, replace(asked, intent=listing_intent(2)))
    assert refused.value.tag == "inputs-confirmed", "without facts nothing new is listed"
    assert verify_chain(tmp_path / "signer" / "audit.jsonl") == 1
