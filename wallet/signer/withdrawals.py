"""Withdrawals: a user's coins go to the user's sign-in address, which the signer takes from its own list.

No grant is needed, because no request chooses the destination: it is safe to sign for any allowed process. An intent
is signed once; a repeated request gets the same answer.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence

from embit.ec import PrivateKey, PublicKey, SchnorrSig, Signature
from msgspec.structs import asdict, replace

from wallet import withdrawal
from wallet.address import sign_in_address
from wallet.keystore.keys import UserSecrets
from wallet.policy import intent_conflict, market
from wallet.protocol import (
    MAX_COINS,
    Amounts,
    JudgeWithdrawal,
    PolicyRefused,
    RequestError,
    SignedWithdrawal,
    SignWithdrawal,
    WithdrawalToSign,
)
from wallet.psbt import fields
from wallet.psbt.common import named_sighash
from wallet.psbt.decode import Psbt, encode, from_base64, without_unknown
from wallet.psbt.script import RECOVERY_BLOCKS, escrow_at, has_key, leaf_hash, own_script
from wallet.psbt.sign import SigningError, open_escrow, sign_input
from wallet.psbt.transaction import (
    ALL,
    DEFAULT,
    Outpoint,
    Transaction,
    WireError,
    compact,
    encode_outpoint,
    script_digest,
    sized,
    taproot_digest,
)
from wallet.signer.authority import Authority, Entry
from wallet.signer.ledger import WithdrawalSignature
from wallet.terms import all_terms
from wallet.withdrawal import (
    ApprovedWithdrawal,
    Coin,
    CoinKind,
    Composed,
    Facts,
    check_withdrawal,
    send_inscription,
    send_sats,
)


class WithdrawalSigner:
    """Signs withdrawals. `facts` are by coin (`txid:vout`), from a source independent of marketplaces; without facts it
    refuses.
    """

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def outpoints_to_look_up(self, request: SignWithdrawal) -> tuple[str, ...]:
        """Returns the coins that `sign_withdrawal` needs facts of, none for a known intent, and raises as it does."""
        asked = self._asked(request)
        return () if self._known(asked) else (*asked.coins, *asked.fee_coins)

    def sign_withdrawal(self, request: SignWithdrawal, facts: Facts) -> SignedWithdrawal:
        with self._authority.ledger.transaction():
            asked = self._asked(request)
            signed = self._known(asked) or self._signed(asked, facts)
        return SignedWithdrawal(
            signed.txid, signed.signed_transaction, signed.signed_psbt, signed.sent_sats, signed.fee_sats
        )

    def judge_withdrawal(self, request: JudgeWithdrawal, facts: Facts) -> Amounts:
        """Judges a withdrawal by every rule except `velocity`, and signs nothing; its intent does not matter."""
        asked = self._asked(request)
        secrets = self._authority.unlocked().secrets_of(asked.user)
        if asked.source == "bidding":
            approved = _of_venue(asked, facts, secrets)
            return Amounts(approved.sent_sats, approved.fee_sats)
        composed = self._composed(asked, facts, secrets)
        return Amounts(composed.sent_sats, composed.fee_sats)

    def coins_to_judge(self, request: JudgeWithdrawal) -> tuple[str, ...]:
        """Returns the coins that `judge_withdrawal` needs facts of. Raises as `judge_withdrawal`."""
        asked = self._asked(request)
        return (*asked.coins, *asked.fee_coins)

    def _asked(self, request: SignWithdrawal | JudgeWithdrawal) -> WithdrawalToSign:
        asked = request.withdrawal
        _check_fields(asked)
        if sign_in_address(asked.user) != asked.user:
            raise RequestError("user must be a sign-in address in its normal form")
        keystore = self._authority.unlocked()
        withdrawal.halt_file(self._authority.has_halt_file())
        self._authority.require_room()
        if asked.source == "bidding":
            market(asked.venue, play=keystore.is_play)
        else:
            withdrawal.fee_rate(asked.fee_per_kvb)
        self._destination(asked)
        return asked

    def _destination(self, asked: WithdrawalToSign) -> bytes:
        """Returns the destination's script. Refuses a user without keys, before any are made."""
        keystore = self._authority.unlocked()
        if asked.user not in keystore.users:
            return withdrawal.destination(asked.user, keystore.users, frozenset())
        scripts = _own_scripts(keystore.secrets_of(asked.user))
        if asked.source == "bidding":
            return scripts["p2wpkh"]
        if asked.source == "escrow":
            return scripts["p2tr"]
        return withdrawal.destination(asked.user, keystore.users, frozenset(scripts.values()))

    def _known(self, asked: WithdrawalToSign) -> WithdrawalSignature | None:
        """Returns the withdrawal signed under this intent; refuses the intent with other fields."""
        known = self._authority.ledger.withdrawals.find(asked.intent)
        if known is not None:
            intent_conflict((asked.user, _request_hash(asked)), (known.user, known.request_hash))
        return known

    def _signed(self, asked: WithdrawalToSign, facts: Facts) -> WithdrawalSignature:
        authority = self._authority
        secrets = authority.unlocked().secrets_of(asked.user)
        if asked.source == "bidding":
            signed = self._of_bidding_wallet(asked, facts, secrets)
        else:
            signed = self._of_our_own(asked, facts, secrets)
        now = signed.created_ms
        store = authority.ledger.withdrawals
        count, today = store.of_a_day(asked.user, from_bidding=asked.source == "bidding", now_ms=now)
        withdrawal.velocity(authority.ceilings, count, today, signed.sent_sats + signed.fee_sats)
        store.put(signed)
        # Logged just before the commit, so that a crash may leave a line without its signature, but never the reverse.
        authority.audit.append(now, _entry(signed, asked))
        return signed

    def _composed(self, asked: WithdrawalToSign, facts: Facts, secrets: UserSecrets) -> Composed:
        kind: CoinKind = "p2wpkh" if asked.source == "payment" else "p2tr"
        script = _own_scripts(secrets)
        if asked.inscription_id:
            coins = [self._item(asked, facts, secrets)]
        else:
            coins = [_coin(each, facts, kind, script[kind]) for each in asked.coins]
        paying = [_coin(each, facts, "p2wpkh", script["p2wpkh"]) for each in asked.fee_coins]
        destination = self._destination(asked)
        if asked.inscription_id:
            return send_inscription(coins[0], paying, destination, asked.fee_per_kvb)
        return send_sats(coins, asked.amount_sats, destination, asked.fee_per_kvb)

    def _of_our_own(self, asked: WithdrawalToSign, facts: Facts, secrets: UserSecrets) -> WithdrawalSignature:
        composed = self._composed(asked, facts, secrets)
        raw = sign_composed(composed, {"p2wpkh": secrets.payment, "p2tr": secrets.vault})
        return self._row(asked, composed, transaction=raw.hex())

    def _item(self, asked: WithdrawalToSign, facts: Facts, secrets: UserSecrets) -> Coin:
        """Returns the inscription's coin: one of the vault, or of an escrow that the vault's key opens."""
        outpoint, held = asked.coins[0], (asked.inscription_id,)
        vault, known = secrets.vault.get_public_key().sec(), all_terms(self._authority.ceilings.escrow_terms)
        told = withdrawal.inputs_confirmed(outpoint, facts.get(outpoint))
        escrow = None if told.script is None else escrow_at(told.script, vault, [terms for _, terms in known])
        if escrow is not None:
            kind: CoinKind = "p2tr" if escrow.recovery is None else "recovery"
            coin = replace(_coin(outpoint, facts, kind, escrow.script, held), escrow=escrow)
            if escrow.recovery is not None:
                withdrawal.timelock(told, RECOVERY_BLOCKS)
            return coin
        if asked.source == "escrow" and told.script is not None:  # `amount-proof` refuses an unknown script
            raise PolicyRefused("inputs-own", f"{outpoint} is no escrow of this user's that is known here")
        return _coin(outpoint, facts, "p2tr", own_script("p2tr", vault), held)

    def _of_bidding_wallet(self, asked: WithdrawalToSign, facts: Facts, secrets: UserSecrets) -> WithdrawalSignature:
        approved = _of_venue(asked, facts, secrets)
        composed = Composed(approved.psbt.transaction, (), approved.sent_sats, approved.fee_sats)
        psbt = base64.b64encode(sign_withdrawal(approved, secrets.payment)).decode()
        return self._row(asked, composed, psbt=psbt)

    def _row(
        self, asked: WithdrawalToSign, made: Composed, *, transaction: str = "", psbt: str = ""
    ) -> WithdrawalSignature:
        return WithdrawalSignature(
            intent=asked.intent,
            user=asked.user,
            source=asked.source,
            sent_sats=made.sent_sats,
            fee_sats=made.fee_sats,
            txid=made.transaction.txid()[::-1].hex(),
            created_ms=self._authority.clock(),
            request_hash=_request_hash(asked),
            signed_transaction=transaction,
            signed_psbt=psbt,
        )


