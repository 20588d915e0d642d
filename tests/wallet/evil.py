"""The judge of a signer's answers to an attacker: other code than the signer's own, and its own arithmetic."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

import bip322

from tests.wallet.listings import Case, honest, script_by
from tests.wallet.psbt_oracle import faults
from tests.worlds.signer import USER, fixed_keys
from wallet.protocol import MAX_SATS, Grant
from wallet.terms import Ceilings

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?")

SIGN_IN = (
    "Sign in to Bidkeeper at 127.0.0.1:8888\nAddress: {address}\nExpires: 2027-01-01T00:00:00Z\nNonce: " + "0f" * 16
)


@dataclass
class Out:
    """One signed bid that got out."""

    task: int
    user: str
    price: int
    expires_ms: int
    made_ms: int


@dataclass
class Judge:
    """Looks at every answer. `grants` are all that were ever given, by task and token."""

    ceilings: Ceilings
    grants: dict[tuple[int, int], Grant] = field(default_factory=dict)
    bids: dict[str, Out] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    challenges: int = 0
    brakes: list[tuple[int, str]] = field(default_factory=list)  # by a clock that is never set back
    listings: int = 0
    delivered: set[bool] = field(default_factory=set)  # of signed bids: whether to the vault

    def granted(self, grant: Grant) -> None:
        self.grants[grant.task, grant.token] = grant

    def bid(self, request: dict[str, Any], answer: dict[str, Any], now_ms: int) -> None:
        asked, grant = request["bid"], self.grants[request["task"], request["token"]]
        keys = fixed_keys(USER).secrets_of(grant.user).public
        payment, public_key, receive, price, quantity, expires, slug, stamp = answer["message"].split(":")
        assert (payment, public_key) == (keys.payment, keys.payment_pubkey)
        assert receive == (keys.vault if grant.to_vault else grant.receive)
        self.delivered.add(grant.to_vault)
        assert (price, quantity, slug) == (str(asked["price"]), asked["quantity"], grant.slug)
        assert (expires, stamp) == (str(asked["expires_ms"]), str(asked["timestamp_ms"]))
        assert _QUANTITY.fullmatch(quantity)
        assert "bid" in grant.operations
        assert 0 < int(price) <= grant.hardcap_sats
        assert is_signed_by(payment, answer["message"], answer["signature"])
        first = self.answers.setdefault(asked["intent"], answer)
        assert first == answer, "one intent, two signatures"
        if asked["intent"] not in self.bids:
            self.bids[asked["intent"]] = Out(grant.task, grant.user, int(price), int(expires), now_ms)
            self._within_ceilings(grant, int(expires), now_ms)

    def _within_ceilings(self, grant: Grant, expires_ms: int, now_ms: int) -> None:
        most, out = self.ceilings, list(self.bids.values())
        assert 0 < expires_ms - now_ms <= min(grant.max_expiry_ms, most.max_expiry_ms)
        live = [bid for bid in out if bid.expires_ms > now_ms]
        late = [bid for bid in out if bid.made_ms > now_ms - HOUR_MS]
        of_user = sum(bid.price for bid in live if bid.user == grant.user)
        assert sum(bid.price for bid in live if bid.task == grant.task) <= grant.outstanding_task_sats
        assert of_user <= min(grant.outstanding_sats, most.outstanding_user)
        assert sum(bid.price for bid in live) <= most.outstanding_host
        assert sum(bid.price for bid in late) <= most.sats_hour_host
        assert sum(bid.price for bid in late if bid.user == grant.user) <= 4 * most.outstanding_user
        assert len(late) <= most.host.an_hour

    def challenge(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Checks a challenge under a grant: its text, its key and that the grant allows to cancel."""
        text, grant = request["challenge"], self.grants[request["task"], request["token"]]
        assert is_harmless(text)
        assert "cancel" in grant.operations
        keys = fixed_keys(USER).secrets_of(grant.user).public
        if request.get("key", "payment") == "vault":
            assert grant.inscription_id
            assert is_signed_by(keys.vault, text, answer["signature"])
        else:
            assert is_signed_by(keys.payment, text, answer["signature"])
        self.challenges += 1

    def brake(self, request: dict[str, Any], answer: dict[str, Any], now_ms: int) -> None:
        """Checks a challenge without a grant: its text, the payment key, and how many there were in a minute."""
        text, user = request["challenge"], request["user"].lower()
        assert is_harmless(text)
        assert is_signed_by(fixed_keys(USER).secrets_of(user).public.payment, text, answer["signature"])
        self.brakes.append((now_ms, user))
        late = [braked for made_ms, braked in self.brakes if made_ms > now_ms - MINUTE_MS]
        assert len(late) <= self.ceilings.brakes
        assert late.count(user) <= self.ceilings.brakes_of_user

    def listing(self, request: dict[str, Any], answer: dict[str, Any], case: Case | None = None) -> None:
        """`case` is what the drafts were made from; an honest one unless it is given."""
        asked, grant = request["listing"], self.grants[request["task"], request["token"]]
        assert "list" in grant.operations and asked["inscription_id"] == grant.inscription_id
        assert asked["price"] >= max(1, grant.min_price_sats)
        assert len(answer["secure"]) == len(asked["secure"])
        for form, drafts, signed in (
            ("listing", [asked["psbt"]], [answer["psbt"]]),
            ("secure", asked["secure"], answer["secure"]),
        ):
            for draft, given in zip(drafts, signed, strict=True):
                judged = case if case is not None and case.form == form else honest("p2tr", form)  # type: ignore[arg-type]
                raw = base64.b64decode(given)
                assert faults(judged, base64.b64decode(draft), raw) == []
                assert consensus_agrees(judged, base64.b64decode(draft), raw)
        first = self.answers.setdefault(asked["intent"], answer)
        assert first == answer, "one intent, two answers"
        self.listings += 1


