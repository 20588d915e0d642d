"""Bidding wallets on the chain: the purchases that they pay for, and the withdrawals that their users sign.

As at Satflow, a purchase is two transactions: the item moves into the market's own script while the wallet pays the
seller, then on to the buyer. A withdrawal is a PSBT that first the user and then the market signs.
"""

from __future__ import annotations

from embit.ec import PublicKey
from embit.psbt import PSBT
from embit.script import Witness
from embit.transaction import SIGHASH, Transaction, TransactionOutput

from simulator import holdings
from simulator.chain import Coin, outpoint_of, script_of, spend, spent_together
from simulator.engine import Engine, Order, Refusal, Sale
from simulator.holdings import coins
from simulator.listing import read
from simulator.network import Rejected, send
from simulator.poison import Poison, poisoned_outputs
from simulator.taproot import LEAF_VERSION, Map, whole_digest
from simulator.wallets import Item, Pair, WalletKind, bidding_kind_of, leaf_output, market_key, witness_script

_ESCROW = "the practice market's own script"
# Placeholders of the size of signatures, because this chain does not have the keys.
_ECDSA, _SCHNORR = bytes(72), bytes(64)


def deliver(engine: Engine, bid: Order, sale: Sale, item: Item, fee: int) -> str | None:
    """Buys `item` for the bid with its bidding wallet's coins; returns the txid.

    Returns None and does nothing if the bid has no bidding wallet, or its bidder already holds the item.
    """
    backing = _backing(engine, bid.maker, sale.price + fee)
    held = engine.chain.coin_of(item.id) or engine.chain.place(item.id, sale.seller)
    if not backing or held.output.script_pubkey == script_of(bid.receive):
        return None
    source = backing[0].address or ""
    inputs, paid = [spend(held.outpoint), *(spend(coin.outpoint) for coin in backing)], sale.price + fee
    outputs = [
        TransactionOutput(held.value, script_of(_ESCROW)),
        TransactionOutput(sale.price, script_of(sale.seller)),
        TransactionOutput(max(0, sum(coin.value for coin in backing) - paid), script_of(source)),
    ]
    tx = Transaction(2, inputs, [output for output in outputs if output.value])
    tx.vin[0].witness = Witness([_SCHNORR])
    for at, coin in enumerate(backing, start=1):
        address = coin.address or ""
        tx.vin[at].witness = _opened(engine.wallets.pair_of(address), address)
    txid = holdings.settle(engine, tx, {0: held.inscriptions})
    onward = spent_together([f"{txid}:0"], [TransactionOutput(held.value, script_of(bid.receive))])
    holdings.settle(engine, onward, {0: held.inscriptions})
    engine.wallets.move(item, bid.receive)
    return txid


def _backing(engine: Engine, payment: str, sats: int) -> list[Coin]:
    """Returns coins of the bidding wallets of `payment` worth at least `sats`, or all coins if they are worth less."""
    found: list[Coin] = []
    for address in engine.wallets.bidding_wallets(payment):
        for coin in sorted(holdings.coins(engine, address), key=lambda coin: -coin.value):
            if sum(each.value for each in found) < sats:
                found.append(coin)
    return found


def _opened(pair: Pair, address: str) -> Witness:
    """Makes the witness that spends a bidding wallet's coin by revealing the wallet's script."""
    kind = bidding_kind_of(address, pair)
    if kind == "leaf":
        output = leaf_output(pair)
        return Witness([_SCHNORR, _SCHNORR, output.leaf, output.control_block])
    return Witness([b"", _ECDSA, _ECDSA, witness_script(pair, kind).data])


FEE_PER_VB = 8
DUST = 330
# Virtual bytes: of a transaction with two outputs, and of each 2-of-2 input.
_FRAME, _INPUT = 10 + 31 + 43 + 1, 41 + 56
_PARTIAL_SIG, _LEAF_SIG = b"\x02", b"\x14"


