"""Every route that asks a marketplace has an end of a few seconds, whatever the marketplace does."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from core.errors import PeerRefused
from markets.base import Rune, Unavailable
from markets.orders import OwnListings
from server import withdraw as withdrawals
from server.http.base import SignedIn
from server.urls import ROUTES
from tests.server import autolist_tasks
from tests.server.api import START_MS
from tests.server.autolist_tasks import INSCRIPTION
from tests.server.conftest import OWNER, Service, with_settings
from tests.server.driver import OPERATIONS, Driver, responses
from tests.server.peers import keys_of
from tests.server.test_profile import proof
from tests.server.withdrawals.chain import Chain, coin
from tests.server.withdrawals.test_sending import bidding

_ENDS_S = {path: handler.answers_s for path, handler in ROUTES}  # before a fixture makes them longer
_SOON_S, _LATE_S = 0.3, 20.0  # the wait of each route here, and what a busy machine may add to it
FIXED = {"priceMode": "fixed", "priceSats": 150_000}
SLOW_LISTING = {"inscriptionId": INSCRIPTION, **FIXED}
PICTURED: dict[str, object] = {"inscriptionId": "6" * 64 + "i0"}


class Slow(NamedTuple):
    """A call, and the status of its answer while no marketplace answers."""

    operation: str
    status: int
    body: Any = None
    path: str = ""  # what its {id} is: a task of this kind, else the inscription
    query: Any = None


# Whatever needs the marketplace is 504; what is known without it is answered.
CALLS = (
    Slow("getFloor", 504, query={"slug": "goosinals"}),
    Slow("getRuneMarket", 504, query={"ticker": "DOG"}),
    Slow("getBook", 504, query={"slug": "goosinals"}),
    Slow("previewTask", 504, {"slug": "goosinals", "hardcapSats": 50_000}),
    Slow("listBids", 504, path="bidding"),
    Slow("previewAutolistTask", 504, SLOW_LISTING),
    Slow("listInscriptions", 504, query={"refresh": "1"}),
    Slow("getInscription", 504, path="item", query={"refresh": "1"}),
    Slow("getInscriptionPicture", 504, path="picture"),
    Slow("withdraw", 504, {"from": "payment", "dryRun": True}),
    Slow("getPlayWallet", 504),
    Slow("signAsPlayWallet", 504, {"challengeId": "x"}),
    Slow("getWallet", 200),
    Slow("listVenues", 200),
    Slow("createTask", 201, {"slug": "SOME", "type": "rune", "hardcapSats": 50_000}),
    Slow("startTask", 200, path="bidding"),
    Slow("startAutolistTask", 200, path="listing"),
    Slow("deleteAutolistTask", 200, path="listing"),
)


@contextlib.asynccontextmanager
async def silent(service: Service) -> AsyncIterator[None]:
    """Has the gateway answer nothing during the block, and each route wait for it for a moment only."""
    service.gateway.silence = asyncio.Event()
    with pytest.MonkeyPatch.context() as short:
        for _, handler in ROUTES:
            short.setattr(handler, "answers_s", _SOON_S)
        try:
            yield
        finally:
            service.gateway.silence.set()
            service.gateway.silence = None
            while len(service.app.settings["services"].seats):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def ask_all(service: Service, drive: Driver, consent: dict[str, Any]) -> None:
    """Makes each call while no marketplace answers; `consent` proves another ordinals address."""
    bidding, listing = await service.new_task(slug="slow-cats"), await autolist_tasks.new_task(service, **SLOW_LISTING)
    paths: dict[str, dict[str, object]] = {
        "bidding": {"id": bidding},
        "listing": {"id": listing},
        "item": {"inscriptionId": INSCRIPTION},
        "picture": PICTURED,
    }
    for call in (*CALLS, Slow("changeProfile", 504, consent)):
        began = time.monotonic()
        async with silent(service):
            answer = await drive(call.operation, call.body, path=paths.get(call.path), query=call.query)
            took_s = time.monotonic() - began
        assert answer.status == call.status, (call.operation, answer.text)
        assert took_s < _LATE_S, (call.operation, took_s)
        if call.operation == "startTask":
            await drive("stopTask", path={"id": bidding})
    await drive("deleteTask", path={"id": bidding})


@with_settings(play_wallet=True)
async def test_each_route_ends_although_the_marketplace_never_answers(service: Service) -> None:
    drive = Driver(service)
    await ask_all(service, drive, await proof(service))
    described = {name for name in OPERATIONS if {502, 504} & set(responses(name))}
    assert {name for name, status in drive.seen if status == 504} == described
    wallet = await service.ask("GET", "/api/wallet")
    assert "balanceError" not in wallet.json and wallet.json["biddingWallet"] is not None


async def test_a_slow_wallet_says_what_is_known_and_what_is_not(service: Service) -> None:
    async with silent(service):
        answer = await service.ask("GET", "/api/wallet")
    assert answer.status == 200 and answer.json["payment"] and answer.json["signedSats"] is not None
    assert (answer.json["biddingWallet"], answer.json["paymentSats"]) == (None, None)
    assert answer.json["balanceError"].startswith("it has not answered in time")


async def test_a_withdrawal_is_signed_and_accepted_although_the_network_never_answers(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    Chain(service).put(keys_of(OWNER)["payment"], coin(1), coin(3))
    service.gateway.silence, service.gateway.silent = asyncio.Event(), ("broadcast",)
    monkeypatch.setattr(withdrawals, "_SENDS_S", _SOON_S)
    answer = await service.ask("POST", "/api/wallet/withdraw", {"from": "payment"})
    assert (answer.status, answer.json["state"]) == (202, "signed")
    service.gateway.silence.set()
    async with asyncio.timeout(_LATE_S):
        while (await service.ask("GET", "/api/wallet")).json["withdrawals"][0]["state"] == "signed":  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that have used up their time before their checks begin, as one does that waits for a task's lock."""
    begin = SignedIn.initialize

    def initialize(handler: SignedIn, *args: Any, **named: Any) -> None:
        begin(handler, *args, **named)
        handler.until = time.monotonic()

    monkeypatch.setattr(SignedIn, "initialize", initialize)


