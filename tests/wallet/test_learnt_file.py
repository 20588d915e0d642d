"""The file of learnt forms: kept from change by its seal, and known to the audit log."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.wallet.learnt_files import a_form, change_stored, stored
from wallet.keystore.keystore_file import beside
from wallet.learnt.form import canonical
from wallet.learnt.store import LearntForms, last_digest
from wallet.signer.audit import AuditLog


def test_what_is_stored_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "learnt.json"
    digest = stored(path, a_form(), a_form("satflow"), a_form("satflow", "secure"))
    found = LearntForms(path, b"k" * 32, digest)
    assert [(form.venue, form.kind) for form in found.all()] == [
        ("satflow", "plain"),
        ("satflow", "secure"),
        ("simulator", "plain"),
    ]
    assert found.of("satflow", "secure") == a_form("satflow", "secure") and found.of("unisat", "plain") is None
    told: list[str] = []
    assert (found.forget("unisat", told.append), told) == (0, [])
    assert (found.forget("satflow", told.append), len(found.all()), len(told)) == (2, 1, 1)
    assert [form.venue for form in LearntForms(path, b"k" * 32, told[0]).all()] == ["simulator"]
    assert (found.forget("", told.append), found.all()) == (1, [])


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (change_stored, "it was changed, or is of other keys"),
        (lambda path: path.unlink(), "it is gone"),
        (lambda path: path.write_text("{"), "Expecting"),
        (lambda path: path.write_text("[]"), "it holds no forms"),
        (lambda path: path.write_text("{}"), "it holds no forms"),
        (lambda path: path.write_text('{"forms": []}'), "it holds no forms"),
        (lambda path: path.write_bytes(b"\xff"), "decode"),
        (lambda path: path.write_text('{"forms": [], "hmac": "\u00e9"}'), "it was changed, or is of other keys"),
        (lambda path: path.write_text("[" * 100_000), "while decoding a JSON array"),
        (lambda path: shutil.copy(path.with_name("older.json"), path), "it is not the one that was stored last"),
        (lambda path: shutil.copy(path.with_name("others.json"), path), "it was changed, or is of other keys"),
    ],
)
def test_a_file_that_was_changed_copied_or_lost_is_not_believed(
    tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    path = tmp_path / "learnt.json"
    stored(path, a_form())
    shutil.copy(path, tmp_path / "older.json")
    path.unlink()
    stored(path, a_form("satflow"), key=b"o" * 32)
    path.rename(tmp_path / "others.json")
    digest = stored(path, a_form(), a_form("satflow"))
    assert LearntForms(path, b"k" * 32, digest).problem == ""
    harm(path)
    broken = LearntForms(path, b"k" * 32, digest)
    assert why in broken.problem and broken.problem.endswith("bidkeeper venue learnt forget --all, then learn again")
    for ask in (broken.all, lambda: broken.of("unisat", "plain"), lambda: broken.put(a_form(), print)):
        with pytest.raises(Exception, match="is not believed") as refused:
            ask()
        assert getattr(refused.value, "tag", "") == "learnt-form"
    with pytest.raises(Exception, match="is not believed"):
        broken.forget("satflow", print)
    told: list[str] = []
    assert (broken.forget("", told.append), broken.all(), broken.problem) == (0, [], "")
    assert LearntForms(path, b"k" * 32, told[0]).problem == ""


def test_a_file_of_a_later_version_says_so(tmp_path: Path) -> None:
    path = tmp_path / "learnt.json"
    store = LearntForms(path, b"k" * 32, "none")
    for odd in ({"more": 1}, {"inputs": 5}):
        listed = [asdict(a_form()) | odd]
        stored = json.loads(json.dumps({"forms": listed, "hmac": ""}))
        stored["hmac"] = store._seal(stored["forms"])
        path.write_text(json.dumps(stored))
        digest = hashlib.sha256(canonical(stored)).hexdigest()
        assert "it was written by another version" in LearntForms(path, b"k" * 32, digest).problem


def test_a_change_that_could_not_be_noted_is_not_made(tmp_path: Path) -> None:
    def failing(digest: str) -> None:
        raise OSError("the disk is full")

    path = tmp_path / "learnt.json"
    store = LearntForms(path, b"k" * 32, "none")
    with pytest.raises(OSError, match="the disk is full"):
        store.put(a_form(), failing)
    assert not path.exists() and store.all() == []


class Killed(BaseException):
    pass


def killed(*_: object) -> None:
    raise Killed


def stop_writing(path: Path, stored: object) -> None:
    path.write_text(json.dumps(stored)[:-20])
    raise Killed


def take_and_stop(path: Path) -> None:
    beside(path).replace(path)
    raise Killed


@pytest.mark.parametrize(
    ("where", "how", "is_stored"),
    [
        ("wallet.keystore.keystore_file.put", stop_writing, False),
        ("wallet.signer.audit.AuditLog.append", killed, False),  # the file is there, its line is not
        ("wallet.keystore.keystore_file.take_beside", killed, True),  # the line is there
        ("wallet.keystore.keystore_file.sync_directory", killed, False),
        ("wallet.keystore.keystore_file.take_beside", take_and_stop, True),
    ],
)
def test_a_kill_at_any_point_leaves_a_file_that_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, how: object, is_stored: bool
) -> None:
    path, log = tmp_path / "learnt.json", tmp_path / "audit.jsonl"

    def opened() -> LearntForms:
        return LearntForms(path, b"k" * 32, last_digest(log))

    def put(venue: str) -> None:
        with closing(AuditLog(log)) as audit:
            opened().put(a_form(venue), lambda digest: audit.append(1, {"operation": "learn", "learnt_sha256": digest}))

    put("satflow")
    with monkeypatch.context() as kill, pytest.raises(Killed):
        kill.setattr(where, how)
        put("unisat")
    for _ in range(2):
        assert opened().problem == ""
        assert [form.venue for form in opened().all()] == (["satflow", "unisat"] if is_stored else ["satflow"])
    put("ordnet")
    assert len(opened().all()) == 2 + is_stored


def test_what_lies_beside_is_believed_no_more_than_the_file(tmp_path: Path) -> None:
    path = tmp_path / "learnt.json"
    digest = stored(path, a_form())
    path.rename(tmp_path / "learnt.json.new")
    assert LearntForms(path, b"o" * 32, digest).problem.startswith("learnt.json is not believed: it was changed")


def test_the_audit_log_knows_the_last_file(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    assert last_digest(log) == "none"
    log.write_text('{"operation":"bid"}\n')
    assert last_digest(log) == "none"
    learnt = '{"operation":"learn","learnt_sha256":"aa"}\n{"operation":"bid"}\n'
    log.write_text(learnt + '{"operation":"forget","learnt_sha256":"bb"}\n{"operation":"list"}\n')
    assert last_digest(log) == "bb"
    # A slug is anybody's text, and a log cannot be edited: such a line must not stop the signer's next start.
    log.write_text(learnt + '{"operation":"bid","slug":"learnt_sha256"}\n')
    assert last_digest(log) == "aa"
    log.write_text(learnt + '{"operation":"bid","learnt_sha256":"cc"}\n')
    assert last_digest(log) == "aa"
