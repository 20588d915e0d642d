"""Facts through the socket, of the gateway and of the facts process: real HTTP, sources that lie, lag or are silent."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import structs

from core.unix_http import UnixHttp
from gateway.facts_program import FactsProgram
from gateway.reads import chain
from markets.base import NotFound, NotSupported, OutpointFacts, Refused, Unavailable, VenueError
from tests.gateway.conftest import ORDER as BID
from tests.gateway.conftest import Bench, soon
from tests.gateway.fake_venue import CUT
from tests.gateway.listing_examples import INSCRIPTION, MADE, OUTPOINT, SCRIPT, TXID, as_relayed
from tests.shapes import replace

TX = f"/api/tx/{TXID}"
TIP, STATUS, OUTPUT, FOUND = "/api/blocks/tip/height", "/status", f"/output/{OUTPOINT}", f"/inscription/{INSCRIPTION}"
UTXO, RUNES = f"/v1/indexer/utxo/{TXID}/1", f"/v1/indexer/runes/utxo/{TXID}/1/balance"
INFO = f"/v1/indexer/inscription/info/{INSCRIPTION}"
SURE = OutpointFacts(
    OUTPOINT, 546, SCRIPT.hex(), True, True, (INSCRIPTION,), (), 864_351, 864_351, None, False, 0, 864_000
)
BY_ORD = {
    "confirmations": 6,
    "indexed": True,
    "inscriptions": [INSCRIPTION],
    "outpoint": OUTPOINT,
    "runes": {},
    "script_pubkey": SCRIPT.hex(),
    "spent": False,
    "value": 546,
}
BY_UNISAT = {
    "txid": TXID,
    "vout": 1,
    "satoshi": 546,
    "scriptPk": SCRIPT.hex(),
    "inscriptions": [{"inscriptionId": INSCRIPTION}],
    "isSpent": False,
}
ANSWERS: dict[str, Any] = {
    f"{TX}/hex": as_relayed(MADE).hex(),
    f"{TX}/status": {"confirmed": True, "block_height": 864_000},
    f"{TX}/outspend/1": {"spent": False},
    TIP: "864351",
    STATUS: {"chain": "mainnet", "height": 864_351, "inscription_index": True, "rune_index": True},
    OUTPUT: BY_ORD,
    FOUND: {"id": INSCRIPTION, "satpoint": f"{OUTPOINT}:0", "address": "bc1pvault", "value": 546},
    UTXO: {"code": 0, "data": BY_UNISAT},
    RUNES: {"code": 0, "data": []},
    "/v1/indexer/runes/status": {"code": 0, "data": {"bestHeight": 864_351}},
    "/v1/indexer/blockchain/info": {"code": 0, "data": {"blocks": 864_351}},
    INFO: {"code": 0, "data": {"inscriptionId": INSCRIPTION, "address": "bc1pvault", "utxo": BY_UNISAT}},
}


class FactsBench(Bench):
    """A facts process in place of the gateway, on a source that answers for all."""

    def make(self) -> FactsProgram:
        return FactsProgram(self.settings)


@pytest.fixture(params=[Bench, FactsBench])
def sources(request: pytest.FixtureRequest, make_bench: Callable[..., Bench]) -> Bench:
    """Both programs answer the same; mempool and ord are set, UniSat is not."""
    made = make_bench(kind=request.param, unisat_url=None, with_ord=True)
    made.venue.answers |= ANSWERS
    return made


@pytest.fixture
def two_indexes(make_bench: Callable[..., Bench]) -> Bench:
    made = make_bench(kind=FactsBench, with_ord=True)
    made.venue.answers |= ANSWERS
    return made


def _facts(bench: Bench, max_age_s: float = 0) -> OutpointFacts:
    return bench.client().outpoint(OUTPOINT, max_age_s)


def test_an_output_of_which_all_is_known(sources: Bench) -> None:
    assert _facts(sources) == SURE


def test_the_answer_is_an_object_with_the_names_of_the_fields(sources: Bench) -> None:
    http = UnixHttp(sources.settings.gateway_socket, 60)
    asked = {"verb": "outpoint", "args": {"outpoint": OUTPOINT}, "max_age_s": 10}
    answer = json.loads(http.post(json.dumps(asked).encode(), repeatable=True))
    http.close()
    assert answer == {"ok": structs.asdict(SURE) | {"inscriptions": [INSCRIPTION], "runes": []}}


@pytest.mark.parametrize("vout", [1, 7])
def test_the_transaction_is_told_to_whoever_asks_for_it(sources: Bench, vout: int) -> None:
    sources.venue.answers |= {f"{TX}/outspend/{vout}": {"spent": False}}
    http = UnixHttp(sources.settings.gateway_socket, 60)
    args = {"outpoint": f"{TXID}:{vout}", "with_transaction": True}
    asked = {"verb": "outpoint", "args": args, "max_age_s": 10}
    answer = json.loads(http.post(json.dumps(asked).encode(), repeatable=True))["ok"]
    http.close()
    assert answer["transaction"] == MADE.encode().hex() != as_relayed(MADE).hex()
    assert (answer["value"], answer["is_unspent"]) == ((546, True) if vout == 1 else (None, None))


def test_a_transaction_comes_with_its_short_witnesses_and_its_block(sources: Bench) -> None:
    """Its reader checks the bytes by their hash: a purchase is proved by them."""
    where = {"block_height": 864_000, "block_hash": "0a" * 32, "block_time": 1_790_000_000}
    sources.venue.answers |= {f"{TX}/status": {"confirmed": True} | where}
    found = sources.client().transaction(TXID, 0)
    assert bytes.fromhex(found.transaction) == MADE.encode() and len(found.witnesses) == len(MADE.inputs)
    assert any(found.witnesses)
    assert (found.is_confirmed, found.height, found.block, found.time_s) == (True, 864_000, "0a" * 32, 1_790_000_000)
    assert found.tip_height == 864_351
    sources.venue.answers |= {f"{TX}/status": {"confirmed": False}}
    assert sources.client().transaction(TXID, 0).is_confirmed is False
    sources.venue.answers |= {f"{TX}/status": CUT}
    assert sources.client().transaction(TXID, 0).is_confirmed is None


def test_a_long_witness_is_left_out(sources: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "MOST_WITNESS_BYTES", 1)
    assert not any(sources.client().transaction(TXID, 0).witnesses)


def test_a_txid_of_another_shape_or_another_transaction_is_refused(sources: Bench) -> None:
    with pytest.raises(Refused, match="txid"):
        sources.client().transaction("12", 0)
    sources.venue.answers |= {f"{TX}/hex": as_relayed(MADE).hex()[:-2] + "01"}
    with pytest.raises(Unavailable, match="not the one that was asked for"):
        sources.client().transaction(TXID, 0)


def test_a_transaction_that_the_network_does_not_know_is_not_found(sources: Bench) -> None:
    sources.venue.answers |= {f"{TX}/hex": "Transaction not found"}
    sources.venue.statuses |= {f"{TX}/hex": 404}
    with pytest.raises(NotFound):
        sources.client().transaction(TXID, 0)


def test_a_transaction_is_fetched_once_and_what_may_change_each_time(sources: Bench) -> None:
    for _ in range(2):
        assert _facts(sources) == SURE
    calls = {path: len(sources.venue.of(path)) for path in (f"{TX}/hex", f"{TX}/outspend/1", TIP, OUTPUT, STATUS)}
    assert calls == {f"{TX}/hex": 1, f"{TX}/outspend/1": 2, TIP: 2, OUTPUT: 2, STATUS: 2}
    assert _facts(sources, 30) == SURE
    assert len(sources.venue.of(TIP)) == 2


def test_the_index_is_asked_for_its_height_before_the_output(sources: Bench) -> None:
    _facts(sources)
    paths = [call.path for call in sources.venue.calls if call.path in (STATUS, OUTPUT)]
    assert paths == [STATUS, OUTPUT]


@pytest.mark.parametrize(
    "told",
    [
        as_relayed(replace(MADE, locktime=1)).hex(),
        as_relayed(replace(MADE, outputs=MADE.outputs[:1])).hex(),
        MADE.encode()[:-1].hex(),
        MADE.encode().hex() + "00",
        "not hex",
        "",
    ],
)
def test_a_transaction_that_is_another_one_is_none(sources: Bench, told: str) -> None:
    sources.venue.answers[f"{TX}/hex"] = told
    assert _facts(sources) == replace(SURE, value=None, script=None, is_unspent=None)


def test_a_transaction_may_come_without_its_witnesses(sources: Bench) -> None:
    sources.venue.answers[f"{TX}/hex"] = MADE.encode().hex()
    assert _facts(sources) == SURE


def test_an_output_that_the_transaction_does_not_have(sources: Bench) -> None:
    beyond = f"{TXID}:2"
    sources.venue.answers |= {f"{TX}/outspend/2": {"spent": False}, f"/output/{beyond}": {**BY_ORD, "outpoint": beyond}}
    found = sources.client().outpoint(beyond, 0)
    assert (found.value, found.script, found.is_unspent) == (None, None, None)


@pytest.mark.parametrize("silence", [CUT, b"<html>", {}, b"[1", {"error": "no"}])
@pytest.mark.parametrize(
    ("path", "lost"),
    [
        (f"{TX}/hex", {"value": None, "script": None, "is_unspent": None}),
        (f"{TX}/status", {"is_confirmed": None, "height": None}),
        (f"{TX}/outspend/1", {"is_unspent": None}),
        (TIP, {"tip_height": None}),
        (OUTPUT, {"inscriptions": None, "runes": None, "index_height": None, "item_offset": None}),
        (FOUND, {"item_offset": None}),
    ],
)
def test_a_source_that_does_not_answer_leaves_what_it_should_tell_unknown(
    two_indexes: Bench, path: str, lost: dict[str, Any], silence: Any
) -> None:
    two_indexes.venue.answers |= {path: silence, UTXO: CUT}
    assert _facts(two_indexes) == replace(SURE, **lost)


@pytest.mark.parametrize(
    ("satpoint", "offset"),
    [(f"{OUTPOINT}:545", 545), (f"{TXID}:9:0", None), (f"{OUTPOINT}:x", None), (f"{OUTPOINT}:-1", None)],
)
def test_where_on_its_output_the_inscription_is(sources: Bench, satpoint: str, offset: int | None) -> None:
    sources.venue.answers[FOUND] = {**ANSWERS[FOUND], "satpoint": satpoint}
    assert _facts(sources) == replace(SURE, item_offset=offset)


def test_an_index_that_says_nothing_of_its_height_says_nothing(sources: Bench) -> None:
    sources.venue.answers[STATUS] = {**ANSWERS[STATUS], "height": None}
    assert _facts(sources) == replace(SURE, inscriptions=None, runes=None, index_height=None, item_offset=None)


def test_an_output_that_is_not_indexed_yet(sources: Bench) -> None:
    sources.venue.answers[OUTPUT] = {**BY_ORD, "indexed": False, "confirmations": 0, "inscriptions": []}
    sources.venue.answers[f"{TX}/status"] = {"confirmed": False}
    assert _facts(sources) == replace(
        SURE, is_confirmed=False, height=None, inscriptions=None, runes=None, item_offset=None
    )


def test_a_spend_in_the_mempool(sources: Bench) -> None:
    sources.venue.answers[f"{TX}/outspend/1"] = {"spent": True, "txid": "cd" * 32, "vin": 2}
    assert _facts(sources) == replace(SURE, is_unspent=False, spent_by="cd" * 32)


def test_two_indexes_that_agree(two_indexes: Bench) -> None:
    assert _facts(two_indexes) == SURE
    assert len(two_indexes.venue.of(UTXO)) == 1


@pytest.mark.parametrize(
    ("path", "answer", "lost"),
    [
        (UTXO, {"code": 0, "data": {**BY_UNISAT, "inscriptions": []}}, {"inscriptions": None}),
        (UTXO, {"code": 0, "data": {**BY_UNISAT, "isSpent": True}}, {"is_unspent": None}),
        (UTXO, {"code": 0, "msg": "ok", "data": None}, {"is_unspent": None}),
        (UTXO, {"code": 0, "data": {**BY_UNISAT, "satoshi": 10_000}}, {"value": None}),
        (RUNES, {"code": 0, "data": [{"amount": "1", "spacedRune": "A•B"}]}, {"runes": None}),
        ("/v1/indexer/runes/status", {"code": 0, "data": {"bestHeight": 864_300}}, {"index_height": 864_300}),
    ],
)
def test_two_indexes_that_differ_are_a_doubt(two_indexes: Bench, path: str, answer: Any, lost: dict[str, Any]) -> None:
    two_indexes.venue.answers[path] = answer
    assert _facts(two_indexes) == replace(SURE, **lost)


@pytest.mark.slow
def test_a_source_that_hangs_does_not_hide_what_others_say(sources: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "PATIENCE_S", 7.0)  # of which the others need little
    sources.venue.closed_gates.add(TIP)
    assert _facts(sources) == replace(SURE, tip_height=None)


@pytest.mark.parametrize(
    "outpoint",
    [TXID, f"{TXID}:", f"{TXID}:01", f"{TXID}:-1", f"{TXID}:4294967296", f"{TXID.upper()}:1", f"{TXID}:1:0", "", "a:1"],
)
def test_what_is_no_outpoint_is_not_asked(sources: Bench, outpoint: str) -> None:
    with pytest.raises(Refused) as raised:
        sources.client().outpoint(outpoint, 0)
    assert raised.value.code == "bad_request"
    assert sources.venue.calls == []


def test_without_any_source_it_is_said(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(kind=FactsBench, market="satflow", mempool_url=None, unisat_url=None)
    with pytest.raises(NotSupported, match="MEMPOOL_URL"):
        _facts(bench)
    with pytest.raises(NotSupported, match="ORD_URL"):
        bench.client().whereabouts(INSCRIPTION, 0)


def test_where_an_inscription_is(sources: Bench) -> None:
    found = sources.client().whereabouts(INSCRIPTION, 0)
    assert (found.inscription_id, found.outpoint, found.address, found.value) == (
        INSCRIPTION,
        OUTPOINT,
        "bc1pvault",
        546,
    )
    assert sources.client().whereabouts(INSCRIPTION, 30) == found
    assert len(sources.venue.of(FOUND)) == 1


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [(404, f"inscription {INSCRIPTION} not found", NotFound), (500, "", Unavailable), (200, "<html>", Unavailable)],
)
def test_an_inscription_that_is_not_found(sources: Bench, status: int, answer: Any, error: type[VenueError]) -> None:
    sources.venue.statuses[FOUND], sources.venue.answers[FOUND] = status, answer
    with pytest.raises(VenueError) as raised:
        sources.client().whereabouts(INSCRIPTION, 0)
    assert type(raised.value) is error


def test_unisat_is_asked_where_ord_does_not_answer(two_indexes: Bench) -> None:
    two_indexes.venue.answers[FOUND] = CUT
    assert two_indexes.client().whereabouts(INSCRIPTION, 0).outpoint == OUTPOINT
    two_indexes.venue.answers[FOUND] = f"inscription {INSCRIPTION} not found"
    two_indexes.venue.statuses[FOUND] = 404
    with pytest.raises(NotFound):
        two_indexes.client().whereabouts(INSCRIPTION, 0)


@pytest.fixture
def facts_only(make_bench: Callable[..., Bench]) -> Iterator[Bench]:
    made = make_bench(kind=FactsBench, with_ord=True)
    made.venue.answers |= ANSWERS
    yield made
    assert {call.key for call in made.venue.calls} <= {None}


def test_facts_know_no_market(facts_only: Bench) -> None:
    client = facts_only.client()
    for ask in (
        lambda: client.floors(["goosinals"], "ordinals", 0),
        lambda: client.own_listings("bc1pvault", 0),
        lambda: client.challenge("bc1pvault"),
        lambda: client.fence(1, 1),
        lambda: client.place(BID, task=1, token=1, deadline_ms=soon()),
        lambda: client.profile(),
    ):
        with pytest.raises(Refused, match="no such verb"):
            ask()
    assert facts_only.venue.calls == []


def test_facts_tell_their_status(facts_only: Bench) -> None:
    _facts(facts_only)
    status = facts_only.client().status()
    assert set(status["venues"]) == {"mempool", "ord", "unisat"}
    assert status["venues"]["ord"]["calls"] == {name: {"ok": 1} for name in ("status", "output", "item_offset")}


def test_facts_answer_their_own_clients_only(make_bench: Callable[..., Bench]) -> None:
    other = os.getuid() + 1
    bench = make_bench(kind=FactsBench, facts_clients=frozenset({other}), gateway_clients=frozenset({os.getuid()}))
    with pytest.raises(Unavailable):
        bench.client().status()