def _check_fields(asked: WithdrawalToSign) -> None:
    """Raises RequestError for fields that the source does not use or lacks, and for repeated coins."""
    coins = (*asked.coins, *asked.fee_coins)
    if len(coins) > MAX_COINS or len(set(coins)) != len(coins):
        raise RequestError(f"coins must be different ones, {MAX_COINS} at most")
    if asked.source == "bidding":
        if asked.amount_sats is None or not asked.venue or not asked.psbt:
            raise RequestError("bidding needs amount_sats, venue and psbt")
        if asked.fee_coins or asked.inscription_id or asked.fee_per_kvb:
            raise RequestError("bidding takes neither fee_coins, inscription_id nor fee_per_kvb")
    elif asked.venue or asked.psbt:
        raise RequestError(f"{asked.source} takes neither venue nor psbt")
    elif asked.inscription_id:
        is_one = asked.source in ("vault", "escrow") and len(asked.coins) == 1
        if not is_one or not asked.fee_coins or asked.amount_sats is not None:
            raise RequestError("an inscription is one coin of the vault, with fee_coins and without amount_sats")
    elif asked.source == "escrow":
        raise RequestError("escrow needs an inscription_id")
    elif asked.fee_coins:
        raise RequestError("fee_coins are for an inscription")
    if not asked.coins:
        raise RequestError("coins are missing")