def draft(engine: Engine, payment: str, amount: int, poison: Poison | None = None) -> tuple[str, int]:
    """Drafts a PSBT (base64) that takes `amount` sats from the bidding wallet; returns it and its coin count.

    The fee comes out of the change, or out of the amount if the change is too small. Raises Refusal.
    """
    wallets = engine.wallets
    known = wallets.bidding_wallets(payment)
    if not known:
        raise Refusal("this address has no bidding wallet")
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
    kind = bidding_kind_of(source, pair)
    psbt = PSBT(Transaction(2, [spend(coin.outpoint) for coin in chosen], outputs))
    for at, coin in enumerate(chosen):
        psbt.inputs[at].witness_utxo = coin.output
        if kind == "leaf":
            output = leaf_output(pair)
            psbt.inputs[at].taproot_internal_key = PublicKey.from_xonly(output.internal)
            psbt.inputs[at].taproot_scripts[output.control_block] = output.leaf + bytes([LEAF_VERSION])
        else:
            psbt.inputs[at].non_witness_utxo = engine.chain.transaction(coin.txid)
            psbt.inputs[at].witness_script = witness_script(pair, kind)
            psbt.inputs[at].sighash_type = SIGHASH.ALL
    engine.changes += 1
    return str(psbt.to_base64()), len(chosen)


def submit(engine: Engine, payment: str, signed: str) -> str:
    """Adds the market's signatures to a signed draft and broadcasts it; returns the txid. Raises Refusal."""
    psbt = read(signed, "signedWithdrawPSBT")
    tx: Transaction = psbt.tx
    wallets = engine.wallets
    ours = {script_of(each).data: each for each in wallets.bidding_wallets(payment)}
    for output in tx.vout:
        if output.script_pubkey.data not in (*ours, script_of(payment).data):
            raise Refusal("signedWithdrawPSBT pays another address")
    spent: list[Coin] = []
    for source in tx.vin:
        coin = engine.chain.coins.get(outpoint_of(source))
        if coin is None or bytes.fromhex(coin.script) not in ours:
            raise Refusal("signedWithdrawPSBT spends what is not in the bidding wallet")
        spent.append(coin)
    for at, coin in enumerate(spent):
        address = ours[bytes.fromhex(coin.script)]
        pair = wallets.pair_of(address)
        tx.vin[at].witness = Witness(_completed(tx, at, spent, psbt.inputs[at], pair, bidding_kind_of(address, pair)))
    try:
        return send(engine, tx.serialize())
    except Rejected as rejected:
        raise Refusal(f"signedWithdrawPSBT cannot be sent: {rejected}") from None


def _fee(inputs: int) -> int:
    return FEE_PER_VB * (_FRAME + _INPUT * inputs)


def _completed(tx: Transaction, at: int, spent: list[Coin], given: Map, pair: Pair, kind: WalletKind) -> list[bytes]:
    """Returns the complete witness: the user's signature from the PSBT, and the market's. Raises Refusal."""
    key, ours = bytes.fromhex(pair.public_key), market_key(*pair[:2])
    if kind == "leaf":
        output = leaf_output(pair)
        theirs = given.get(_LEAF_SIG + key[1:] + output.leaf_hash)
        digest = whole_digest(tx, at, [coin.output for coin in spent], leaf=output.leaf)
        # Scripts take the stack from its end, so the script's first key gets the last signature.
        witness = [ours.schnorr_sign(digest).serialize(), theirs, output.leaf, output.control_block]
    else:
        script = witness_script(pair, kind)
        theirs = given.get(_PARTIAL_SIG + key)
        digest = tx.sighash_segwit(at, script, spent[at].value, SIGHASH.ALL)
        witness = [b"", theirs, ours.sign(digest).serialize() + bytes([SIGHASH.ALL]), script.data]
    if theirs is None:
        raise Refusal("signedWithdrawPSBT is not signed")
    return [item for item in witness if item is not None]
