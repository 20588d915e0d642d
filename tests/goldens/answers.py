"""Answers of one long day over HTTP, word for word: each value is a line, with the digits as they were sent.

Numbers keep their spelling (1 and 1.0 differ), and a file is kept as its lines. The order of names in an object is left
out, and so is what is new each time: tokens, challenges, versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from decimal import Decimal
from pathlib import Path
from typing import Any

from core.layout import journal_path
from markets.base import (
    AskBook,
    Balance,
    BidBook,
    Item,
    Known,
    OutpointFacts,
    OwnBid,
    OwnBids,
    TraitFloors,
    Whereabouts,
)
from markets.orders import ListingDraft
from models.database import base
from models.hooks import queue
from models.hooks.table import Delivery, Hook
from models.ledger.states import Order
from models.tasks import cycles
from models.tasks.cycles import Sample, add_sample
from models.tasks.tasks import Task
from strategy.book import Ask, Bid
from strategy.decision import Entry
from strategy.journal import Encoder
from tests.replay.recorded import carried_out, entry
from tests.server.ledger_rows import INSCRIPTION, bought, item, open_order, proved, sold
from tests.server.withdrawals.chain import Chain, coin
from tests.shapes import replace
from tests.wallet import proofs
from tests.worlds.service import ADMIN, OTHER, OWNER, START_MS, Answer, Service, keys_of, new_user, token_of
from tests.worlds.worker import World as Workers
from wallet.keystore.keys import sign_message

# New each time, or another machine's: what a peer that is not there answers depends on what else runs.
_HIDDEN = {"approvalId", "challengeId", "signature", "token"}
_OF_MACHINE = {"/healthz": {"commit", "version"}, "/api/admin/readiness": {"isReady", "reason"}}
_MASKS = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "(uuid)"),
    (re.compile(r"(?<=Nonce: )\S+"), "(nonce)"),
)
# What is asked, line by line; `{name}` is the id of what a line `name = ...` made. After the empty line come the rows
# that workers leave.
DAY = Path(__file__).with_name("day.txt")
_LINE = re.compile(r"(?:(\w+) = )?(\w+) (\S+)(?: (.*))?")


async def lines(service: Service) -> list[str]:
    """Lives the day, and returns its answers."""
    found: list[str] = []
    hidden: list[str] = []
    ids: dict[str, int] = {}
    admin = token_of(new_user(ADMIN))
    the_market(service)
    for number, part in enumerate(DAY.read_text(encoding="utf-8").split("\n\n")):
        if number:
            ids["worked"] = what_happened(service, ids)
        for line in part.splitlines():
            named = _LINE.fullmatch(line)
            assert named is not None, line
            name, method, path, body = named.groups()
            path, body = (_filled(text, ids) for text in (path, body))
            token = admin if "/admin/" in path or "logout" in path else service.token
            answer = await service.api(method, path, body, token=token)
            if path == "/api/wallet/withdraw" and answer.status == 201:
                hidden.append(answer.json["txid"])  # the signer of tests makes it of a random number
            if name:
                ids[name] = answer.json["id"]
            found += shown(f"{method} {path}{body and f' {body}'}", answer)
    found += await signed_in(service)
    found += await of_hooks(service)
    for txid in hidden:
        found = [line.replace(txid, "(txid)") for line in found]
    return found


def _filled(text: str | None, ids: Mapping[str, int]) -> str:
    text = text or ""
    for name, value in ids.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text.replace("INSCRIPTION", INSCRIPTION).replace("OWNER", OWNER).replace("OTHER", OTHER)


async def signed_in(service: Service) -> list[str]:
    """Signs in with a signature of a challenge, then with the play wallet's, and ends one of both sessions."""
    found: list[str] = []

    async def asked(method: str, path: str, body: Any, named: str, token: str = "") -> Any:
        answer = await service.api(method, path, body, token=token)
        found.extend(shown(f"{method} {path} ({named})", answer))
        return answer.json

    def signed(message: str) -> str:
        return sign_message(proofs.STRANGER, "p2tr", message)

    service.gateway.answers |= {"play_address": OTHER, "play_signature": signed}
    opened = await asked("POST", "/api/auth/challenge", {"address": OTHER}, "of another")
    proof = {"challengeId": opened["challengeId"], "address": OTHER, "signature": signed(opened["message"])}
    token = (await asked("POST", "/api/auth/verify", proof, "signed"))["token"]
    opened = await asked("POST", "/api/auth/challenge", {"address": OTHER}, "of the play wallet")
    given = {"challengeId": opened["challengeId"]}
    proof = await asked("POST", "/api/auth/play", given, "its challenge")
    await asked("POST", "/api/auth/verify", given | proof, "signed by the play wallet")
    sessions = await asked("GET", "/api/sessions", None, "of both", token)
    ended = next(each["id"] for each in sessions if not each["isCurrent"])
    await asked("DELETE", f"/api/sessions/{ended}", None, "the other one", token)
    return found


