"""Hooks over HTTP: made, changed and removed by their owner; secrets are not shown again, nor in the database."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

import pytest

from core.hook_receivers import Receiver, Receivers
from models import accounts
from models.hooks import queue, table
from models.hooks.table import Delivery, Hook
from models.outbox import LASTING
from server.hooks import Hooks
from tests.databases import dump
from tests.worlds.service import Service, with_settings

URL, SECRET = "https://hooks.example/in/t0ken-in-path", "t0ken-of-mine"
NEW = {"url": URL, "events": ["error", "fill"], "secret": SECRET}
ALLOWED = (ipaddress.ip_network("10.0.0.0/8"),)


def receivers(service: Service) -> Receivers:
    return Receivers(service.settings.hooks_dir)


def files(service: Service) -> list[Path]:
    return list(service.settings.hooks_dir.glob("*"))


async def test_a_secret_is_kept_in_a_file_and_shown_to_nobody(service: Service) -> None:
    made = await service.ask("POST", "/api/hooks", NEW)
    shown = await service.ask("GET", "/api/hooks")
    one = await service.ask("GET", made.headers["Location"])

    assert (made.status, made.json["secret"]) == (201, None)
    assert made.json["events"] == ["fill", "error"]  # in the order of their list
    assert shown.json == [one.json] and one.json["url"] == "https://hooks.example/..." and one.json["hasSecret"]
    for text in (made.text, shown.text, one.text, dump(service.settings.database_url)):
        assert "t0ken" not in text
    assert receivers(service).read(Hook.get().receiver) == Receiver(URL, SECRET)


async def test_a_webhook_without_a_secret_is_given_one_which_is_told_once(service: Service) -> None:
    made = (await service.ask("POST", "/api/hooks", {"url": URL, "events": ["fill"]})).json
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", made["secret"])
    assert receivers(service).read(Hook.get().receiver).secret == made["secret"]
    assert made["secret"] not in (await service.ask("GET", f"/api/hooks/{made['id']}")).text
    ntfy = {"kind": "ntfy", "url": "https://ntfy.sh/topic", "events": ["fill"]}
    assert (await service.ask("POST", "/api/hooks", ntfy)).json["secret"] is None


async def test_a_change_of_nothing_changes_nothing(service: Service) -> None:
    made = await service.ask("POST", "/api/hooks", NEW)
    changed = await service.ask("PUT", made.headers["Location"], {})
    assert (changed.status, changed.json) == (200, {name: made.json[name] for name in changed.json})


async def test_a_change_replaces_what_is_given_and_leaves_no_old_secret_behind(service: Service) -> None:
    made = (await service.ask("POST", "/api/hooks", NEW)).json
    path = f"/api/hooks/{made['id']}"

    changed = await service.ask("PUT", path, {"events": ["daily"], "minIntervalSeconds": 60})
    assert (changed.json["events"], changed.json["minIntervalSeconds"]) == (["daily"], 60)
    assert receivers(service).read(Hook.get().receiver) == Receiver(URL, SECRET)
    await service.ask("PUT", path, {"url": "https://other.example/x"})
    assert receivers(service).read(Hook.get().receiver) == Receiver("https://other.example/x", SECRET)
    refused = await service.ask("PUT", path, {"secret": ""})
    assert (refused.status, refused.names(), len(files(service))) == (400, {"secret"}, 1)

    await service.ask("DELETE", path)
    assert (await service.ask("GET", path)).status == 404 and files(service) == []


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/x", "https://ntfy.sh:8443/topic", "https://ntfy.sh.evil.example/topic", "http://ntfy.sh/a"],
)
@with_settings(hook_networks=ALLOWED)
async def test_an_access_token_is_sent_to_no_server_but_the_one_it_was_given_for(
    service: Service, elsewhere: str
) -> None:
    ntfy = {"kind": "ntfy", "url": "https://ntfy.sh/topic", "events": ["fill"], "secret": SECRET}
    path = (await service.ask("POST", "/api/hooks", ntfy)).headers["Location"]

    refused = await service.ask("PUT", path, {"url": elsewhere})

    assert (refused.status, refused.json["details"]) == (400, ["secret: is required with another address"])
    assert receivers(service).read(Hook.get().receiver) == Receiver("https://ntfy.sh/topic", SECRET)
    assert len(files(service)) == 1

    for change, now in (
        ({"url": "https://ntfy.sh/other"}, Receiver("https://ntfy.sh/other", SECRET)),
        ({"url": elsewhere, "secret": "t0ken-for-there"}, Receiver(elsewhere, "t0ken-for-there")),
        ({"url": "https://ntfy.sh/topic", "secret": ""}, Receiver("https://ntfy.sh/topic")),
        ({"url": elsewhere}, Receiver(elsewhere)),  # there is none to tell
    ):
        changed = await service.ask("PUT", path, change)
        assert changed.status == 200, changed.text
        assert receivers(service).read(Hook.get().receiver) == now


async def test_a_bots_token_stays_where_only_telegram_is_told_it(service: Service) -> None:
    bot = "12345:" + "a" * 35
    new = {"kind": "telegram", "url": "telegram:5", "events": ["fill"], "secret": bot}
    path = (await service.ask("POST", "/api/hooks", new)).headers["Location"]
    assert (await service.ask("PUT", path, {"url": "telegram:@other"})).status == 200
    assert receivers(service).read(Hook.get().receiver) == Receiver("telegram:@other", bot)


async def test_bad_hooks_are_refused_with_all_their_faults_and_leave_no_file(service: Service) -> None:
    for bad, names in (
        ({}, {"url", "events"}),
        (NEW | {"kind": "pager"}, {"kind"}),
        (NEW | {"url": "http://10.0.0.1/"}, {"url"}),
        (NEW | {"url": "https://127.0.0.1/"}, {"url"}),
        (NEW | {"events": ["cycle"]}, {"events"}),
        (NEW | {"events": []}, {"events"}),
        (NEW | {"minIntervalSeconds": 86_401, "more": 1}, {"minIntervalSeconds", "more"}),
        (NEW | {"kind": "telegram", "url": "telegram:5"}, {"secret"}),
        (NEW | {"kind": "discord"}, {"secret"}),
        (NEW | {"secret": "whsec_c2hvcnQ="}, {"secret"}),
        ({"kind": "mail", "url": "mailto:a@b.example", "events": ["fill"]}, {"kind"}),
    ):
        answer = await service.ask("POST", "/api/hooks", bad)
        assert (answer.status, answer.names()) == (400, names), bad
    assert files(service) == [] and "cycle" not in LASTING


@with_settings(hook_networks=ALLOWED, smtp_url="smtps://mail.example", mail_from="a@b.example")
async def test_what_the_operator_allows_is_taken(service: Service) -> None:
    for kind, url in (("webhook", "http://10.1.2.3:8080/"), ("mail", "mailto:ann@mail.example")):
        answer = await service.ask("POST", "/api/hooks", {"kind": kind, "url": url, "events": ["fill"]})
        assert answer.status == 201, answer.text
    assert (await service.ask("POST", "/api/hooks", {"url": "http://192.168.0.1/", "events": ["fill"]})).status == 400


async def test_a_user_has_ten_and_the_eleventh_leaves_no_file(service: Service) -> None:
    for _ in range(10):
        assert (await service.ask("POST", "/api/hooks", NEW)).status == 201
    assert (await service.ask("POST", "/api/hooks", NEW)).status == 403
    assert len(files(service)) == 10
    assert (await service.api("POST", "/api/hooks", NEW, token=service.other_token)).status == 201


async def test_a_secret_from_before_its_rule_is_kept_when_the_address_changes(service: Service) -> None:
    path = (await service.ask("POST", "/api/hooks", NEW)).headers["Location"]
    receivers = Receivers(service.settings.hooks_dir)
    hook = Hook.get()
    hook.receiver = receivers.keep(Receiver(NEW["url"], "whsec_my-old-secret"))
    hook.save()
    answer = await service.ask("PUT", path, {"url": NEW["url"] + "/other"})
    assert answer.status == 200, answer.text
    assert receivers.read(Hook.get().receiver).secret == "whsec_my-old-secret"


async def test_deliveries_are_shown_and_sent_again_by_their_owner(service: Service) -> None:
    path = (await service.ask("POST", "/api/hooks", NEW)).headers["Location"]
    other = (await service.ask("POST", "/api/hooks", NEW)).headers["Location"]
    tried = await service.ask("POST", f"{path}/test")
    assert (tried.status, tried.json["state"], tried.json["event"]) == (202, "waiting", "test")
    queue.failed(queue.next_due(Hook.get(), service.clock()), 500, "answered 500", service.clock())

    [shown] = (await service.ask("GET", f"{path}/deliveries")).json["deliveries"]
    assert (shown["state"], shown["status"], shown["error"]) == ("dead", 500, "answered 500")
    assert (await service.ask("GET", path)).json["isFailing"]
    assert (await service.ask("POST", f"{other}/deliveries/{shown['id']}/redeliver")).status == 404
    assert (await service.ask("POST", f"{path}/deliveries/{2**70}/redeliver")).status == 404
    assert (await service.ask("POST", f"{path}/deliveries/{shown['id']}/redeliver")).json["state"] == "waiting"
    assert (await service.ask("POST", f"{path}/deliveries/{shown['id']}/redeliver")).status == 409
    statuses = [(await service.ask("POST", f"{path}/test")).status for _ in range(20)]
    assert statuses.count(429) == 3  # twenty a minute by hand


async def test_nothing_is_made_by_a_session_that_ended_meanwhile(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = Receivers.keep

    def signed_out_meanwhile(self: Receivers, receiver: Receiver) -> str:
        accounts.end_sessions(service.user_id)
        return keep(self, receiver)

    monkeypatch.setattr(Receivers, "keep", signed_out_meanwhile)
    assert (await service.ask("POST", "/api/hooks", NEW)).status == 401
    assert files(service) == [] and Hook.select().count() == 0


MAIL = {"kind": "mail", "url": "mailto:ann@mail.example", "events": ["halted"]}
WITH_MAIL = with_settings(smtp_url="smtps://mail.example", mail_from="a@b.example")


def mailed(service: Service, code: str) -> None:
    """Has the hooks program mail this code to the newest hook's address."""
    hook = Hook.select().order_by(Hook.id.desc()).get()
    assert queue.begin(hook, queue.next_due(hook, service.clock()), lambda: code, service.clock())
    queue.sent([Delivery.get(Delivery.hook == hook.id, Delivery.state == "waiting")], None, service.clock())


