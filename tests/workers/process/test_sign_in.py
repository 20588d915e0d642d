"""A worker whose venue wants to be signed in to: who signs what, how often it is tried, and what a failure means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import to_builtins

from core.settings import Settings
from core.subscription_plans import DEFAULT_PLANS
from markets import base
from markets.orders import Pair, SignInText, SignInTexts
from models import users
from models.tasks import tasks
from models.tasks.tasks import Outline
from tests.worlds.signer_process import facts_server
from wallet.protocol import Grant, UserKeys
from wallet.signer_client import SignerClient, SignerLocked, SignerRefused
from workers.context import TaskLock
from workers.manager.rights import Rights
from workers.process.worker import SigningInClient, TaskSignIn, Worker

KEYS = UserKeys("bc1qpayment", "02" * 33, "bc1pvault", "03" * 32)
TEXTS = SignInTexts(
    "request-1",
    (SignInText("a:ordinals", "Sign in as vault", KEYS.vault), SignInText("b:payment", "Pay", KEYS.payment)),
)
NOTHING = base.OwnBids((), 5)


class Gateway:
    """`held` says whether a session is there; `fails` what a verb answers the next time."""

    def __init__(self) -> None:
        self.held = False
        self.keeps = True
        self.texts = TEXTS
        self.came: list[str] = []
        self.answers: list[Any] = []
        self.fails: dict[str, base.VenueError] = {}

    def tell(self, request: dict[str, Any]) -> bytes:
        verb = request["verb"]
        self.came.append(verb)
        try:
            return json.dumps({"ok": self._answer(verb, request)}).encode()
        except base.VenueError as error:
            return json.dumps({"error": base.to_wire(error)}).encode()

    def _answer(self, verb: str, request: dict[str, Any]) -> Any:
        failure = self.fails.pop(verb, None)
        if failure is not None:
            raise failure
        if verb == "sign_in_texts":
            assert request["venue"] == "simulator-ordnet"
            pair = Pair(KEYS.payment, KEYS.payment_pubkey, KEYS.vault, KEYS.vault_pubkey)
            assert request["args"]["pair"] == to_builtins(pair)
            return to_builtins(self.texts)
        if verb == "sign_in":
            self.answers.append(request["args"]["answer"])
            self.held = self.keeps
            return None
        if not self.held:
            raise base.SignInNeeded("no session")
        return to_builtins(NOTHING) if verb == "own_bids" else True


class Signer:
    def __init__(self) -> None:
        self.signed: list[tuple[int, int, str, str, str]] = []
        self.fails: Exception | None = None

    def addresses(self, user: str) -> UserKeys:
        assert user == "bc1quser"
        return KEYS

    def sign_sign_in(self, task: int, token: int, secret: str, text: str, key: str) -> str:
        if self.fails:
            raise self.fails
        self.signed.append((task, token, secret, text, key))
        return f"signature by {key}"


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def signer() -> Signer:
    return Signer()


def _task(venue: str) -> int:
    user = users.find_or_create("bc1quser", dict(DEFAULT_PLANS), 1)
    task = tasks.create_bidding_task(
        user.id, type="ordinals", slug="cats", slug_key="cats", config="{}", venue=venue, max_tasks=1, now_ms=1
    )
    return int(task.id)


@pytest.fixture
def market(database: str, tmp_path: Path, gateway: Gateway, signer: Signer) -> Iterator[SigningInClient]:
    task = _task("simulator")
    sign_in = TaskSignIn(cast(SignerClient, signer), task, tasks.raise_token(task), "secret")
    socket = tmp_path / "gateway.sock"
    with facts_server(socket, gateway.tell), SigningInClient(socket, sign_in, venue="simulator-ordnet") as opened:
        yield opened


def cancel(market: SigningInClient) -> bool:
    return market.cancel(KEYS.payment, ["cats:1"], "", task=1, token=1, deadline_ms=9)


def test_both_addresses_sign_and_the_question_is_asked_once_more(
    market: SigningInClient, gateway: Gateway, signer: Signer
) -> None:
    assert market.own_bids(KEYS.payment, 0) == NOTHING
    assert gateway.came == ["own_bids", "sign_in_texts", "sign_in", "own_bids"]
    assert signer.signed == [(1, 1, "secret", "Sign in as vault", "vault"), (1, 1, "secret", "Pay", "payment")]
    [answer] = gateway.answers
    assert (answer["reference"], answer["pair"]["ordinals"]) == ("request-1", KEYS.vault)
    assert answer["signatures"] == {"a:ordinals": "signature by vault", "b:payment": "signature by payment"}
    market.own_bids(KEYS.payment, 0)
    assert gateway.came[4:] == ["own_bids"]


def test_a_write_is_sent_again_too_since_nothing_was(market: SigningInClient, gateway: Gateway) -> None:
    assert cancel(market) is True
    assert gateway.came == ["cancel", "sign_in_texts", "sign_in", "cancel"]


def test_a_session_that_does_not_hold_is_tried_once(market: SigningInClient, gateway: Gateway) -> None:
    gateway.keeps = False
    with pytest.raises(base.SignInNeeded):
        market.own_bids(KEYS.payment, 0)
    assert gateway.came == ["own_bids", "sign_in_texts", "sign_in", "own_bids"]


@pytest.mark.parametrize("verb", ["sign_in_texts", "sign_in"])
@pytest.mark.parametrize(
    "failure", [base.Unavailable("away"), base.Unknown("no answer"), base.AuthFailed("0.01 BTC"), base.Refused("x")]
)
def test_whatever_fails_at_it_the_write_was_not_sent(
    market: SigningInClient, gateway: Gateway, verb: str, failure: base.VenueError
) -> None:
    gateway.fails[verb] = failure
    with pytest.raises(base.Unavailable, match=f"failed to sign in: {failure.message}"):
        cancel(market)
    assert gateway.came[-1] == verb
    assert cancel(market) is True, "the next time it is tried again"


def test_a_sign_in_that_lacks_sats_names_the_payment_address(market: SigningInClient, gateway: Gateway) -> None:
    gateway.fails["sign_in"] = base.AuthFailed("The payment address must hold at least 0.01 BTC confirmed")
    with pytest.raises(base.Unavailable, match=f"0.01 BTC confirmed; the payment address is {KEYS.payment}"):
        cancel(market)


def test_a_venue_that_asks_for_a_pause_is_heard(market: SigningInClient, gateway: Gateway) -> None:
    gateway.fails["sign_in"] = base.RateLimited(7.0)
    with pytest.raises(base.RateLimited) as limited:
        market.own_bids(KEYS.payment, 0)
    assert limited.value.retry_after_s == 7.0


@pytest.mark.parametrize("failure", [SignerRefused("msg-template", "not its text"), SignerLocked("locked")])
def test_a_signer_that_does_not_sign(
    market: SigningInClient, gateway: Gateway, signer: Signer, failure: Exception
) -> None:
    signer.fails = failure
    with pytest.raises(base.Unavailable, match="failed to sign in"):
        market.own_bids(KEYS.payment, 0)
    assert gateway.came == ["own_bids", "sign_in_texts"]


def test_no_address_but_our_own_two_signs(market: SigningInClient, gateway: Gateway, signer: Signer) -> None:
    gateway.texts = SignInTexts("r", (SignInText("a", "Sign", "bc1qsomebody"),))
    with pytest.raises(base.Unavailable, match="none of ours"):
        market.own_bids(KEYS.payment, 0)
    assert signer.signed == []


def test_a_worker_that_was_superseded_signs_nobody_in(market: SigningInClient, signer: Signer) -> None:
    tasks.raise_token(1)
    with pytest.raises(base.Unavailable, match="no longer"):
        market.own_bids(KEYS.payment, 0)
    assert signer.signed == []


def test_where_no_session_is_wanted_nothing_is_signed(
    market: SigningInClient, gateway: Gateway, signer: Signer
) -> None:
    gateway.held = True
    assert market.own_bids(KEYS.payment, 0) == NOTHING
    assert (gateway.came, signer.signed) == (["own_bids"], [])


def test_a_worker_says_whose_its_calls_are(tmp_path: Path) -> None:
    worker = Worker("bidder", 7, 1, NotImplemented, NotImplemented)
    outline = Outline("bidding", "simulator", "cats", 42, 7)
    context = worker._context(Settings(data_dir=tmp_path), outline, "secret", TaskLock(tmp_path / "lock"))
    assert (context.market.user, context.market.purpose, context.market.at("x").user) == (42, None, 42)


async def test_manager_signs_in_under_a_drain_s_grant_which_it_ends_afterwards(
    database: str, tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = _task("simulator-ordnet")
    signer = GrantingSigner()
    settings = Settings(data_dir=tmp_path)
    rights = Rights(settings, 5.0, 5.0)
    monkeypatch.setattr(rights, "_signer", signer)
    settings.gateway_socket.parent.mkdir(parents=True, exist_ok=True)
    with facts_server(settings.gateway_socket, gateway.tell):
        row = tasks.with_owner(task)
        assert row is not None
        await rights.sign_in(row, 1)
    assert gateway.held
    [grant] = signer.grants
    assert (grant.operations, grant.token, signer.ended) == (("cancel",), 1, [(task, 1)])
    assert [each[:3] for each in signer.signed] == [(task, 1, "granted"), (task, 1, "granted")]


class GrantingSigner(Signer):
    def __init__(self) -> None:
        super().__init__()
        self.grants: list[Grant] = []
        self.ended: list[tuple[int, int]] = []

    def grant(self, grant: Grant) -> str:
        self.grants.append(grant)
        return "granted"

    def end_rights(self, task: int, token: int) -> None:
        self.ended.append((task, token))
