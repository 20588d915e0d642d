"""Drafts of listings that the signer refused, kept for an operator and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli import refused_drafts
from core.settings import Settings
from tests.wallet.conftest import START_MS, USER, tag_of
from tests.wallet.listing_desk import TASK, Desk, desk, draft_at, listing
from tests.wallet.listings import PRICE
from wallet.learnt.refused import MOST_KEPT, REFUSED_DIRECTORY, RefusedDraft, RefusedDrafts
from wallet.protocol import read_listing

CHEAP = listing(psbt=draft_at(PRICE - 100_000), secure=[])
DRAFT = RefusedDraft(START_MS, "simulator", TASK, USER, 200_000, "payout", "too little", read_listing(CHEAP))


@pytest.fixture
def kept(tmp_path: Path) -> RefusedDrafts:
    directory = tmp_path / "signer"
    directory.mkdir()
    return RefusedDrafts(directory / REFUSED_DIRECTORY)


@pytest.fixture
def open_desk(tmp_path: Path, kept: RefusedDrafts) -> Iterator[Desk]:
    with desk(tmp_path) as opened:
        opened.signer._authority.refused = kept
        yield opened


def test_a_refused_draft_is_kept_with_its_rule_and_without_the_right_to_list(
    open_desk: Desk, kept: RefusedDrafts, tmp_path: Path
) -> None:
    tag = tag_of(lambda: open_desk.sign(CHEAP))
    (found,) = kept.all()
    assert (found.rule, found.kind, found.task, found.user, found.venue) == (tag, "plain", TASK, USER, "simulator")
    assert found.listing == read_listing(CHEAP) and found.refused_ms == START_MS and found.why
    (path,) = (tmp_path / "signer" / REFUSED_DIRECTORY).iterdir()
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert open_desk.secret not in path.read_text()


def test_a_kind_is_told_by_the_drafts() -> None:
    kinds = [
        replace(DRAFT, listing=replace(DRAFT.listing, **given)).kind for given in ({"transfer": "x"}, {"secure": ["x"]})
    ]
    assert kinds == ["escrow", "plain, secure"]


def test_an_unreadable_draft_is_kept_and_one_that_nobody_may_list_is_not(open_desk: Desk, kept: RefusedDrafts) -> None:
    tag_of(lambda: open_desk.sign(CHEAP, secret="0" * 64))
    assert kept.all() == []
    open_desk.sign(listing())
    assert kept.all() == []
    tag_of(lambda: open_desk.sign(listing(2, psbt="AAAA", secure=[])))
    assert [each.listing.psbt for each in kept.all()] == ["AAAA"]


def test_the_newest_are_kept_one_for_each_rule_of_a_task(kept: RefusedDrafts) -> None:
    for at in range(3):
        kept.keep(replace(DRAFT, refused_ms=START_MS + at))
    assert [each.refused_ms for each in kept.all()] == [START_MS + 2]
    for task in range(MOST_KEPT + 5):
        kept.keep(replace(DRAFT, task=task, refused_ms=START_MS + 10 + task))
    assert [each.task for each in kept.all()] == list(range(MOST_KEPT + 4, 4, -1))


def test_the_signer_refuses_in_the_same_words_where_nothing_can_be_kept(open_desk: Desk, tmp_path: Path) -> None:
    told = tag_of(lambda: open_desk.sign(CHEAP))
    open_desk.signer._authority.refused = RefusedDrafts(tmp_path / "not" / "there")
    assert tag_of(lambda: open_desk.sign(CHEAP)) == told


def test_an_operator_sees_them(kept: RefusedDrafts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(data_dir=tmp_path)
    assert refused_drafts.show(settings, None) == 0
    assert capsys.readouterr().out == "no draft of a listing was refused\n"
    kept.keep(DRAFT)
    kept.keep(replace(DRAFT, task=8, refused_ms=START_MS + 1000))
    (tmp_path / "signer" / REFUSED_DIRECTORY / "zz.json").write_text(json.dumps({"task": 3}))

    refused_drafts.show(settings, None)
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"1  2027-01-15 08:00:01  simulator plain, task 8, {PRICE:,} sats  payout: too little"
    assert second.startswith("2  2027-01-15 08:00:00  simulator plain, task ")

    assert refused_drafts.show(settings, 2) == 0
    told = capsys.readouterr().out
    assert f"\ndraft PSBT:\n{CHEAP['psbt']}\n" in told and CHEAP["intent"] in told
    assert "it cannot be judged now: " in told, "no signer runs here"
    assert refused_drafts.show(settings, 3) == 1
