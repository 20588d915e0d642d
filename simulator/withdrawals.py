"""Withdrawals from a bidding wallet: the PSBT that its user signs, and the market's own half afterwards."""

from __future__ import annotations

from embit.ec import PublicKey
from embit.psbt import PSBT
from embit.script import Script, Witness
from embit.transaction import SIGHASH, Transaction, TransactionOutput

from simulator.bitcoin.chain import Coin
from simulator.bitcoin.psbt import Map
from simulator.bitcoin.transactions import outpoint_of, script_of, spend
from simulator.engine import Engine
from simulator.listing import read
from simulator.money import coins
from simulator.network import Rejected, leaf_digest, send
from simulator.poison import Poison, poisoned_outputs
from simulator.rules import Refusal
from simulator.wallets.bidding_wallets import Pair, WalletKind, kind_of, leaf, market_key, witness_script

FEE_PER_VB = 8
DUST = 330
# Virtual bytes: of every transaction with two outputs, and of each input of two of two.
_FRAME, _INPUT = 10 + 31 + 43 + 1, 41 + 56
_PARTIAL_SIG, _LEAF_SIG = b"\x02", b"\x14"


def draft(engine: Engine, payment: str, amount: int, poison: Poison | None = None) -> tuple[str, int]:
    """Drafts a PSBT (base64) that takes `amount` sats from the bidding wallet; returns it and its coin count.

    The network's fee comes out of the rest, or where that is not enough out of the amount. Raises Refusal.
    """
    wallets = engine.wallets
    known = wallets.bidding_wallets(payment)
    if not known:
        raise Refusal("there is no bidding wallet for this address")
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
    pair = wallets.pair_of(source)
    kind = kind_of(source, pair)
    psbt = PSBT(Transaction(2, [spend(coin.outpoint) for coin in chosen], outputs))
    for at, coin in enumerate(chosen):
        psbt.inputs[at].witness_utxo = coin.output
        if kind == "leaf":
            found = leaf(pair)
            psbt.inputs[at].taproot_internal_key = PublicKey.from_xonly(found.control_block[1:])
            psbt.inputs[at].taproot_scripts[found.control_block] = found.script + b"\xc0"
        else:
            psbt.inputs[at].non_witness_utxo = engine.chain.transaction(coin.txid)
            psbt.inputs[at].witness_script = witness_script(pair, kind)
            psbt.inputs[at].sighash_type = SIGHASH.ALL
    engine.changes += 1
    return str(psbt.to_base64()), len(chosen)


def submit(engine: Engine, payment: str, signed: str) -> str:
    """Adds the market's signatures to a signed draft and sends it; returns the txid. Raises Refusal."""
    psbt = read(signed, "signedWithdrawPSBT")
    tx: Transaction = psbt.tx
    wallets = engine.wallets
    ours = {script_of(each).data: each for each in wallets.bidding_wallets(payment)}
    for output in tx.vout:
        if output.script_pubkey.data not in (*ours, script_of(payment).data):
            raise Refusal("signedWithdrawPSBT pays somebody else")
    spent: list[Coin] = []
    for source in tx.vin:
        coin = engine.chain.coins.get(outpoint_of(source))
        if coin is None or bytes.fromhex(coin.script) not in ours:
            raise Refusal("signedWithdrawPSBT spends what is not in the bidding wallet")
        spent.append(coin)
    for at, coin in enumerate(spent):
        address = ours[bytes.fromhex(coin.script)]
        pair = wallets.pair_of(address)
        tx.vin[at].witness = Witness(_completed(tx, at, spent, psbt.inputs[at], pair, kind_of(address, pair)))
    try:
        return send(engine, tx.serialize())
    except Rejected as rejected:
        raise Refusal(f"signedWithdrawPSBT cannot be sent: {rejected}") from None


def _fee(inputs: int) -> int:
    return FEE_PER_VB * (_FRAME + _INPUT * inputs)


def _completed(tx: Transaction, at: int, spent: list[Coin], given: Map, pair: Pair, kind: WalletKind) -> list[bytes]:
    """Returns the whole witness: the user's signature from the PSBT, and the market's. Raises Refusal."""
    key = bytes.fromhex(pair.public_key)
    if kind == "leaf":
        found = leaf(pair)
        theirs = given.get(_LEAF_SIG + key[1:] + found.hash)
        # The stack is taken from its end: the first key of the script gets the last signature.
        witness = [_leaf_signature(tx, at, spent, found.script, pair), theirs, found.script, found.control_block]
    else:
        script = witness_script(pair, kind)
        theirs = given.get(_PARTIAL_SIG + key)
        witness = [b"", theirs, _own_signature(tx, at, script, spent[at], pair), script.data]
    if theirs is None:
        raise Refusal("signedWithdrawPSBT is not signed")
    return [item for item in witness if item is not None]


def _leaf_signature(tx: Transaction, at: int, spent: list[Coin], script: bytes, pair: Pair) -> bytes:
    digest = leaf_digest(tx, at, spent, script)
    signature: bytes = market_key(*pair[:2]).schnorr_sign(digest).serialize()
    return signature


def _own_signature(tx: Transaction, at: int, script: Script, coin: Coin, pair: Pair) -> bytes:
    digest = tx.sighash_segwit(at, script, coin.value, SIGHASH.ALL)
    signature: bytes = market_key(*pair[:2]).sign(digest).serialize()
    return signature + bytes([SIGHASH.ALL])
