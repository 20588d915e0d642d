"""Withdrawals from a bidding wallet: the PSBT that its user signs, and the market's own half afterwards."""

from __future__ import annotations

from embit.psbt import PSBT
from embit.script import Script, Witness
from embit.transaction import SIGHASH, Transaction, TransactionOutput

from simulator.bidding_wallets import market_key, witness_script
from simulator.bitcoin.chain import Coin
from simulator.bitcoin.transactions import outpoint_of, script_of, spend
from simulator.engine import Engine
from simulator.listing.poison import Poison, poisoned_outputs
from simulator.listing.psbt import read
from simulator.money import coins
from simulator.network import Rejected, send
from simulator.rules import Refusal

FEE_PER_VB = 8
DUST = 330
# Virtual bytes: of every transaction with two outputs, and of each input of two of two.
_FRAME, _INPUT = 10 + 31 + 43 + 1, 41 + 56
_PARTIAL_SIG = b"\x02"


def draft(engine: Engine, payment: str, amount: int, poison: Poison | None = None) -> tuple[str, int]:
    """Drafts a PSBT (base64) that takes `amount` sats from the bidding wallet; returns it and its coin count.

    The network's fee comes out of the rest, or where that is not enough out of the amount. Raises Refusal.
    """
    wallets = engine.wallets
    known = wallets.bidding_wallets(payment)
    if not known:
        raise Refusal("there is no bidding wallet for this address")
    wallets.separate(payment)
    source = max(known, key=wallets.balance)
    held = [coin for coin in coins(engine, source) if engine.chain.confirmations(coin.txid)]
    chosen: list[Coin] = []
    for coin in sorted(held, key=lambda coin: -coin.value):
        if sum(each.value for each in chosen) < amount + _fee(len(chosen)):
            chosen.append(coin)
    funds = sum(coin.value for coin in chosen)
    if funds < amount or not chosen:
        raise Refusal(f"insufficient balance: the bidding wallet holds {wallets.balance(source)} sats")
    fee = _fee(len(chosen))
    change = funds - amount - fee
    if change >= DUST:
        outputs = [TransactionOutput(amount, script_of(payment)), TransactionOutput(change, script_of(source))]
    else:
        outputs = [TransactionOutput(min(amount, funds - fee), script_of(payment))]
    if outputs[0].value < DUST:
        raise Refusal("the amount does not pay for its fee")
    outputs = poisoned_outputs(outputs, poison)
    script = witness_script(*wallets.pair_of(source))
    psbt = PSBT(Transaction(2, [spend(coin.outpoint) for coin in chosen], outputs))
    for at, coin in enumerate(chosen):
        made_by = engine.chain.transaction(coin.txid)
        psbt.inputs[at].non_witness_utxo = made_by
        psbt.inputs[at].witness_utxo = coin.output
        psbt.inputs[at].witness_script = script
        psbt.inputs[at].sighash_type = SIGHASH.ALL
    engine.changes += 1
    return str(psbt.to_base64()), len(chosen)


def submit(engine: Engine, payment: str, signed: str) -> str:
    """Adds the market's signatures to a signed draft and sends it; returns the txid. Raises Refusal."""
    psbt = read(signed, "signedPSBT")
    tx: Transaction = psbt.tx
    ours = {script_of(each).data: each for each in engine.wallets.bidding_wallets(payment)}
    for output in tx.vout:
        if output.script_pubkey.data not in (*ours, script_of(payment).data):
            raise Refusal("signedPSBT pays somebody else")
    for at, source in enumerate(tx.vin):
        coin = engine.chain.coins.get(outpoint_of(source))
        address = ours.get(bytes.fromhex(coin.script)) if coin is not None else None
        if coin is None or address is None:
            raise Refusal("signedPSBT spends what is not in the bidding wallet")
        pair = engine.wallets.pair_of(address)
        script = witness_script(*pair)
        theirs = psbt.inputs[at].get(_PARTIAL_SIG + bytes.fromhex(pair[2]))
        if theirs is None:
            raise Refusal("signedPSBT is not signed")
        source.witness = Witness([b"", theirs, _own_signature(tx, at, script, coin, pair), script.data])
    try:
        return send(engine, tx.serialize())
    except Rejected as rejected:
        raise Refusal(f"signedPSBT cannot be sent: {rejected}") from None


def _fee(inputs: int) -> int:
    return FEE_PER_VB * (_FRAME + _INPUT * inputs)


def _own_signature(tx: Transaction, at: int, script: Script, coin: Coin, pair: tuple[str, str, str]) -> bytes:
    digest = tx.sighash_segwit(at, script, coin.value, SIGHASH.ALL)
    signature: bytes = market_key(pair[0], pair[1]).sign(digest).serialize()
    return signature + bytes([SIGHASH.ALL])