@WITH_MAIL
async def test_a_mail_hook_waits_for_its_code_and_a_wrong_one_is_refused_in_words(service: Service) -> None:
    made = await service.ask("POST", "/api/hooks", MAIL)
    path = made.headers["Location"]
    assert made.json["waitsForCode"] and not (await service.ask("POST", "/api/hooks", NEW)).json["waitsForCode"]
    for operation in ("/test", "/deliveries/1/redeliver"):
        refused = await service.ask("POST", path + operation)
        assert (refused.status, refused.json["error"]) == (409, "The hook waits for its code")
    Hook.delete().where(Hook.kind != "mail").execute()
    early = await service.ask("POST", f"{path}/confirm", {"code": "K7QM-3XWP"})
    assert early.json["details"] == ["code: was not sent yet: wait for the mail, or ask for a new code"]

    mailed(service, "K7QM-3XWP")
    wrong = await service.ask("POST", f"{path}/confirm", {"code": "K7QM-3XWQ"})
    assert (wrong.status, wrong.json["details"]) == (400, ["code: is not the one in the newest mail; tries left: 4"])
    soon = await service.ask("POST", f"{path}/code")
    assert (soon.status, soon.headers["Retry-After"]) == (429, "300")
    shown = (await service.ask("GET", f"{path}/deliveries")).text
    assert '"code"' in shown and "K7QM" not in shown
    good = await service.ask("POST", f"{path}/confirm", {"code": " k7qm3xwp "})
    assert (good.status, good.json["waitsForCode"]) == (200, False)
    assert (await service.ask("POST", f"{path}/test")).status == 202
    assert (await service.ask("POST", f"{path}/deliveries/1/redeliver")).status == 409, "a code is sent once"


