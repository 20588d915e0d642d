"""Listings through the socket: what is shared, what is fenced, and in which order things are sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from msgspec import structs

from markets import verbs
from markets.base import LONGEST_PSBT, NotSupported, Refused, Unavailable, Unknown, VenueError
from markets.orders import ListingDraft, ListingOrder, OwnListing, SecureDraft
from tests.gateway.conftest import SOON_S, Bench, eventually, soon
from tests.gateway.fake_venue import CUT, Call
from tests.gateway.listing_examples import ASK, INSCRIPTION, ORDER, PSBT, VAULT

CONTENTS, INTENT, LIST, CANCEL = "/address/wallet-contents", "/intent/sell", "/list", "/cancel"
TAKEN = {"success": True, "data": {"listings": [{"price": 900_000, "inscriptionId": INSCRIPTION, "status": "active"}]}}
GONE = {"success": True, "data": {"success": True, "successCount": 1, "failedCount": 0}}


def _entry(inscription: str = INSCRIPTION) -> dict[str, Any]:
    return {
        "collection": {"id": "goosinals"},
        "token": {"inscription_id": inscription},
        "listing": {"price": 900_000, "secureListing": True},
    }


def _page(entries: list[Any], following: int | None = None) -> dict[str, Any]:
    return {"success": True, "data": {"results": {"ordinals": entries}, "nextCursor": following}}


@pytest.fixture
def venue(bench: Bench) -> Bench:
    bench.venue.answers |= {
        CONTENTS: _page([_entry()]),
        INTENT: {
            "data": {
                "seller": {
                    "unsignedListingPSBTBase64": PSBT,
                    "secureListingPSBTs": [{"base64": PSBT, "indicesToSign": [0]}],
                }
            }
        },
        LIST: TAKEN,
        CANCEL: GONE,
    }
    return bench


def _list(
    bench: Bench, order: ListingOrder = ORDER, *, task: int = 1, token: int = 1, within_s: float = SOON_S
) -> None:
    bench.client().list_item(order, task=task, token=token, deadline_ms=soon(within_s))


def _delist(bench: Bench, *ids: str, task: int = 1, token: int = 1) -> bool:
    return bench.client().delist(VAULT, ids or [INSCRIPTION], "AkcwRA==", task=task, token=token, deadline_ms=soon())


def _draft(bench: Bench) -> None:
    bench.client().draft_listing(ASK)


def test_own_listings_are_read_once_for_all_who_ask(venue: Bench) -> None:
    first = venue.client().own_listings(VAULT, 30)
    assert first.listings == (OwnListing(INSCRIPTION, INSCRIPTION, "goosinals", 900_000, VAULT),)
    assert venue.client().own_listings(VAULT, 30) == first
    assert len(venue.venue.of(CONTENTS)) == 1


def test_own_listings_asked_at_the_same_time_are_one_call(venue: Bench) -> None:
    venue.venue.closed_gates.add(CONTENTS)
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(venue.client().own_listings, VAULT, 30) for _ in range(3)]
        eventually(lambda: bool(venue.venue.of(CONTENTS)))
        venue.venue.closed_gates.clear()
        assert len({each.result(60) for each in asked}) == 1
    assert len(venue.venue.of(CONTENTS)) == 1


def test_own_listings_are_all_pages_or_none(venue: Bench) -> None:
    def page(call: Call) -> Any:
        at = int(call.query["cursor"])
        return _page([_entry(f"{at:064x}i0")], at + 100 if at < 200 else None)

    venue.venue.answers[CONTENTS] = page
    assert len(venue.client().own_listings(VAULT, 0).listings) == 3
    venue.venue.answers[CONTENTS] = lambda call: CUT if call.query["cursor"] == "200" else page(call)
    with pytest.raises(Unavailable):
        venue.client().own_listings(VAULT, 0)


def test_pages_without_end_are_no_answer(venue: Bench) -> None:
    venue.run(setattr, venue.gateway.venues.markets["simulator"].budget, "_tokens", 100.0)
    venue.run(setattr, venue.gateway.venues.markets["simulator"].budget, "_burst", 100)
    venue.venue.answers[CONTENTS] = lambda call: _page([_entry()], int(call.query["cursor"]) + 100)
    with pytest.raises(Unavailable, match="more listings"):
        venue.client().own_listings(VAULT, 0)


def test_listings_that_are_asked_for_one_by_one_are_asked_for_once_however_many(bench: Bench) -> None:
    """Where a creator takes a part of the price, Ordinals Wallet tells the seller's of one listing at a time."""
    ids, wallet = [f"{number:064x}i0" for number in range(45)], f"/ordinalswallet/wallet/{VAULT}/inscriptions"
    listed = {"collection": {"slug": "punks", "creator_address": "bc1qcreator"}, "escrow": {"satoshi_price": 16_000}}
    bench.venue.answers[wallet] = [{"id": each, **listed} for each in ids]
    for each in ids:
        one = {"inscription_id": each, "satoshi_price": 16_000, "escrow_price": 14_000}
        bench.venue.answers[f"/ordinalswallet/market/escrow/{each}"] = one
    budget = bench.gateway.venues.markets["simulator-ordinalswallet"].budget
    bench.run(setattr, budget, "_tokens", 100.0)
    bench.run(setattr, budget, "_burst", 100)
    market = bench.client("simulator-ordinalswallet")
    for _ in range(2):
        with pytest.raises(Unavailable, match="more listings"):
            market.own_listings(VAULT, 0)
    assert {each.price for each in market.own_listings(VAULT, 0).listings} == {14_000}
    assert len(bench.venue.calls) == 3 + 45
    found = market.own_listings(VAULT, 0).listings
    assert [(each.inscription_id, each.price) for each in found] == [(each, 14_000) for each in ids]
    assert len(bench.venue.calls) == 3 + 45 + 1