def _of_venue(asked: WithdrawalToSign, facts: Facts, secrets: UserSecrets) -> ApprovedWithdrawal:
    try:
        raw = from_base64(asked.psbt)
    except WireError as error:
        raise PolicyRefused("psbt-strict", str(error)) from None
    assert asked.amount_sats is not None
    public_key = secrets.payment.get_public_key().sec()
    return check_withdrawal(raw, asked.amount_sats, asked.coins, facts, public_key, own_script("p2wpkh", public_key))


def _own_scripts(secrets: UserSecrets) -> dict[CoinKind, bytes]:
    payment, vault = (key.get_public_key().sec() for key in (secrets.payment, secrets.vault))
    return {"p2wpkh": own_script("p2wpkh", payment), "p2tr": own_script("p2tr", vault)}


def _coin(outpoint: str, facts: Facts, kind: CoinKind, script: bytes, inscriptions: tuple[str, ...] = ()) -> Coin:
    known = withdrawal.inputs_confirmed(outpoint, facts.get(outpoint))
    spent = withdrawal.amount_proof(known, script)
    withdrawal.inputs_cardinal(known, inscriptions)
    return Coin(Outpoint.parse(outpoint), spent, kind)


def _request_hash(asked: WithdrawalToSign) -> str:
    return hashlib.sha256(json.dumps(asdict(asked), sort_keys=True).encode()).hexdigest()


def _entry(signed: WithdrawalSignature, asked: WithdrawalToSign) -> Entry:
    return {
        "operation": "withdraw",
        "intent": signed.intent,
        "user": signed.user,
        "source": signed.source,
        "venue": asked.venue,
        "inscription_id": asked.inscription_id,
        "inputs": [*asked.coins, *asked.fee_coins],
        "sent": signed.sent_sats,
        "fee": signed.fee_sats,
        "txid": signed.txid,
        "request_sha256": signed.request_hash,
    }