async def of_hooks(service: Service) -> list[str]:
    """Makes a hook for mails, confirms it with its code, and delivers a test again."""
    found: list[str] = []
    token = token_of(new_user(OWNER))

    async def asked(method: str, path: str, body: Any = None) -> Any:
        answer = await service.api(method, path, body, token=token)
        found.extend(shown(f"{method} {path} {'' if body is None else json.dumps(body)}".rstrip(), answer))
        return answer.json

    mail = {"kind": "mail", "url": "mailto:ann@mail.example", "events": ["fill"]}
    one = (await asked("POST", "/api/hooks", mail))["id"]
    await asked("POST", f"/api/hooks/{one}/code")
    hook = Hook.get_by_id(one)
    queue.begin(hook, queue.next_due(hook, START_MS), lambda: "K7QM-3XWP", START_MS)
    await asked("POST", f"/api/hooks/{one}/confirm", {"code": "wrong"})
    await asked("POST", f"/api/hooks/{one}/code")
    await asked("POST", f"/api/hooks/{one}/confirm", {"code": "k7qm 3xwp"})
    tried = (await asked("POST", f"/api/hooks/{one}/test"))["id"]
    queue.sent([Delivery.get_by_id(tried)], 200, START_MS)
    await asked("POST", f"/api/hooks/{one}/deliveries/{tried}/redeliver")
    await asked("GET", f"/api/hooks/{one}/deliveries")
    return found


def the_market(service: Service) -> None:
    """Gives the marketplace books, sales, a balance, coins and items."""
    answers, vault = service.gateway.answers, keys_of(OWNER)["vault"]

    def ask(price: int, maker: str = "seller") -> Ask:
        return Ask(f"ask-{price}-{maker}", price, Decimal(1), Decimal(price), maker)

    def bid(price: int, name: str) -> Bid:
        return Bid(name, price, Decimal(1), Decimal(price), "maker", START_MS)

    Chain(service).put(keys_of(OWNER)["payment"], coin(1), coin(2, confirmed=False), coin(3))
    answers |= {
        "asks": AskBook((ask(90_000), ask(80_000), ask(90_000, vault)), START_MS),
        "bids": BidBook((bid(31_000, "rival"), bid(30_000, "mine")), START_MS),
        "own_bids": OwnBids((OwnBid("mine", "goosinals", "ordinals", 30_000, None, START_MS + 900_000, None),), 1),
        "rune_asks": AskBook((Ask("x", 1, Decimal(3), Decimal("1.25"), "seller"),), 1),
        "balance": Balance("bc1qbidding", 10_000_000, START_MS),
        "rune": "DOG•GO•TO•THE•MOON",
        "collections": (Known("ordinals", "goosinals", "The Goosinals", item=INSCRIPTION, told_ms=START_MS),),
        "trait_floors": TraitFloors((("Hat", "Red", 90_000),), START_MS),
        "item": Item(INSCRIPTION, listed=True, number=7, listing_price=9),
        "wallet_contents": (item(), item(name="", listing_price=None)),
        "whereabouts": Whereabouts(INSCRIPTION, "x:0", vault, 546, START_MS),
        "draft_listing": lambda ask: ListingDraft(f"draft at {ask['price']}", ()),
    }
    coins = answers["outpoint"]
    facts = OutpointFacts("x:0", 546, "5120", True, True, (INSCRIPTION,), (), 9, 9, None)
    answers["outpoint"] = lambda outpoint: facts if outpoint == "x:0" else coins(outpoint)