def test_a_gateway_that_is_not_the_one_any_more_lists_nothing(venue: Bench) -> None:
    venue.is_the_one = lambda: False
    with pytest.raises(Unavailable, match="another gateway has taken over; nothing was sent"):
        _list(venue)
    assert venue.venue.calls == []
    assert _delist(venue) is True


@pytest.mark.parametrize("write", [_list, _delist])
def test_after_a_write_nothing_older_is_told(venue: Bench, write: Callable[[Bench], Any]) -> None:
    client = venue.client()
    client.own_listings(VAULT, 30)
    client.wallet_contents(VAULT, 30)
    write(venue)
    client.own_listings(VAULT, 30)
    client.wallet_contents(VAULT, 30)
    assert len(venue.venue.of(CONTENTS)) == 4


def test_a_draft_is_never_shared_and_changes_nothing(venue: Bench) -> None:
    for _ in range(2):
        draft = venue.client().draft_listing(ASK)
        assert (draft.psbt, draft.secure) == (PSBT, (SecureDraft(PSBT, (0,)),))
    assert len(venue.venue.of(INTENT)) == 2
    venue.venue.answers[INTENT] = CUT
    with pytest.raises(Unavailable):
        venue.client().draft_listing(ASK)


def test_a_listing_is_sent_once(venue: Bench) -> None:
    _list(venue)
    (call,) = venue.venue.calls
    assert (call.path, call.key) == (LIST, "simulator")
    assert call.body["listings"][0]["price"] == 900_000
    assert (call.body["signedListingPSBT"], call.body["signedSecureListingPSBTs"]) == (PSBT, [PSBT])


def test_the_largest_listing_fits_through_the_socket(venue: Bench) -> None:
    psbt = "A" * LONGEST_PSBT
    _list(venue, structs.replace(ORDER, signed_psbt=psbt, unsigned_psbt=psbt, signed_secure=(psbt,)))
    assert venue.venue.calls[0].body["signedSecureListingPSBTs"] == [psbt]


