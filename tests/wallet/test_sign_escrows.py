"""Listings in escrow at the signer: one intent signs transfer, sale and recovery, or nothing."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.errors import PeerRefused
from core.settings import Settings
from simulator.venue_scripts import MARKET, xonly
from tests.shapes import replace
from tests.wallet.escrows import FORMS, OURS, THEIRS, Case, honest, of_facts
from tests.wallet.listings import PAYOUT_SCRIPT, PRICE, VENUE, Draft, Pay
from tests.wallet.psbt_oracle import parse
from tests.wallet.test_psbt_sign import is_valid
from tests.worlds.signer import USER, Desk, desk, listing, listing_intent, outpoints_to_look_up, signer_answer, tag_of
from wallet.psbt.common import OutpointFacts
from wallet.psbt.transaction import DEFAULT, SECURE_LISTING, Outpoint, taproot_digest
from wallet.signer.audit import verify_chain
from wallet.signer.withdrawals import with_witnesses
from wallet.terms import ESCROW_TERMS, Ceilings, EscrowForm, EscrowTerms, escrow_terms_of

ORDNET, ORDINALSWALLET = "simulator-ordnet", "simulator-ordinalswallet"
TERMS = {"simulator-ordnet": EscrowTerms("ordnet", THEIRS, 330)}
TERMS["simulator-ordinalswallet"] = EscrowTerms("ordinalswallet", THEIRS, 330)
CEILINGS = Ceilings(escrow_terms=TERMS, secure_listings=frozenset({ORDNET}))
VENUE_OF: dict[EscrowForm, str] = {"ordnet": ORDNET, "ordinalswallet": ORDINALSWALLET}


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path, CEILINGS) as opened:
        opened.facts = honest("ordnet").facts
        yield opened


def psbts(case: Case) -> dict[str, str]:
    drafts = case.drafts()
    found = {"psbt": drafts.sale, "transfer": drafts.transfer, "recovery": drafts.recovery or b""}
    return {name: b64encode(raw).decode() for name, raw in found.items()}


def asked(case: Case, number: int = 1, price: int = PRICE, **changes: Any) -> dict[str, Any]:
    fields = {"secure": [], "outpoint": str(case.intent.outpoint)} | psbts(case)
    return listing(number, price, **(fields | changes))


def priced(case: Case, price: int) -> Case:
    case.sale.pays[0].value = price
    return case


def sign(opened: Desk, request: dict[str, Any], venue: str = ORDNET, token: int = 6) -> dict[str, Any]:
    return opened.sign(request, opened.grant(venue=venue, token=token), token=token)


def refusal(opened: Desk, request: dict[str, Any], venue: str = ORDNET, token: int = 6) -> str:
    with pytest.raises(PeerRefused) as refused:
        sign(opened, request, venue, token)
    return refused.value.code


@pytest.mark.parametrize("form", FORMS)
def test_one_intent_signs_all_that_the_listing_needs(open_desk: Desk, engine: ModuleType, form: EscrowForm) -> None:
    case = honest(form)
    answer = sign(open_desk, asked(case), VENUE_OF[form])
    approved = case.check()
    assert (bool(answer["recovery"]), answer["secure"]) == (form == "ordnet", [])
    sale, transfer = (dict(parse(b64decode(answer[name])).maps[1]) for name in ("psbt", "transfer"))
    leaf = approved.escrow.sale
    digest = taproot_digest(approved.sale.transaction, 0, (approved.held,), DEFAULT, leaf.hash)
    theirs = VENUE.schnorr_sign(digest).serialize()
    stack = [theirs, sale[b"\x14" + OURS + leaf.hash], leaf.script, leaf.control_block]
    assert is_valid(engine, with_witnesses(approved.sale.transaction, [stack]), 0, [approved.held])
    spent, moved = approved.transfer.spent, approved.transfer.psbt.transaction
    others: list[list[bytes]] = [[]] * (len(spent) - 1)
    assert is_valid(engine, with_witnesses(moved, [[transfer[b"\x13"]], *others]), 0, list(spent))
    if approved.recovery is not None:
        back = dict(parse(b64decode(answer["recovery"])).maps[1])
        assert is_valid(engine, with_witnesses(approved.recovery.transaction, [[back[b"\x13"]]]), 0, [approved.held])


def test_it_is_in_the_log_before_it_is_handed_out_and_the_same_when_asked_again(open_desk: Desk) -> None:
    case = honest("ordnet")
    first = sign(open_desk, asked(case))
    open_desk.facts = None
    assert open_desk.sign(asked(case), open_desk.grant(venue=ORDNET, token=7), token=7) == first
    assert open_desk.ask("was_signed", intent=listing_intent(1)) == {"signed": True}
    assert open_desk.ask("lowest_listing", outpoint=str(case.intent.outpoint)) == {"price": PRICE}
    [line] = map(json.loads, open_desk.audit_path.read_text().splitlines())
    transfer, sale, recovery = (parse(b64decode(psbts(case)[name])) for name in ("transfer", "psbt", "recovery"))
    assert (line["operation"], line["price"], line["payouts"], line["is_secure"]) == ("list", PRICE, [PRICE], False)
    assert line["escrow"] == str(case.check().outpoint)
    assert len(line["unsigned_txids"]) == len({str(each) for each in (transfer, sale, recovery)}) == 3
    assert verify_chain(open_desk.audit_path) == 1


def test_without_an_audit_line_nothing_is_signed(open_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(type(open_desk.audit), "append", full)
    with pytest.raises(OSError, match="no space"):
        sign(open_desk, asked(honest("ordnet")))
    monkeypatch.undo()
    assert open_desk.ask("was_signed", intent=listing_intent(1)) == {"signed": False}


@pytest.mark.parametrize("changed", ["psbt", "transfer", "recovery"])
def test_an_intent_is_one_set_of_drafts(open_desk: Desk, changed: str) -> None:
    sign(open_desk, asked(honest("ordnet")))
    assert refusal(open_desk, asked(honest("ordnet"), **{changed: "QQ=="}), token=7) == "intent-conflict"


@pytest.mark.parametrize("liar", ["psbt", "transfer", "recovery"])
def test_one_draft_that_lies_and_nothing_is_signed(open_desk: Desk, liar: str) -> None:
    assert refusal(open_desk, asked(honest("ordnet"), **{liar: "QQ=="})) == "psbt-strict"
    assert (open_desk.audit_path.read_bytes(), open_desk.ask("was_signed", intent=listing_intent(1))["signed"]) == (
        b"",
        False,
    )


def test_parts_of_one_are_none(open_desk: Desk) -> None:
    case = honest("ordnet")
    assert refusal(open_desk, asked(case, transfer="")) == "psbt-strict"
    assert refusal(open_desk, asked(case, recovery=""), token=7) == "recovery"
    assert refusal(open_desk, asked(case, transfer="", recovery=""), token=8) == "inputs-reserved"
    secure = [b64encode(case.drafts().sale).decode()]
    assert refusal(open_desk, asked(case, secure=secure), token=9) == "escrow"


def test_where_no_escrow_is_known_none_is_filled(open_desk: Desk) -> None:
    assert refusal(open_desk, asked(honest("ordnet")), "simulator-unisat") == "escrow"


def test_another_key_of_the_venues_is_told_and_the_operator_may_name_it(tmp_path: Path) -> None:
    stranger = "11" * 32
    terms = escrow_terms_of(Settings(ordnet_listing_key=stranger))
    assert terms["ordnet"] == replace(ESCROW_TERMS["ordnet"], cosigner=bytes.fromhex(stranger))
    known = escrow_terms_of(Settings())
    assert known == {name: ESCROW_TERMS[name] for name in ("ordnet", ORDNET)}, "Ordinals Wallet's are not turned on"
    assert escrow_terms_of(Settings(ordinalswallet_protected_listings=True)) == ESCROW_TERMS
    assert ESCROW_TERMS[ORDNET].cosigner == xonly(MARKET), "the practice market's own"
    with desk(tmp_path, replace(CEILINGS, escrow_terms=escrow_terms_of(Settings()))) as opened:
        opened.facts = honest("ordnet").facts
        assert refusal(opened, asked(honest("ordnet"))) == "escrow"


def test_the_users_escrows_are_told_with_the_other_addresses(open_desk: Desk) -> None:
    found = open_desk.ask("addresses", user=USER)["escrows"]
    assert set(found.values()) >= {ORDNET, ORDINALSWALLET}
    assert open_desk.ask("addresses", user=USER)["vault"] not in found


def test_prices_fall_slowly_and_never_below_the_grants_here_too(open_desk: Desk) -> None:
    sign(open_desk, asked(priced(honest("ordnet"), 300_000), 1, 300_000))
    low = asked(priced(honest("ordnet"), PRICE), 2, PRICE)
    assert refusal(open_desk, low, token=7) == "list-lower"
    assert refusal(open_desk, asked(priced(honest("ordnet"), 150_000), 3, 150_000), token=8) == "list-min"
    open_desk.now_ms += 3_600_001
    assert sign(open_desk, low, token=9)


def test_a_fee_that_the_operator_declared_is_left_to_the_venue(tmp_path: Path) -> None:
    net = priced(honest("ordnet"), PRICE - PRICE // 100)
    with desk(tmp_path, replace(CEILINGS, seller_fee_ppm={ORDNET: 10_000})) as opened:
        opened.facts = net.facts
        assert sign(opened, asked(net))
        assert refusal(opened, asked(priced(net, PRICE - PRICE // 100 - 1), 2), token=7) == "payout"


def other_item() -> tuple[dict[str, Any], OutpointFacts, str]:
    """A secure listing of another item with the same payout, plain beside it a sat dearer."""
    case = honest("ordnet")
    txid, item = b"\x0b" * 32, "0b" * 32 + "i0"
    own = case.transfer.spends[0]
    own.txid, own.vout = txid, 0
    own.put(b"\x03", SECURE_LISTING.to_bytes(4, "little"))
    secure = Draft([own], [Pay(PRICE, PAYOUT_SCRIPT)])
    plain = Draft([case.copy().transfer.spends[0]], [Pay(PRICE + 1, PAYOUT_SCRIPT)])
    plain.spends[0].put(b"\x03", (0x83).to_bytes(4, "little"))
    outpoint = Outpoint(txid, 0)
    of_facts(case, outpoint=outpoint, inscriptions=(item,))
    assert case.facts is not None
    forms = [b64encode(each.encode()).decode() for each in (plain, secure)]
    request = listing(9, PRICE, inscription_id=item, outpoint=str(outpoint), psbt=forms[0], secure=forms[1:])
    return request, case.facts, item


@pytest.mark.parametrize("escrow_first", [True, False])
def test_one_payment_never_buys_it_and_a_secure_listing_of_another_item(open_desk: Desk, escrow_first: bool) -> None:
    """Rule S7: the sale's payout counts for the escrow's output, which is what it sells."""
    request, facts, item = other_item()
    in_escrow = honest("ordnet").facts

    def sign_other() -> dict[str, Any]:
        open_desk.facts = facts
        secret = open_desk.grant(venue=ORDNET, token=20, task=77, inscription_id=item)
        return open_desk.sign(request, secret, task=77, token=20)

    def sign_escrow() -> dict[str, Any]:
        open_desk.facts = in_escrow
        return sign(open_desk, asked(honest("ordnet")))

    first, second = (sign_escrow, sign_other) if escrow_first else (sign_other, sign_escrow)
    assert first()
    assert tag_of(second) == "outputs-unique"
    open_desk.facts = in_escrow
    assert sign(open_desk, asked(priced(honest("ordnet"), PRICE + 1_000), 3, PRICE + 1_000), token=30)


def test_the_payout_is_the_escrows_own_whatever_becomes_of_the_output_before_it(open_desk: Desk) -> None:
    """The transfer may get into a block without the sale, whose signature is good while the escrow is there."""
    case = honest("ordnet")
    sign(open_desk, asked(case))
    request, facts, item = other_item()
    secret = open_desk.grant(venue=ORDNET, token=20, task=77, inscription_id=item)
    wanted = {"op": "sign_listing", "task": 77, "token": 20, "secret": secret, "listing": request}
    assert outpoints_to_look_up(open_desk.signer, wanted) == (request["outpoint"], str(case.check().outpoint))
    assert case.facts is not None
    gone = replace(case.facts, is_unspent=False, is_spent_in_block=True)
    known = {request["outpoint"]: facts, str(case.intent.outpoint): gone}
    assert tag_of(signer_answer, open_desk.signer, wanted, known) == "outputs-unique"
    escrow = replace(gone, outpoint=case.check().outpoint)
    assert signer_answer(open_desk.signer, wanted, known | {str(escrow.outpoint): escrow})


def test_its_user_keeps_a_place_while_it_can_be_bought(open_desk: Desk) -> None:
    case = honest("ordnet")
    sign(open_desk, asked(case))
    in_a_year = open_desk.now_ms + 365 * 86_400_000
    assert open_desk.ledger.users_in_need(in_a_year) == 1
    open_desk.ledger.payouts.delete(str(case.check().outpoint))
    assert open_desk.ledger.users_in_need(in_a_year) == 0


def test_the_judge_says_what_each_of_the_three_would_promise(open_desk: Desk) -> None:
    def judged(case: Case, **changes: Any) -> list[dict[str, Any]]:
        venue = VENUE_OF[case.form]
        fields = {"user": USER, "venue": venue, "min_price_sats": 1, "listing": asked(case, **changes)}
        found: list[dict[str, Any]] = open_desk.ask("judge", **fields)["judgements"]
        return found

    case = honest("ordnet")
    sale, transfer, recovery = judged(case)
    assert [each["form"] for each in (sale, transfer, recovery)] == ["sale", "transfer", "recovery"]
    assert all(each["is_signed"] for each in (transfer, sale, recovery))
    assert (sale["payout_sats"], sale["least_sats"]) == (PRICE, PRICE)
    assert [side["is_covered"] for side in transfer["inputs"]] == [True, True]
    assert [(side["is_ours"], side["is_covered"]) for side in sale["inputs"] + sale["outputs"]] == [(True, True)] * 2
    assert open_desk.audit_path.read_bytes() == b"", "nothing is signed"

    evil = judged(priced(honest("ordnet"), PRICE - 1))
    assert not any(each["is_signed"] for each in evil)
    assert {finding["rule"] for finding in evil[0]["findings"] if finding["holds"] is False} == {"payout"}
    unread = judged(case, transfer="QQ==")
    assert {finding["rule"] for finding in unread[0]["findings"] if finding["holds"] is False} == {"psbt-strict"}
    assert [each["form"] for each in judged(honest("ordinalswallet"))] == ["sale", "transfer"]
    open_desk.facts = None
    assert [(each["is_signed"], each["least_sats"]) for each in judged(case)] == [(False, None)] * 3
    assert (
        tag_of(open_desk.ask, "judge", user=USER, venue="simulator-unisat", min_price_sats=1, listing=asked(case))
        == "escrow"
    )