@WITH_MAIL
async def test_another_address_of_a_mail_hook_asks_for_a_new_code_and_the_same_one_does_not(service: Service) -> None:
    path = (await service.ask("POST", "/api/hooks", MAIL)).headers["Location"]
    mailed(service, "K7QM-3XWP")
    await service.ask("POST", f"{path}/confirm", {"code": "K7QM-3XWP"})
    same = await service.ask("PUT", path, {"url": MAIL["url"], "minIntervalSeconds": 60})
    assert (same.status, same.json["waitsForCode"], same.json["waiting"]) == (200, False, 0)
    other = await service.ask("PUT", path, {"url": "mailto:stranger@mail.example"})
    assert (other.json["waitsForCode"], other.json["waiting"]) == (True, 1)
    old = await service.ask("POST", f"{path}/confirm", {"code": "K7QM-3XWP"})
    assert old.status == 400, "a code is of one address"


@WITH_MAIL
async def test_a_code_is_not_confirmed_by_a_session_that_ended_meanwhile(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (await service.ask("POST", "/api/hooks", MAIL)).headers["Location"]
    mailed(service, "K7QM-3XWP")
    monkeypatch.setattr(Hooks, "is_signed_in", lambda self: False)
    assert (await service.ask("POST", f"{path}/confirm", {"code": "K7QM-3XWP"})).status == 401
    assert Hook.get().agreed_ms is None


@WITH_MAIL
async def test_a_change_back_to_a_strangers_address_meanwhile_leaves_it_without_consent(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (await service.ask("POST", "/api/hooks", MAIL)).headers["Location"]
    keep, first = Receivers.keep, Hook.get().receiver

    def own_address_agrees_meanwhile(self: Receivers, receiver: Receiver) -> str:
        own = keep(self, Receiver("mailto:bob@mail.example"))
        Hook.update(shown="mailto:bob@mail.example", receiver=own, agreed_ms=1).execute()  # by another server
        self.forget(first)
        return keep(self, receiver)

    monkeypatch.setattr(Receivers, "keep", own_address_agrees_meanwhile)
    changed = await service.ask("PUT", path, {"url": MAIL["url"]})
    assert (changed.status, changed.json["url"], changed.json["waitsForCode"]) == (200, MAIL["url"], True)
    assert [file.name for file in files(service)] == [Hook.get().receiver], "no former receiver is left behind"


async def test_a_change_of_a_hook_that_is_removed_meanwhile_is_not_found_and_leaves_no_file(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, keep = (await service.ask("POST", "/api/hooks", NEW)).headers["Location"], Receivers.keep

    def removed_meanwhile(self: Receivers, receiver: Receiver) -> str:
        self.forget(Hook.get().receiver)
        Hook.delete().execute()
        return keep(self, receiver)

    monkeypatch.setattr(Receivers, "keep", removed_meanwhile)
    assert (await service.ask("PUT", path, {"url": URL + "2"})).status == 404
    assert files(service) == []


@WITH_MAIL
async def test_a_code_is_not_asked_for_once_the_address_has_agreed_meanwhile(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (await service.ask("POST", "/api/hooks", MAIL)).headers["Location"]
    mailed(service, "K7QM-3XWP")

    def agrees_meanwhile(*of: object) -> int:
        Hook.update(agreed_ms=1).execute()  # by another server
        return 0

    monkeypatch.setattr(table, "code_wait_s", agrees_meanwhile)
    refused = await service.ask("POST", f"{path}/code")
    assert (refused.status, refused.json["error"]) == (409, "The hook waits for no code")
    assert [row.state for row in Delivery.select()] == ["sent"]