@pytest.mark.parametrize(
    "order",
    [
        structs.replace(ORDER, signed_psbt="A" * (LONGEST_PSBT + 4)),
        structs.replace(ORDER, unsigned_psbt=""),
        structs.replace(ORDER, signed_secure=(PSBT,) * 9),
        structs.replace(ORDER, signed_secure=("no base64",)),
        structs.replace(ORDER, signed_secure=("A" * LONGEST_PSBT,) * 5),
        structs.replace(ORDER, payment="bc1q/../"),
        structs.replace(ORDER, payment_pubkey=""),
        *(
            structs.replace(ORDER, ask=structs.replace(ASK, **changed))
            for changed in (
                {"price": 0},
                {"price": -1},
                {"price": True},
                {"price": 9e5},
                {"price": "900000"},
                {"price": 22 * 10**14},
                {"inscription_id": "a b"},
                {"owner": ""},
                {"receive": None},
                {"tap_internal_key": "cd" * 33},
                {"tap_internal_key": "CD" * 32},
                {"outpoint": "ab:0"},
                {"outpoint": None},
                {"slug": "a,b"},
            )
        ),
    ],
)
def test_a_listing_that_is_not_as_agreed_is_not_sent(venue: Bench, order: ListingOrder) -> None:
    with pytest.raises(Refused) as raised:
        _list(venue, order)
    assert raised.value.code == "bad_request"
    assert venue.venue.calls == []


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (400, {"error": "invalid psbt"}, Refused),
        (200, {"success": True, "data": {"listings": []}}, Unknown),
        (200, b"not json", Unknown),
        (500, {"error": "no"}, Unknown),
        (200, CUT, Unknown),
    ],
)
def test_what_an_answer_to_a_list_means(venue: Bench, status: int, answer: Any, error: type[VenueError]) -> None:
    venue.venue.statuses[LIST], venue.venue.answers[LIST] = status, answer
    with pytest.raises(VenueError) as raised:
        _list(venue)
    assert type(raised.value) is error
    assert len(venue.venue.calls) == 1


@pytest.mark.parametrize("write", [_list, _delist])
def test_a_write_below_the_fence_is_not_sent(venue: Bench, write: Callable[..., Any]) -> None:
    venue.client().fence(1, 2)
    with pytest.raises(Refused) as raised:
        write(venue, token=1)
    assert raised.value.code == "stale_token"
    write(venue, token=2)
    assert len(venue.venue.calls) == 1


def test_a_queued_listing_is_dropped_by_a_fence(venue: Bench) -> None:
    venue.pause()
    with ThreadPoolExecutor(1) as threads:
        listing = threads.submit(_list, venue)
        eventually(lambda: venue.waiting() == 1)
        venue.client().fence(1, 2)
        with pytest.raises(Refused, match="newer worker"):
            listing.result(60)
    assert venue.venue.calls == []


def test_a_listing_past_its_deadline_is_not_sent(venue: Bench) -> None:
    with pytest.raises(Unavailable):
        _list(venue, within_s=-1)
    assert venue.venue.calls == []


@pytest.mark.slow
def test_a_delist_goes_before_a_read_of_own_listings_before_a_list(venue: Bench) -> None:
    venue.pause()
    turns = venue.turns()
    with ThreadPoolExecutor(4) as threads:
        for ask in (
            lambda: venue.client().wallet_contents("bc1pother", 0),
            lambda: _list(venue),
            lambda: venue.client().own_listings(VAULT, 0),
            lambda: _delist(venue),
        ):
            waiting = venue.waiting()
            threads.submit(ask)
            eventually(lambda waiting=waiting: venue.waiting() == waiting + 1)
        venue.go_on()
    paths = [(call.path, call.query.get("listedOnly")) for call in venue.venue.calls]
    assert turns == ["delist", "own_listings", "list_item", "wallet_contents"]
    assert Counter(paths) == Counter([(CANCEL, None), (CONTENTS, "true"), (LIST, None), (CONTENTS, None)])