Signed = tuple[bytes, bytes]  # a PSBT's field: its key, and the signature
_UNVERIFIED = "the signature just made does not verify: nothing is handed out"


def sign_composed(composed: Composed, keys: Mapping[CoinKind, PrivateKey]) -> bytes:
    """Returns the transaction with all its witnesses, as the network relays it. Raises as `sign_input`."""
    transaction, spent = composed.transaction, [coin.spent for coin in composed.coins]
    stacks = []
    for at, coin in enumerate(composed.coins):
        if coin.escrow is not None or coin.kind == "recovery":
            assert coin.escrow is not None
            stacks.append(open_escrow(transaction, at, spent, coin.escrow, keys["p2tr"]))
            continue
        key = keys[coin.kind]
        sighash = DEFAULT if coin.kind == "p2tr" else ALL  # both cover all inputs and outputs
        signature = sign_input(transaction, at, spent, sighash, coin.kind, key)
        stacks.append([signature] if coin.kind == "p2tr" else [signature, key.get_public_key().sec()])
    return with_witnesses(transaction, stacks)


def sign_withdrawal(approved: ApprovedWithdrawal, private_key: PrivateKey) -> bytes:
    """Returns the approved PSBT with our signature on every input, for the venue to complete.

    Raises SigningError when the key is not in the script, RuntimeError when a signature does not verify.
    """
    public_key = private_key.get_public_key().sec()
    kept = without_unknown(approved.psbt)
    inputs = []
    if not has_key(approved.wallet, public_key):
        raise SigningError("the key is none of this script's")
    for at, item in enumerate(kept.inputs):
        if approved.wallet.is_leaf:
            field, signature = _of_leaf(approved, kept, at, private_key)
        else:
            field, signature = _of_witness_script(approved, kept, at, private_key)
        inputs.append({**item, field: signature})
    return encode(replace(kept, inputs=tuple(inputs)))


def _of_witness_script(approved: ApprovedWithdrawal, psbt: Psbt, at: int, private_key: PrivateKey) -> Signed:
    public_key = private_key.get_public_key()
    digest = script_digest(psbt.transaction, at, approved.wallet.script, approved.spent[at].value, ALL)
    signature: bytes = private_key.sign(digest).serialize()
    if not public_key.verify(Signature.parse(signature), digest):
        raise RuntimeError(_UNVERIFIED)
    return compact(fields.IN_PARTIAL_SIG) + public_key.sec(), signature + bytes([ALL])


def _of_leaf(approved: ApprovedWithdrawal, psbt: Psbt, at: int, private_key: PrivateKey) -> Signed:
    key, leaf = private_key.get_public_key().xonly(), leaf_hash(approved.wallet.script)
    sighash = named_sighash(psbt.inputs[at]) or DEFAULT
    digest = taproot_digest(psbt.transaction, at, approved.spent, sighash, leaf)
    signature: bytes = private_key.schnorr_sign(digest).serialize()
    if not PublicKey.from_xonly(key).schnorr_verify(SchnorrSig(signature), digest):
        raise RuntimeError(_UNVERIFIED)
    return compact(fields.IN_TAP_SCRIPT_SIG) + key + leaf, signature + (bytes([sighash]) if sighash else b"")


def with_witnesses(transaction: Transaction, stacks: Sequence[Sequence[bytes]]) -> bytes:
    """Encodes the transaction with one witness stack for each input (BIP-144)."""
    parts = [transaction.version.to_bytes(4, "little"), b"\x00\x01", compact(len(transaction.inputs))]
    for item in transaction.inputs:
        parts += (encode_outpoint(item.outpoint), sized(item.script_sig), item.sequence.to_bytes(4, "little"))
    parts.append(compact(len(transaction.outputs)))
    parts += [output.encode() for output in transaction.outputs]
    for stack in stacks:
        parts += [compact(len(stack)), *(sized(item) for item in stack)]
    return b"".join(parts) + transaction.locktime.to_bytes(4, "little")