async def test_a_start_whose_time_is_used_up_still_checks_the_vault(service: Service, late: None) -> None:
    autolist_tasks.lies_at(service, OWNER)
    task = await autolist_tasks.new_task(service)
    answer = await autolist_tasks.call(service, "POST", task, "/start")
    assert (answer.status, service.manager.settled) == (409, [])


async def test_a_start_whose_time_is_used_up_still_checks_traits_and_spelling(service: Service, late: None) -> None:
    unknown = await service.new_task(slug="cats", bidType="trait", traitType="Hat", traitValue="Red")
    service.gateway.answers["rune"] = Unavailable()
    rune = await service.new_task(slug="examplerune", type="rune")
    service.gateway.answers |= {"traits": {"Hat": {"Blue": 1}}, "rune": Rune("EXAMPLE\u2022RUNE", 0, 1)}
    begun = await service.ask("POST", "/api/tasks/actions", {"action": "start", "ids": [unknown, rune]})
    assert [each["status"] for each in begun.json["results"]] == [400, 200]
    assert begun.json["results"][1]["body"]["slug"] == "EXAMPLE\u2022RUNE"


async def test_a_start_whose_time_is_used_up_still_checks_the_withdrawal(service: Service, late: None) -> None:
    bidding(service, Chain(service))
    service.signer.refuses_withdrawals = PeerRefused("signer", "inputs-own", "the script has none of our keys")
    task = await service.new_task()
    assert (await service.ask("POST", f"/api/tasks/{task}/start")).status == 400


async def test_a_delete_whose_time_is_used_up_still_asks_for_listings(service: Service, late: None) -> None:
    service.gateway.answers["own_listings"] = OwnListings((), START_MS)
    task = await autolist_tasks.new_task(service)
    deleted = await autolist_tasks.call(service, "DELETE", task)
    assert deleted.json == {"success": True, "listingCancelled": False}


async def test_a_withdrawal_that_cannot_be_checked_before_a_start_is_logged(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    bidding(service, Chain(service))
    service.gateway.answers["draft_withdrawal"] = Unavailable("away")
    task = await service.new_task()
    assert (await service.ask("POST", f"/api/tasks/{task}/start")).status == 200
    assert "failed to check whether user" in caplog.text


def test_no_route_waits_for_more_than_a_few_seconds() -> None:
    assert {path: ends_s for path, ends_s in _ENDS_S.items() if ends_s > 4.5} == {
        "/api/tasks/preview": 8.0,
        "/api/autolist/preview": 8.0,
        "/api/wallet/withdraw": 8.0,
        "/api/autolist/item/([^/]+)/image": 12.0,
    }
