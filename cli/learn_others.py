"""Drafts of other kinds than listings, in words: a withdrawal from a bidding wallet, and the end of a listing.

They are signed by their meaning alone, since all of their money goes to our own addresses: no form is stored.
"""

from __future__ import annotations

import hashlib

from core.errors import BidkeeperError
from markets.capabilities import Capabilities
from markets.market_client import MarketClient
from wallet.learnt.client import LearntClient
from wallet.psbt.decode import decode_base64
from wallet.psbt.transaction import WireError
from wallet.signer_client import SignerRefused
from wallet.withdrawal.request import WithdrawalToSign

_NO_PROOF = {
    "challenge": "a signature under a challenge takes a listing back there",
    "session": "a session takes a listing back there",
}
_BY_MEANING = "signed by meaning: there is no form to store"


def withdrawal(market: MarketClient, signer: LearntClient, can: Capabilities, address: str, amount: int) -> bool:
    """Has a withdrawal drafted and judged; tells whether it would be signed. Raises BidkeeperError."""
    if not can.kinds or can.bids_are_psbt:
        raise BidkeeperError(f"{can.title} has no bidding wallet: there is no withdrawal to draft")
    user, keys = signer.holder(address)
    psbt = market.at(can.name).draft_withdrawal(keys.payment, amount)
    coins = _shown(f"{can.name}, withdrawal of {amount:,} sats", psbt)
    asked = WithdrawalToSign("", user, "bidding", coins, amount_sats=amount, venue=can.name, psbt=psbt)
    try:
        sent, fee = signer.judge_withdrawal(asked)
    except SignerRefused as refused:
        return _refused(refused)
    print(f"  {sent:,} sats arrive at {keys.payment}, the fee is {fee:,}: it would be signed")
    print(f"  {_BY_MEANING}")
    return True


def delist(market: MarketClient, signer: LearntClient, can: Capabilities, inscription: str) -> bool:
    """Has the end of a listing drafted and judged; tells whether it would be signed. Raises BidkeeperError."""
    if not can.listings or can.delist_proof != "psbt":
        why = _NO_PROOF.get(can.delist_proof, "") if can.listings else "it takes no listings"
        raise BidkeeperError(f"{can.title} drafts no PSBT for that: {why}")
    found = market.whereabouts(inscription, 0.0)
    if found.outpoint is None or found.address is None:
        raise BidkeeperError(f"{inscription} is in no output")
    user, keys = signer.holder(found.address)
    psbt = market.at(can.name).draft_delist(keys.vault, inscription).psbt
    _shown(f"{can.name}, end of the listing of {inscription}", psbt)
    try:
        sats = signer.judge_delist(user, found.outpoint, psbt)
    except SignerRefused as refused:
        return _refused(refused)
    print(f"  all {sats:,} sats come back to the vault, {keys.vault}: it would be signed")
    print(f"  {_BY_MEANING}")
    return True


def _shown(title: str, psbt: str) -> tuple[str, ...]:
    """Prints the inputs and outputs; returns the outpoints of the inputs. Raises BidkeeperError for no PSBT."""
    try:
        transaction = decode_base64(psbt).transaction
    except WireError as error:
        raise BidkeeperError(f"the draft is not a PSBT: {error}") from None
    print(f"{title}; sha256 {hashlib.sha256(psbt.encode()).hexdigest()[:8]}…")
    coins = tuple(str(each.outpoint) for each in transaction.inputs)
    for at, outpoint in enumerate(coins):
        print(f"  input {at}   {outpoint}")
    for at, output in enumerate(transaction.outputs):
        print(f"  output {at}  {output.value:,} sats to script {output.script.hex()}")
    return coins


def _refused(refused: SignerRefused) -> bool:
    print(f"  {refused.tag}: NO: {refused.message}")
    print("  it would NOT be signed")
    return False
