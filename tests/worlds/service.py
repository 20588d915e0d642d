"""The service over HTTP: a client of it, its users, and the processes around it over their real sockets."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from msgspec import convert
from tornado.httpclient import HTTPRequest, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders
from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler

from core.call import Verbs
from core.errors import PeerRefused
from core.local_server import serve
from core.program_calls import CountTasks, Enforce, Heed, Ping, Readiness, Settle, Settled, Stopped, TaskCounts
from core.settings import Settings
from core.subscription_plans import DEFAULT_PLANS
from markets import base
from markets.orders import OwnListings
from markets.verbs import text
from models import summaries, users
from models.leases.leases import EVERYBODY
from models.ledger import closing
from models.tasks import tasks
from models.users import User
from strategy.book import VenueProfile
from tests.clock import Clock
from tests.json_lines import Answers
from tests.kept_open import KeptOpen
from tests.wallet import proofs
from wallet import address
from wallet.protocol import SetControl

START_MS = 1_763_640_000_000


@dataclass(frozen=True)
class Answer:
    """Status, headers, text and (where it says that it is that) JSON of an answer."""

    status: int
    headers: HTTPHeaders
    json: Any
    text: str

    @property
    def body(self) -> bytes:
        return self.text.encode(errors="surrogateescape")

    @property
    def details(self) -> list[str]:
        return list(self.json.get("details", []))

    def names(self) -> set[str]:
        """Returns the fields that the details complain of."""
        return {detail.partition(":")[0] for detail in self.details}


def digits(text: str) -> Decimal:
    """Reads a number of an answer, which never has an exponent."""
    assert "e" not in text.lower(), f"{text} is not written digit for digit"
    return Decimal(text)


class Api:
    """Asks the service at `base_url`; a body that is no bytes or text is sent as JSON."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.timeout_s = 120.0
        self._client = KeptOpen(urlsplit(base_url).port or 80)

    async def __call__(
        self, method: str, path: str, body: Any = None, *, token: str = "", headers: dict[str, str] | None = None
    ) -> Answer:
        given = dict(headers or {})
        if token:
            given["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode("utf-8", "surrogatepass")
        request = HTTPRequest(
            self.base_url + path,
            method,
            headers=given,
            body=body,
            allow_nonstandard_methods=True,
            follow_redirects=False,
            request_timeout=self.timeout_s,
        )
        response = await self._client.fetch(request)
        # A picture is no text: its bytes come back out of this one by the same error handler.
        is_picture = response.headers.get("Content-Type", "").startswith("image/")
        text = response.body.decode(errors="surrogateescape" if is_picture else "strict")
        is_json = response.headers.get("Content-Type") == "application/json"
        value = json.loads(text, parse_float=digits) if text and is_json else None
        return Answer(response.code, response.headers, value, text)

    async def raw(self, path: str, headers: dict[str, str]) -> HTTPResponse:
        """Returns the answer to a GET as it comes, packed or not."""
        request = HTTPRequest(
            self.base_url + path, headers=headers, decompress_response=False, request_timeout=self.timeout_s
        )
        return await self._client.fetch(request)

    def close(self) -> None:
        self._client.close()


def new_user(address: str, now_ms: int = START_MS) -> User:
    return users.find_or_create(address, dict(DEFAULT_PLANS), now_ms)


def token_of(user: User, now_ms: int = START_MS) -> str:
    """Returns a bearer token of a session that began at `now_ms`."""
    token = secrets.token_urlsafe(32)
    users.open_session(hashlib.sha256(token.encode()).hexdigest(), user.id, now_ms)
    return token


class _Peer:
    """Answers at a Unix socket as `verbs`, or else `_handle`, says."""

    verbs: Verbs | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await serve(self.path, self.verbs or Answers(self._handle))

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            self.path.unlink(missing_ok=True)

    def _handle(self, request: dict[str, Any]) -> Any:
        raise NotImplementedError


class FakeManager(_Peer):
    """Does in the rows what the manager does with processes; `refuse` is the (code, message) of a refusal. `heeded` are
    the control states that it was asked to follow, `before_heeding` is called with each.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.state = "ready"
        self.settled: list[int] = []
        self.enforced = 0
        self.refuse: tuple[str, str] | None = None
        self.before_settling: Callable[[], Any] = lambda: None
        self.heeded: list[tuple[str, int, str | None]] = []
        self.before_heeding: Callable[[], Any] = lambda: None

        self.verbs = Verbs(
            "manager",
            {
                Ping: lambda asked: Readiness(self.state),
                CountTasks: lambda asked: TaskCounts(summaries.count_by_observed(EVERYBODY), 0),
                Enforce: self._enforce,
                Heed: self._heed,
                Settle: lambda asked: self.settle(asked),
            },
        )

    def _enforce(self, asked: Enforce) -> Stopped:
        self.enforced += 1
        return Stopped(2)

    async def _heed(self, asked: Heed) -> None:
        if (waits := self.before_heeding()) is not None:
            await waits
        self.heeded.append((asked.scope, asked.subject, asked.state))

    async def settle(self, asked: Settle) -> Settled:
        await asyncio.sleep(0)
        self.before_settling()
        self.settled.append(asked.task)
        if self.refuse is not None:
            raise PeerRefused("manager", *self.refuse)
        task = tasks.with_owner(asked.task)
        assert task is not None
        observed: Literal["running", "stopped"] = (
            "running" if task.desired == "running" and task.deleted_ms is None else "stopped"
        )
        type(task).update(observed=observed).where(type(task).id == task.id).execute()
        left = closing.count_open(task.id)
        if task.deleted_ms is not None and not left:
            tasks.remove_tombstone(task.id)
        return Settled(observed, left)


class FakeSigner(_Peer):
    """Gives everybody addresses made from their own, and keeps control states by (scope, subject).

    `before_control` is called with each control that it is told of, before it is kept, `before_signing` with each
    withdrawal before it is signed; `signed` are those, by intent.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.state = "ready"
        self.controls: dict[tuple[str, str], str] = {}
        self.has_halt_file = False
        self.lowest: dict[str, int] = {}
        self.told: list[tuple[str, str, str]] = []
        self.before_control: Callable[[str], Any] = lambda state: None
        self.before_signing: Callable[[dict[str, Any]], Any] = lambda asked: None
        self.signed: dict[str, dict[str, Any]] = {}
        self.more_keys: dict[str, Any] = {}
        self.judged: list[dict[str, Any]] = []
        self.refuses_withdrawals: PeerRefused | None = None
        self.signed_sats = 0
        self.frees_ms: int | None = None

    def _handle(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "status":
            return {"state": self.state, "play": True, "reason": "" if self.state == "ready" else "no passphrase"}
        if request["op"] == "control":
            asked = convert(request, SetControl)
            return self._control(asked.scope, asked.subject, asked.state)
        if request["op"] == "controls":
            kept = [{"scope": scope, "subject": name, "state": state} for (scope, name), state in self.controls.items()]
            return {"controls": kept, "file": self.has_halt_file}
        if request["op"] == "was_signed":
            return {"signed": request["intent"] in self.signed}
        if request["op"] == "rooms_under":
            return self._rooms(request)
        if request["op"] == "lowest_listing":
            return {"price": self.lowest.get(request["outpoint"])}
        if self.state != "ready":
            raise PeerRefused("signer", "locked", "no passphrase")
        if request["op"] == "sign_withdrawal":
            return self._withdrawal(request["withdrawal"])
        if request["op"] == "judge_withdrawal":
            if isinstance(self.refuses_withdrawals, PeerRefused):
                raise self.refuses_withdrawals
            return {"sent_sats": 900, "fee_sats": 100}
        if request["op"] == "judge":
            return self._judged(request)
        return keys_of(request["user"]) | self.more_keys

    def _rooms(self, asked: dict[str, Any]) -> dict[str, Any]:
        ceilings = {"task": asked["outstanding_task_sats"], "user": asked["outstanding_sats"]}
        return {
            "rooms": [
                {"whose": whose, "most_sats": most, "signed_sats": self.signed_sats, "frees_ms": self.frees_ms}
                for whose, most in ceilings.items()
            ]
        }

    def _judged(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Judges what was drafted for no less than the least price; `judged` keeps the questions."""
        self.judged.append(asked)
        listing, least = asked["listing"], asked["min_price_sats"]
        is_signed = listing["psbt"] == f"draft at {listing['price']}" and listing["price"] >= least
        why = "" if is_signed else "the seller is paid too little"
        finding = {"rule": "payout", "holds": is_signed, "why": why}
        told = {"inputs": [], "outputs": [], "payout_sats": listing["price"], "least_sats": listing["price"]}
        return {"judgements": [{"form": "plain", "is_signed": is_signed, "findings": [finding], **told}]}

    def _withdrawal(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Returns the same answer for the same intent; a PSBT where one was asked for."""
        self.before_signing(asked)
        made = {"txid": hashlib.sha256(asked["intent"].encode()).hexdigest(), "sent_sats": 900, "fee_sats": 100}
        is_psbt = asked["source"] == "bidding"
        made |= {"transaction": "" if is_psbt else "ab" * 100, "psbt": "cHNidP8=" if is_psbt else ""}
        return self.signed.setdefault(asked["intent"], made)

    def _control(self, scope: str, subject: str, state: str) -> dict[str, Any]:
        self.before_control(state)
        self.told.append((scope, subject, state))
        if state == "run":
            self.controls.pop((scope, subject), None)
        else:
            self.controls[scope, subject] = state
        return {}


def keys_of(user: str) -> dict[str, str]:
    seed = hashlib.sha256(user.encode()).digest()
    return {
        "payment": address.p2wpkh(seed[:20]),
        "payment_pubkey": "02" + seed.hex(),
        "vault": address.p2tr(seed),
        "vault_pubkey": seed.hex(),
    }


class FakeGateway:
    """A market as given in its fields; with `down` it answers every question as a gateway whose venue is away.

    With `spent` the user has looked too often; `remark` is what each answer says besides.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remark: dict[str, Any] = {}
        self.down = False
        self.spent = False
        self.silence: asyncio.Event | None = None  # until when no question is answered
        self.silent: tuple[str, ...] = ()  # of these verbs alone, if any are named
        self.asked: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {
            "status": {},
            "venues": (),
            "floors": {
                "goosinals": base.Floor("goosinals", Decimal(87_300), 12),
                "empty": base.Floor("empty", None, 0),
                "DOG": base.Floor("DOG", None, 0),
            },
            "profile": VenueProfile("simulator", 1_000, 10_000, 900, True, "per_bid"),
            "fees": base.Fees(Decimal(5), Decimal(4), Decimal(3), Decimal(2), Decimal(1), START_MS),
            "collections": (),
            "trait_floors": None,
            "traits": {"Hat": {"Red": 3, "Blue": 4}, "Eyes": {"Laser": 1}},
            "asks": base.AskBook((), 1),
            "own_bids": base.OwnBids((), 1),
            "bids": base.BidBook((), 1),
            "rune_asks": base.AskBook((), 1),
            "balance": base.Balance("bc1qbidding", 0, 1),
            "wallet_contents": (),
            "picture": base.NoPicture("text"),
            "own_listings": OwnListings((), START_MS),
            "whereabouts": base.Unavailable("no index is asked here"),
            "coins": (),
            "outpoint": base.Unavailable("no index is asked here"),
            "is_confirmed": base.NotFound("Transaction not found"),
            "play_address": address.p2wpkh(bytes(20)),
        }
        self._server: HTTPServer | None = None

    def start(self) -> None:
        gateway = self

        class Answer(RequestHandler):
            async def post(self) -> None:
                request = json.loads(self.request.body)
                gateway.asked.append(request)
                is_silent = not gateway.silent or request["verb"] in gateway.silent
                if gateway.silence is not None and is_silent:
                    await gateway.silence.wait()
                try:
                    found = gateway.answer(request)
                    self.finish(text({"ok": found, **gateway.remark}))
                except base.VenueError as error:
                    self.finish(json.dumps({"error": base.to_wire(error)}))

        self._server = HTTPServer(Application([(r"/", Answer)], log_function=lambda handler: None))
        self.path.parent.mkdir(exist_ok=True)
        self._server.add_socket(bind_unix_socket(str(self.path)))

    def answer(self, request: dict[str, Any]) -> Any:
        if self.spent:
            raise base.TooManyLookups(4, "a user may look so often; ask again in 4 s")
        if self.down and request["verb"] != "status":
            raise base.Unavailable("the venue does not answer")
        found = self.answers[request["verb"]]
        if callable(found):
            found = found(**request["args"])
        if isinstance(found, base.VenueError):
            raise found
        if request["verb"] == "floors":
            return {slug: found[slug] for slug in request["args"]["slugs"] if slug in found}
        return found

    async def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            await self._server.close_all_connections()


OWNER = proofs.p2wpkh_address(proofs.OWNER)
OTHER = proofs.p2tr_address(proofs.STRANGER)
ADMIN = proofs.p2wpkh_address(proofs.STRANGER)


@dataclass
class Service:
    """The service under test, what is around it, and two of its users."""

    api: Api
    app: Any
    settings: Settings
    clock: Clock
    manager: FakeManager
    signer: FakeSigner
    gateway: FakeGateway
    token: str = ""
    user_id: int = 0
    other_token: str = ""

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """As the owner."""
        return await self.api(method, path, body, token=self.token)

    async def new_task(self, **fields: Any) -> int:
        """Returns the id of a new task of the owner."""
        config = {"slug": "goosinals", "hardcapSats": 100_000} | fields
        answer = await self.ask("POST", "/api/tasks", config)
        assert answer.status == 201, answer.text
        return int(answer.json["id"])


def with_settings(**settings: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("service", [settings], indirect=True, ids=[""])
