"""Learnt forms: worked out from drafts, confirmed, kept from change, and an alarm for drafts of another form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import PeerRefused
from tests.wallet.conftest import OTHER_USER, USER, tag_of
from tests.wallet.learnt_files import PRICES, a_form, change_stored
from tests.wallet.listing_desk import FACTS, SECURE_AT_PLAY, Desk, RealDesk, draft_at, listing, text
from tests.wallet.listings import PAYOUT_ADDRESS, PRICE, VAULT, VENUE_SCRIPT, Case, Form, Pay, Spend, honest, script_by
from wallet.ceilings import Ceilings
from wallet.learnt.form import LearntForm, canonical, differences, form_of, read_form
from wallet.learnt.seen import seen_in
from wallet.learnt.words import in_words
from wallet.policy import PolicyRefused
from wallet.psbt.decode import decode
from wallet.signer.learnt import kind_at
from wallet.signer.start_checks import require_agreement

AS_BEFORE = "the drafts are not of one form"


@dataclass
class Learning(Desk):
    def known(self, asked: dict[str, Any]) -> Any:
        if isinstance(asked.get("listings"), list) and self.facts:
            return {each["outpoint"]: self.facts for each in asked["listings"]}
        return super().known(asked)

    def study(self, drafts: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
        fields = {"user": USER, "venue": "simulator", "listings": drafts} | more
        return list(self.ask("study", **fields)["kinds"])

    def learn(self, drafts: list[dict[str, Any]], kind: str = "plain", digest: str = "") -> None:
        shown = next((each["digest"] for each in self.study(drafts) if each["kind"] == kind), "0" * 64)
        fields = {"user": USER, "venue": "simulator", "listings": drafts, "kind": kind, "digest": digest or shown}
        assert self.signer.outpoints_to_look_up({"op": "learn", **fields}) == (listing()["outpoint"],)
        assert self.ask("learn", **fields) == {}

    def forms(self) -> list[LearntForm]:
        answer = self.ask("learnt")
        assert answer["problem"] == ""
        return [read_form(json.loads(json.dumps(each))) for each in answer["forms"]]

    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit_path.read_text().splitlines()]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Learning]:
    with Learning.opened(tmp_path, Ceilings(secure_listings=SECURE_AT_PLAY)) as found:
        yield found


def drafts(prices: tuple[int, ...] = PRICES, secure: bool = True) -> list[dict[str, Any]]:
    return [listing(price=price, **({} if secure else {"secure": []})) for price in prices]


def changed(change: Callable[[Case], None], price: int = PRICE, form: Form = "listing") -> dict[str, Any]:
    """Returns a listing whose plain draft was changed."""
    case = honest("p2tr", form)
    case.payout.value += price - PRICE
    change(case)
    return listing(price=price, psbt=text(case.draft.encode()), secure=[])


def test_three_drafts_give_each_kinds_form(desk: Learning) -> None:
    plain, secure = desk.study(drafts())
    form = read_form(plain["form"])
    assert (plain["kind"], secure["kind"], plain["why"], secure["why"]) == ("plain", "secure", "", "")
    assert (form.venue, form.sighash, form.index, form.version, form.locktime) == ("simulator", 0x83, 0, 2, 0)
    assert (form.prices, len(set(form.drafts)), form.learnt_ms) == (PRICES, 3, desk.now_ms)
    assert [law.value(300_000, 546) for law in form.outputs[0].laws] == [310_000, 300_546]
    assert (form.outputs[0].whose, form.outputs[0].is_covered, form.inputs[0].told) == ("payment", True, "ours")
    assert read_form(secure["form"]).sighash == 0x81
    assert [len(each["judgements"]) for each in (plain, secure)] == [3, 3]
    assert desk.audited() == [] and desk.forms() == []  # to look stores nothing
    assert in_words(form)[0] == "simulator, plain listing (SINGLE|ANYONECANPAY 0x83)"
    assert "  output 0  YOUR PAYMENT ADDRESS  price + postage, or price + 10,000   <- covered" in in_words(form)


def test_the_form_that_was_shown_is_stored_and_no_other(desk: Learning) -> None:
    assert tag_of(desk.learn, drafts(), digest="ab" * 32) == "learnt-form"
    assert tag_of(desk.learn, drafts(), kind="secure-2") == "learnt-form"
    assert desk.forms() == [] and not desk.learnt_path.exists()
    desk.learn(drafts())
    desk.now_ms += 1
    desk.learn(drafts(), "secure")
    assert [(form.venue, form.kind) for form in desk.forms()] == [("simulator", "plain"), ("simulator", "secure")]
    first = desk.audited()[0]
    assert (first["operation"], first["venue"], first["kind"]) == ("learn", "simulator", "plain")
    assert (first["form_sha256"], len(first["drafts_sha256"])) == (desk.forms()[0].digest(), 3)
    assert desk.learnt_path.stat().st_mode & 0o077 == 0
    desk.restart()
    assert len(desk.forms()) == 2
    require_agreement(desk.audit_path, desk.ledger_path, desk.now_ms)  # lines about forms are no signatures


def test_a_draft_of_the_learnt_form_is_signed_at_any_price_and_postage(desk: Learning) -> None:
    desk.learn(drafts())
    desk.learn(drafts(), "secure")
    desk.sign(listing(1, 999_000))
    case = honest()
    case.own.put(b"\x01", (50_000).to_bytes(8, "little") + case.own.get(b"\x01")[8:])
    case.payout.value = 999_000 + 50_000
    desk.facts = replace(FACTS, value_sats=50_000)
    desk.sign(listing(2, 999_000, psbt=text(case.draft.encode()), secure=[]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda case: case.draft.pays.append(Pay(5, VENUE_SCRIPT)), "outputs: 2, not 1"),
        (lambda case: case.draft.spends.append(Spend(b"\x05" * 32, 0)), "inputs: 2, not 1"),
        (lambda case: setattr(case.draft, "version", 1), "version: 1, not 2"),
        (lambda case: setattr(case.draft, "locktime", 7), "locktime: 7, not 0"),
        (
            lambda case: setattr(case.own, "sequence", 0xFFFFFFFF),
            "input 0: yours, sequence 0xffffffff, not yours, sequ",
        ),
        (lambda case: setattr(case.payout, "value", PRICE), "output 0: 250000 sats, not 260000 or 260000"),
    ],
)
def test_another_form_is_refused_in_words_though_every_rule_holds(
    desk: Learning, change: Callable[[Case], None], told: str
) -> None:
    desk.sign(changed(change) | {"intent": "a" * 64})  # without a learnt form the rules alone decide
    desk.learn(drafts())
    with pytest.raises(PeerRefused, match=told) as refused:
        desk.sign(changed(change))
    assert refused.value.code == "learnt-form"
    shown = "plain draft: another form than was learnt, see bidkeeper venue learn simulator: "
    assert refused.value.message.startswith(shown)
    (judged,) = desk.ask("judge", user=USER, venue="simulator", min_price_sats=0, listing=changed(change))["judgements"]
    wrong = [(each["rule"], each["holds"]) for each in judged["findings"] if each["holds"] is not True]
    assert (wrong, judged["is_signed"]) == ([("learnt-form", False)], False)
    assert desk.ask("forget", venue="simulator") == {"forgotten": 1}
    desk.sign(changed(change))


def test_the_rules_come_first(desk: Learning) -> None:
    desk.learn(drafts())
    assert tag_of(desk.sign, changed(lambda case: setattr(case.payout, "value", PRICE - 1))) == "payout"


def test_the_secure_form_is_held_against_its_own(desk: Learning) -> None:
    desk.learn(drafts(), "secure")
    case = honest("p2tr", "secure")
    case.draft.version = 1
    unlike = listing(psbt=draft_at(PRICE), secure=[text(case.draft.encode())])
    assert tag_of(desk.sign, unlike) == "learnt-form"
    desk.sign(unlike | {"secure": []})  # of the plain kind none is learnt


def test_a_venues_own_output_is_learnt_with_its_address(desk: Learning) -> None:
    def with_fee(price: int, script: bytes = VENUE_SCRIPT) -> dict[str, Any]:
        return changed(lambda case: case.draft.pays.append(Pay(price * 25 // 1_000, script)), price)

    desk.learn([with_fee(price) for price in PRICES])
    fee = desk.forms()[0].outputs[1]
    assert (fee.whose, fee.script, fee.is_covered) == ("venue", VENUE_SCRIPT.hex(), False)
    assert any("always " in line and "2.5 % of the price" in line for line in in_words(desk.forms()[0]))
    desk.sign(with_fee(800_000) | {"intent": "1" * 64})
    with pytest.raises(PeerRefused, match=r"output 1 pays: 6a, not 0014"):
        desk.sign(with_fee(800_000, b"\x6a"))


def test_what_varies_is_not_compared(desk: Learning) -> None:
    def varying(price: int) -> dict[str, Any]:
        def change(case: Case) -> None:
            case.draft.locktime = price % 7
            case.draft.pays.append(Pay(max(600, price // 1_000), b"\x51\x20" + price.to_bytes(32, "big")))

        return changed(change, price)

    desk.learn([varying(price) for price in (PRICE, 800_000, 2_000_000)])
    form = desk.forms()[0]
    assert (form.locktime, form.outputs[1].whose, form.outputs[1].script) == (None, "varying", "")
    assert form.outputs[1].laws == ()
    assert "  output 1  somebody's, another each time  any sats" in in_words(form)
    desk.sign(varying(900_000))


def test_other_inputs_are_told_by_what_is_known_of_them(desk: Learning) -> None:
    def beside(price: int, *, told: bool) -> dict[str, Any]:
        def change(case: Case) -> None:
            case.draft.spends.append(Spend(b"\x05" * 32, 0))
            if told:
                case.draft.spends[1].put(b"\x01", (600).to_bytes(8, "little") + b"\x01\x6a")

        return changed(change, price)

    desk.learn([beside(price, told=True) for price in PRICES])
    assert [each.told for each in desk.forms()[0].inputs] == ["ours", "told"]
    with pytest.raises(PeerRefused, match="input 1: an unknown one, sequence 0xfffffffd, not somebody's"):
        desk.sign(beside(PRICE, told=False))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (drafts((PRICE, PRICE, PRICE)), "learnt-form: 1 prices do not tell how the outputs follow from the price"),
        (drafts((PRICE, 2 * PRICE)), "learnt-form: 2 prices do not tell"),
        (drafts((PRICE, PRICE + 1, PRICE + 99_999)), "learnt-form: the prices lie less than 100000 sats apart"),
        (
            [*drafts(secure=False)[:2], changed(lambda case: case.draft.pays.append(Pay(5, b"\x6a")), 700_000)],
            AS_BEFORE,
        ),
        (
            [changed(lambda case: None, price, "OKX") for price in (PRICE, 700_000)] + drafts((900_000,), False),
            AS_BEFORE,
        ),
        (
            [changed(lambda case: setattr(case.payout, "value", case.payout.value**2), price) for price in PRICES],
            "learnt-form: no law explains the sats of output 0: 67600000000, 68121000000, 260100000000",
        ),
        ([changed(lambda case: setattr(case.payout, "value", 5)), *drafts()], "payout: the seller is paid 5 sats"),
        ([listing(psbt="AAAA")], "psbt-strict: "),
    ],
)
def test_what_is_not_one_form_is_not_learnt(desk: Learning, asked: list[dict[str, Any]], why: str) -> None:
    asked = [each | {"secure": []} for each in asked]
    (plain,) = desk.study(asked)
    assert (plain["form"], plain["digest"]) == (None, "") and why in plain["why"]
    assert tag_of(desk.learn, asked, digest="0" * 64) in ("learnt-form", "payout", "psbt-strict")
    assert not desk.learnt_path.exists()


def test_each_draft_is_held_against_the_first(desk: Learning) -> None:
    def two(case: Case) -> None:
        case.draft.pays.append(Pay(5, b"\x6a"))

    for odd in range(3):
        asked = [
            changed(two, price) if at == odd else changed(lambda case: None, price) for at, price in enumerate(PRICES)
        ]
        assert AS_BEFORE in desk.study(asked)[0]["why"]


def test_an_output_of_the_vault_is_told(desk: Learning) -> None:
    desk.learn(
        [changed(lambda case: case.draft.pays.append(Pay(5, script_by("p2tr", VAULT))), each) for each in PRICES]
    )
    assert "  output 1  YOUR VAULT  5, or postage - 9,995" in in_words(desk.forms()[0])


def test_of_many_differences_three_are_told(desk: Learning) -> None:
    def all_else(case: Case) -> None:
        case.draft.version, case.draft.locktime, case.own.sequence = 1, 7, 0xFFFFFFFF
        case.draft.pays.append(Pay(5, b"\x6a"))

    desk.learn(drafts())
    with pytest.raises(PeerRefused) as refused:
        desk.sign(changed(all_else))
    assert refused.value.message.count("; ") == 2


def test_the_digest_is_of_all_but_the_time() -> None:
    assert a_form().digest() == replace(a_form(), learnt_ms=6).digest()
    assert len({each.digest() for each in (a_form(), a_form("satflow"), replace(a_form(), drafts=("a",)))}) == 3
    assert canonical({"b": [1], "a": None}) == b'{"a":null,"b":[1]}'


def test_drafts_of_different_numbers_are_not_compared(desk: Learning) -> None:
    assert tag_of(desk.study, [*drafts((PRICE,)), *drafts((2 * PRICE,), secure=False)]) == "learnt-form"


def test_a_single_draft_teaches_all_but_the_sats(desk: Learning) -> None:
    desk.learn(drafts((PRICE,), secure=False))
    assert desk.forms()[0].outputs[0].laws == ()
    desk.sign(listing(1, 700_000, psbt=draft_at(900_000), secure=[]))
    other_input = changed(lambda case: case.draft.spends.append(Spend(b"\x05" * 32, 0)), 700_000)
    assert tag_of(desk.sign, other_input | {"intent": "2" * 64}) == "learnt-form"


def test_drafts_without_a_listings_sighash_have_no_form() -> None:
    seen = seen_in(decode(honest().draft.encode()), 0, PRICE, 546, {})
    for odd in (None, 0x82, 1):
        with pytest.raises(PolicyRefused, match="the drafts ask for no sighash of a listing"):
            form_of("satflow", "plain", [replace(seen, sighash=odd)], 0)


def test_two_postages_tell_postage_from_fixed_sats(desk: Learning) -> None:
    first = decode(honest().draft.encode())
    seen = [seen_in(first, 0, 300_000, postage, {}) for postage in (10_000, 546)]
    assert [each.postage for each in seen] == [10_000, 546]
    desk.learn(drafts())
    form = desk.forms()[0]
    assert differences(form, replace(seen[0], outputs=(replace(seen[0].outputs[0], value=310_000),))) == [
        "output 0: not ours, not your payment address"
    ]


def test_a_secure_form_that_is_not_signed_can_be_learnt_all_the_same(tmp_path: Path) -> None:
    with Learning.opened(tmp_path) as found:
        secure = found.study(drafts())[1]
        wrong = {each["rule"] for each in secure["judgements"][0]["findings"] if each["holds"] is not True}
        assert (wrong, secure["why"]) == ({"op-allowed"}, "")


@pytest.mark.parametrize("at_real", [True, False])
def test_play_and_real_keys_learn_at_their_own_venues(tmp_path: Path, at_real: bool) -> None:
    kind = RealDesk if at_real else Desk
    with kind.opened(tmp_path) as found:
        asked = {"op": "study", "user": USER, "venue": "simulator", "listings": drafts(secure=False)}
        told = found.signer.handle(asked, {each["outpoint"]: FACTS for each in drafts()})["kinds"][0]["why"]
        assert told == ("market: real keys do not sign for simulator" if at_real else "")


def test_nobody_gets_keys_by_asking(desk: Learning) -> None:
    assert tag_of(desk.study, drafts(), user=OTHER_USER) == "dest-allow"
    assert desk.keys.users == (USER,)


def test_the_holder_of_an_address_is_found(desk: Learning) -> None:
    keys = desk.ask("addresses", user=USER) | {"escrows": {}}
    for address in ("", USER, PAYOUT_ADDRESS, keys["vault"]):
        assert desk.ask("holder", address=address) == {"user": USER, "keys": keys}
    assert tag_of(desk.ask, "holder", address=OTHER_USER) == "dest-allow"
    desk.keys.users = (USER, OTHER_USER)  # type: ignore[misc]
    assert tag_of(desk.ask, "holder", address="") == "dest-allow"
    assert desk.ask("holder", address=OTHER_USER)["user"] == OTHER_USER


@pytest.mark.parametrize(
    "asked",
    [
        {"op": "study", "user": USER, "venue": "simulator", "listings": []},
        {"op": "study", "user": USER, "venue": "simulator", "listings": [listing()] * 10},
        {"op": "study", "user": USER, "venue": "simulator", "listings": "x"},
        {"op": "study", "user": USER, "venue": "", "listings": [listing()]},
        {"op": "study", "user": USER, "venue": "simulator", "listings": [listing()], "more": 1},
        {"op": "learn", "user": USER, "venue": "simulator", "listings": [listing()]},
        {
            "op": "learn",
            "user": USER,
            "venue": "simulator",
            "listings": [listing()],
            "kind": "plain",
            "digest": "A" * 64,
        },
        {"op": "learn", "user": USER, "venue": "simulator", "listings": [listing()], "kind": 1, "digest": "a" * 64},
        {"op": "learnt", "venue": "simulator"},
        {"op": "forget"},
        {"op": "forget", "venue": 1},
        {"op": "holder", "address": 1},
    ],
)
def test_a_misshapen_question_is_refused(desk: Learning, asked: dict[str, Any]) -> None:
    assert tag_of(desk.signer.handle, asked) == "bad-request"


def test_the_most_drafts_are_taken(desk: Learning) -> None:
    assert desk.study(drafts((*range(300_000, 308_000, 1_000), 400_000)))[0]["why"] == ""


def test_the_outputs_of_all_drafts_are_looked_up_once(desk: Learning) -> None:
    request = {"op": "study", "user": USER, "venue": "simulator", "listings": drafts()}
    assert desk.signer.outpoints_to_look_up(request) == (listing()["outpoint"],)
    assert tag_of(desk.signer.outpoints_to_look_up, request | {"more": 1}) == "bad-request"


def test_without_facts_nothing_is_learnt(desk: Learning) -> None:
    desk.facts = None
    assert desk.study(drafts())[0]["why"].startswith("inputs-confirmed: ")
    desk.facts = replace(FACTS, value_sats=None)
    assert desk.study(drafts())[0]["why"].startswith("amount-proof: ")
    (judged, _) = desk.ask("judge", user=USER, venue="simulator", min_price_sats=0, listing=listing())["judgements"]
    assert {"rule": "learnt-form", "holds": None, "why": "it waits for amount-proof"} in judged["findings"]


def test_with_a_changed_file_the_signer_signs_no_listing(desk: Learning) -> None:
    desk.learn(drafts())
    change_stored(desk.learnt_path)
    desk.restart()
    assert tag_of(desk.sign, listing()) == "learnt-form"
    assert "is not believed" in desk.ask("learnt")["problem"]
    assert tag_of(desk.learn, drafts()) == "learnt-form"
    assert tag_of(desk.ask, "forget", venue="simulator") == "learnt-form"
    assert desk.ask("forget", venue="") == {"forgotten": 0}
    assert desk.audited()[-1]["operation"] == "forget"
    desk.sign(listing())
    desk.restart()
    assert desk.forms() == []


def test_forgetting_is_noted(desk: Learning) -> None:
    assert desk.ask("forget", venue="simulator") == {"forgotten": 0} and desk.audited() == []
    desk.learn(drafts())
    assert desk.ask("forget", venue="simulator") == {"forgotten": 1}
    assert [(each["operation"], each["venue"]) for each in desk.audited()] == [
        ("learn", "simulator"),
        ("forget", "simulator"),
    ]


def test_a_signer_without_a_place_for_forms_goes_by_its_rules(desk: Learning) -> None:
    desk.signer._authority.learnt = None
    desk.sign(listing())
    assert desk.ask("learnt") == {"forms": [], "problem": ""} and desk.ask("forget", venue="") == {"forgotten": 0}
    assert tag_of(desk.learn, drafts(tuple(price * 4 for price in PRICES))) == "learnt-form"


def test_locked_it_tells_nothing(desk: Learning) -> None:
    desk.signer._authority.keystore = None
    for op, fields in (("learnt", {}), ("forget", {"venue": ""}), ("holder", {"address": ""})):
        assert tag_of(desk.ask, op, **fields) == "locked"


def test_kinds_have_names() -> None:
    assert [kind_at(at) for at in range(4)] == ["plain", "secure", "secure-2", "secure-3"]
