"""The bounds of what hooks send: nothing to an address that has not agreed, and few mails."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.hook_receivers import Receiver, Receivers
from hooks.courier import Courier
from hooks.sender import Mailer, Outcome, Sender
from models.database.base import transaction
from models.hooks import queue, table
from models.hooks.table import CODE_MS, DEAD, MOST_TRIES, SENT, WAITING, Delivery, Hook, WrongCode
from tests.hooks.receiver import LOOPBACK, MailServer, mail_server
from tests.hooks.test_courier import NOW, World, happen, make_hook, states

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@pytest.fixture
def world(database: str) -> World:
    return World()


@pytest.fixture
def mailbox(world: World, tmp_path: Path) -> Iterator[MailServer]:
    """The operator's mail server, to which the world's courier hands its mails for real."""
    with mail_server() as server:
        server.clock_ms = world.clock
        sender = Sender(Receivers(tmp_path), LOOPBACK, Mailer(server.url, "", "bot@mail.example"))
        world.courier = Courier(sender.send, world.clock)
        yield server


def mail_hook(tmp_path: Path, address: str, user_id: int = 1, **values: Any) -> Hook:
    name = Receivers(tmp_path).keep(Receiver(f"mailto:{address}"))
    given = {"kind": "mail", "shown": f"mailto:{address}", "has_secret": False, "receiver": name, "created_ms": NOW}
    return make_hook(user_id, "halted", "fill", **given | values)


async def agreed_hook(world: World, mailbox: MailServer, tmp_path: Path, address: str, user_id: int = 1) -> Hook:
    """Returns a mail hook whose code was sent back; no bound holds its user."""
    hook = mail_hook(tmp_path, address, user_id)
    await world.work()
    send_back(hook, mailbox.got[-1].code, world)
    mailbox.got.clear()
    world.clock.advance(60)
    return hook


def send_back(hook: Hook, code: str | None, world: World) -> None:
    assert code is not None
    assert table.confirm(Hook.get_by_id(hook.id), code, world.clock(), may_still=lambda: True)


async def minutes(world: World, count: int, seconds: float = 60) -> None:
    for _ in range(count):
        await world.work()
        world.clock.advance(seconds)


def lines_of(mailbox: MailServer, words: str) -> int:
    return sum(words in line for mail in mailbox.got for line in mail.text.splitlines())


@pytest.mark.slow
async def test_strangers_by_mail_get_one_code_and_no_event(world: World, mailbox: MailServer, tmp_path: Path) -> None:
    for number in range(9):
        mail_hook(tmp_path, f"stranger{number}@mail.example")
    happen(*["halted"] * 40)
    await minutes(world, 120)
    assert Counter(mail.to for mail in mailbox.got) == {f"stranger{number}@mail.example": 1 for number in range(9)}
    assert all(mail.code for mail in mailbox.got) and lines_of(mailbox, "Halt") == 0
    at = [mail.at_ms for mail in mailbox.got]
    assert all(later - former >= 60_000 for former, later in itertools.pairwise(at))
    assert Delivery.select().where(Delivery.state == WAITING).count() == 9 * 40, "none is lost"


async def test_an_address_that_agreed_gets_a_mail_a_minute_and_the_rest_as_a_summary(
    world: World, mailbox: MailServer, tmp_path: Path
) -> None:
    await agreed_hook(world, mailbox, tmp_path, "ann@mail.example")
    happen("halted")
    await world.work()
    happen(*["halted"] * 39)
    await minutes(world, 6, 9.9)
    assert len(mailbox.got) == 1
    await minutes(world, 10)
    first, summary = mailbox.got
    assert (first.subject, summary.subject) == (
        "Bidkeeper: Halt for all your tasks, set by you (task 7)",
        "Bidkeeper: 39 events",
    )
    assert lines_of(mailbox, "Halt for all your tasks") == 40 + 1, "the first repeats it in its data"
    assert summary.at_ms - first.at_ms >= 60_000 and set(states()) == {SENT}


@pytest.mark.slow
async def test_a_user_gets_at_most_200_mails_a_day_and_never_waits_long_for_one(world: World, tmp_path: Path) -> None:
    hook = mail_hook(tmp_path, "ann@mail.example")
    at: list[int] = []
    told: list[int] = []

    def answer(receiver: str, body: dict[str, Any]) -> Outcome:
        at.append(world.clock())
        told.extend(event["id"] for event in body.get("events", [body] if "id" in body else []))
        return Outcome(None, None)

    world.answer = answer
    Hook.update(agreed_ms=1).where(Hook.id == hook.id).execute()
    for _ in range(26 * 30):
        happen("halted")
        await minutes(world, 1, 120)
    assert max(sum(start <= each < start + DAY_MS for each in at) for start in at) <= 200
    assert max(later - former for former, later in itertools.pairwise(at)) <= 16 * 60_000
    assert told == sorted(told) and len(told) >= 26 * 30 - 8, "the rest is in the next summary"


async def test_mails_of_a_task_keep_their_order_and_wait_for_one_that_is_tried_again(
    world: World, mailbox: MailServer, tmp_path: Path
) -> None:
    await agreed_hook(world, mailbox, tmp_path, "ann@mail.example")
    mailbox.is_away = True
    happen("fill", task_id=7)
    await minutes(world, 1, 5)
    mailbox.is_away = False
    happen("halted", task_id=7)
    happen("halted", "fill", task_id=8)
    Delivery.update(due_ms=world.clock() + 300_000).where(Delivery.tries == 1).execute()
    await minutes(world, 4)
    assert [mail.subject for mail in mailbox.got] == ["Bidkeeper: 2 events"] and "task 7" not in mailbox.got[0].text
    await minutes(world, 3)
    assert [mail.subject for mail in mailbox.got[1:]] == ["Bidkeeper: 2 events"]
    assert mailbox.got[1].text.index("Bought") < mailbox.got[1].text.index("Halt")


@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_user_gets_at_most_60_deliveries_a_minute_over_all_hooks_and_restarts(
    world: World, by_hand: bool
) -> None:
    made = [make_hook(receiver=f"r{number}") for number in range(10)]
    make_hook(2)
    for task in range(12):
        happen("fill", task_id=task + 1)
    happen("fill", user_id=2)
    if by_hand:
        for hook in made:
            queue.add_test(hook, world.clock())
    for _ in range(4):
        world.courier = Courier(world.send, world.clock)
        await minutes(world, 1, 10)
    assert len(world.sent) == 60 + 1, "another user's is not held"
    if by_hand:
        again = Delivery.get(Delivery.state == SENT)
        assert queue.again(Hook.get_by_id(again.hook_id), again.id, world.clock())
        await world.work()
        assert len(world.sent) == 60 + 1
    await minutes(world, 3, 30)
    assert len(world.sent) == 120 + 1
    await minutes(world, 3, 30)
    assert set(states()) == {SENT} and len(world.sent) == 121 + (11 if by_hand else 0)


async def test_a_code_is_bounded_voided_and_asked_for_anew(world: World, mailbox: MailServer, tmp_path: Path) -> None:
    hook = mail_hook(tmp_path, "ann@mail.example")
    with pytest.raises(WrongCode, match="was not sent yet"):
        send_back(hook, "K7QM-3XWP", world)
    await world.work()
    first = mailbox.got[0].code
    assert first and first not in str([*Hook.select().tuples(), *Delivery.select().tuples()])
    for left in range(MOST_TRIES - 1, 0, -1):
        with pytest.raises(WrongCode, match=f"tries left: {left}"):
            send_back(hook, "WRNG-WRNG", world)
    for code in ("WRNG-WRNG", first):
        with pytest.raises(WrongCode, match="is void after 5 wrong tries"):
            send_back(hook, code, world)

    assert table.code_wait_s(1, hook.shown, world.clock()) == 300
    ask(hook, world)
    await world.work()
    assert len(mailbox.got) == 1
    await minutes(world, 7)
    second = mailbox.got[1].code
    assert len(mailbox.got) == 2 and second and second != first
    world.clock.now_ms = mailbox.got[1].at_ms + CODE_MS
    with pytest.raises(WrongCode, match="has expired"):
        send_back(hook, second, world)

    ask(hook, world)
    await world.work()
    send_back(hook, mailbox.got[2].code, world)
    queue.change(hook.id, world.clock(), may_still=lambda: True, min_interval_s=0)
    assert not table.is_awaited(Hook.get_by_id(hook.id))
    happen("halted")
    moved = Receivers(tmp_path).keep(Receiver("mailto:bob@mail.example"))
    queue.change(hook.id, world.clock(), may_still=lambda: True, receiver=moved, shown="mailto:bob@mail.example")
    await minutes(world, 5)
    assert [mail.to for mail in mailbox.got[3:]] == ["bob@mail.example"] and mailbox.got[3].code
    send_back(hook, mailbox.got[3].code, world)
    await minutes(world, 5)
    assert "Halt" in mailbox.got[4].text and len(mailbox.got) == 5


def ask(hook: Hook, world: World) -> None:
    with transaction():
        assert table.ask(hook.id, world.clock())


@pytest.mark.slow
async def test_an_address_gets_three_codes_a_day_from_all_users_and_a_user_asks_for_ten(
    world: World, mailbox: MailServer, tmp_path: Path
) -> None:
    for user in range(1, 6):
        mail_hook(tmp_path, f"Ann+{user}@mail.example", user)
    await minutes(world, 60)
    assert len(mailbox.got) == 3
    for number in range(15):
        queue.remove(mail_hook(tmp_path, f"stranger{number}@mail.example", 6))
        mail_hook(tmp_path, f"stranger{number}@mail.example", 6)
        await minutes(world, 10)
        queue.remove(Hook.get(Hook.user == 6))
    assert sum(mail.to.startswith("stranger") for mail in mailbox.got) == 10
    world.clock.advance(86_400)
    await minutes(world, 60)
    assert len(mailbox.got) == 3 + 10 + 2, "those that waited have the turn"


async def test_a_code_that_could_not_be_mailed_is_not_tried_again_by_itself(
    world: World, mailbox: MailServer, tmp_path: Path
) -> None:
    hook = mail_hook(tmp_path, "ann@mail.example")
    mailbox.is_away = True
    await minutes(world, 60)
    assert states() == [DEAD] and Hook.get().is_failing and queue.again(hook, 1, world.clock()) is None
    mailbox.is_away = False
    ask(hook, world)
    await world.work()
    send_back(hook, mailbox.got[0].code, world)


async def test_an_address_that_replaces_one_while_its_code_is_on_its_way_gets_a_code_of_its_own(
    world: World, tmp_path: Path
) -> None:
    hook, over, sent = mail_hook(tmp_path, "ann@mail.example"), threading.Event(), []

    def answer(receiver: str, body: dict[str, Any]) -> Outcome:
        sent.append((receiver, body["code"]))
        over.wait(20)
        return Outcome(None, None)

    world.answer = answer
    world.courier.look()
    world.courier.send_due()
    queue.change(hook.id, NOW, may_still=lambda: True, receiver="bob", shown="mailto:bob@mail.example")
    over.set()
    await minutes(world, 3)
    assert [receiver for receiver, _ in sent] == [hook.receiver, "bob"]
    with pytest.raises(WrongCode):
        send_back(hook, sent[0][1], world)
    send_back(hook, sent[1][1], world)


async def test_a_mail_hook_from_before_codes_gets_one_and_its_events_wait(
    world: World, mailbox: MailServer, tmp_path: Path
) -> None:
    hook = mail_hook(tmp_path, "ann@mail.example")
    Delivery.delete().execute()
    happen("halted")
    await minutes(world, 10)
    assert len(mailbox.got) == 1
    world.courier._mark = world.courier._seen = None
    await minutes(world, 10)
    assert len(mailbox.got) == 1
    send_back(hook, mailbox.got[0].code, world)
    await minutes(world, 2)
    assert "Halt" in mailbox.got[1].subject


async def test_nothing_in_a_codes_mail_is_of_its_users_choice(
    world: World, mailbox: MailServer, tmp_path: Path
) -> None:
    mail_hook(tmp_path, "ann@mail.example")
    await world.work()
    [mail] = mailbox.got
    assert mail.subject == "Bidkeeper: confirm this address"
    assert " ".join(mail.text.replace(mail.code or "", "CODE").split()) == (
        "CODE This code confirms your address for notifications of Bidkeeper, for the user bc1q1. Enter it in Bidkeeper"
        " under Settings, Hooks, within 30 minutes. Did you not ask for it? Then ignore this mail: without the code,"
        " no notification is sent to you."
    )


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, 365 * DAY_MS])
async def test_a_clock_that_was_ahead_holds_no_delivery(
    world: World, mailbox: MailServer, tmp_path: Path, ahead_ms: int
) -> None:
    fast, sent = world.courier, []

    def send(kind: str, receiver: str, body: str, message_id: str) -> Outcome:
        if kind == "mail":
            return fast._send(kind, receiver, body, message_id)
        sent.append(world.clock())
        return Outcome(None, "away" if len(sent) == 1 else None)

    world.courier = Courier(send, world.clock)
    hook = mail_hook(tmp_path, "ann@mail.example")
    make_hook(2, min_interval_s=3_600)
    right_ms = world.clock()
    world.clock.now_ms += ahead_ms
    happen("fill", user_id=2)
    await minutes(world, 1, 1)  # the receiver is away, and a code is sent
    assert len(sent) == 1 and len(mailbox.got) == 1
    world.clock.now_ms = right_ms
    await world.work()
    assert len(sent) == 2, "its next try was due an hour later by the clock"
    with pytest.raises(WrongCode, match="has expired"):
        send_back(hook, mailbox.got[0].code, world)
    ask(hook, world)
    await minutes(world, 6)
    send_back(hook, mailbox.got[1].code, world)
    happen("halted")
    await minutes(world, 2)
    assert "Halt" in mailbox.got[2].subject, "no bound counts from the wrong time"


async def test_a_retry_keeps_its_delay_of_ten_minutes(world: World) -> None:
    make_hook()
    world.answer = lambda receiver, event: Outcome(500, "answered 500")
    happen("fill")
    for tries, seconds in enumerate((10, 60, 600), start=1):
        await world.work()
        assert len(world.sent) == tries
        world.clock.advance(seconds - 1)
        await world.work()
        assert len(world.sent) == tries
        world.clock.advance(1)


@pytest.mark.parametrize("tasks", [100, 900])
async def test_a_mail_hook_with_retries_of_many_tasks_sends_the_events_of_other_tasks(world: World, tasks: int) -> None:
    make_hook(kind="mail", shown="mailto:ann@mail.example", agreed_ms=1)
    for task in range(tasks):
        happen("fill", task_id=task + 1)
    happen("error", task_id=None)
    world.courier.look()
    Delivery.update(due_ms=NOW + 300_000).execute()
    happen("fill", task_id=1)
    happen("fill", task_id=tasks + 1)
    happen("fill", task_id=None)
    world.courier.look()
    found = queue.next_due(Hook.get(), NOW)
    assert [row.task_id for row in found] == [tasks + 1]
    assert len(queue.next_due(Hook.get(), NOW + 300_000)) == min(tasks + 4, 200)


@pytest.mark.parametrize("is_first", [True, False])
async def test_an_address_that_agreed_gets_its_events_and_no_code_that_waits_still(
    world: World, mailbox: MailServer, tmp_path: Path, is_first: bool
) -> None:
    hook = await agreed_hook(world, mailbox, tmp_path, "ann@mail.example")
    code = {"hook": hook.id, "event": "code", "body": "{}", "due_ms": NOW, "created_ms": NOW}
    if is_first:
        Delivery.create(**code)
    happen("fill", "halted")
    world.courier.look()
    if not is_first:
        Delivery.create(**code)
    await minutes(world, 5)
    assert [mail.subject for mail in mailbox.got] == ["Bidkeeper: 2 events"]
    assert lines_of(mailbox, "Bought") == lines_of(mailbox, "Halt") == 1


async def test_a_user_at_the_bound_costs_no_query_for_each_hook(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    next_due = queue.next_due
    monkeypatch.setattr(queue, "next_due", lambda hook, now_ms: asked.append(hook.user_id) or next_due(hook, now_ms))
    for number in range(10):
        make_hook(1, receiver=f"r{number}")
    for number in range(10):
        make_hook(2, kind="mail", shown=f"mailto:a{number}@mail.example", agreed_ms=1)
    make_hook(3, kind="mail", shown="mailto:ann@mail.example")  # its code is held by strangers'
    make_hook(4)
    for user in (1, 2, 3, 4):
        happen(*["fill"] * 3, user_id=user)
    for _ in range(table.MOST_A_MINUTE):
        table.note(1, "webhook", None, NOW)
    table.note(2, "mail", None, NOW)
    for stranger in (5, 6, 7):
        table.note(stranger, "code", "mailto:ann@mail.example", NOW)
    for _ in range(5):
        await world.work()
    assert Counter(asked) == {3: 1, 4: 3}
    assert {receiver for receiver, _ in world.sent} == {"r4"}