def what_happened(service: Service, ids: Mapping[str, int]) -> int:
    """Writes bids, trades, cycles, samples, a log and a journal; returns a task of which a worker made a cycle."""
    one, user = ids["one"], service.user_id
    order = open_order(service, one, 3)
    Order.update(venue_id="mine", intent="e" * 32).where(Order.id == order.id).execute()

    def buys(minute: int, price: int, **columns: Any) -> Order:
        named = {"sale_id": f"sale-{minute}", "expires_ms": START_MS + minute, "task_id": one}
        return bought(user, price, minute=minute, **named | columns)

    known = {"floor_at_fill": "100000", "network_fee_sats": 600}
    buys(1, 75_000, inscription_id=INSCRIPTION, **known)
    proved(buys(2, 80_000, inscription_id="b" * 64 + "i0", **known), 80_600)
    buys(3, 2_501, slug="DOG", quantity="1000.50", task_id=ids["rune"])
    buys(4, 900, slug="=cats", dry_run=True, trait_type="Hat", trait_value="Red")
    of_sale = {"sale_id": "sale-5", "task_id": ids["listing"], "outpoint": "e" * 64 + ":0"}
    sold(user, 105_000, minute=5, venue_fee_sats=2_100, txid="cd" * 32, **of_sale)
    cycles.record_reference("ordinals", "goosinals", "floor", Decimal("95000.70"), START_MS)
    with base.transaction():
        for number, floor in enumerate(("100000", "0.50", "1E+3")):
            sample = Sample(Decimal(floor), own_top=Decimal(75_000), open_count=2, exposure_sats=130_000)
            add_sample(one, sample, START_MS - 60_000 * number)
    Task.update(token=1).where(Task.id == one).execute()
    seen = {"taken_ms": 5, "own_asks": None}
    detail = json.dumps({"errors": ["venue away"], "seen": seen, "rungs": [{"rung": 1, "price_sats": 10}]})
    cycles.record_cycle(one, 1, time_ms=START_MS, action="none", error="venue away", detail=detail, memory="{}")
    log = service.settings.log_dir / f"task-{one}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("one\ntwo\n", encoding="utf-8")
    recorded = carried_out(entry(number, 100_000) for number in range(3))
    write(service, one, [replace(each, config=replace(each.config, slug="goosinals")) for each in recorded])
    write(service, ids["full"], [replace(recorded[-1], now_ms=START_MS - 1)])
    workers = Workers()
    worked = int(workers.task())
    workers.bidder(worked).cycle()
    Task.update(user=user).where(Task.id == worked).execute()
    return worked


def write(service: Service, task: int, recorded: Iterable[Entry]) -> None:
    """Writes the task's journal."""
    path, encoder = journal_path(service.settings.data_dir, task), Encoder()
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{encoder.line(each)}\n" for each in recorded), encoding="utf-8")


def never_answered(document: Mapping[str, Any], found: Iterable[str]) -> set[str]:
    """Returns the operations of the description of which the lines have no success."""
    succeeded = [asked for line in found if (asked := re.match(r"(\S+ [^ ?]+).* -> 2\d\d ", line))]
    every = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    return {
        name
        for name in every
        if not any(re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(name)), asked[1]) for asked in succeeded)
    }


class _Digits(str):
    """A number as it was sent."""


def shown(asked: str, answer: Answer) -> Iterator[str]:
    """Yields an answer's status and headers, then each of its values."""
    headers = [
        answer.headers[name]
        for name in ("Content-Type", "Content-Disposition", "Location", "Allow", "Retry-After", "WWW-Authenticate")
        if name in answer.headers
    ]
    yield _masked(f"{asked} -> {answer.status} {'; '.join(headers)}")
    if answer.headers.get("Content-Type") != "application/json" or asked.endswith("/export"):
        yield from (f"  {json.dumps(line, ensure_ascii=False)}" for line in answer.text.splitlines(keepends=True))
        return
    value = json.loads(answer.text, parse_int=_Digits, parse_float=_Digits)
    hidden = _HIDDEN | _OF_MACHINE.get(asked.partition(" ")[2], set())
    yield from (f"  {line}" for line in _values("", value, hidden))


def _values(place: str, value: Any, hidden: Set[str]) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name in sorted(value):
            if name in hidden and value[name] is not None:
                yield f"{place}.{name}: (masked)"
            else:
                yield from _values(f"{place}.{name}", value[name], hidden)
    elif isinstance(value, list) and value:
        for number, each in enumerate(value):
            yield from _values(f"{place}[{number}]", each, hidden)
    else:
        text = value if isinstance(value, _Digits) else json.dumps(value, ensure_ascii=False)
        yield _masked(f"{place}: {text}")


def _masked(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text