def test_each_delisting_is_a_call_and_all_must_go(venue: Bench) -> None:
    other = "cd" * 32 + "i1"
    assert _delist(venue, INSCRIPTION, other) is True
    assert [call.body["inscriptionId"] for call in venue.venue.of(CANCEL)] == [INSCRIPTION, other]
    failed = {"success": True, "data": {"success": True, "successCount": 0, "failedCount": 1}}
    venue.venue.answers[CANCEL] = lambda call: failed if call.body["inscriptionId"] == INSCRIPTION else GONE
    assert _delist(venue, INSCRIPTION, other) is False
    assert len(venue.venue.of(CANCEL)) == 4


def test_a_delisting_whose_answer_is_lost_is_unknown_and_ends_it(venue: Bench) -> None:
    venue.venue.answers[CANCEL] = CUT
    with pytest.raises(Unknown):
        _delist(venue, INSCRIPTION, "cd" * 32 + "i1")
    assert len(venue.venue.calls) == 1


@pytest.mark.parametrize(("write", "error"), [(_list, Unknown), (_delist, Unknown), (_draft, Unavailable)])
def test_after_a_fault_of_ours_nobody_knows_whether_a_write_was_sent(
    venue: Bench, monkeypatch: pytest.MonkeyPatch, write: Callable[[Bench], Any], error: type[VenueError]
) -> None:
    async def fails(*_: object) -> None:
        raise RuntimeError("ours")

    for kind in (verbs.ListItem, verbs.Delist, verbs.DraftListing):
        monkeypatch.setitem(venue.gateway.verbs._table, kind, fails)
    with pytest.raises(VenueError) as raised:
        write(venue)
    assert type(raised.value) is error


def test_without_a_market_there_are_no_listings(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(market="satflow", satflow_url=None)
    for ask in (lambda: bench.client().own_listings(VAULT, 0), lambda: bench.client().draft_listing(ASK)):
        with pytest.raises(NotSupported):
            ask()


def test_a_listing_is_in_no_log(venue: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    _list(venue)
    _delist(venue)
    assert PSBT not in caplog.text
    assert "AkcwRA==" not in caplog.text
    assert json.loads(next(r.message for r in caplog.records if r.name == "gateway.calls"))["operation"] == "list_item"


def test_where_a_listing_is_taken_back_by_a_psbt_its_draft_goes_first_and_it_may_be_long(bench: Bench) -> None:
    actions = "/v3/market/collection/auction/"
    listed = {"auctionId": "live1", "inscriptionId": INSCRIPTION, "address": VAULT, "price": 900_000}
    bench.venue.answers |= {
        actions + "list": {"code": 0, "msg": "ok", "data": {"list": [listed], "total": 1}},
        actions + "create_put_off": {"code": 0, "msg": "ok", "data": {"psbt": PSBT, "nftSignIndexes": [0]}},
        actions + "confirm_put_off": {"code": 0, "msg": "ok", "data": {"txid": ""}},
    }
    market = bench.client("simulator-unisat")
    assert market.own_listings(VAULT, 0).listings[0].listing_id == "live1"
    assert market.draft_delist(VAULT, INSCRIPTION) == ListingDraft(PSBT, ())
    signed = "cHNidP8B" * 1000
    assert market.delist(VAULT, [INSCRIPTION], signed, task=1, token=1, deadline_ms=soon()) is True
    assert bench.venue.of(actions + "confirm_put_off")[0].body["psbt"] == signed
    for wrong in ("x", "no signature", signed * 9):
        with pytest.raises(Refused, match=r"not as agreed|length"):
            market.delist(VAULT, [INSCRIPTION], wrong, task=1, token=1, deadline_ms=soon())
    with pytest.raises(NotSupported):
        bench.client().draft_delist(VAULT, INSCRIPTION)
    with pytest.raises(Refused, match="not as agreed"):
        market.draft_delist("bc1p vault", INSCRIPTION)
