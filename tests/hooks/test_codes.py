"""The bounds of codes: strangers cannot shut an address out that its user has confirmed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from models.hooks import table
from models.hooks.table import CODE, Delivery, Hook, Send
from tests.hooks.test_courier import NOW, World, make_hook

ANN = "mailto:ann@mail.example"
DAY_S = 86_400


@pytest.fixture
def world(database: str) -> World:
    made = World()
    make_hook(1)  # so that the users have these numbers
    return made


def send_codes(count: int, address_of: Callable[[int], str], first_user: int = 100) -> None:
    """Notes a code for each of `count` strangers."""
    for number in range(count):
        table.note(first_user + number, CODE, address_of(number), NOW)


def wait_s(user_id: int, address: str, after_s: int = 400) -> int:
    return table.code_wait_s(user_id, address, NOW + 1000 * after_s)


async def test_strangers_codes_do_not_hold_those_of_a_user_who_confirmed_the_address(world: World) -> None:
    hook = make_hook(1, kind="mail", shown=ANN)
    assert table.store(hook, "K7QM-3XWP", NOW) and table.confirm(hook, "K7QM-3XWP", NOW, may_still=lambda: True)
    send_codes(3, lambda _: ANN)
    assert wait_s(2, ANN) == DAY_S - 400, "another user waits"
    assert wait_s(1, "mailto:Ann+tag@mail.example", 0) == 0
    for _ in range(3):
        table.note(1, CODE, ANN, NOW)
    assert wait_s(1, ANN) == DAY_S - 400, "three a day"
    assert wait_s(2, "mailto:bob@mail.example") == 0
    table.note(3, "webhook", None, NOW + 10 * 1000 * DAY_S)
    assert [row.kind for row in Send.select().where(Send.user_id == 1)] == ["own"], "it is kept"
    assert table.code_wait_s(1, ANN, NOW + 10 * 1000 * DAY_S) == 0


async def test_strangers_codes_do_not_hold_the_code_of_a_hook_from_before_codes(world: World) -> None:
    hook = make_hook(1, kind="mail", shown=ANN)
    Delivery.delete().execute()
    send_codes(3, lambda _: ANN)
    await world.work()
    assert [receiver for receiver, _ in world.sent] == [hook.receiver]
    assert Hook.get_by_id(hook.id).code_hash is not None


async def test_a_domain_and_an_installation_have_a_bound_of_codes_a_day(world: World) -> None:
    send_codes(99, lambda number: f"mailto:a{number}@mail.example")
    assert wait_s(1, "mailto:new@mail.example") == 0
    send_codes(1, lambda _: "mailto:last@mail.example")
    assert wait_s(1, "mailto:new@mail.example") == DAY_S - 400
    assert wait_s(1, "mailto:new@other.example") == 0
    send_codes(199, lambda number: f"mailto:a@{number}.example")
    assert wait_s(1, "mailto:new@other.example") == 0
    send_codes(1, lambda _: "mailto:last@last.example")
    assert wait_s(1, "mailto:new@other.example") == DAY_S - 400
    table.remember(1, "mailto:new@other.example")
    assert wait_s(1, "mailto:new@other.example") == 0


def test_spellings_of_one_gmail_address_are_one_address() -> None:
    same = ("victim@gmail.com", "v.ictim@gmail.com", "V.I.ctim+a.b@googlemail.com")
    assert len({table.hash_of(f"mailto:{address}") for address in same}) == 1
    assert table.hash_of("mailto:vi.ctim@mail.example") != table.hash_of("mailto:victim@mail.example")
