"""A node's judgement of a broadcast transaction: all rules for refusing it, and the moves of its assets."""

from __future__ import annotations

from embit.ec import ECError
from embit.hashes import hash160
from embit.script import Script, p2pkh_from_p2wpkh, p2wsh
from embit.transaction import Transaction, TransactionInput

from simulator.chain import Coin, address_of, outpoint_of
from simulator.engine import Engine
from simulator.holdings import end_listing, settle
from simulator.taproot import LeafOutput, is_ecdsa_signed, is_whole_signed

MAX_WEIGHT = 400_000
LEAST_FEE_PER_KVB = 1_000
_DUST = {"p2wpkh": 294, "p2tr": 330, "p2wsh": 330, "p2sh": 540, "p2pkh": 546}
_OP_1 = 0x51
# Parts of a sequence (BIP-68): no lock; a lock in seconds, which this market refuses; the number of blocks.
_NO_LOCK, _IN_SECONDS, _BLOCKS = 1 << 31, 1 << 22, 0xFFFF
_CSV_DROP = b"\xb2\x75"


class Rejected(Exception):
    """The node refuses to relay. `code` and text are Bitcoin Core's."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def send(engine: Engine, raw: bytes) -> str:
    """Puts a signed transaction into the mempool, where it waits for its block; returns the txid. Raises Rejected.

    Sending a waiting transaction again changes nothing.
    """
    tx = _read(raw)
    txid: str = tx.txid().hex()
    if txid in engine.chain.transactions:
        if engine.chain.confirmations(txid):
            raise Rejected(-27, "Transaction outputs already in utxo set")
        return txid
    coins = [_coin(engine, source) for source in tx.vin]
    _check_amounts(tx, coins)
    _check_locks(engine, tx, coins)
    for at in range(len(tx.vin)):
        _check_signature(tx, at, coins)
    _move(engine, tx, coins)
    return txid


def _read(raw: bytes) -> Transaction:
    try:
        tx = Transaction.parse(raw)
        same = tx.serialize() == raw
    except Exception:
        # embit may raise any error on hostile bytes.
        raise Rejected(-22, "TX decode failed. Make sure the tx has at least one input.") from None
    if not same or not tx.vin or not tx.vout:
        raise Rejected(-22, "TX decode failed. Make sure the tx has at least one input.")
    if len({outpoint_of(source) for source in tx.vin}) < len(tx.vin):
        raise Rejected(-26, "bad-txns-inputs-duplicate")
    if _weight(tx) > MAX_WEIGHT:
        raise Rejected(-26, "tx-size")
    return tx


def _coin(engine: Engine, source: TransactionInput) -> Coin:
    coin = engine.chain.coins.get(outpoint_of(source))
    if coin is None:
        raise Rejected(-25, "bad-txns-inputs-missingorspent")
    if coin.spent_by is not None:
        spent_in_block = engine.chain.confirmations(coin.spent_by) > 0
        raise Rejected(*((-25, "bad-txns-inputs-missingorspent") if spent_in_block else (-26, "txn-mempool-conflict")))
    return coin


def _check_amounts(tx: Transaction, coins: list[Coin]) -> None:
    fee = sum(coin.value for coin in coins) - sum(output.value for output in tx.vout)
    if fee < 0:
        raise Rejected(-26, "bad-txns-in-belowout")
    for output in tx.vout:
        if output.value < _DUST.get(output.script_pubkey.script_type() or "", 546):
            raise Rejected(-26, "dust")
    vsize = -(-_weight(tx) // 4)
    if fee * 1000 < vsize * LEAST_FEE_PER_KVB:
        raise Rejected(-26, f"min relay fee not met, {fee} < {-(-vsize * LEAST_FEE_PER_KVB // 1000)}")


def _check_locks(engine: Engine, tx: Transaction, coins: list[Coin]) -> None:
    """Checks relative locks in blocks (BIP-68): in the next block, each coin must be as old as its sequence says."""
    chain = engine.chain
    for source, coin in zip(tx.vin, coins, strict=True):
        if tx.version < 2 or source.sequence & _NO_LOCK:
            continue
        since = chain.transactions[coin.txid].height if chain.confirmations(coin.txid) else chain.height() + 1
        if source.sequence & _IN_SECONDS or chain.height() + 1 < since + (source.sequence & _BLOCKS):
            raise Rejected(-26, "non-BIP68-final")


def _weight(tx: Transaction) -> int:
    bare = Transaction(
        tx.version, [TransactionInput(s.txid, s.vout, s.script_sig, s.sequence) for s in tx.vin], tx.vout, tx.locktime
    )
    return 3 * len(bare.serialize()) + len(tx.serialize())


def _check_signature(tx: Transaction, at: int, coins: list[Coin]) -> None:
    script, witness = coins[at].output.script_pubkey, tx.vin[at].witness.items
    checks = {"p2wpkh": _is_p2wpkh_signed, "p2tr": _is_p2tr_signed, "p2wsh": _is_multisig_signed}
    check = checks.get(script.script_type() or "")
    if check is None or tx.vin[at].script_sig.data:
        raise Rejected(-26, "mandatory-script-verify-flag-failed (not a spend that this market checks)")
    try:
        signed = check(tx, at, coins, witness)
    except (ECError, ValueError, IndexError):
        signed = False
    if not signed:
        raise Rejected(-26, "mandatory-script-verify-flag-failed (Signature must be zero for failed CHECK(MULTI)SIG)")


def _is_p2wpkh_signed(tx: Transaction, at: int, coins: list[Coin], witness: list[bytes]) -> bool:
    if len(witness) != 2 or hash160(witness[1]) != coins[at].output.script_pubkey.data[2:]:
        return False
    code = p2pkh_from_p2wpkh(coins[at].output.script_pubkey)
    return is_ecdsa_signed(tx, at, code, coins[at].value, witness[0], witness[1])


def _is_p2tr_signed(tx: Transaction, at: int, coins: list[Coin], witness: list[bytes]) -> bool:
    if len(witness) > 2:
        return _is_leaf_signed(tx, at, coins, witness)
    return len(witness) == 1 and is_whole_signed(tx, at, [coin.output for coin in coins], witness[0])


def _is_leaf_signed(tx: Transaction, at: int, coins: list[Coin], witness: list[bytes]) -> bool:
    """Checks a leaf that all its keys sign with DEFAULT or ALL: one signature a key, the last key's first.

    The leaf is alone in its tree or has one sibling. A leaf of a single key may lock the coin for a number of blocks.
    """
    *signatures, code, control = witness
    shown = LeafOutput(control[1:33], code, control[33:])
    if len(control) not in (33, 65) or shown.script != coins[at].output.script_pubkey:
        return False
    keys = [code[1 + 34 * n : 33 + 34 * n] for n in range(len(code) // 34)]
    checks = [b"\x20" + key + (b"\xba" if n else b"\xac") for n, key in enumerate(keys)]
    if code[3:5] == _CSV_DROP:
        keys = [code[6:38]]
        if not _is_late(tx, at, code, keys[0]):
            return False
    elif code != b"".join(checks) + bytes([_OP_1 - 1 + len(keys), 0x9C]):
        return False
    spent = [coin.output for coin in coins]
    return len(signatures) == len(keys) and all(
        is_whole_signed(tx, at, spent, signature, key, code)
        for key, signature in zip(keys, reversed(signatures), strict=True)
    )


def _is_late(tx: Transaction, at: int, code: bytes, key: bytes) -> bool:
    """Checks `<blocks> CSV DROP <key> CHECKSIG` (BIP-112) with two bytes of blocks; BIP-68 checks the age."""
    sequence, blocks = tx.vin[at].sequence, int.from_bytes(code[1:3], "little")
    if code != b"\x02" + code[1:3] + _CSV_DROP + b"\x20" + key + b"\xac":
        return False
    return tx.version >= 2 and not sequence & (_NO_LOCK | _IN_SECONDS) and sequence & _BLOCKS >= blocks


def _is_multisig_signed(tx: Transaction, at: int, coins: list[Coin], witness: list[bytes]) -> bool:
    """Checks `OP_m keys OP_n CHECKMULTISIG`: an empty item, m signatures in the order of their keys, the script."""
    code = Script(witness[-1])
    if p2wsh(code).data != coins[at].output.script_pubkey.data or witness[0]:
        return False
    required, keys = _keys_of(code)
    signatures = list(witness[1:-1])
    if len(signatures) != required:
        return False
    for key in keys:
        if signatures and is_ecdsa_signed(tx, at, code, coins[at].value, signatures[0], key):
            signatures.pop(0)
    return not signatures


def _keys_of(code: Script) -> tuple[int, list[bytes]]:
    data, count = code.data, (len(code.data) - 3) // 34
    keys = [data[2 + 34 * n : 35 + 34 * n] for n in range(count)]
    rest = b"".join(b"\x21" + key for key in keys)
    if data != bytes([data[0]]) + rest + bytes([_OP_1 - 1 + count, 0xAE]):
        raise ValueError("not a multisig script")
    return data[0] - _OP_1 + 1, keys


def _move(engine: Engine, tx: Transaction, coins: list[Coin]) -> None:
    """Moves assets: inscriptions go with their coin's first sat (first in, first out), runes to the first output."""
    held = _carried(tx, coins)
    runes = {name: pile for coin in coins for name, pile in coin.runes.items()}
    txid = settle(engine, tx, held, confirmed=False)
    if runes:
        engine.chain.add_to(engine.chain.coins[f"{txid}:0"], [], runes)
    for inscription in {each for coin in coins for each in coin.inscriptions}.difference(*held.values()):
        _lose(engine, inscription)
    for at, inscriptions in held.items():
        to = address_of(tx.vout[at].script_pubkey)
        for inscription in inscriptions:
            found = engine.wallets.holder_of(inscription)
            if found is not None and to is not None:
                engine.wallets.move(found[1], to)
            end_listing(engine, inscription, "the inscription was moved")


def _lose(engine: Engine, inscription: str) -> None:
    found = engine.wallets.holder_of(inscription)
    if found is not None:
        del engine.wallets.inscriptions[found[0]][inscription]
    engine.chain.forget(inscription)


def _carried(tx: Transaction, coins: list[Coin]) -> dict[int, tuple[str, ...]]:
    held: dict[int, tuple[str, ...]] = {}
    begin = 0
    for coin in coins:
        end = 0
        for at, output in enumerate(tx.vout):
            end += output.value
            if begin < end:
                if coin.inscriptions:
                    held[at] = held.get(at, ()) + coin.inscriptions
                break
        begin += coin.value
    return held
