"""Ways out: inscriptions in a listing's escrow, and starts that would take money in where it could not leave."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import PeerRefused
from core.settings import DIALECTS, Settings
from markets.base import Balance, NotSupported, Unavailable, Utxo, Whereabouts
from markets.venues import facts, funding_of
from models.tasks.tasks import Task
from server import task_handler
from server.withdrawal_plan import bidding_venue
from tests.server.test_venues import REAL
from tests.server.withdrawals.chain import INSCRIPTION, ITEM, KEYS, Chain, coin, in_vault, withdraw
from tests.server.withdrawals.test_sending import bidding
from tests.wallet.listings import VAULT
from tests.worlds.service import OWNER, START_MS, Service, with_settings
from wallet.address import p2tr
from wallet.protocol import SOURCES
from wallet.psbt.script import escrow_of
from wallet.terms import ESCROW_TERMS

VAULT_KEY = VAULT.get_public_key().sec()
ESCROW = p2tr(escrow_of(VAULT_KEY, ESCROW_TERMS["simulator-ordnet"]).script[2:])
ESCROWS = {"vault_pubkey": VAULT_KEY[1:].hex(), "escrows": {ESCROW: "simulator-ordnet"}}


def in_escrow(service: Service, chain: Chain) -> None:
    service.signer.more_keys = ESCROWS
    chain.put(ESCROW, Utxo(ITEM, 10_000, True), inscriptions=(INSCRIPTION,))
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, ITEM, ESCROW, 10_000, START_MS)
    chain.put(KEYS["payment"], coin(1))


@pytest.mark.parametrize(("source", "home"), [("vault", OWNER), ("escrow", KEYS["vault"])])
async def test_an_inscription_in_its_escrow_goes_out_or_back(
    service: Service, chain: Chain, source: str, home: str
) -> None:
    in_escrow(service, chain)
    asked: list[dict[str, Any]] = []
    service.signer.before_signing = asked.append

    quote = await withdraw(service, from_=source, inscriptionId=INSCRIPTION, dryRun=True)
    answer = await withdraw(service, from_=source, inscriptionId=INSCRIPTION)

    assert (quote.json["from"], quote.json["destination"], asked[0]["source"]) == (source, home, source)
    assert (answer.status, answer.json["destination"], answer.json["coins"]) == (201, home, [ITEM, coin(1).outpoint])


@pytest.mark.parametrize(("height", "is_open"), [(900_001 - 144, True), (900_002 - 144, False), (None, False)])
async def test_an_escrow_with_a_lock_says_until_when(
    service: Service, chain: Chain, height: int | None, is_open: bool
) -> None:
    """At Ordinals Wallet our key takes the item out 144 blocks after it came there."""
    locked = p2tr(escrow_of(VAULT_KEY, ESCROW_TERMS["simulator-ordinalswallet"]).script[2:])
    service.signer.more_keys = {**ESCROWS, "escrows": {locked: "simulator-ordinalswallet"}}
    chain.put(locked, Utxo(ITEM, 10_000, True), inscriptions=(INSCRIPTION,), height=height)
    service.gateway.answers["whereabouts"] = Whereabouts(INSCRIPTION, ITEM, locked, 10_000, START_MS)
    chain.put(KEYS["payment"], coin(1))

    for source in ("escrow", "vault"):
        answer = await withdraw(service, from_=source, inscriptionId=INSCRIPTION)
        assert answer.status == (201 if is_open else 409)
        if is_open:
            break
        assert answer.json["error"] == "The inscription cannot be moved"
        told = "until block 900002, about an hour" if height else "not known since which block"
        assert told in answer.json["message"]


async def test_back_to_the_vault_goes_what_is_in_an_escrow_alone(service: Service, chain: Chain) -> None:
    in_vault(service, chain)
    chain.put(KEYS["payment"], coin(1))
    refused = await withdraw(service, from_="escrow", inscriptionId=INSCRIPTION)
    assert (refused.status, refused.json["error"]) == (409, "The inscription is not in an escrow of yours")
    assert (await withdraw(service, from_="escrow")).details == ["inscriptionId: is required from an escrow"]


async def test_whoever_signs_in_with_the_vault_gets_it_back_too(service: Service, chain: Chain) -> None:
    """Their own wallet has the key, and knows nothing of the escrow."""
    in_escrow(service, chain)
    service.signer.more_keys = {**ESCROWS, "vault": OWNER}
    assert (await withdraw(service, from_="vault", inscriptionId=INSCRIPTION)).status == 409
    answer = await withdraw(service, from_="escrow", inscriptionId=INSCRIPTION)
    assert (answer.status, answer.json["destination"]) == (201, OWNER)


NOTHING_SET = dict.fromkeys(("unisat_url", "mempool_url", "ord_url"))


async def told(service: Service, kind: str = "tasks", **fields: Any) -> tuple[int, list[str]]:
    """Creates a task and starts it; returns the status and the details of the answer."""
    body = {"inscriptionId": INSCRIPTION} if kind == "autolist" else {"slug": "goosinals", "hardcapSats": 100_000}
    made = await service.ask("POST", f"/api/{kind}", body | fields)
    assert made.status == 201, made.text
    answer = await service.ask("POST", f"/api/{kind}/{made.json['id']}/start")
    if answer.status == 400:
        assert Task.get_by_id(made.json["id"]).last_error == "; ".join(answer.details)
        await service.ask("DELETE", f"/api/{kind}/{made.json['id']}")
    return answer.status, list(answer.json.get("details", ()))


@pytest.mark.parametrize("kind", ["tasks", "autolist"])
@pytest.mark.parametrize(
    ("service", "why"),
    [
        (REAL | NOTHING_SET, "no mempool server is set (BIDKEEPER_MEMPOOL_URL)"),
        (
            REAL | NOTHING_SET | {"mempool_url": "https://mempool.example"},
            "no index of inscriptions is set (BIDKEEPER_ORD_URL, or BIDKEEPER_UNISAT_URL)",
        ),
    ],
    indirect=["service"],
)
async def test_without_sources_nothing_starts_but_dry_runs(service: Service, kind: str, why: str) -> None:
    status, details = await told(service, kind)
    assert (status, details) == (400, [f"venue: nothing could be withdrawn again: {why} (docs/withdrawing.md)"])
    assert service.manager.settled == []
    assert (await told(service, kind, dryRun=True))[0] == 200
    [task] = service.manager.settled
    live = await service.ask("PUT", f"/api/{kind}/{task}", {"dryRun": False})
    assert (live.status, live.details) == (400, details)
    assert Task.get_by_id(task).is_running and service.manager.settled == [task]


@with_settings(**REAL | NOTHING_SET | {"ord_url": "https://ord.example"})
async def test_an_index_alone_is_not_enough(service: Service) -> None:
    assert (await told(service, "autolist"))[0] == 400


async def test_a_bidding_wallet_that_the_signer_cannot_open_takes_no_bids(service: Service) -> None:
    bidding(service, Chain(service))
    service.signer.refuses_withdrawals = PeerRefused("signer", "inputs-own", "the script has no key of ours")
    text = "venue: the signer would not sign a withdrawal from its bidding wallet: inputs-own: the script has no key of"
    status, details = await told(service)
    assert status == 400 and details[0].startswith(text)
    assert (await told(service, dryRun=True))[0] == 200
    listing, _ = await told(service, "autolist")
    assert listing == 200  # what it brings in lies elsewhere


async def test_a_wallet_that_opened_once_is_not_asked_about_again(service: Service) -> None:
    bidding(service, Chain(service))
    assert (await told(service))[0] == 200
    assert (await told(service, slug="empty"))[0] == 200
    drafts = [each for each in service.gateway.asked if each["verb"] == "draft_withdrawal"]
    assert [each["args"]["amount"] for each in drafts] == [120_000]


@pytest.mark.parametrize("tag", ["inputs-confirmed", "inputs-cardinal", "fee-abs", "control-state", "locked"])
async def test_what_may_pass_does_not_object_and_is_asked_again(service: Service, tag: str) -> None:
    bidding(service, Chain(service))
    service.signer.refuses_withdrawals = PeerRefused("signer", tag, "not now")
    assert (await told(service))[0] == 200
    service.signer.refuses_withdrawals = PeerRefused("signer", "outputs-known", "never")
    assert (await told(service, slug="empty"))[0] == 400


@pytest.mark.parametrize(
    ("verb", "answer", "status"),
    [
        ("balance", Unavailable("away"), 200),
        ("draft_withdrawal", Unavailable("away"), 200),
        ("draft_withdrawal", NotSupported("no withdrawals there"), 400),
        ("coins", (), 200),
    ],
)
async def test_only_a_venue_that_cannot_draft_at_all_objects(
    service: Service, verb: str, answer: Any, status: int
) -> None:
    bidding(service, Chain(service))
    service.gateway.answers[verb] = answer
    assert (await told(service))[0] == status


async def test_a_dry_run_of_a_withdrawal_is_judged(service: Service) -> None:
    bidding(service, Chain(service))
    assert (await withdraw(service, from_="bidding", dryRun=True)).status == 200
    service.signer.refuses_withdrawals = PeerRefused("signer", "inputs-own", "not ours")
    refused = await withdraw(service, from_="bidding", dryRun=True)
    service.signer.refuses_withdrawals = PeerRefused("signer", "locked", "no passphrase")
    locked = await withdraw(service, from_="bidding", dryRun=True)
    assert (refused.status, refused.json["message"], locked.status) == (409, "inputs-own: not ours", 503)
    assert service.signer.signed == {}


@pytest.mark.parametrize("market", ["simulator", "satflow", "ordnet"])
def test_every_place_where_money_lies_has_a_withdrawal(market: str) -> None:
    """The payment address and the vault by our own keys; at each venue that takes bids, the place that backs them."""
    urls = {} if market == "simulator" else {f"{name}_url": "https://x.example" for name in DIALECTS}
    settings = Settings(market=market, **urls)
    assert {"payment", "vault"} < set(SOURCES)
    places = {}
    for venue in settings.venues:
        funding = funding_of(facts(venue, is_default=venue == market).capabilities)
        if funding is not None:
            places[venue] = funding.place
            assert funding.place in SOURCES
    wallets = [venue for venue, place in places.items() if place == "bidding"]
    assert wallets == task_handler.venues_with_bidding_wallets(settings) == [bidding_venue(settings)]
    assert sorted(places.values()) == ["bidding", "payment"]


async def test_a_second_bidding_wallet_would_not_be_taken_in(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    service.gateway.answers["balance"] = Balance("bc1qother", 5, START_MS)
    monkeypatch.setattr(task_handler, "venues_with_bidding_wallets", lambda settings: ["simulator-ordnet", "simulator"])
    status, details = await told(service, venue="simulator-ordnet")
    assert status == 400
    assert details == ["venue: its bidding wallet could not be withdrawn from: that is done at simulator"]