def is_harmless(text: str) -> bool:
    """Tells whether no reader could take these lines for a bid or for a sign-in text."""
    one_line = text.replace("\r\n", "").replace("\n", "")
    fields = [is_number(field) for field in text.split(":")]
    squeezed = re.sub(r"[^a-z0-9]", "", text.lower())
    return (
        0 < len(text) <= 512
        and all(32 <= ord(letter) < 127 for letter in one_line)
        and (True, True, True) not in zip(fields, fields[1:], fields[2:], strict=False)  # price, quantity, expiry
        and not any(name in squeezed for name in ("bidkeeper", "signintoordnet", "signintoordinalswallet"))
    )


def is_number(text: str) -> bool:
    """As a lenient reader would have it."""
    try:
        float(text)
    except ValueError:
        return bool(re.fullmatch(r"\s*0x[0-9a-fA-F]+\s*", text))
    return True


def is_signed_by(address: str, message: str, signature: str) -> bool:
    try:
        bip322.verify_simple_encoded(address, message, signature)
    except Exception:
        return False
    return True


def consensus_agrees(case: Case, draft: bytes, signed: bytes) -> bool:
    """Tells whether btclib's consensus engine takes the signature in `signed`; True where btclib is missing."""
    try:
        from btclib.script import engine
    except ImportError:
        return True
    from tests.wallet.psbt_oracle import parse
    from tests.wallet.test_psbt_sign import is_valid, network
    from wallet.psbt.decode import decode
    from wallet.psbt.transaction import TxOutput

    asked = decode(draft)
    spent = [item.outpoint for item in asked.transaction.inputs]
    index = spent.index(case.intent.outpoint)
    # What somebody else is paid is theirs; with more than there is of it no transaction is valid, and nothing is lost.
    # No more is it with another's output spent twice; ours is not signed then.
    if sum(output.value for output in asked.transaction.outputs) > MAX_SATS or len(set(spent)) < len(spent):
        return True
    fields = dict(parse(signed).maps[1 + index])
    own = TxOutput(10_000, script_by(case.kind, case.key))  # a draft may have the whole transaction before it instead
    raw = network(asked.transaction, index, "p2tr", fields[b"\x13"])
    return is_valid(engine, raw, index, [own] * len(asked.transaction.inputs))
